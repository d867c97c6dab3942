"""Whatever is killed when, an export has what participants did, and others can read it."""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
import socketserver
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any, Final

import httpx
import pandas as pd
import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from animalcat.doors.study.export import TABLES
from tests.doors.study.conftest import ASKED, STUDY
from tests.doors.study.dying import MOMENTS
from tests.doors.study.test_pages import DEVICE, fields
from tests.doors.study.test_study import command
from tests.service.conftest import arena

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
ROUNDS: Final = 8
AGE: Final = 30
"""Of the first one, in years; those after are each a year older, and so are known again."""
SECONDS: Final = 600.0
"""How long all may take."""
SAFE: Final = 4
"""So many frames after a key, it has been stored."""


@dataclass
class Press:
    """A key that was sent, and how many frames came after it on the same line."""

    name: str
    down: bool
    at: float
    frames: int = 0


@dataclass
class Played:
    """What somebody knows of a round: when it began, whether it was passed as told, their keys."""

    began: float | None = None
    passed: bool | None = None
    keys: list[Press] = field(default_factory=list[Press])


class Person(Thread):
    """Takes part by what a browser sends, and keeps a log; whatever is away, they come again."""

    def __init__(self, link: str, seed: int) -> None:
        super().__init__(daemon=True)
        self.log: dict[tuple[str, int], Played] = {}
        self.done = False
        self._link, self._random, self._age = link, random.Random(seed), str(AGE + seed)
        origin = "/".join(link.split("/")[:3])
        shown = {"accept": "text/html", "origin": origin}
        self._web = httpx.Client(headers=shown, follow_redirects=True)
        self._origin, self._now = origin, Played()
        self._part, self._number, self._held, self._since = "", 0, "", 0.0

    def run(self) -> None:
        end = time.monotonic() + SECONDS
        while not self.done and time.monotonic() < end:
            with suppress(httpx.TransportError, ConnectionClosed, InvalidHandshake, OSError):
                self._see(self._web.get(self._link).text)
            time.sleep(0.2)

    def _see(self, page: str) -> None:
        """Do what a page asks for."""
        form = fields(page)
        if 'id="stage"' in page:
            self._play()
        elif 'name="agree"' in page:
            self._send("consent", form, {"ask-0": "on", "agree": "1"})
        elif 'id="device"' in page:
            self._send("step", form, DEVICE)
        elif "age" in form.get("stage", "") or 'type="number"' in page:
            self._send("step", form, {"answer-0": self._age, "answer-1-2": "2"})
        elif form.get("stage") == "after":
            self._send("step", form, {"answer-0": "5", "answer-1": 'well, "so";\r\n-1\u00e9'})
        elif "fieldset" in page:
            self._send("step", form, {"answer-0": "1"})
        elif 'id="completion"' in page:
            self.done = True
        else:
            self._send("step", form, {})

    def _send(self, to: str, form: dict[str, str], more: dict[str, str]) -> None:
        self._web.post(f"{self._link}/{to}", data={**form, **more}).raise_for_status()

    def _play(self) -> None:
        cookies = "; ".join(f"{one.name}={one.value}" for one in self._web.cookies.jar)
        url, shown = f"{self._link.replace('http', 'ws')}/play", {"cookie": cookies}
        with connect(url, origin=self._origin, additional_headers=shown) as socket:  # pyright: ignore
            self._held, self._since = "", _ms()
            while True:
                socket.send(json.dumps({"clock": _ms()}))
                with suppress(TimeoutError):
                    said = socket.recv(0.5)
                    if isinstance(said, bytes):
                        for told in self._frame(said):
                            socket.send(json.dumps(told))
                        continue
                    match json.loads(said):
                        case {"t": "next", "number": number, "practice": practice}:
                            self._part, self._number = "practice" if practice else "play", number
                            socket.send(json.dumps({"do": "ready", "full": False}))
                        case {"t": "open"}:
                            key = self._part, self._number - 1
                            self._now = self.log.setdefault(key, Played())
                        case {"t": "over", "passed": passed}:
                            self._now.passed = passed
                            socket.send(json.dumps({"key": self._held, "down": False}))
                            self._held = ""
                        case {"t": "page" | "gone" | "elsewhere"}:
                            return
                        case _:
                            pass

    def _frame(self, said: bytes) -> list[dict[str, Any]]:
        """Paint a frame, and press or release a key at each."""
        number = json.loads(said[4 : 4 + int.from_bytes(said[:4], "little")])["number"]
        for press in self._now.keys:
            press.frames += press.at > self._since
        seen = {"seen": number, "received": _ms(), "painted": _ms(), "offset": 0.0, "round_trip": 1}
        self._now.began = self._now.began or float(seen["painted"])
        name = self._held or self._random.choice(["ahead", "ahead", "left", "right", "back"])
        press = Press(name, not self._held, _ms())
        self._held = "" if self._held else name
        self._now.keys.append(press)
        return [seen, {"key": name, "down": press.down, "at": press.at}]


def _ms() -> float:
    return round(1000 * time.monotonic(), 3)


class Kept:
    """A process that is started again whenever it has ended."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self.said = dict[str, Any]()
        self.process: subprocess.Popen[str] | None = None

    def keep(self) -> None:
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen(self._words, stdout=subprocess.PIPE, text=True)
            assert self.process.stdout is not None
            self.said = json.loads(self.process.stdout.readline() or "{}")

    def end(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(60)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Person]]:
    """An export of a study in which everything was killed, and who took part."""
    folder = tmp_path_factory.mktemp("kills")
    home, arenas = folder / "data", folder / "arenas"
    arenas.mkdir()
    for k in range(24):
        (arenas / f"navigation-{k:02}.yaml").write_text(arena(k))
    words = ("battery", "import", str(arenas), "--name", "tiny", "--data", str(home))
    subprocess.run(command(*words), check=True, capture_output=True)
    file = folder / "study.yaml"
    text = STUDY.replace(*ASKED).replace("finding-things", "struck")
    for old, new in (
        ("passes: 1, of: 2, most: 3", "passes: 0, of: 1, most: 1"),
        ("max_episodes: 4", f"max_episodes: {ROUNDS}"),
        ("trials: 2", "trials: 3"),
        ("{name: plain}", "{name: plain, shown: {outcome: true}}"),
        ("shown: {score: true}", "shown: {outcome: true}"),
        ("debrief:", "gap_seconds: 300\ndebrief:"),
    ):
        assert old in text, old
        text = text.replace(old, new)
    file.write_text(text)
    struck = folder / "struck"
    server = Kept(command("serve", "--data", str(home), "--port", "0", "--json"))
    inside = [sys.executable, "-m", "tests.doors.study.dying", str(struck)]
    with socketserver.TCPServer(("127.0.0.1", 0), None) as free:  # pyright: ignore
        port = free.server_address[1]
    words = ("study", "run", str(file), "--data", str(home), "--json", "--port", str(port))
    study, people = Kept([*inside, *words]), list[Person]()
    end = time.monotonic() + SECONDS
    try:
        while not people or any(one.is_alive() for one in people):
            server.keep()
            study.keep()
            if not people and study.said:
                people = [Person(study.said["link"], seed) for seed in range(2)]
                for one in people:
                    one.start()
            assert time.monotonic() < end
            time.sleep(0.1)
    finally:
        study.end()
        server.end()
    assert sorted(struck.read_text().splitlines()) == sorted(MOMENTS)
    assert all(one.done for one in people)
    to = folder / "results"
    subprocess.run(command("study", "export", "struck", str(to), "--data", str(home)), check=True)
    return to, people


def read(results: Path, table: str) -> pd.DataFrame:
    return pd.read_csv(results / "data" / f"description-{table}_data.csv")


def test_the_export_has_every_round_and_key_once(results: tuple[Path, list[Person]]) -> None:
    folder, people = results
    rounds, keys = read(folder, "rounds"), read(folder, "keys")
    assert set(rounds["outcome"]) <= {"success", "failure"}, "nothing is void or a fault"
    assert len(rounds) == len(people) * (ROUNDS + 1)
    place = ["participant", "part", "order"]
    assert not rounds.duplicated(place).any()
    assert rounds.groupby(["participant", "part"])["arena"].nunique().tolist() == [ROUNDS, 1] * 2
    came = read(folder, "people").to_dict("records")
    found = {row["participant"]: people[int(row["q_age"]) - AGE] for row in came}
    for row in rounds.to_dict("records"):
        who, part, order = (row[name] for name in place)
        told = found[who].log[part, order]
        wanted = {True: ["success"], False: ["failure"], None: ["success", "failure"]}
        assert row["outcome"] in wanted[told.passed]
        own = keys[(keys[place] == [who, part, order]).all(axis=1)]
        stored = Counter(own[["key", "down", "ms"]].itertuples(index=False, name=None))
        sent = [(p.name, p.down, ms) for p, ms in zip(told.keys, offsets(told), strict=True)]
        safe = {key for key, p in zip(sent, told.keys, strict=True) if p.frames >= SAFE}
        assert safe <= {*stored} <= {*sent}
        assert max(stored.values()) == 1
        assert row["rt"] == min(ms for _, down, ms in stored if down)
        assert row["keys"] == sum(down for _, down, _ in stored)


READR_HERE: Final = shutil.which("Rscript") is not None and (
    subprocess.run(["Rscript", "-e", "library(readr)"], capture_output=True).returncode == 0
)
READR: Final = """library(readr)
for (file in list.files("data", full.names = TRUE)) {
  read <- read_csv(file, show_col_types = FALSE)
  times <- names(read)[sapply(read, inherits, "POSIXct")]
  cat(file, nrow(read), nrow(problems(read)), paste(names(read), collapse = "|"),
      paste(times, collapse = "|"), "\n", sep = "\t")
}"""


@pytest.mark.skipif(not READR_HERE, reason="there is no R with readr")
def test_readr_reads_the_tables_as_pandas_does(results: tuple[Path, list[Person]]) -> None:
    program = ["Rscript", "-"]
    said = subprocess.run(
        program, input=READR, cwd=results[0], capture_output=True, text=True, check=True
    )
    found = dict[str, list[str]]()
    for line in said.stdout.splitlines():
        file, *rest = line.split("\t")
        found[file.split("-")[1].removesuffix("_data.csv")] = rest
    for table, (rows, problems, names, times, _) in found.items():
        frame = read(results[0], table)
        assert (rows, problems, names.split("|")) == (str(len(frame)), "0", [*frame.columns])
        wanted = {"keys": "", "people": "came|last"}.get(table, "at")
        assert times == wanted, "times are read as times"
    assert {*found} == {*TABLES}


def test_the_folder_is_as_psych_ds_asks(results: tuple[Path, list[Person]]) -> None:
    """By the rules of its schema 1.5.1 whose breach is an error."""
    folder, _ = results
    told = json.loads((folder / "dataset_description.json").read_bytes())
    assert (told["@context"], told["@type"]) == ("https://schema.org/", "Dataset")
    assert told["name"]
    assert told["description"]
    measured = [one["name"] for one in told["variableMeasured"]]
    assert {one["@type"] for one in told["variableMeasured"]} == {"PropertyValue"}
    files = [*(folder / "data").glob("*.csv")]
    assert files
    headers = set[str]()
    for file in files:
        assert re.fullmatch(r"([a-z]+-[a-zA-Z0-9]+)(_[a-z]+-[a-zA-Z0-9]+)*_data\.csv", file.name)
        with file.open(newline="", encoding="utf-8") as text:
            header, *rows = csv.reader(text)
        assert len({*header}) == len(header)
        assert {len(row) for row in rows} == {len(header)}
        assert "row_id" not in header
        headers |= {*header}
    assert sorted(measured) == sorted(headers), "each variable is a column, and each column is one"
    for file in folder.rglob("*.json"):
        json.loads(file.read_bytes(), parse_constant=lambda name: pytest.fail(name))


def offsets(told: Played) -> list[float]:
    """When each key was, from the first frame of its round."""
    assert told.began is not None
    return [round(press.at - told.began, 2) for press in told.keys]
