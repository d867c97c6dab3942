"""A study from the link to the completion in a real browser, with a kill at every page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from animalcat.service.study.file import Study
from animalcat.service.study.participant import TrialOver
from animalcat.service.study.store import StudyStore, read_events, tombstones
from tests.service.conftest import arena
from tests.web.chromium import PROGRAM, Page, browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="there is no Chromium"),
]
Write = Callable[..., Study]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "animalcat", *words]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a battery of short arenas."""
    folder = tmp_path_factory.mktemp("study")
    arenas = folder / "arenas"
    arenas.mkdir()
    for k in range(24):
        (arenas / f"navigation-{k:02}.yaml").write_text(arena(k).replace("t: 24", "t: 40"))
    data = folder / "data"
    words = ("battery", "import", str(arenas), "--name", "tiny", "--data", str(data))
    subprocess.run(command(*words), check=True, capture_output=True)
    return data


class Running:
    """The process of a study."""

    def __init__(self, file: Path, home: Path, *more: str, port: int = 0) -> None:
        words = ("study", "run", str(file), "--data", str(home), "--json", "--port", str(port))
        self.process = subprocess.Popen(command(*words, *more), stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the study does not start"
        said = json.loads(line)
        self.link, self.monitor = said["link"], said["monitor"]
        self.port = int(self.link.split(":")[2].split("/")[0])

    def end(self, number: int = signal.SIGTERM) -> None:
        os.kill(self.process.pid, number)
        self.process.wait(60)


@contextmanager
def running(file: Path, home: Path, *more: str) -> Generator[Running]:
    study = Running(file, home, *more)
    try:
        yield study
    finally:
        study.end()


def click(page: Page, what: str) -> None:
    """Click what leads to another page, and wait for that."""
    # Found and clicked at once: between the two, another page might come.
    found = f"document.querySelector({what!r})"
    page.wait(f"({found} && (window.__before = true, {found}.click(), true))")
    page.wait("!window.__before && document.readyState === 'complete'")


def where(page: Page) -> str:
    """Which page is shown, once it is whole."""
    page.wait("document.readyState === 'complete'")
    for name, found in {
        "consent": "[name=agree]",
        "device": "#device",
        "play": "#stage",
        "questions": "fieldset",
        "break": "#left",
        "end": "#completion, #code",
        "text": ".prose",
    }.items():
        if page.js(f"!!document.querySelector({found!r})"):
            return name
    return page.text()


def go_on(page: Page) -> str:
    """Do what a page asks for, and return which page it was."""
    now = where(page)
    if now == "consent":
        page.js("document.querySelector('[name=ask-0]').click()")
        click(page, "[name=agree]")
    elif now == "device":
        page.wait("document.getElementById('state').textContent.includes('arrow')")
        page.key("ArrowUp")
        page.wait("!document.querySelector('#device button').hidden")
        click(page, "#device button")
    elif now == "questions":
        page.js("document.querySelector('[value=\"1\"]').click()")
        click(page, ".go")
    elif now == "play":
        play(page)
    elif now != "end":
        click(page, ".go")
    return now


def play(page: Page) -> None:
    """Play a round, walking ahead."""
    begin(page)
    page.key("ArrowUp", up=False)
    page.wait("!document.getElementById('over')?.hidden")
    if page.js("!!document.getElementById('over')"):
        page.key("ArrowUp", down=False)


def begin(page: Page) -> None:
    """Begin a round, unless another page has come instead."""
    go = "document.getElementById('go')"
    clicked = f"({go} && !{go}.hidden && ({go}.click(), true))"
    page.wait(f"{clicked} || !document.getElementById('stage')")
    page.wait("document.getElementById('over')?.hidden ?? true")


def trials(home: Path, study: Study) -> list[TrialOver]:
    store = StudyStore(home, study)
    (one,) = store.participants()
    file = store.folder / "participants" / f"{one.id}.jsonl"
    return [event for event in read_events(file) if isinstance(event, TrialOver)]


@pytest.mark.timeout(1500)
def test_whatever_is_killed_at_whatever_page_nothing_is_lost(
    written: Write, tmp_path: Path, home: Path
) -> None:
    """Server and browser are killed before every step; in the midst of a round it is void."""
    study = written(
        ("finding-things", "killed"),
        ("max_episodes: 4", "max_episodes: 2"),
        ("practice: {passes: 1, of: 2, most: 3}\n", ""),
        (', "Walk with the arrow keys."', ""),
        # A browser that is killed at once has not written its cookies; the link says who comes.
        ("debrief:", "who: {by: prolific}\ndebrief:"),
    )
    query = "?PROLIFIC_PID=5f1c&STUDY_ID=s&SESSION_ID=t"
    file, kept = tmp_path / "study.yaml", tmp_path / "chromium"
    seen = list[str]()
    port = 0
    for _ in range(30):
        server = Running(file, home, port=port)
        port = server.port
        try:
            with browser(kept=kept) as new:
                page = new()
                page.open(server.link.split("?")[0] + query)
                before = where(page)
                if before == "end":
                    assert "cc=DONE" in page.js("document.getElementById('completion').href")
                    break
                if before == "play" and "play" not in seen:
                    begin(page)  # and then both are killed
                    page.key("ArrowUp", up=False)
                    time.sleep(0.6)
                    seen.append("play")
                else:
                    seen.append(go_on(page))
                assert not page.problems, page.problems
        finally:
            server.end(signal.SIGKILL)
    else:
        pytest.fail(f"no end after {seen}")
    pages = [name for k, name in enumerate(seen) if k == 0 or seen[k - 1] != name]
    assert pages[:5] == ["consent", "device", "text", "questions", "play"]
    assert pages[-1] == "text"
    played = [event.trial for event in trials(home, study) if event.part == "play"]
    assert [t.passed is not None for t in played if t.outcome == "played"] == [True, True]


@pytest.mark.timeout(900)
def test_a_short_absence_goes_on_and_a_long_one_is_void(
    written: Write, tmp_path: Path, home: Path
) -> None:
    study = written(
        ("finding-things", "absent"),
        ("practice: {passes: 1, of: 2, most: 3}\n", ""),
        ("max_episodes: 4", "max_episodes: 2"),
    )
    with running(tmp_path / "study.yaml", home) as server, browser() as new:
        page = new()
        page.open(server.link)
        while where(page) != "play":
            go_on(page)
        begin(page)
        time.sleep(0.3)
        page.open(server.link)  # a reload in the midst of a round
        page.wait("document.getElementById('over')?.hidden")
        page.wait("!document.getElementById('over')?.hidden")
        first = trials(home, study)[0].trial
        assert (first.outcome, len(first.gaps), "gap" in first.flags) == ("played", 1, True)
        assert 0.0 < first.gaps[0] < 5.0
        page.wait("!document.getElementById('go').hidden")
        page.open(server.link)  # and between rounds, which is no gap
        begin(page)
        page.open("about:blank")
        time.sleep(6.5)
        page.open(server.link)
        begin(page)
        page.wait("!document.getElementById('over')?.hidden")
        page.wait("!document.getElementById('stage')")
        _, void, last = [event.trial for event in trials(home, study)]
        assert (void.outcome, last.outcome) == ("void", "played")
        assert void.episode == last.episode
        assert last.timing is not None
        assert last.timing.frames > 10
        assert not page.problems, page.problems
    words = command("episode", "list", store_session(home, study), "--data", str(home), "--json")
    told = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    tried = {row["episode"]: row["instance"] for row in told if row["outcome"] != "void"}
    voids = [row["instance"] for row in told if row["outcome"] == "void"]
    assert not {*voids} & {*tried.values()}, "an arena that was seen was played again"


def store_session(home: Path, study: Study) -> str:
    (one,) = StudyStore(home, study).participants()
    return one.sessions["play"]


@pytest.mark.timeout(900)
def test_whoever_withdraws_has_never_been_seen(written: Write, tmp_path: Path, home: Path) -> None:
    study = written(
        ("finding-things", "withdrawn"),
        ("practice: {passes: 1, of: 2, most: 3}\n", ""),
        ("debrief:", "who: {by: prolific}\ndebrief:"),
    )
    query = "?PROLIFIC_PID=5f1cxyz&STUDY_ID=s&SESSION_ID=t"

    def files() -> dict[str, Any]:
        found = [p for p in home.rglob("*") if p.is_file() and "withdrawn" in str(p)]
        return {str(p.relative_to(home)): p for p in found}

    with running(tmp_path / "study.yaml", home) as server, browser() as new:
        page = new()
        page.open(server.link.split("?")[0])
        assert "whole link" in page.text()
        page.open(server.link.split("?")[0] + query)
        assert not StudyStore(home, study).participants(), "something is kept before consent"
        while where(page) != "play":
            go_on(page)
        play(page)
        (one,) = StudyStore(home, study).participants()
        session = one.sessions["play"]
        assert any("5f1cxyz" in p.read_text() for p in files().values() if p.suffix == ".json")
        click(page, "footer a")
        click(page, ".grave")
        assert "was deleted" in page.text()
        page.open(server.link.split("?")[0] + query)
        assert where(page) == "consent"
    person = one.id.partition("-")[0]
    assert not [name for name in files() if person in name]
    assert not [p for p in files().values() if "5f1cxyz" in p.read_text(errors="replace")]
    assert not list((home / "recordings").glob(f"{session}*"))
    (begun, ended) = tombstones(home / "studies" / "withdrawn")
    assert (begun.sessions, ended.sessions) == ((session,), ())
    verified = subprocess.run(
        command("data", "verify", "--data", str(home), "--json"), capture_output=True, text=True
    )
    assert json.loads(verified.stdout)["damage"] == []
