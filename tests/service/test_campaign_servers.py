"""Two servers of one store: one of them has all of a campaign, wherever its agents come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from animalcat.errors import CODE_METADATA
from animalcat.service.host.settings import Settings
from animalcat.service.rpc.server import create_server
from animalcat.service.storage.sql import SqlStore
from animalcat.v1 import campaigns_pb2, operations_pb2
from animalcat.values import SessionState
from tests.packages import free_port
from tests.service.conftest import Helpers, Service
from tests.service.test_campaign import FINISHED, create, get, play
from tests.suites.storage import NOW, SPEC

pytestmark = pytest.mark.asyncio(loop_scope="session")

AGENTS = ["walks", "stands"]


@asynccontextmanager
async def two(data: Path, fitter: Helpers) -> AsyncGenerator[list[Service]]:
    """Two servers of one data directory and one database."""
    async with AsyncExitStack() as stack:
        found: list[Service] = []
        for _ in range(2):
            settings = Settings(
                home=data,
                port=free_port(),
                store=f"sqlite:///{data / 'shared.sqlite'}",
                claim_seconds=120.0,
            )
            running = await stack.enter_async_context(
                create_server(settings, lambda: NOW, fitter, fitter.simulators)
            )
            channel = grpc.aio.insecure_channel(running.address)
            found.append(Service(running, data, await stack.enter_async_context(channel)))
        yield found


async def test_the_second_agent_of_a_campaign_is_sent_to_the_server_of_the_first(
    tmp_path: Path, fitter: Helpers
) -> None:
    async with two(tmp_path, fitter) as (one, other):
        campaign = await create(one, agents=AGENTS, budget=8)
        first, second = campaign.sessions
        playing = asyncio.ensure_future(one.play(first.name, agent=first.spec.agent))
        while not (await other.get(first.name)).episodes:
            await asyncio.sleep(0.02)
        async with other.agent(second.name, agent=second.spec.agent) as stream:
            refused = await stream.refused("SERVED_ELSEWHERE")
        assert one.running.address in refused.message
        end = campaigns_pb2.EndCampaignRequest(name=campaign.name)
        with pytest.raises(grpc.aio.AioRpcError) as elsewhere:
            await other.campaigns.EndCampaign(end)
        assert dict(elsewhere.value.trailing_metadata() or ())[CODE_METADATA] == "SERVED_ELSEWHERE"
        ends = await asyncio.gather(playing, one.play(second.name, agent=second.spec.agent))
        assert [found.state for found in ends] == [FINISHED] * 2
        assert (await get(other, campaign.name)).reason == "the budget of 8 episodes is used up"


async def test_a_campaign_is_conducted_where_its_agents_come(
    tmp_path: Path, fitter: Helpers
) -> None:
    """One server makes it, the other plays it, and there it can be ended."""
    async with two(tmp_path, fitter) as (one, other):
        campaign = await create(one, agents=AGENTS, budget=8)
        assert await asyncio.wait_for(play(other, campaign), 120) == [FINISHED] * 2
        ended = await get(one, campaign.name)
        assert sum(session.episodes for session in ended.sessions) == 8
        again = await create(one, agents=AGENTS, budget=50)
        waiting = asyncio.ensure_future(play(other, again))
        while not all(s.episodes for s in (await get(other, again.name)).sessions):
            await asyncio.sleep(0.02)
        request = campaigns_pb2.EndCampaignRequest(name=again.name)
        done = await other.done((await other.campaigns.EndCampaign(request)).operation)
        assert done.state == operations_pb2.OPERATION_STATE_DONE
        assert await waiting == [FINISHED] * 2


async def test_an_engine_begins_with_what_the_last_owner_left(
    tmp_path: Path, fitter: Helpers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner ends the session and gives it up between two steps of the one that takes over."""
    async with two(tmp_path, fitter) as (one, _):
        engines = one.running.engines
        engines.parts.store.create_session("s", SPEC, NOW)
        claims = engines.parts.claims
        assert claims is not None
        claim = claims.claim

        def late(session: str, *rest: Any) -> Any:
            last = SqlStore(f"sqlite:///{tmp_path / 'shared.sqlite'}")
            last.finish_session(session, SessionState.CANCELLED, "enough", {}, ())
            last.close()
            return claim(session, *rest)

        async def no_battery(digest: str) -> Any:
            return None

        monkeypatch.setattr(claims, "claim", late)
        monkeypatch.setattr(engines, "battery", no_battery)
        engine = await engines.get("s")
        assert engine.session.state is SessionState.CANCELLED
