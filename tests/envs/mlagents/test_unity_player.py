"""The executable `animalcat-unity`: its messages, its log and its exit codes."""

from __future__ import annotations

import logging
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from mlagents_envs.environment import UnityEnvironment
from mlagents_envs.exception import UnityTimeOutException
from mlagents_envs.side_channel.raw_bytes_channel import RawBytesChannel

from animalcat.arena_configs.writer import to_yaml
from animalcat.cli.shared.output import BAD_INPUT, UNREACHABLE
from animalcat.cli.unity import player as unity_player
from animalcat.envs.mlagents import link
from animalcat.envs.mlagents.channels import ARENAS
from tests.small import goal_arena


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


@contextmanager
def client_of(words: Sequence[str], arenas: str = "") -> Iterator[tuple[Future[int], Path]]:
    """A stand-in whose client gave up waiting for its first observation; and its log."""
    port = free_port()
    with ThreadPoolExecutor(1) as thread:
        code = thread.submit(unity_player.run, ["--mlagents-port", str(port), *words])
        channel = RawBytesChannel(ARENAS)
        client = UnityEnvironment(None, base_port=port, side_channels=[channel])
        try:
            channel.send_raw_data(arenas.encode())
            client._communicator.timeout_wait = 1
            with pytest.raises(UnityTimeOutException):
                client.reset()
            yield code, unity_player.default_log(port)
        finally:
            client.close()


def test_a_person_plays_until_the_client_closes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ANIMALCAT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("animalcat.cli.shared.page.open_page", lambda url: None)
    with client_of(["--playerMode", "1"], to_yaml(goal_arena())) as (code, log):
        while (page := re.search(r"play at (http://\S+)#\S+\n", log.read_text())) is None:
            assert not code.done()
            time.sleep(0.02)
        with urllib.request.urlopen(page[1]) as answer:
            assert b"<html" in answer.read()
        assert not code.done()
    assert code.result(20) == 0


def test_the_installed_command_helps() -> None:
    command = Path(sys.executable).with_name("animalcat-unity")
    told = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    assert f'file_name="{command}"' in told.stdout
