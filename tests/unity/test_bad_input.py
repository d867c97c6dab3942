"""What goes wrong ends with a message and an exit code, and leaves no process behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from .arenas import near_goal, write
from .conftest import LOST, PATIENCE, Client, Drive, available, free_port

BAD_INPUT, UNREACHABLE, REFUSED = 2, 4, 6
"""Exit codes, as `animalcat-unity --help` tells them."""
SOON = 30.0
"""Seconds within which an orphan must be gone; a client's own time-out is 60."""


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    """A file that is fine."""
    return write(tmp_path, "arena.yml", near_goal())


@pytest.fixture
def port() -> int:
    """A free port, which tells this test's processes from all others."""
    return free_port()


@pytest.fixture(autouse=True)
def nothing_left(port: int) -> Iterator[None]:
    """After the test no stand-in of its port is running."""
    yield
    deadline = time.monotonic() + SOON
    while stand_ins(port):
        assert time.monotonic() < deadline, "a stand-in was left over"
        time.sleep(0.1)


def stand_ins(port: int) -> list[psutil.Process]:
    """The stand-ins that were started for a client's port."""
    found = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if any("animalcat-unity" in word for word in words) and str(port) in words:
            found.append(process)
    return found


def log_of(folder: Path) -> str:
    """The log of the only worker."""
    return (folder / "Player-0.log").read_text()


def waiting_client(
    client: Client, executable: str, arena: Path, folder: Path, port: int
) -> subprocess.Popen[str]:
    """A client that has played two steps, and plays on once there is a file `go`."""
    plan = {
        "environment": {
            "file_name": executable,
            "base_port": port,
            "arenas_configurations": str(arena),
            "useCamera": False,
            "log_folder": str(folder),
        },
        "commands": [["step", 1, 0], ["wait", str(folder / "go")], ["step", 1, 0]],
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    process = client.start("drive.py", folder / "plan.json", folder / "seen.npz")
    deadline = time.monotonic() + PATIENCE
    while not (folder / "go.waiting").exists():  # it plays by then
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return process


@pytest.mark.parametrize("version", ["6.2.0", pytest.param("4.1.0", marks=pytest.mark.slow)])
@pytest.mark.parametrize("when", ["at the start", "later"])
def test_a_bad_arena_file_is_named_with_its_line(
    drive: Drive, arena: Path, tmp_path: Path, port: int, version: str, when: str
) -> None:
    bad = tmp_path / "bad.yml"
    bad.write_text(arena.read_text().replace("timeLimit: 100", "timeLimit: soon"))
    lines = bad.read_text().splitlines()
    line = 1 + next(number for number, text in enumerate(lines) if "soon" in text)
    record = drive(
        available(version),
        [] if when == "at the start" else [("step", 1, 0), ("reset", bad)],
        arenas_configurations=bad if when == "at the start" else arena,
        base_port=port,
        log_folder=str(tmp_path),
        useCamera=False,
    )
    name, message = record.report["error"]  # a clean stop; a time-out has another name
    if when == "later":
        assert name == "UnityCommunicatorStoppedException"
        assert record.report["returncode"] == BAD_INPUT
        assert len(record.messages) == 2
    else:
        assert (name, message) == (
            "UnityEnvironmentException",
            f"Environment shut down with return code {BAD_INPUT}.",
        )
    # 4.1.0 sends the text, so there is no name of a file that could be told.
    where = str(bad) if version == "6.2.0" else "the arenas sent by the client"
    assert f"{where}:{line}" in log_of(tmp_path)
    assert "timeLimit" in log_of(tmp_path)


@pytest.mark.parametrize(
    ("sign", "said"),
    [
        (signal.SIGKILL, "the client went without closing"),
        # The library stops its server as soon as it has said that it closes; on a busy machine
        # the word can be lost, and the build sees the client go.
        (signal.SIGINT, "the client (closed|went without closing) its environment"),
    ],
)
def test_a_client_that_is_ended_takes_its_build_along(
    newest: Client,
    executable: str,
    arena: Path,
    tmp_path: Path,
    port: int,
    sign: signal.Signals,
    said: str,
) -> None:
    process = waiting_client(newest, executable, arena, tmp_path, port)
    try:
        [build] = stand_ins(port)
        process.send_signal(sign)  # in mid-episode
        process.wait(SOON)
        # A child of the killed client is nobody's here: psutil waits for its end.
        psutil.wait_procs([build], timeout=SOON)
        assert not build.is_running()
    finally:
        process.kill()
        process.communicate()
    assert re.search(said, log_of(tmp_path))


def test_two_workers_on_one_port(
    newest: Client, drive: Drive, executable: str, arena: Path, tmp_path: Path, port: int
) -> None:
    """The second is told at once, and the first plays on."""
    (folder := tmp_path / "first").mkdir()
    first = waiting_client(newest, executable, arena, folder, port)
    try:
        record = drive(newest, arenas_configurations=arena, base_port=port)
        name, message = record.report["error"]
        assert name == "UnityWorkerInUseException"
        assert "worker number 0" in message
        (folder / "go").touch()
        out, err = first.communicate(timeout=60)
    finally:
        first.kill()
    assert first.returncode == 0, err
    report = json.loads(out)
    assert "error" not in report
    assert report["returncode"] in (0, LOST)
