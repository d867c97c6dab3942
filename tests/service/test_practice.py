"""Practice comes first, is recorded, and has no say in anything that counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

import animalcat
from animalcat.arena_configs.origin import Origin
from animalcat.client.async_client import aconnect
from animalcat.envs.types import Observation
from animalcat.layouts.adaptive.plan import Policy
from animalcat.service.batteries.battery import ArenaFile, import_files
from animalcat.service.errors import ServiceError
from animalcat.service.measuring.measurement import Measurement, practice_order
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify
from animalcat.text import names
from animalcat.v1 import gateway_pb2, results_pb2, sessions_pb2, types_pb2
from animalcat.values import (
    SessionSpec,
)
from tests.service.conftest import FILES, Service, action, walk
from tests.service.test_direct import Walker

pytestmark = pytest.mark.asyncio(loop_scope="session")
Start = Callable[[Path], Any]


def tell_all(episodes: list[Any]) -> list[Any]:
    """Decisions and outcomes, without what the clock has a say in."""
    return [
        (e.episode, e.instance, e.decision.SerializeToString(), e.outcome, e.episode_return)
        for e in episodes
        if e.outcome in (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
    ]


async def test_practice_comes_first_and_does_not_count(start: Start, tmp_path: Path) -> None:
    async with start(tmp_path) as service:
        session = await service.create(4, practice=2)
        infos: list[animalcat.EpisodeInfo] = []

        class Told(Walker):
            def reset(self, info: animalcat.EpisodeInfo) -> None:
                infos.append(info)
                super().reset(info)

            def act(self, observation: Observation) -> int:
                return super().act(observation)

        async with aconnect(service.running.address) as client:
            summary = await client.evaluate(Told(), session)
            found, episodes = await client.get_session(session), await client.episodes(session)
            profile = await client.profile(session)
            table = (await client.export_profile(session, "csv")).decode()
            page = (await client.export_profile(session, "html")).decode()
        assert [info.practice for info in infos] == [True, True, False, False, False, False]
        assert [one.practice for one in episodes] == [True, True, False, False, False, False]
        assert [one.decision.reason == "practice" for one in episodes] == [
            one.practice for one in episodes
        ]
        assert summary.counted == found.episodes == 4
        assert len(summary.episodes) == 6
        assert (found.practised, found.spec.practice) == (2, 2)
        assert found.successes == sum(
            one.outcome == "success" for one in episodes if not one.practice
        )
        played = [one.instance for one in episodes]
        assert not {*played[:2]} & {*played[2:]}
        about = profile["provenance"]
        assert (about["episodes"], about["practised"], about["practice"]) == (4, 2, 2)
        assert (about["voids"], about["invalid"]) == (0, 0)
        assert profile["diagnostics"]["outcomes"] == 4
        assert profile["battery_rate"]["instances"] == len(FILES) - 2
        assert table.count(",practice,") >= 2
        assert "for practice, not counted: 2 attempts" in page
        folder = service.data / "recordings" / names.parse_session(session)
        for number in range(6):
            recording = read_episode(folder / f"{number}-0.mcap")
            assert (await asyncio.to_thread(verify, recording)).difference is None
        with pytest.raises(grpc.aio.AioRpcError, match="does not count"):
            await service.episodes.ExplainEpisode(
                results_pb2.ExplainEpisodeRequest(name=f"{session}/episodes/0")
            )
        await service.episodes.ExplainEpisode(
            results_pb2.ExplainEpisodeRequest(name=f"{session}/episodes/3")
        )


@pytest.mark.slow
async def test_restarts_and_voids_change_no_decision(start: Start, tmp_path: Path) -> None:
    """One server plays all; another is stopped after every episode, and its agent leaves twice."""
    async with start(tmp_path / "whole") as service:
        session = await service.create(3, practice=2)
        await service.play(session)
        whole = await service.list_episodes(session)
    data = tmp_path / "stopped"
    for number in range(5):
        async with start(data) as service:
            if not number:
                assert await service.create(3, practice=2) == session
            for _ in range(number == 1):  # in the second of the practice episodes
                async with service.agent(session) as stream:
                    await stream.receive("welcome")
                    await stream.receive("episode_start")
                    await stream.send(action(0, 0))
                    await stream.receive("ask")
                await service.settled(session, "WAITING", asyncio.sleep)
            async with service.agent(session) as stream:
                welcome = await stream.receive("welcome")
                assert (welcome.max_episodes, welcome.episodes_done) == (5, number)
                await stream.episode(walk)
                if number == 4:
                    await stream.receive("session_end")
    async with start(data) as service:
        stopped = await service.list_episodes(session)
        found = await service.get(session)
    assert tell_all(stopped) == tell_all(whole)
    assert (found.episodes, found.practised) == (3, 2)
    assert [e.attempt for e in stopped if e.episode == 1][:2] == [0, 1]


async def test_practice_that_is_left_twice_is_over(service: Service) -> None:
    session = await service.create(1, agent="practice:left", practice=1)
    for _ in range(2):
        async with service.agent(session, agent="practice:left") as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            await stream.send(action(0, 0))
            await stream.receive("ask")
            await stream.send(gateway_pb2.EvaluateRequest(leave=gateway_pb2.Leave()))
            assert await stream.call.read() is grpc.aio.EOF
        await service.settled(session, "WAITING", asyncio.sleep)
    with pytest.raises(grpc.aio.AioRpcError, match="no attempt at episode 0"):
        await service.sessions.InvalidateEpisode(
            sessions_pb2.InvalidateEpisodeRequest(name=f"{session}/episodes/0", reason="x")
        )
    await service.play(session, agent="practice:left")
    async with aconnect(service.running.address) as client:
        about = (await client.profile(session))["provenance"]
        found = await client.get_session(session)
    assert (about["episodes"], about["practised"], found.practised) == (1, 1, 1)
    assert (about["voids"], about["failures_by_default"]) == (0, 0)
    assert about["voids_by_demand"]["demands"] == []


@pytest.mark.parametrize("fresh", [False, True])
async def test_slots_and_twins_practise_too(service: Service, fresh: bool) -> None:
    name = f"practice:slots{fresh}"
    await service.import_files()
    async with aconnect(service.running.address) as client:
        created = await client.create_session(
            agent=name,
            battery="small",
            layout="aaio",
            max_episodes=3,
            target_sd=0.0,
            futility=0.0,
            certify=False,
            practice=3,
            slots=2,
            fresh=fresh,
        )
        session = created.name
        await client.evaluate(Walker, session)
        episodes = await client.episodes(session)
        found = await client.get_session(session)
    assert [one.number for one in episodes if one.practice] == [0, 1, 2]
    assert (found.episodes, found.practised) == (3, 3)
    assert all((one.decision.made is not None) == fresh for one in episodes)


async def test_what_is_set_apart_for_practice_comes_first(tmp_path: Path) -> None:
    battery = import_files([ArenaFile(name, text.decode()) for name, text in FILES], 0, tmp_path)
    apart = {"navigation-03", "navigation-07", "navigation-11"}
    instances = [
        replace(one, origin=Origin("", "f", "p", "practice" if one.name in apart else "test"))
        for one in battery.instances
    ]
    battery = replace(battery, instances=tuple(instances))
    covered = [one.name for one in instances]
    spec = SessionSpec("a", "small", practice=5, seed=1)
    order = practice_order(spec, battery, covered)
    assert {*order[:3]} == apart
    assert sorted(order) == sorted(covered)
    assert practice_order(spec, battery, reversed(covered)) == order
    wanted = replace(spec, policy=Policy(order=(order[0], order[9])))
    assert {order[0], order[9]}.isdisjoint(practice_order(wanted, battery, covered))
    measurement = Measurement(spec, battery)
    assert {*measurement.candidates} == {*covered} - {*order[:5]}
    used: set[str] = set()
    for name in order:  # those that fail too often are replaced
        decision = measurement.practise(used)
        assert decision is not None
        assert decision.instance == name
        used.add(name)
    assert measurement.practise(used) is None
    assert not measurement.learner.left
    with pytest.raises(ServiceError, match="practice"):
        Measurement(replace(spec, practice=24), battery)
