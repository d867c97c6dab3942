"""Logs that unpack to gigabytes are refused before they are unpacked."""

from __future__ import annotations

import base64
import zipfile
import zlib
from pathlib import Path

import pytest

from animalcat.doors.inspect.logs import count_parts
from animalcat.doors.inspect.plan import VERSION, Plan
from animalcat.layouts.adaptive.learner import RULES

MIB = 1 << 20


def log(path: Path) -> None:
    """A header of 300 MiB that says it has ten bytes."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    content = b"".join(packer.compress(bytes(MIB)) for _ in range(300)) + packer.flush()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", content)
        info = archive.getinfo("header.json")
        info.compress_type, info.file_size = zipfile.ZIP_DEFLATED, 10
    data = bytearray(path.read_bytes())
    data[8:10] = (8).to_bytes(2, "little")  # the method, in the part's own head too
    path.write_bytes(data)


def test_a_log_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    log(tmp_path / "a.eval")
    with pytest.raises(ValueError, match="unpacks to more than 256 MiB"):
        count_parts(tmp_path / "a.eval")


def test_the_items_of_a_log_do_not_unpack_to_any_size() -> None:
    packer = zlib.compressobj(9)
    table = b"".join(packer.compress(bytes(MIB)) for _ in range(128)) + packer.flush()
    said = {"version": VERSION, "rules": RULES, "items": base64.b64encode(table).decode()}
    with pytest.raises(ValueError, match="more than 67,108,864 bytes"):
        Plan.from_dict(said)
