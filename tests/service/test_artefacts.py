"""Where batteries, recordings and draws are kept."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from animalcat.service.storage.artefacts import Artefacts

RECORDING = "recordings/s/0-0.mcap"


def write_files(files: Artefacts, key: str) -> None:
    path = files.folder / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"steps")


def test_what_is_not_there_is_said_so(tmp_path: Path) -> None:
    files = Artefacts(tmp_path)
    with pytest.raises(FileNotFoundError):
        files.fetch(RECORDING)
    assert not files.digest(RECORDING)
    files.remove(RECORDING)
    files.remove("recordings/s")
    write_files(files, RECORDING)
    assert files.fetch(RECORDING).read_bytes() == b"steps"
    assert files.digest(RECORDING) == hashlib.sha256(b"steps").hexdigest()


def test_only_what_is_named_is_removed_also_beside_a_longer_name(tmp_path: Path) -> None:
    files = Artefacts(tmp_path)
    for key in (RECORDING, "recordings/s/1-0.mcap", "recordings/st/0-0.mcap"):
        write_files(files, key)
    files.remove("recordings/s")
    with pytest.raises(FileNotFoundError):
        files.fetch("recordings/s/1-0.mcap")
    assert files.fetch("recordings/st/0-0.mcap").read_bytes() == b"steps"
