"""Folders of sockets: those of dead servers are removed, and no others."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from animalcat.machine.folders import SOCKET
from animalcat.service.host.local import LocalAddress, clean

SERVER = (
    "import time\n"
    "from animalcat.service.host.local import LocalAddress\n"
    "print(LocalAddress().folder, flush=True)\n"
    "time.sleep(600)\n"
)


@pytest.fixture
def below(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder of sockets that no other server uses."""
    short = tmp_path_factory.mktemp("s")
    monkeypatch.setenv("TMPDIR", str(short))
    monkeypatch.setattr("tempfile.tempdir", None)
    return short / f"animalcat-{os.getuid()}"


def test_only_the_folders_of_dead_servers_are_removed(below: Path) -> None:
    mine = LocalAddress()
    other = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    theirs = Path(other.stdout.readline().strip())
    assert theirs.parent == below
    old = below / "animalcat-old"
    old.mkdir()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(old / SOCKET))
    new, foreign = below / "animalcat-new", below / "notes"
    new.mkdir()
    foreign.mkdir()
    with socket.socket(socket.AF_UNIX) as serving:
        (below / "animalcat-serving").mkdir()
        serving.bind(str(below / "animalcat-serving" / SOCKET))
        serving.listen()
        clean(below)
    names = {folder.name for folder in below.iterdir()}
    assert names == {
        mine.folder.name,
        theirs.name,
        "animalcat-new",
        "animalcat-serving",
        "notes",
    }
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert theirs.exists()
    another = LocalAddress()
    assert not theirs.exists()
    assert mine.folder.exists()
    for one in (mine, another):
        one.close()
        assert not one.folder.exists()
