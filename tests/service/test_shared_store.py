"""Two servers share one PostgreSQL: when one is killed, the other goes on with its sessions."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest

from animalcat.errors import CODE_METADATA
from animalcat.service.host.settings import Settings
from animalcat.service.rpc.server import create_server
from animalcat.v1 import sessions_pb2, types_pb2
from tests import postgres
from tests.service.conftest import NOW, Helpers, Service
from tests.service.test_restart import Server, battery, counted, create, finish, held

CLAIM = 1.5
N = 8


async def paused(service: Service, session: str) -> str:
    """The code with which the server answers a call that changes a session; empty if it does."""
    request = sessions_pb2.PauseSessionRequest(name=session)
    try:
        await service.sessions.PauseSession(request)
    except grpc.aio.AioRpcError as error:
        return str(dict(error.trailing_metadata() or ())[CODE_METADATA])
    return ""


@pytest.mark.slow
@pytest.mark.xdist_group("service")
@pytest.mark.asyncio(loop_scope="session")
async def test_one_of_two_servers_is_killed(
    start: Callable[[Path], Any], fitter: Helpers, tmp_path: Path
) -> None:
    async with start(tmp_path / "alone") as service:
        session = await create(service, battery(12), N, 1, certify=False)
        whole, alone = await finish(service, session, 1)

    data = tmp_path / "shared"
    with postgres.running() as database, postgres.schema(database) as url:
        settings = Settings(home=data, port=0, store=url, claim_seconds=CLAIM)
        doomed = Server(data, ANIMALCAT_STORE=url, ANIMALCAT_CLAIM_SECONDS=str(CLAIM))
        async with (
            create_server(settings, lambda: NOW, fitter, fitter.simulators) as running,
            grpc.aio.insecure_channel(running.address) as channel,
            grpc.aio.insecure_channel(doomed.address) as other,
        ):
            heir = Service(running, data, channel)
            assert await create(heir, battery(12), N, 1, certify=False) == session
            with held(doomed.address, session, 3, tmp_path / "held"):
                # The heir sees what the other does, and changes nothing of it.
                acknowledged = counted(await heir.list_episodes(session))
                assert len(acknowledged) == 3
                assert await paused(heir, session) == "SERVED_ELSEWHERE"
                assert (await Service(running, data, other).get(session)).spec.agent
                doomed.stop(signal.SIGKILL)
            while await paused(heir, session) == "SERVED_ELSEWHERE":
                await asyncio.sleep(0.1)
            resume = sessions_pb2.ResumeSessionRequest(name=session)
            await heir.sessions.ResumeSession(resume)
            again, profile = await finish(heir, session, 1)
    assert counted(again) == counted(whole)
    assert counted(again)[: len(acknowledged)] == acknowledged
    faults = [(e.episode, e.cause) for e in again if e.outcome == types_pb2.OUTCOME_FAULT]
    assert faults == [(3, "the server stopped")]
    assert profile["nodes"] == alone["nodes"]
