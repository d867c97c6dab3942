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

from animalcat.doors.study.file import Study
from animalcat.doors.study.participant import Trial, TrialOver
from animalcat.doors.study.store import StudyStore, read_events, tombstones
from animalcat.service.host.lock import Holder, running_server
from animalcat.service.recording.reader import read_episode
from tests.service.conftest import arena
from tests.web import chromium, firefox
from tests.web.chromium import PROGRAM, Page, browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PROGRAM, reason="there is no Chromium"),
]
NO_FIREFOX = pytest.mark.skipif(not firefox.PROGRAM, reason="there is no Firefox")
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
        (arenas / f"navigation-{k:02}.yaml").write_text(arena(k).replace("t: 24", "t: 200"))
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


def personal_link(page: Page) -> str:
    """The link that is shown after the consent; empty elsewhere."""
    return page.js("document.getElementById('personal')?.textContent ?? ''")


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
    """Begin a round or go on with it, unless another page has come instead."""
    go, over = "document.getElementById('go')", "document.getElementById('over')"
    # Found and clicked at once: between the two, another page might come with the same button.
    page.wait(f"{go} && !{go}.hidden && {go}.click(), !{over} || {over}.hidden")


def trials(home: Path, study: Study) -> list[Trial]:
    """The rounds that are over; nothing is changed, as the study may run."""
    (file,) = (home / "studies" / study.study / "participants").glob("*.jsonl")
    return [event.trial for event in read_events(file) if isinstance(event, TrialOver)]


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 600
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def steps_of(home: Path, study: Study) -> int:
    """How many steps of the open round are on disk."""
    files = list((home / "studies" / study.study / "rounds").glob("*.jsonl"))
    return sum(file.read_bytes().count(b"\n") for file in files)


def recorded_bytes(home: Path, study: Study, attempt: int = 0) -> bytes:
    """The actions of the first round."""
    place = home / "recordings" / store_session(home, study)
    return read_episode(next(place.glob(f"*0-{attempt}.mcap"))).actions


@pytest.mark.timeout(1500)
def test_whatever_is_killed_at_whatever_page_nothing_is_lost(
    written: Write, tmp_path: Path, home: Path
) -> None:
    """Server and browser are killed before every step; a round goes on from where it stood."""
    study = written(
        ("finding-things", "killed"),
        ("max_episodes: 4", "max_episodes: 2"),
        ("practice: {passes: 1, of: 2, most: 3}\n", ""),
        (', "Walk with the arrow keys."', ""),
        # A browser that is killed at once has not written its cookies; the personal link says who
        # comes.
        ("debrief:", "who: {by: prolific}\ngap_seconds: 300\ndebrief:"),
    )
    query, personal = "?PROLIFIC_PID=5f1c&STUDY_ID=s&SESSION_ID=t", ""
    file, kept = tmp_path / "study.yaml", tmp_path / "chromium"
    seen = list[str]()
    port, before_kill = 0, b""
    for _ in range(30):
        server = Running(file, home, port=port)
        port = server.port
        try:
            with browser(kept=kept) as new:
                page = new()
                page.open(personal or server.link.split("?")[0] + query)
                before = where(page)
                if before == "end":
                    assert "cc=DONE" in page.js("document.getElementById('completion').href")
                    break
                if before == "play" and "play" not in seen:
                    begin(page)  # and then both are killed
                    page.key("ArrowUp", up=False)
                    until(lambda: steps_of(home, study) > 5)
                    seen.append("play")
                else:
                    seen.append(go_on(page))
                personal = personal or personal_link(page)
                assert not page.problems, page.problems
        finally:
            server.end(signal.SIGKILL)
        if seen[-1] == "play" and not before_kill:
            before_kill = recorded_bytes(home, study)
    else:
        pytest.fail(f"no end after {seen}")
    pages = [name for k, name in enumerate(seen) if k == 0 or seen[k - 1] != name]
    assert pages[:5] == ["consent", "device", "text", "questions", "play"]
    assert pages[-1] == "text"
    played = trials(home, study)
    assert [(t.outcome, t.attempt, t.passed is None) for t in played] == [("played", 0, False)] * 2
    assert [len(t.gaps) for t in played] == [1, 0]
    whole = recorded_bytes(home, study)
    assert len(before_kill) >= 5
    assert whole[: len(before_kill)] == before_kill
    assert len(whole) == played[0].steps > len(before_kill)
    words = command("session", "show", "--verify", store_session(home, study), "--data", str(home))
    subprocess.run(words, check=True, capture_output=True)


@pytest.mark.timeout(900)
def test_a_short_absence_goes_on_and_a_long_one_is_void(
    written: Write, tmp_path: Path, home: Path
) -> None:
    for gap, name in (
        (300, "reload"),
        (300, "server"),
        (3, "absent"),
    ):  # however slow the machine is
        study = written(
            ("finding-things", name),
            ("practice: {passes: 1, of: 2, most: 3}\n", f"gap_seconds: {gap}\n"),
            ("max_episodes: 4", "max_episodes: 1"),
        )
        with running(tmp_path / "study.yaml", home) as server, browser() as new:
            page = new()
            page.open(server.link)
            while where(page) != "play":
                go_on(page)
            page.wait("!document.getElementById('go').hidden")
            page.open(server.link)  # a reload before a round is no gap
            begin(page)
            until(lambda: steps_of(home, study) > 3)  # noqa: B023  it is called here
            if name == "absent":
                page.open("about:blank")
                until(lambda: bool(trials(home, study)))  # noqa: B023
            if name == "server":  # the study and the page live, and find another one
                os.kill(hold_it(running_server(home)).pid, signal.SIGKILL)
            else:
                page.open(server.link)
            while where(page) == "play":
                play(page)
            assert name == "server" or not page.problems, page.problems
        *voids, last = trials(home, study)
        assert last.outcome == "played"
        assert [trial.outcome for trial in voids] == ["void"] * len(voids)
        assert last.timing is not None
        assert last.timing.frames > 10
        if name != "absent":
            assert not voids
            assert 0.0 < last.gaps[0] < gap
            assert "gap" in last.flags
        else:
            assert voids
            assert voids[0].gaps[-1] > gap
    words = command("episode", "list", store_session(home, study), "--data", str(home), "--json")
    told = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    tried = {row["episode"]: row["instance"] for row in told if row["outcome"] != "void"}
    voids = [row["instance"] for row in told if row["outcome"] == "void"]
    assert not {*voids} & {*tried.values()}, "an arena that was seen was played again"


@pytest.mark.timeout(900)
def test_a_dead_line_is_said_and_the_keyboard_alone_withdraws(
    written: Write, tmp_path: Path, home: Path
) -> None:
    study = written(
        ("finding-things", "dead-line"),
        ("practice: {passes: 1, of: 2, most: 3}\n", "gap_seconds: 300\n"),
    )
    with running(tmp_path / "study.yaml", home) as server, browser() as new:
        page = new()
        page.open(server.link)
        while where(page) != "play":
            go_on(page)
        begin(page)
        until(lambda: steps_of(home, study) > 3)
        server.process.send_signal(signal.SIGSTOP)  # the line stands, and nothing comes
        page.wait("document.getElementById('say').textContent.includes('connection is lost')")
        server.process.send_signal(signal.SIGCONT)
        page.wait("!document.getElementById('go').hidden")  # the round went on to its end
        page.js("document.querySelector('footer a').focus()")
        enter = {"code": "Enter", "key": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        page.do("Input.dispatchKeyEvent", type="keyDown", **enter)
        page.wait("document.querySelector('[name=personal]')")
    assert [trial.flags[0] for trial in trials(home, study)] == ["gap"]


LOG = """(() => {
  if (window.keeps) return;
  window.keeps = true;
  const keep = (name, down, at) => { sessionStorage.log = JSON.stringify(
    [...JSON.parse(sessionStorage.log ?? "[]"), [name, down, performance.timeOrigin + at]]); };
  for (const [kind, down] of [["keydown", true], ["keyup", false]])
    addEventListener(kind, (event) => keep(event.code, down, event.timeStamp), true);
  for (const button of document.querySelectorAll("#pad button"))
    for (const [kind, down] of [["pointerdown", true], ["pointerup", false]])
      button.addEventListener(kind, (event) => keep(button.dataset.key, down, event.timeStamp));
})()"""
"""Keeps a participant's own log of keys and fingers, over reloads."""
NAMES = {"ArrowUp": "ahead", "ArrowLeft": "left"}


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "new_browser", [chromium.browser, pytest.param(firefox.browser, marks=NO_FIREFOX)]
)
def test_what_a_participant_did_is_what_is_stored(
    written: Write, tmp_path: Path, home: Path, new_browser: Callable[[], Any]
) -> None:
    """By keys, over a reload; by fingers; and by nothing at all."""
    name = new_browser.__module__.rpartition(".")[2]
    study = written(
        ("finding-things", name),
        ("practice: {passes: 1, of: 2, most: 3}\n", "gap_seconds: 300\n"),
        ("max_episodes: 4", "max_episodes: 3"),
    )
    with running(tmp_path / "study.yaml", home) as server, new_browser() as new:
        page: Page = new()
        page.size(1280, 844)
        page.open(server.link)
        for k in range(3):
            while where(page) != "play":
                go_on(page)
            begin(page)
            page.js(LOG)
            until(lambda: steps_of(home, study) > 3)
            if k == 0:
                for code in ("ArrowLeft", "ArrowUp"):
                    page.key(code)
                    time.sleep(0.3)
                page.open(server.link)
                page.wait("document.getElementById('over').hidden")
                page.js(LOG)
                page.key("ArrowLeft")
            if k == 1:
                page.js("document.getElementById('pad').hidden = false")
                page.js("document.querySelector('[data-key=right]').scrollIntoView()")
                page.touch("[data-key=right]")
                time.sleep(0.3)
                page.lift()
            until(lambda: len(trials(home, study)) > k)  # noqa: B023
            page.wait("!document.getElementById('go')?.hidden")  # the next round, or another page
        log = json.loads(page.js("sessionStorage.log"))
        while where(page) != "end":
            go_on(page)
        assert "cc=DONE" in page.js("document.getElementById('completion').href")
        assert not page.problems, page.problems
    played = trials(home, study)
    assert [trial.outcome for trial in played] == ["played"] * 3
    assert ["gap" in trial.flags for trial in played] == [True, False, False]
    told = [(NAMES.get(key, key), down) for key, down, _ in log]
    assert [key[:2] for trial in played for key in trial.keys] == told
    assert [len(trial.keys) for trial in played] == [6, 2, 0]
    began = [at - ms for (*_, at), (*_, ms) in zip(log[:6], played[0].keys, strict=True) if ms]
    assert max(began) - min(began) < 0.1


def hold_it(holder: Holder | None) -> Holder:
    assert holder is not None
    return holder


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
        go_on(page)
        personal = personal_link(page)
        while where(page) != "play":
            go_on(page)
        play(page)
        (one,) = StudyStore(home, study).participants()
        session = one.sessions["play"]
        assert any("5f1cxyz" in p.read_text() for p in files().values() if p.suffix == ".json")
        click(page, "footer a")
        page.js(f"document.querySelector('[name=personal]').value = '{personal}'")
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
