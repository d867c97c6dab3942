"""A session that compares its agent with another agent's session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from animalcat.v1 import results_pb2, sessions_pb2, types_pb2

from .conftest import AGENT


def forward(rng: np.random.Generator) -> int:
    return 3


def backward(rng: np.random.Generator) -> int:
    return 6


async def played(service: Any, session: str) -> dict[str, bool]:
    return {
        e.instance: e.outcome == types_pb2.OUTCOME_SUCCESS
        for e in await service.list_episodes(session)
    }


def facing(session: str) -> sessions_pb2.Opponent:
    return sessions_pb2.Opponent(session=session)


@pytest.mark.asyncio(loop_scope="session")
async def test_a_better_agent_is_told_apart_and_an_equal_one_is_not(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    async with start(tmp_path) as service:
        never = sessions_pb2.StoppingRule(max_episodes=24, target_sd=0.0, futility=0.0)
        first = await service.create(24, agent="backs off", stop=never)
        await service.play(first, backward, agent="backs off")
        theirs = await played(service, first)
        assert len(theirs) == 24
        assert not any(theirs.values())

        better = await service.create(against=facing(first), seed=1, stop=never)
        await service.play(better, forward)
        mine = await played(service, better)
        passed = sum(mine.values())
        assert set(mine) <= set(theirs)
        assert passed == 7  # six for none are not enough
        assert len(mine) < 24
        found = await service.get(better)
        assert "told apart from backs off" in found.reason
        spec = found.spec
        assert spec.against.agent == "backs off"
        assert dict(spec.against.outcomes) == dict.fromkeys(theirs, 0.0)
        request = results_pb2.GetProfileRequest(name=f"{better}/profile")
        profile = (await service.profiles.GetProfile(request)).profile_json
        assert '"apart":true' in profile.replace(" ", "")

        equal = await service.create(against=facing(first), seed=2, stop=never)
        await service.play(equal, backward)
        assert len(await played(service, equal)) == 24
        reason = (await service.get(equal)).reason
        assert "cannot be told from backs off: of 24 arenas" in reason

        for changes, why in (
            ({"against": facing("sessions/none")}, "none"),
            ({"against": facing(first), "fresh": True}, "fresh"),
            ({"against": facing(first), "policy": {"generate": True}}, "generate"),
            ({"against": facing(await service.create(3, agent="idle"))}, "let it play first"),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await service.create(**{"agent": AGENT, **changes})
            assert why in (refused.value.details() or "")
