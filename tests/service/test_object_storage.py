"""Servers whose batteries and recordings are in object storage."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from animalcat.client.async_client import aconnect
from animalcat.errors import AnimalcatError
from animalcat.service.host.settings import Settings
from animalcat.service.rpc.server import create_server
from animalcat.v1 import results_pb2, sessions_pb2, types_pb2
from animalcat.values import Cause
from tests import postgres
from tests.service.conftest import NOW, Helpers, Service, walk
from tests.service.s3 import S3, bucket, make_bucket, s3

__all__ = ["bucket", "s3"]
pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.xdist_group("object storage"),
]


@asynccontextmanager
async def served(data: Path, url: str, fitter: Helpers, **more: Any) -> AsyncGenerator[Service]:
    settings = Settings(home=data, port=0, artefacts=url, **more)
    async with (
        create_server(settings, lambda: NOW, fitter, fitter.simulators) as running,
        grpc.aio.insecure_channel(running.address) as channel,
    ):
        yield Service(running, data, channel)


def stored(url: str) -> Any:
    """The storage, and its folder."""
    fsspec: Any = importlib.import_module("fsspec")
    return fsspec.core.url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)


def recordings(url: str) -> set[str]:
    storage, root = stored(url)
    found = storage.find(f"{root}/recordings")
    return {str(path).removeprefix(f"{root}/recordings/") for path in found}


async def one_episode(service: Service, session: str) -> None:
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        await stream.episode(walk)


async def problems(service: Service, session: str) -> tuple[str, ...]:
    async with aconnect(service.running.address) as client:
        return (await client.verify_session(session)).problems


async def steps_of(service: Service, name: str) -> int:
    request = results_pb2.StreamEpisodeRequest(name=name)
    return sum([frame.HasField("step") async for frame in service.episodes.StreamEpisode(request)])


async def test_what_is_acknowledged_is_in_the_storage_and_a_change_there_is_found(
    bucket: str, tmp_path: Path, fitter: Helpers
) -> None:
    async with served(tmp_path, bucket, fitter) as service:
        session = await service.create(3, certify=False)
        await one_episode(service, session)
        (first, *_) = await service.list_episodes(session)
        key = f"{session.split('/')[1]}/0-0.mcap"
        assert key in recordings(bucket)
        assert not list((tmp_path / "recordings").rglob("0-0.mcap"))
        assert await steps_of(service, first.name) == first.steps + 1
        assert await problems(service, session) == ()

        storage, root = stored(bucket)
        content = storage.cat_file(f"{root}/recordings/{key}")
        storage.pipe_file(f"{root}/recordings/{key}", content[:-1] + bytes([content[-1] ^ 1]))
        (problem,) = await problems(service, session)
        assert problem == "the recording of attempt 0 at episode 0 was changed"
        storage.pipe_file(f"{root}/recordings/{key}", content)

        await service.sessions.CancelSession(sessions_pb2.CancelSessionRequest(name=session))
        await service.sessions.DeleteSession(sessions_pb2.DeleteSessionRequest(name=session))
        assert not recordings(bucket)


async def test_a_session_goes_on_when_the_storage_is_back(
    bucket: str, s3: S3, tmp_path: Path, fitter: Helpers
) -> None:
    async with served(tmp_path, bucket, fitter) as service:
        session = await service.create(3, certify=False)
        await one_episode(service, session)
        await service.settled(session, "WAITING", asyncio.sleep)
        s3.stop()
        try:
            with pytest.raises(AssertionError, match="ARTEFACTS_BUSY"):
                await service.play(session)
            await service.settled(session, "WAITING", asyncio.sleep)
            with pytest.raises(AnimalcatError, match="storage of batteries"):
                await problems(service, session)
        finally:
            s3.start()
            make_bucket(bucket)  # it has forgotten what it had
        await service.play(session)
        told = await service.list_episodes(session)
        counted = [e.episode for e in told if e.outcome in (1, 2)]
        assert counted == [0, 1, 2]
        faults = [(e.episode, e.cause) for e in told if e.outcome == types_pb2.OUTCOME_FAULT]
        assert faults == [(1, Cause.SERVER_FAILED.value)]
        # That is so of what was there before, and of nothing that was stored since.
        found = set(await problems(service, session))
        gone = "the recording of attempt 0 at episode 0 is gone"
        assert gone in found
        assert found <= {gone, "the recording of attempt 0 at episode 1 is gone"}


@pytest.mark.slow
async def test_two_servers_share_batteries_and_recordings_and_no_directory(
    bucket: str, tmp_path: Path, fitter: Helpers
) -> None:
    with postgres.running() as database, postgres.schema(database) as url:
        async with served(tmp_path / "a", bucket, fitter, store=url) as first:
            session = await first.create(3, certify=False)
            await one_episode(first, session)
        async with served(tmp_path / "b", bucket, fitter, store=url) as second:
            await second.play(session)
            told = await second.list_episodes(session)
            assert [e.episode for e in told if e.outcome in (1, 2)] == [0, 1, 2]
            for one in told:
                if one.outcome in (1, 2):
                    assert await steps_of(second, one.name) == one.steps + 1
            assert await problems(second, session) == ()
