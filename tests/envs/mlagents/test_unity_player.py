"""The executable `animalcat-unity`: its messages, its log and its exit codes."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from animalcat.cli import unity_player
from animalcat.cli.output import BAD_INPUT, MISSING, UNREACHABLE
from animalcat.envs.mlagents import link
from animalcat.envs.mlagents.link import Link


@pytest.fixture(autouse=True)
def own_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Handlers of each test end with it; logs without a name go to the test's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = logging.getLogger("animalcat")
    before = list(root.handlers)
    yield
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)
        handler.close()


def test_without_a_port_there_is_no_client(capfd: pytest.CaptureFixture[str]) -> None:
    assert unity_player.run(["--playerMode", "0"]) == BAD_INPUT
    assert "no --mlagents-port" in capfd.readouterr().err


def test_a_person_is_told_how_to_play(capfd: pytest.CaptureFixture[str]) -> None:
    assert unity_player.run(["--mlagents-port", "5005"]) == BAD_INPUT
    assert "animalcat arena play" in capfd.readouterr().err


def test_an_option_given_twice_is_named_in_the_log_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "logs" / "Player-0.log"
    words = ["-logFile", str(file), "--resolution", "36", "--resolution", "84"]
    assert unity_player.run(words) == BAD_INPUT
    for text in (capfd.readouterr().err, file.read_text()):
        assert "--resolution is given twice" in text


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


def test_a_port_nobody_listens_on_is_told_everywhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(link, "CONNECT_SECONDS", 0.3)
    port, file = free_port(), tmp_path / "logs" / "Player-0.log"
    words = ["--playerMode", "0", "--mlagents-port", str(port)]
    assert unity_player.run([*words, "-logFile", str(file)]) == UNREACHABLE
    for text in (capfd.readouterr().err, file.read_text()):
        assert f"nobody listens at localhost:{port}" in text
    assert unity_player.run(words) == UNREACHABLE
    assert "nobody listens" in unity_player.default_log(port).read_text()


def test_a_log_that_cannot_be_written_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    words = ["--mlagents-port", "5005", "-logFile", str(tmp_path / "file" / "Player.log")]
    assert unity_player.run(words) == BAD_INPUT
    assert "Player.log" in capfd.readouterr().err


def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def connect(_: Link) -> None:
        raise ModuleNotFoundError("No module named 'sapien'")

    monkeypatch.setattr(Link, "connect", connect)
    words = ["--playerMode", "0", "--mlagents-port", "5005"]
    assert unity_player.run(words) == MISSING
    error = capfd.readouterr().err
    assert "sapien" in error
    assert "animalcat[server]" in error


def test_the_installed_command_helps() -> None:
    command = Path(sys.executable).with_name("animalcat-unity")
    told = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    assert f'file_name="{command}"' in told.stdout
