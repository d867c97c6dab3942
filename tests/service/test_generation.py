"""Arenas made on demand: what is offered can be made, and sessions keep what they made."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from animalcat.arena_configs.features.registry import measure_features
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.placement import place
from animalcat.cli.session.plan import why
from animalcat.envs.measure import measure_playing
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.spec import Exclusion
from animalcat.service.batteries.battery import ArenaFile, Battery, import_files
from animalcat.service.measuring.generation import (
    FamilySource,
    source_for,
)
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify
from animalcat.v1 import results_pb2, sessions_pb2
from animalcat.values import Decision, Episode, SessionSpec
from animalcat.wire.codec import decode

from .conftest import FILES, walk

ASKING = Policy(random_share=0.3, generate=True)
SPEC = SessionSpec(
    agent="builtin:random",
    battery="small",
    battery_digest="",
    layout="aaio",
    layout_variant="",
    policy=ASKING,
    stop=StoppingRule(40, target_sd=0, futility=0),
    seed=7,
)


@pytest.fixture(scope="module")
def battery(tmp_path_factory: pytest.TempPathFactory) -> Battery:
    files = [ArenaFile(path, content.decode()) for path, content in FILES]
    return import_files(files, 0, tmp_path_factory.mktemp("batteries"))


def test_every_offer_is_covered_and_what_is_made_has_its_demands() -> None:
    layout, source = load_layout("aaio"), FamilySource("navigation")
    offers = source.offers(layout)
    assert len(set(offers.names)) == len(offers) > 1000
    assert offers.seconds is not None
    for k in range(0, len(offers), 331):
        made = source.make(offers.names[k], 3, k)
        assert made.instance.name == f"{offers.names[k]}.{k}"
        assert made.instance.paradigm == offers.paradigms[k]
        assert made.instance.time_limit_steps == offers.seconds[k]
        arena = load_text(made.arena_yaml, "made", strict=True).config.arenas[0]
        survey = Survey(place(arena, np.random.default_rng(0)))
        found = measure_features(survey, *measure_playing(survey)).values
        assert made.instance.features == pytest.approx(found)
        wanted = dict(zip(layout.feature_names, offers.features[k], strict=True))
        shared = found.keys() & wanted.keys()
        assert len(shared) == 4
        for name in shared:
            assert wanted[name] == pytest.approx(found[name], abs=0.002)
    again, other = (source.make(offers.names[5], 3, number) for number in (5, 6))
    assert again == source.make(offers.names[5], 3, 5)
    assert again.arena_yaml != other.arena_yaml


def test_what_nothing_can_be_made_for_is_refused(battery: Battery) -> None:
    why = r"object-permanence: in arenas of navigation: not all demands are parameters"
    with pytest.raises(ValueError, match=why):
        source_for(load_layout("object-permanence"))
    dark = dataclasses.replace(load_layout("aaio"), excludes=(Exclusion("darkness", below=0.5),))
    with pytest.raises(ValueError, match=r"in arenas of navigation: darkness below 0\.5"):
        FamilySource("navigation", drawn=False).offers(dark)


def test_telling_the_same_again_chooses_and_makes_the_same(battery: Battery) -> None:
    lived = Measurement(SPEC, battery)
    told: list[tuple[Decision, bool]] = []
    for number in range(8):
        decision = lived.choose(number)
        assert decision is not None
        fresh = Measurement(SPEC, battery)
        for k, (before, success) in enumerate(told):
            fresh.learn(before)
            fresh.learner.tell(before.instance, success, k)
        assert fresh.choose(number) == decision
        assert fresh.learner.verdict() == lived.learner.verdict()
        told.append((decision, number % 3 == 0))
        lived.learner.tell(decision.instance, told[-1][1], number)
    made = [decision.made for decision, _ in told if decision.made is not None]
    assert 2 <= len(made) < 8
    assert len({one.offer for one in made}) == len(made)
    assert lived.learner.data().features.shape == (8, 4)


def asking(**changes: Any) -> dict[str, Any]:
    policy = sessions_pb2.SelectionPolicy(
        name=sessions_pb2.POLICY_NAME_VARIANCE, random_share=0.3, generate=True
    )
    return {"policy": policy, "certify": False, "seed": 5, **changes}


async def play(service: Any, session: str, episodes: int) -> list[sessions_pb2.EpisodeSummary]:
    """Play some episodes and leave; those of the session that count, without what may differ."""
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        for _ in range(episodes):
            await stream.episode(walk)
    found = [e for e in await service.list_episodes(session) if e.outcome and not e.cause]
    for episode in found:
        episode.seconds, episode.name, episode.attempt = 0.0, "", 0
        episode.spent.ClearField("thinking_seconds")
    return found


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="session")
async def test_a_session_makes_plays_and_keeps_arenas(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    """Made arenas are in recordings and exports; a server in between changes nothing."""
    async with start(tmp_path / "whole") as service:
        session = await service.create(20, **asking())
        whole = await play(service, session, 7)
        table = (await service.exported(session, results_pb2.PROFILE_FORMAT_OUTCOMES_CSV)).decode()
    made = [episode for episode in whole if episode.decision.HasField("made")]
    assert len(whole) == 7
    assert 0 < len(made) < 7
    for episode in made:
        assert episode.decision.reason == sessions_pb2.REASON_GENERATED
        assert episode.instance == f"{episode.decision.made.offer}.{episode.episode}"
        assert episode.instance in table
        told = sessions_pb2.EpisodeSummary(name=f"{session}/episodes/{episode.episode}-0")
        told.MergeFrom(episode)
        text = why(decode(Episode, told), {})
        assert "generated because the best of the battery would tell" in text
        assert "made for XPos" in text
        path = next((tmp_path / "whole").rglob(f"{episode.episode}-0.mcap"))
        recording = read_episode(path)
        assert recording.header.arena_yaml == episode.decision.made.arena_yaml
        assert verify(recording).difference is None

    async with start(tmp_path / "cut") as service:
        assert await service.create(20, **asking()) == session
        assert await play(service, session, 4) == whole[:4]
    async with start(tmp_path / "cut") as service:
        assert await play(service, session, 3) == whole


@pytest.mark.asyncio(loop_scope="session")
async def test_a_policy_that_asks_for_nothing_makes_nothing(service: Any) -> None:
    policy = sessions_pb2.SelectionPolicy(name=sessions_pb2.POLICY_NAME_RANDOM, generate=True)
    with pytest.raises(grpc.aio.AioRpcError, match="asks for no instances"):
        await service.create(3, policy=policy)
