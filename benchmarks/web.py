"""`python -m benchmarks web`: what browsers cost that watch a session.

An agent that thinks no time plays one session directly with its worker. Stretches with and without
browsers take turns, so that both meet the same noise. A browser here is a connection that reads the
page's stream of events; a process of its own holds all of them.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import grpc
import httpx
import psutil

from animalcat.bench import crowd
from animalcat.bench.service import SPECS, new_session
from animalcat.client.stream import EvaluationStream

VIEWERS: Final = 20
SECONDS: Final = 4.0
"""Length of a stretch."""
MOST_CORES: Final = 0.1
"""Most of a core that all browsers together may cost the server."""
MOST_SLOWER: Final = 0.05
"""By how much steps may slow down at most, as a share: the upper end of a 90 % interval."""
T_95: Final = {3: 2.92, 20: 1.729}
"""Quantiles of Student's t at 95 %, by the number of pairs."""


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure with pairs of stretches."""
    pairs = 3 if quick else 20
    with tempfile.TemporaryDirectory(prefix="animalcat-web-") as folder:
        command = [sys.executable, "-m", "animalcat", "serve", "--data", folder]
        options = ["--port", "0", "--web", "0", "--json"]
        server = subprocess.Popen([*command, *options], stdout=subprocess.PIPE)
        assert server.stdout is not None  # a pipe
        try:
            facts = json.loads(server.stdout.readline())
            return asyncio.run(_measure(facts["address"], facts["web"], server.pid, pairs))
        finally:
            server.terminate()
            server.wait()


async def _measure(address: str, link: str, server: int, pairs: int) -> list[dict[str, Any]]:
    async with grpc.aio.insecure_channel(address) as channel:
        name = "rays"
        assert name in SPECS
        session = await new_session(channel, name, "watched")
        stream = EvaluationStream(channel, "1")
        trip = await crowd.playing(stream, session, "watched")
        for _ in range(500):
            await trip()
        cookie = await _enter(link)
        url = f"{link.partition('/enter')[0]}/sessions/{session.rpartition('/')[2]}/events"
        viewers = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.web", url, cookie, str(VIEWERS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            found = [await _pair(trip, viewers, psutil.Process(server)) for _ in range(pairs + 1)]
        finally:
            viewers.kill()
            viewers.communicate()
        stream.cancel()
    return _rows(found[1:])


class _Stretch(NamedTuple):
    """What was seen in a stretch.

    Attributes:
        rate: Steps a second.
        cores: Cores that the server itself took.
        step: Processor time of a step in seconds, of the server with all that it has started.
    """

    rate: float
    cores: float
    step: float


async def _pair(
    trip: crowd.Trip, viewers: subprocess.Popen[bytes], server: psutil.Process
) -> tuple[_Stretch, _Stretch, float]:
    """A stretch without browsers, one with them, and the messages a second to each."""
    alone = await _stretch(trip, server)
    await _tell(viewers, b"on\n")
    watched = await _stretch(trip, server)
    messages = float(await _tell(viewers, b"off\n"))
    return alone, watched, messages / SECONDS / VIEWERS


async def _stretch(trip: crowd.Trip, server: psutil.Process) -> _Stretch:
    steps, begun = 0, time.perf_counter()
    used, all_used = sum(server.cpu_times()[:2]), _all(server)
    while time.perf_counter() - begun < SECONDS:
        await trip()
        steps += 1
    seconds = time.perf_counter() - begun
    cores = (sum(server.cpu_times()[:2]) - used) / seconds
    return _Stretch(steps / seconds, cores, (_all(server) - all_used) / steps)


def _all(server: psutil.Process) -> float:
    """Processor time of a process and of all that it has started."""
    family = [server, *server.children(recursive=True)]
    return sum(sum(one.cpu_times()[:2]) for one in family)


async def _tell(viewers: subprocess.Popen[bytes], what: bytes) -> bytes:
    assert viewers.stdin is not None
    assert viewers.stdout is not None
    viewers.stdin.write(what)
    viewers.stdin.flush()
    return await asyncio.to_thread(viewers.stdout.readline)


def _rows(found: Sequence[tuple[_Stretch, _Stretch, float]]) -> list[dict[str, Any]]:
    cores = [watched.cores - alone.cores for alone, watched, _ in found]
    slower = [math.log(alone.rate / watched.rate) for alone, watched, _ in found]
    dearer = [math.log(watched.step / alone.step) for alone, watched, _ in found]
    pairs = f"{len(found)} pairs"
    rate = f"{statistics.median(alone.rate for alone, _, _ in found):.0f} steps/s alone"
    told = f"{statistics.mean(messages for *_, messages in found):.1f} messages a second to each"
    return [
        _share(f"slow-down of steps by {VIEWERS} browsers", slower, f"{pairs}, {rate}"),
        _share(f"processor time of a step, more with {VIEWERS} browsers", dearer, pairs),
        {
            "name": f"cores of the server for {VIEWERS} browsers",
            "value": statistics.mean(cores),
            "low": min(cores),
            "high": max(cores),
            "target": f"below {MOST_CORES:g}",
            "met": statistics.mean(cores) <= MOST_CORES,
            "note": told,
        },
    ]


def _share(name: str, logs: Sequence[float], note: str) -> dict[str, Any]:
    """A row of a change as a share, with its 90 % interval."""
    mean = statistics.mean(logs)
    half = T_95[len(logs)] * statistics.stdev(logs) / math.sqrt(len(logs))
    low, value, high = (math.expm1(mean + step) for step in (-half, 0.0, half))
    return {
        "name": name,
        "value": value,
        "low": low,
        "high": high,
        "target": f"below {MOST_SLOWER:g} at the upper end",
        "met": high <= MOST_SLOWER,
        "note": note,
    }


async def _enter(link: str) -> str:
    """Exchange the ticket of a link for cookies."""
    base, _, ticket = link.partition("/enter#")
    async with httpx.AsyncClient(base_url=base) as client:
        page = (await client.get("/enter")).text
        found = re.search(r'name="forgery" value="([^"]+)"', page)
        assert found is not None, page
        fields = {"ticket": ticket, "forgery": found[1]}
        await client.post("/enter", data=fields, headers={"origin": base})
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in client.cookies.jar)


async def _watch(url: str, cookie: str, count: int) -> None:
    """Hold connections while one is told to, and count what comes."""
    while await asyncio.to_thread(sys.stdin.readline):
        async with httpx.AsyncClient(limits=httpx.Limits(max_connections=count)) as client:
            heard = 0

            async def listen(client: httpx.AsyncClient = client) -> None:
                nonlocal heard
                headers = {"cookie": cookie}
                async with client.stream("GET", url, headers=headers, timeout=60) as answer:
                    assert answer.status_code == 200, answer.status_code
                    async for data in answer.aiter_raw():
                        heard += data.count(b"event:")

            listening = [asyncio.create_task(listen()) for _ in range(count)]
            await asyncio.sleep(0.5)
            print("on", flush=True)
            await asyncio.to_thread(sys.stdin.readline)
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)
            print(heard, flush=True)


if __name__ == "__main__":
    asyncio.run(_watch(sys.argv[1], sys.argv[2], int(sys.argv[3])))
