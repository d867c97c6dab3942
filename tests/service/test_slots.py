"""Several agents play one session at once: who is quicker changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from animalcat.service.session.evidence import AHEAD, Evidence
from animalcat.text import names
from animalcat.v1 import gateway_pb2, sessions_pb2, types_pb2
from animalcat.values import Decision, Episode, Outcome

from .conftest import Service, action, walk

pytestmark = pytest.mark.asyncio(loop_scope="session")

Start = Callable[[Path], Any]


def count_up(episodes: list[sessions_pb2.EpisodeSummary]) -> list[Any]:
    """What was decided and what came of it, attempts and times left out."""
    return [
        (e.episode, e.instance, e.decision, e.outcome, e.episode_return)
        for e in episodes
        if e.outcome <= types_pb2.OUTCOME_FAILURE
    ]


@pytest.mark.slow
async def test_decisions_do_not_tell_how_many_played_nor_who_was_quicker(
    start: Start, tmp_path: Path
) -> None:
    async with start(tmp_path / "alone") as service:
        session = await service.create(9, slots=2, certify=False)
        assert (await service.play(session)).episodes == 9
        alone = await service.list_episodes(session)
    async with start(tmp_path / "two") as service:
        assert await service.create(9, slots=2, certify=False) == session
        async with service.agent(session) as slow:
            await slow.receive("welcome")
            first = await slow.receive("episode_start")
            async with service.agent(session, instance="b") as quick:
                await quick.receive("welcome")
                for _ in range(AHEAD):
                    await quick.episode(walk)
                # The next choice is to know what came of the first, which nobody does yet.
                shown = await service.get(session)
                assert (shown.episodes, shown.state) == (2, sessions_pb2.SESSION_STATE_RUNNING)
                waiting = asyncio.ensure_future(quick.receive("episode_start"))
                await asyncio.wait([waiting], timeout=0.5)
                assert not waiting.done()
                await _finish(slow, first)
                assert (await waiting).episode in (3, 4)
        await service.settled(session, "WAITING", asyncio.sleep)
        await asyncio.gather(service.play(session), service.play(session))
        together = await service.list_episodes(session)
    assert count_up(together) == count_up(alone)
    assert [e.decision.pending for e in alone] == [0, 1, 2, 2, 2, 2, 2, 2, 2]
    assert len({e.instance for e in alone}) == 9


async def _finish(stream: Any, start: gateway_pb2.EpisodeStart) -> None:
    """Play an episode that has begun to its end."""
    rng = np.random.default_rng(start.agent_seed)
    step = 0
    while True:
        await stream.send(action(step, walk(rng)))
        frame = await stream.receive()
        assert not isinstance(frame, types_pb2.Error), f"error: {frame.code}"
        if isinstance(frame, gateway_pb2.EpisodeEnd):
            return
        step = frame.step


async def test_a_seat_for_each_slot_and_no_more(service: Service) -> None:
    session = await service.create(4, slots=2, seed=11, certify=False)
    async with AsyncExitStack() as stack:
        seats = [
            await stack.enter_async_context(service.agent(session, instance=f"{k}"))
            for k in range(3)
        ]
        starts: list[gateway_pb2.EpisodeStart] = []
        for seat in seats[:2]:
            await seat.receive("welcome")
            starts.append(await seat.receive("episode_start"))
        assert sorted(start.episode for start in starts) == [0, 1]
        refused = await seats[2].refused("AGENT_CONNECTED")
        assert "2 agents play" in refused.message


async def test_what_one_leaves_another_plays(service: Service) -> None:
    session = await service.create(3, slots=2, seed=12, certify=False)
    async with service.agent(session, instance="stays") as stays:
        await stays.receive("welcome")
        begun = await stays.receive("episode_start")
        async with service.agent(session, instance="goes") as goes:
            await goes.receive("welcome")
            assert (await goes.receive("episode_start")).episode == 1
        await _finish(stays, begun)
        assert (await stays.receive("episode_start")).episode in (1, 2)
    await service.settled(session, "WAITING", asyncio.sleep)
    assert (await service.play(session)).state == sessions_pb2.SESSION_STATE_FINISHED
    episodes = await service.list_episodes(session)
    assert [e.episode for e in episodes if e.outcome <= types_pb2.OUTCOME_FAILURE] == [0, 1, 2]
    left = [e for e in episodes if e.episode == 1]
    assert left[0].outcome == types_pb2.OUTCOME_VOID
    assert left[0].instance == left[-1].instance


async def test_a_failure_in_one_slot_pauses_the_session(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are let go without blame, and who comes next starts from what is stored."""
    async with start(tmp_path) as service:
        session = await service.create(4, slots=2, certify=False)
        store = service.running.engines.parts.store

        def full(*_: object) -> None:
            raise OSError("the disk is full")

        async with (
            service.agent(session, instance="a") as a,
            service.agent(session, instance="b") as b,
        ):
            await a.receive("welcome")
            begun = await a.receive("episode_start")
            await b.receive("welcome")
            await b.receive("episode_start")
            with monkeypatch.context() as patch:
                patch.setattr(store, "finish_episode", full)
                with pytest.raises(AssertionError, match="error"):
                    await _finish(a, begun)
                with pytest.raises(AssertionError):
                    await b.receive("episode_start")
                await service.settled(session, "WAITING", asyncio.sleep)
        assert (await service.play(session)).episodes == 4
        episodes = await service.list_episodes(session)
        assert [e.episode for e in episodes if e.outcome <= types_pb2.OUTCOME_FAILURE] == [
            *range(4)
        ]


async def test_after_a_restart_as_much_is_known_as_the_last_decision_knew(
    service: Service,
) -> None:
    session = await service.create(9, slots=2, agent="slots:known")
    engines = service.running.engines
    name = names.parse_session(session)
    stored = await engines.stored(name)
    battery = await engines.battery(stored.spec.battery_digest)
    instances = [one.name for one in battery.instances]
    told = 4
    for number, pending in enumerate([0, 1, 2, 2, 0]):
        decision = Decision(instances[number], 0.0, 1.0, 0.5, {}, "informative", pending=pending)
        begun = Episode(name, number, 0, decision)
        engines.parts.store.open_episode(begun)
        engines.parts.store.finish_episode(
            replace(begun, outcome=Outcome.FAILURE, outcomes={"success": 0.0})
        )
    # The decision for number 4 knew all four outcomes before it, where two were due; so one more
    # decision must not know less.
    evidence = await Evidence.load(stored, battery, engines.parts)
    assert evidence.due(5) < told == evidence.untold
    evidence.close()
