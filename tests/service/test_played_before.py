"""What an agent has played before is counted for a layout that asks for it, by every route."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from animalcat.client import aconnect
from animalcat.layouts.fitting.exports import of_export
from animalcat.layouts.library import load_layout
from animalcat.outcomes import read_outcomes
from animalcat.v1 import results_pb2
from tests.service.conftest import Service, action, walk

pytestmark = pytest.mark.asyncio(loop_scope="session")
Start = Callable[[Path], Any]
PEOPLE = {"layout": "aaio", "layout_variant": "people", "replace_voids": True}
BEFORE, EPISODES = 7, 4


async def played(service: Service, session: str, number: int, *, last: bool) -> None:
    async with service.agent(session) as stream:
        welcome = await stream.receive("welcome")
        assert welcome.episodes_done == number
        await stream.episode(walk)
        if last:
            await stream.receive("session_end")


async def test_all_routes_know_what_was_played_before(start: Start, tmp_path: Path) -> None:
    """One practice episode, a void, and a restart of the server before the last episodes."""
    asked = {"practice": 1, "played_before": BEFORE, **PEOPLE}
    async with start(tmp_path) as service:
        session = await service.create(EPISODES, **asked)
        await played(service, session, 0, last=False)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            await stream.send(action(0, 3))
            await stream.receive("ask")
        await service.settled(session, "WAITING", asyncio.sleep)
        for number in range(1, EPISODES - 1):
            await played(service, session, number, last=False)
        before = await service.list_episodes(session)
    async with start(tmp_path) as service:
        for number in range(EPISODES - 1, EPISODES + 1):
            await played(service, session, number, last=number == EPISODES)
        attempts = await service.list_episodes(session)
        async with aconnect(service.running.address) as client:
            csv = await client.export_profile(session, "csv")
            drawn = await client.draws(session)
            page = (await client.export_profile(session, "html")).decode()
        for episode in (1, EPISODES):
            await service.episodes.ExplainEpisode(
                results_pb2.ExplainEpisodeRequest(name=f"{session}/episodes/{episode}")
            )
    assert attempts[: len(before)] == before
    acted = [e for e in attempts if e.steps]
    assert len(acted) == EPISODES + 2
    counts = [e.decision.played_before for e in acted]
    assert counts == [*range(BEFORE, BEFORE + EPISODES + 2)]  # practice and the void count
    scored = [*range(BEFORE + 2, BEFORE + EPISODES + 2)]
    layout = load_layout("aaio", "people")
    column = layout.feature_names.index("round")
    assert drawn.features[:, column].tolist() == scored  # what the last fit was given
    assert page
    table, _ = of_export(read_outcomes(csv, "csv"), [])
    instances, _ = table.of(table.agents[0])
    assert instances.features(layout)[:, column].tolist() == scored
    np.testing.assert_array_equal(instances.features(layout), drawn.features)


async def test_copies_that_play_at_once_have_no_order(service: Service) -> None:
    with pytest.raises(grpc.aio.AioRpcError, match="use 1 slot"):
        await service.create(4, slots=2, **PEOPLE)
