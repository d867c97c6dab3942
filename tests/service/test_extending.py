"""A finished session is given more episodes, and goes on where it was."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest

from animalcat.v1 import results_pb2, sessions_pb2

from .conftest import Service

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def extend_it(service: Service, session: str, **more: Any) -> sessions_pb2.Session:
    request = sessions_pb2.ExtendSessionRequest(name=session, **more)
    return (await service.sessions.ExtendSession(request)).session


async def test_a_finished_session_goes_on_with_a_larger_budget(service: Service) -> None:
    session = await service.create(2, seed=81)
    await service.play(session)
    first = await service.list_episodes(session)
    found = await extend_it(service, session, max_episodes=4)
    assert found.state == sessions_pb2.SESSION_STATE_WAITING
    assert (found.spec.stop.max_episodes, found.reason) == (4, "")
    with pytest.raises(grpc.aio.AioRpcError, match="has a budget of 4 episodes, and 3 is less"):
        await extend_it(service, session, max_episodes=3)
    await service.play(session)
    after = await service.list_episodes(session)
    assert [one.name for one in after[: len(first)]] == [one.name for one in first]
    assert len(after) == 4
    assert len({one.decision.instance for one in after}) == 4  # nothing twice
    request = results_pb2.GetProfileRequest(name=f"{session}/profile")
    profile = json.loads((await service.profiles.GetProfile(request)).profile_json)
    assert profile["provenance"]["episodes"] == 4
    assert "the budget of 4 episodes is used up" in profile["provenance"]["reason"]
    intact = await service.sessions.VerifySession(sessions_pb2.VerifySessionRequest(name=session))
    assert not intact.problems
