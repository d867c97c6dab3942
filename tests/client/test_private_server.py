"""The server that a command starts for itself."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import animalcat
from animalcat.service.host.private import server_for


@pytest.mark.slow
def test_commands_that_start_at_once_share_a_server(tmp_path: Path) -> None:
    together = Barrier(3)

    def address(_: int) -> str:
        together.wait()
        with server_for(None, tmp_path) as found:
            with animalcat.connect(found) as client:
                assert client.list_sessions() == []
            together.wait()  # the server goes with the command that started it
            return found

    with ThreadPoolExecutor(3) as threads:
        found = set(threads.map(address, range(3)))
    assert len(found) == 1


def test_a_server_that_does_not_start_says_why_this_time(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("error: what went wrong last week\n")
    (tmp_path / "animalcat.sqlite").write_text("no database")
    command = [sys.executable, "-m", "animalcat", "session", "list", "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "last week" not in done.stderr
    assert "the private server did not start" in done.stderr, json.dumps(done.stderr)
