"""The server that a command starts for itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import pytest

import animalcat
from animalcat.service.host.lock import running_server
from animalcat.service.host.private import PIPE, server_for


@pytest.mark.slow
def test_commands_that_start_at_once_share_a_server(tmp_path: Path) -> None:
    together = Barrier(3)

    def address(_: int) -> str:
        together.wait()
        with server_for(None, tmp_path) as found:
            with animalcat.connect(found) as client:
                assert client.list_sessions() == []
            together.wait()  # all of them use it at the same time
            return found

    with ThreadPoolExecutor(3) as threads:
        found = set(threads.map(address, range(3)))
    assert len(found) == 1
    assert running_server(tmp_path) is None


def test_a_server_stays_until_the_last_command_that_uses_it_has_left(tmp_path: Path) -> None:
    first, second = ExitStack(), ExitStack()
    address = first.enter_context(server_for(None, tmp_path))
    assert second.enter_context(server_for(None, tmp_path)) == address
    first.close()
    with animalcat.connect(address) as client:
        assert client.list_sessions() == []
    with server_for(None, tmp_path) as third:
        assert third == address
    with animalcat.connect(address) as client:
        assert client.list_sessions() == []
    second.close()
    assert running_server(tmp_path) is None
    assert not (tmp_path / PIPE).exists()


HOLDING = """
import sys
from pathlib import Path
from animalcat.service.host.private import server_for
with server_for(None, Path(sys.argv[1])) as address:
    print(address, flush=True)
    sys.stdin.read()
"""


def test_a_server_outlives_the_command_that_started_it_and_was_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    starter = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    address = starter.stdout.readline().strip()
    with server_for(None, tmp_path) as joined:
        assert joined == address
        starter.kill()
        starter.communicate()
        with animalcat.connect(address) as client:
            assert client.list_sessions() == []
    assert running_server(tmp_path) is None


@pytest.mark.slow
def test_whose_server_stops_since_all_were_killed_gets_one_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    starter = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    starter.stdout.readline()
    starter.kill()
    starter.communicate()
    with (  # the first may still be stopping
        server_for(None, tmp_path) as address,
        animalcat.connect(address) as client,
    ):
        assert client.list_sessions() == []


@pytest.mark.slow
def test_a_server_of_a_person_is_neither_kept_nor_stopped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / PIPE)  # as a private server leaves it if everything is killed
    command = [sys.executable, "-m", "animalcat", "serve", "--port", "0", "--json"]
    serving = subprocess.Popen([*command, "--data", str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert serving.stdout is not None
        address = json.loads(serving.stdout.readline())["address"]
        for _ in range(2):
            with server_for(None, tmp_path) as found, animalcat.connect(found) as client:
                assert client.list_sessions() == []
        holder = running_server(tmp_path)
        assert holder is not None
        assert holder.address == address
    finally:
        serving.terminate()
        serving.communicate()


def test_a_server_that_does_not_start_says_why_this_time(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("error: what went wrong last week\n")
    (tmp_path / "animalcat.sqlite").write_text("no database")
    command = [sys.executable, "-m", "animalcat", "session", "list", "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "last week" not in done.stderr
    assert "the private server did not start" in done.stderr, json.dumps(done.stderr)
