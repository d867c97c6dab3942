"""`python -m benchmarks rounds`: rounds of a study in a browser, over a network that delays.

A headless Chromium plays a study whose pages come through a relay on this machine, which delays
each way by half of a round trip. Delays take turns, so that all of them meet the same noise. Keys
are real key events, at moments that are no multiple of the beat. What is told is what the study has
stored of each round.

Then a scripted participant, who steers by the green in the picture, plays the same arenas with each
delay: once as without a delay, once waiting for what a turn has done as long as the delay asks for.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil

from animalcat.service.study.file import Study, read_study
from animalcat.service.study.participant import Trial
from tests.service.conftest import arena
from tests.study.scripted import Scripted, import_open
from tests.study.test_study import Running, begin, command, go_on, trials, where
from tests.web.chromium import PROGRAM, Page, browser

DELAYS: Final = (0, 50, 150, 300)
"""Round trips in ms."""
ROUNDS: Final = 5
"""Rounds with each."""
KEYS: Final = (("ArrowLeft", 0.33), ("", 0.17), ("ArrowRight", 0.41), ("", 0.29))
"""What is held in turn, and for how many seconds; nobody walks, so that no round ends early."""
STEERED: Final = 10
"""Rounds of the scripted participant with each delay."""
STUDY: Final = """
study: {name}
title: Delays
contact: nobody
consent: {{version: "1", text: "It measures.", ask: ["I agree."]}}
blocks: {{minutes: 0}}
completion: {{done: {{code: DONE}}}}
play: {{battery: {battery}, max_episodes: {rounds}, target_sd: 0, futility: 0, certify: false,
  policy: random, seed: 1}}
"""
AIMS: Final = {"arrival_p95": 10.0, "paint_p95": 35.0, "shown_p95": 60.0}
"""Most ms without a delay, at the 95th percentile of frames."""


class Relay:
    """Passes on what goes to a port of this machine, later.

    Attributes:
        port: Where it listens.
        delay: Seconds that each way takes; may change at any time.
    """

    def __init__(self, target: int) -> None:
        """Listen at any free port, on a thread of its own."""
        self.delay = 0.0
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._connect, "127.0.0.1", 0)
        )
        self.port = int(self._server.sockets[0].getsockname()[1])
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    async def _connect(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, there = await asyncio.open_connection("127.0.0.1", self._target)
        await asyncio.gather(self._pass(near, there), self._pass(far, back))

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Pass bytes on in their order, each after the delay and whatever is still under way."""
        under_way = asyncio.Queue[tuple[float, bytes]]()

        async def write() -> None:
            while True:
                at, data = await under_way.get()
                if (left := at - time.monotonic()) > 0.0:
                    await asyncio.sleep(left)
                if not data:
                    sink.close()
                    return
                sink.write(data)

        writing = asyncio.create_task(write())
        with suppress(OSError):
            while data := await source.read(1 << 18):
                under_way.put_nowait((time.monotonic() + self.delay, data))
        under_way.put_nowait((time.monotonic() + self.delay, b""))
        with suppress(OSError):
            await writing


def run(quick: bool) -> list[dict[str, Any]]:
    """Play rounds with each delay."""
    if not PROGRAM:
        return [{"name": "rounds in a browser", "value": "not measured: there is no Chromium"}]
    rounds, steered = (1, 2) if quick else (ROUNDS, STEERED)
    with tempfile.TemporaryDirectory(prefix="animalcat-rounds-") as folder, ExitStack() as stack:
        home = import_open(Path(folder))
        _import(Path(folder) / "arenas", home)
        # A server of its own, which has the priority of this command; a private one would have not.
        words = ("serve", "--data", str(home), "--port", "0", "--json")
        server = subprocess.Popen(command(*words), stdout=subprocess.PIPE)
        stack.callback(server.wait)
        stack.callback(server.terminate)
        assert server.stdout is not None  # a pipe
        server.stdout.readline()
        psutil.cpu_percent()
        found = _play(home, rounds)
        load = f"{psutil.cpu_percent():.0f} % of {os.cpu_count()} cores busy"
        ways = [
            (delay, waits) for delay in DELAYS for waits in sorted({3, 3 + math.ceil(delay / 60)})
        ]
        return [
            *(row for delay in DELAYS for row in _rows(delay, found[delay], load)),
            *(_steered(home, steered, delay, waits) for delay, waits in ways),
        ]


def _import(arenas: Path, home: Path) -> None:
    arenas.mkdir()
    for k in range(24):
        (arenas / f"navigation-{k:02}.yaml").write_text(arena(k).replace("t: 24", "t: 100"))
    words = ("battery", "import", str(arenas), "--name", "tiny", "--data", str(home))
    subprocess.run(command(*words), check=True, capture_output=True)


@contextmanager
def _offered(home: Path, **what: Any) -> Generator[tuple[Study, str, Relay, Page]]:
    """Run a study behind a relay; yields it with its link, the relay and a browser's page."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    relay = Relay(port)
    file = home.parent / f"{what['name']}.yaml"
    file.write_text(STUDY.format(**what))
    running = Running(file, home, "--url", f"http://127.0.0.1:{relay.port}", port=port)
    try:
        with browser() as opened:
            page = opened()
            page.size(1000, 900)
            yield read_study(file), running.link, relay, page
    finally:
        running.end()


def _play(home: Path, rounds: int) -> dict[int, list[Trial]]:
    """Play rounds with all delays in turn, and return them without the first of each."""
    count = (1 + rounds) * len(DELAYS)
    offered = _offered(home, name="delays", battery="tiny", rounds=count)
    with offered as (study, link, relay, page):
        page.open(link)
        while where(page) != "play":
            go_on(page)
        for number in range(count):
            relay.delay = DELAYS[number % len(DELAYS)] / 2000.0
            page.open(link)  # so that clocks are compared anew
            time.sleep(2.0)
            _round(page)
    played = trials(home, study)[len(DELAYS) :]
    return {delay: played[k :: len(DELAYS)] for k, delay in enumerate(DELAYS)}


def _steered(home: Path, rounds: int, delay: int, waits: int) -> dict[str, Any]:
    """What the scripted participant gets with a delay."""
    name = f"steered-{delay}-{waits}"
    with _offered(home, name=name, battery="open", rounds=rounds) as (study, link, relay, page):
        relay.delay = delay / 2000.0
        Scripted(page, waits=waits).take_part(link)
    played = trials(home, study)
    steps = [trial.steps for trial in played if trial.passed]
    return {
        "name": f"{delay} ms round trip: passed by one who looks {waits} frames after each turn",
        "value": sum(bool(trial.passed) for trial in played) / len(played),
        "note": f"{len(played)} rounds; median of {statistics.median(steps or [0]):g} decisions",
    }


def _round(page: Page) -> None:
    """Play a round; the page is asked for nothing meanwhile, so that it has time to paint."""
    begin(page)
    end = time.monotonic() + 9.0
    while time.monotonic() < end:
        for code, seconds in KEYS:
            if code:
                page.key(code, up=False)
            time.sleep(seconds)
            if code:
                page.key(code, down=False)
    page.wait(
        "document.getElementById('over')?.hidden === false || !document.getElementById('over')"
    )
    page.wait("!document.getElementById('go')?.hidden")


def _rows(delay: int, trials: Sequence[Trial], load: str) -> list[dict[str, Any]]:
    """Rows of one delay: medians over its rounds, and the extremes."""
    made = list[dict[str, Any]]()
    for name, words in {
        "made_p95": "from decision to sent",
        "arrival_p95": "from sent to arrived",
        "paint_p95": "from sent to painted",
        "shown_p95": "from decision to painted",
        "wait_p95": "wait for the decision",
        "key_p95": "from key to painted",
        "interval_p95": "between paints",
        "late": "late frames",
        "dropped": "dropped frames",
    }.items():
        values = [float(getattr(trial.timing, name)) for trial in trials]
        row: dict[str, Any] = {
            "name": f"{delay} ms round trip: {words}",
            "value": round(statistics.median(values), 1),
            "low": min(values),
            "high": max(values),
        }
        if delay == 0 and name in AIMS:
            row |= {"target": f"below {AIMS[name]:g} ms", "met": row["value"] < AIMS[name]}
        made.append(row)
    ended = ", ".join(f"{t.outcome} {' '.join(t.flags) or 'no flag'}" for t in trials)
    steps = sum(trial.steps for trial in trials)
    made[-1]["note"] = f"{steps} decisions; {ended}; {load}"
    return made
