"""Databases and files that do not belong together: no server starts, and nothing is written over.

The first finding was a database that was lost: the next server began an empty one, and its sessions
had the names, and so the recordings, of those that were lost.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from animalcat.service.host.settings import Settings
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.rpc.server import create_server
from animalcat.service.storage.artefacts import MARK, Artefacts
from animalcat.service.storage.belonging import StrayPartsError, check_belonging
from animalcat.service.storage.sql import DATABASE, SqlStore
from animalcat.v1 import results_pb2, types_pb2

from .conftest import NOW, Helpers, walk


@asynccontextmanager
async def serve_it(fitter: Helpers, **settings: Any) -> AsyncGenerator[None]:
    async with create_server(Settings(port=0, **settings), lambda: NOW, fitter, fitter.simulators):
        yield


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "sqlite" not in path.name
    }


@pytest.mark.asyncio(loop_scope="session")
async def test_a_database_that_was_lost_is_asked_for(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    data, away = tmp_path / "data", tmp_path / "away"
    async with start(data) as service:
        name = await service.create(3)
        async with service.agent(name) as stream:
            await stream.receive("welcome")
            await stream.episode(walk)
    before = contents(data / "recordings")
    assert before
    for mark in (True, False):  # also where the mark went with the database
        shutil.move(data / DATABASE, away)
        kept = (data / MARK).read_text()
        if not mark:
            (data / MARK).unlink()
        why = "belongs to another database" if mark else "has recordings, and the database that"
        told = rf"^{data} {why}.* Restore the database that belongs to it"
        with pytest.raises(StrayPartsError, match=told):
            async with start(data):
                pass
        assert not (data / DATABASE).exists()  # none is left that could be taken for the lost one
        assert contents(data / "recordings") == before
        shutil.move(away, data / DATABASE)
        (data / MARK).write_text(kept)
    async with start(data) as service:
        assert (await service.play(name)).episodes > 1
    assert before.items() <= contents(data / "recordings").items()


def test_what_people_have_played_belongs_to_no_database(tmp_path: Path) -> None:
    (tmp_path / "recordings" / "play-yard-20250101-120000").mkdir(parents=True)
    (tmp_path / "batteries" / ".half").mkdir(parents=True)
    store = SqlStore.in_directory(tmp_path)
    try:
        check_belonging(store, Artefacts(tmp_path))
        assert (tmp_path / MARK).read_text() == f"{store.id()}\n"
        (tmp_path / MARK).unlink()
        (tmp_path / "batteries" / ("ab" * 32)).mkdir()
        with pytest.raises(StrayPartsError, match="has batteries, and the database that knows"):
            check_belonging(store, Artefacts(tmp_path))
    finally:
        store.close()


def test_a_recording_that_is_there_is_moved_aside(tmp_path: Path) -> None:
    """As where a database was restored that is older than the files."""
    path = tmp_path / "s" / "0-0.mcap"
    path.parent.mkdir()
    for content in (b"first", b"second"):
        path.write_bytes(content)
        spec = types_pb2.ObservationSpec(decision_period=3)
        EpisodeRecorder(path, results_pb2.EpisodeHeader(observation_spec=spec)).close()
    kept = {one.name: one.read_bytes() for one in path.parent.iterdir() if one != path}
    assert kept == {"0-0.mcap.aside-1": b"first", "0-0.mcap.aside-2": b"second"}
