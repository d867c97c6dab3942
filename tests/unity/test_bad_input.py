"""What goes wrong ends with a message and an exit code, and leaves no process behind."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
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


def test_a_path_that_does_not_exist(
    newest: Client, drive: Drive, tmp_path: Path, arena: Path, port: int
) -> None:
    """The client itself says so; in mid-game its build ends with it."""
    record = drive(
        newest, [("reset", tmp_path / "no.yml")], arenas_configurations=arena, base_port=port
    )
    name, message = record.report["error"]
    assert name == "FileNotFoundError"
    assert "no.yml" in message
    # The library says that it closes and stops its server at once; on a busy machine the word can
    # be lost, and the build sees the client go.
    assert record.report["returncode"] in (0, LOST)


def test_another_communication_version_is_refused(
    newest: Client, drive: Drive, arena: Path, tmp_path: Path, port: int
) -> None:
    record = drive(
        newest,
        plan={"patch": {"API_VERSION": "2.0.0"}},
        arenas_configurations=arena,
        base_port=port,
        log_folder=str(tmp_path),
    )
    assert "error" in record.report
    assert "2.0.0" in log_of(tmp_path)
    assert "1.5.0" in log_of(tmp_path)


def test_an_unknown_client_version_is_served(
    newest: Client, drive: Drive, arena: Path, tmp_path: Path, port: int
) -> None:
    """Only the protocol's version matters; the log names the package's."""
    record = drive(
        newest,
        [("step", 1, 0)],
        plan={"package_version": "9.9.9.dev0"},
        arenas_configurations=arena,
        base_port=port,
        log_folder=str(tmp_path),
    )
    assert "error" not in record.report
    assert record.behaviour["shapes"][0] == [3, 16, 16]
    assert "9.9.9.dev0" in log_of(tmp_path)


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


def test_a_build_that_may_not_be_executed(
    newest: Client, drive: Drive, executable: str, arena: Path, tmp_path: Path, port: int
) -> None:
    copy = tmp_path / "animalcat-unity"
    copy.write_bytes(Path(executable).read_bytes())
    copy.chmod(stat.S_IRUSR | stat.S_IWUSR)
    record = drive(newest, file_name=str(copy), arenas_configurations=arena, base_port=port)
    name, message = record.report["error"]
    assert name == "UnityEnvironmentException"
    assert "permissions" in message
    record = drive(newest, file_name=str(copy) + "x", arenas_configurations=arena, base_port=port)
    name, message = record.report["error"]
    assert name == "UnityEnvironmentException"
    assert "Couldn't launch" in message


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ([], BAD_INPUT, "a Python client starts this program"),
        (["--mlagents-port", "PORT", "--playerMode", "0"], UNREACHABLE, "nobody listens"),
        (["--mlagents-port", "99999", "--playerMode", "0"], BAD_INPUT, "1 to 65535"),
        (["--playerMode", "0", "--playerMode", "0"], BAD_INPUT, "given twice"),
        (["--resolution", "large"], BAD_INPUT, "not a whole number"),
        (["--useRayCasts", "--raysPerSide", "51"], BAD_INPUT, "give 0 to 50"),
        (["--decisionPeriod", "21"], BAD_INPUT, "give 1 to 20"),
    ],
    ids=lambda value: "" if isinstance(value, int) else None,
)
def test_what_a_person_does_at_a_terminal(
    executable: str, port: int, options: list[str], code: int, words: str
) -> None:
    words_given = [str(port) if word == "PORT" else word for word in options]
    run = subprocess.run(
        [executable, *words_given], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == code, run.stderr
    assert words in run.stderr
    assert "Traceback" not in run.stderr


def test_help_says_how_to_use_it(executable: str) -> None:
    run = subprocess.run([executable, "--help"], capture_output=True, text=True, check=True)
    text = " ".join(run.stdout.split())
    assert "AnimalAIEnvironment(file_name=" in text
    assert f"{LOST} the client went without closing" in text
    assert f"{REFUSED} the client speaks another version" in text
    assert os.access(executable, os.X_OK)
