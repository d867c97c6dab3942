"""Files and texts that would become too much: what they make is counted before it is made."""

from __future__ import annotations

import base64
import io
import json
import tarfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc
import pytest
import zstandard
from mcap.opcode import Opcode

from animalcat.layouts.library import text_of
from animalcat.outcomes import OutcomesError, read_outcomes
from animalcat.plots.results import read_results
from animalcat.service.batteries import feature_table
from animalcat.service.errors import ServiceError
from animalcat.service.host.settings import Settings
from animalcat.service.library.layouts import own_layout
from animalcat.service.recording.reader import RecordingError, read_episode
from animalcat.service.recording.sums import MAGIC
from animalcat.service.storage.sql import DATABASE
from animalcat.service.upkeep.place import DataError
from animalcat.service.upkeep.restore import restore
from animalcat.text.json_text import read_json
from animalcat.v1 import sessions_pb2

MINE = text_of("one-capability").replace("name: one-capability", "name: mine")
SECONDS = 5.0
"""CPU time that a text may take; most of these took minutes, or for ever."""
MIB = 1 << 20
FIXTURES = Path(__file__).with_name("fixtures")


def with_link(link: str, number: int) -> str:
    nodes = "".join(f"  d{k}: {{link: {link}}}\n" for k in range(number))
    return MINE.replace("derived:\n", f"derived:\n{nodes}", 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{MINE}x: 1{':59' * 300_000}\n", "is no int"),
        (f"{MINE}x: 0x{'9' * 900_000}\n", "is no int"),
        (
            MINE.replace("    low: 0\n", "".join(f"    k{i}: 1\n" for i in range(5_000)), 1),
            "there is no such key.*; and 4981 more",
        ),
        (with_link("{sum: {of: 1}}", 100), "there is no such key"),
    ],
    ids=["sixties", "hexadecimal", "many", "nested"],
)
def test_a_layout_of_one_megabyte_is_read_in_seconds(text: str, words: str) -> None:
    began = time.process_time()
    with pytest.raises(ServiceError, match=words):
        own_layout(text)
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("columns", [20_001, 300_000])
def test_a_table_has_not_any_number_of_columns(columns: int) -> None:
    heads, cells = ",".join(f"f{k}" for k in range(columns)), ",1" * columns
    began = time.process_time()
    with pytest.raises(feature_table.TableError, match="at most 20,000 columns"):
        feature_table.read_table(f"instance,{heads}\nA{cells}\n")
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("text", ["[" * 65, '{"a":' * 900_000, '["[", ' + "[" * 64])
def test_json_is_not_deep(text: str) -> None:
    with pytest.raises(ValueError, match="nested deeper than 64"):
        read_json(text)
    assert read_json(json.dumps({"[": ["{" * 100, '\\"[', 1]})) == {"[": ["{" * 100, '\\"[', 1]}


@pytest.mark.asyncio(loop_scope="session")
async def test_a_page_token_that_is_deep_is_none(service: Any) -> None:
    token = base64.urlsafe_b64encode(b"[" * 3000).decode()
    with pytest.raises(grpc.aio.AioRpcError) as error:
        await service.sessions.ListSessions(sessions_pb2.ListSessionsRequest(page_token=token))
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def record(opcode: int, content: bytes) -> bytes:
    return bytes([opcode]) + len(content).to_bytes(8, "little") + content


def recording(path: Path) -> None:
    """Chunks that say that they are small, and are a gigabyte each."""
    packer = zstandard.ZstdCompressor().compressobj(size=MIB << 10)
    packed = b"".join(packer.compress(bytes(MIB)) for _ in range(1 << 10)) + packer.flush()
    chunk = (
        bytes(16)
        + (100).to_bytes(8, "little")
        + (1).to_bytes(4, "little")
        + (4).to_bytes(4, "little")
        + b"zstd"
        + len(packed).to_bytes(8, "little")
        + packed
    )
    path.write_bytes(MAGIC + record(int(Opcode.CHUNK), chunk) * 8 + MAGIC)


def parquet(path: Path) -> None:
    """Forty million rows in a few kilobytes."""
    arrow: Any = import_module("pyarrow")
    writers: Any = import_module("pyarrow.parquet")
    column = arrow.DictionaryArray.from_arrays(arrow.array([0] * MIB, arrow.int8()), [1.0])
    table = arrow.table({"episode": column})
    with writers.ParquetWriter(path, table.schema) as writer:
        for _ in range(40):
            writer.write_table(table)


def netcdf(path: Path) -> None:
    """A variable of a terabyte that was never written."""
    library: Any = import_module("h5py")
    with library.File(path, "w") as file:
        group = file.create_group("posterior")
        group.create_dataset("draws", (1 << 37,), "f8", chunks=(MIB,), compression="gzip")


BOMBS: dict[str, tuple[Callable[[Path], None], Callable[[Path], object], Any, str]] = {
    "a.mcap": (recording, read_episode, RecordingError, "it does not say what it unpacks to"),
    "a.parquet": (parquet, read_outcomes, OutcomesError, "at most 20,000 columns and 20,000,000"),
    "a.nc": (netcdf, read_results, ValueError, "1,099,511,627,776 bytes; 2,"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_unpacks_to_gigabytes_is_refused(name: str, tmp_path: Path) -> None:
    write, read, error, words = BOMBS[name]
    write(tmp_path / name)
    with pytest.raises(error, match=words):
        read(tmp_path / name)


@pytest.mark.parametrize("form", [Path, Path.read_bytes])
def test_an_hdf5_file_on_which_its_library_hangs_is_refused(form: Callable[[Path], Any]) -> None:
    with pytest.raises(ValueError, match="this is no netCDF file"):
        read_results(form(FIXTURES / "hangs.nc"))


def member(name: str, size: int = 0, **changes: Any) -> tuple[tarfile.TarInfo, int]:
    info = tarfile.TarInfo(name)
    info.size = size
    for key, value in changes.items():
        setattr(info, key, value)
    return info, size


def backup(
    path: Path, *members: tuple[tarfile.TarInfo, int], form: int = tarfile.PAX_FORMAT
) -> None:
    with tarfile.open(path, "w:gz", format=form) as archive:
        for info, size in members:
            archive.addfile(info, io.BytesIO(bytes(min(size, MIB))) if size <= MIB else None)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ([member("/etc/cron.d/x")], "which no store has"),
        ([member("batteries/../../x")], "which no store has"),
        ([member("batteries/a", type=tarfile.SYMTYPE, linkname="/etc")], "which no store has"),
        ([member("batteries/a", type=tarfile.LNKTYPE, linkname=DATABASE)], "which no store has"),
        ([member("batteries/a", type=tarfile.CHRTYPE)], "which no store has"),
        ([member("batteries/a"), member("batteries/a")], "which no store has"),
        ([member("batteries/" + "a" * (3 * MIB))], "a name of 3,"),
        ([member("batteries/a", pax_headers={"comment": "a" * (3 * MIB)})], "a name of 3,"),
        ([member(f"batteries/{k}") for k in range(30)], "which no store has"),
        ([member("batteries/a", 1 << 50)], "the disk of"),
    ],
    ids=["absolute", "up", "link", "hard", "device", "twice", "name", "header", "many", "huge"],
)
def test_a_backup_of_a_stranger_makes_nothing(
    members: list[Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("animalcat.service.upkeep.restore.MOST_FILES", 20)
    backup(tmp_path / "b.tar.gz", *members)
    with pytest.raises(DataError, match=words):
        restore(tmp_path / "b.tar.gz", Settings(home=tmp_path / "data"))
    assert not (tmp_path / "data").exists()
