"""Fresh sessions play twins: equal demands, other arenas, the same ones after a restart."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.cli.session.plan import why
from animalcat.layouts.adaptive.plan import Policy, StoppingRule
from animalcat.layouts.library import load_layout
from animalcat.service.batteries.battery import ArenaFile, Battery, build_family, import_files
from animalcat.service.measuring import twins
from animalcat.service.measuring.generation import FamilySource, source_for
from animalcat.service.measuring.measurement import Measurement
from animalcat.service.measuring.twins import Twins, stratum_of
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify
from animalcat.v1 import results_pb2, sessions_pb2
from animalcat.values import (
    Decision,
    Episode,
    MadeAs,
    SessionSpec,
)
from animalcat.wire.codec import decode

from .conftest import FILES, walk

SPEC = SessionSpec(
    agent="builtin:random",
    battery="navigation",
    policy=Policy(random_share=0.3),
    stop=StoppingRule(40, target_sd=0, futility=0),
    seed=7,
    fresh=True,
)


@pytest.fixture(scope="module")
def battery(tmp_path_factory: pytest.TempPathFactory) -> Battery:
    return build_family("navigation", 24, 3, tmp_path_factory.mktemp("batteries"))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Battery:
    files = [ArenaFile(f"my_{path}", content.decode()) for path, content in FILES[:6]]
    return import_files(files, 0, tmp_path_factory.mktemp("imported"))


@pytest.fixture
def small_pools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pools of few arenas, which are measured sooner."""
    monkeypatch.setattr(twins, "POOL", 8)
    twins.pool_of.cache_clear()
    yield
    twins.pool_of.cache_clear()


def test_an_instance_says_where_it_comes_from(battery: Battery, imported: Battery) -> None:
    for instance in battery.instances:
        stratum = stratum_of(instance)
        assert stratum is not None
        assert (stratum.family.name, stratum.paradigm.name) == ("navigation", instance.paradigm)
        # An arena file may have any name.
        assert stratum_of(dataclasses.replace(instance, origin=None)) is None
    assert all(stratum_of(instance) is None for instance in imported.instances)


def test_every_instance_has_a_twin_that_asks_for_the_same(battery: Battery) -> None:
    layout = load_layout("aaio", "scaled")
    maker, names = Twins(battery, layout), layout.feature_names
    covered = [i for i in battery.instances if not layout.why_not(i.features, i.missing)]
    for instance in covered[::3]:
        one, again, other = (maker.twin(instance.name, key) for key in ("a", "a", "b"))
        assert one == again
        assert len({one.arena_yaml, other.arena_yaml, battery.arena_yaml(instance)}) == 3
        assert len({one.instance.name, other.instance.name, instance.name}) == 3
        assert one.made_as is MadeAs.TWIN
        assert (one.offer, one.note) == (instance.name, "")
        assert one.distance < 0.05
        assert one.instance.paradigm == instance.paradigm
        assert one.instance.origin is not None
        for name in names:
            assert one.instance.features[name] == pytest.approx(instance.features[name], abs=0.01)


def test_an_arena_of_which_nobody_knows_the_family_is_varied(imported: Battery) -> None:
    place = MarkedPlace(True, 20.0, 6.0, 1.0)
    instances = tuple(
        dataclasses.replace(one, features={**one.features, "mine": 3.0}, places=(place,))
        for one in imported.instances
    )
    maker = Twins(dataclasses.replace(imported, instances=instances), load_layout("aaio", "scaled"))
    for instance in instances:
        made = maker.twin(instance.name, "a")
        assert made.made_as is MadeAs.VARIATION
        assert made.arena_yaml != imported.arena_yaml(instance)
        assert made.arena_yaml != maker.twin(instance.name, "b").arena_yaml
        assert made.instance.features["mine"] == 3.0
        assert made.instance.places[0].radius == 1.0
        for name in ("rewardDistance", "rewardSize", "rewardBehind", "XPos"):
            assert made.instance.features[name] == pytest.approx(instance.features[name], abs=0.01)


def choose_some(measurement: Measurement, n: int) -> list[Decision]:
    """Choose and tell some episodes."""
    found: list[Decision] = []
    for number in range(n):
        decision = measurement.choose(number)
        assert decision is not None
        found.append(decision)
        measurement.learner.tell(decision.instance, number % 2 == 0, number)
    return found


def test_twins_are_those_of_the_session_and_come_back_after_a_restart(battery: Battery) -> None:
    lived = Measurement(SPEC, battery, session="one")
    told = choose_some(lived, 6)
    again = Measurement(SPEC, battery, session="one")
    for number, decision in enumerate(told[:4]):
        again.learn(decision)
        again.learner.tell(decision.instance, number % 2 == 0, number)
    assert again.choose(4) == told[4]
    other = choose_some(Measurement(SPEC, battery, session="two"), 6)
    arenas = [{d.made.arena_yaml for d in rows if d.made} for rows in (told, other)]
    assert [len(one) for one in arenas] == [6, 6]
    assert not arenas[0] & arenas[1]
    # The features that were measured on the twins are what the posterior is told.
    first = told[0].made
    assert first is not None
    row = lived.learner.data().features[0].tolist()
    names = lived.learner.layout.feature_names
    assert row == pytest.approx([first.instance.features[name] for name in names])
    assert told[0].peers is not None  # it stands for an instance of the battery


def test_sessions_of_one_campaign_play_the_same_twins(battery: Battery) -> None:
    shared = dataclasses.replace(SPEC, twins_of="campaign-1")
    one, other = (
        choose_some(Measurement(dataclasses.replace(shared, agent=name), battery, session=name), 2)
        for name in ("a", "b")
    )
    assert one[0].made == other[0].made


def test_offers_of_a_family_are_made_with_their_demands(small_pools: None, tmp_path: Path) -> None:
    battery = build_family("detour", 4, 0, tmp_path)
    layout = load_layout("object-permanence", "measured")
    source = source_for(layout, battery)
    assert isinstance(source, FamilySource)
    offers = source.offers(layout)
    assert len(offers) == 24
    assert {name.rpartition("-offer-")[0] for name in offers.names} == {
        "detour-wall",
        "detour-bay",
        "detour-tunnel",
    }
    asked = dict(zip(layout.feature_names, offers.features[3].tolist(), strict=True))
    made = source.make(offers.names[3], 5, 11)
    assert made == source.make(offers.names[3], 5, 11)
    assert made.instance.name == f"{offers.names[3]}.11"
    assert made.made_as is MadeAs.OFFER
    assert not layout.why_not(made.instance.features, made.instance.missing)
    has = made.instance.features
    far = max(
        abs(has[name] - asked[name]) / max(1.0, abs(asked[name]))
        for name in ("goalDistance", "goalSize", "rightLeftPosition")
    )
    assert bool(made.note) == (far > 0.05 + 1e-6)
    assert source.make(offers.names[3], 6, 11).arena_yaml != made.arena_yaml


async def play(service: Any, session: str, episodes: int) -> list[sessions_pb2.EpisodeSummary]:
    """Play some episodes and leave; those that count, without what may differ."""
    async with service.agent(session) as stream:
        await stream.receive("welcome")
        for _ in range(episodes):
            await stream.episode(walk)
    found = [e for e in await service.list_episodes(session) if e.outcome and not e.cause]
    for episode in found:
        episode.seconds, episode.name, episode.attempt = 0.0, "", 0
        episode.spent.ClearField("thinking_seconds")
    return found


@pytest.mark.asyncio(loop_scope="session")
async def test_a_fresh_session_plays_keeps_and_replays_its_twins(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    async with start(tmp_path / "whole") as service:
        session = await service.create(20, fresh=True)
        assert (await service.get(session)).spec.fresh
        whole = await play(service, session, 4)
        second = await service.create(20, fresh=True)
        others = await play(service, second, 3)
        profile = (await service.exported(session, results_pb2.PROFILE_FORMAT_JSON)).decode()
    assert '"fresh": true' in profile
    assert '"variation": 4' in profile
    arenas = [{e.decision.made.arena_yaml for e in rows} for rows in (whole, others)]
    assert [len(one) for one in arenas] == [4, 3]
    assert not arenas[0] & arenas[1]
    for episode in whole:
        made = episode.decision.made
        assert made.made_as == sessions_pb2.MADE_AS_VARIATION
        assert episode.instance.startswith(f"{made.offer}.")
        told = sessions_pb2.EpisodeSummary(name=f"{session}/episodes/{episode.episode}-0")
        told.MergeFrom(episode)
        words = why(decode(Episode, told), {})
        assert f"a variation of {made.offer}" in words
        assert f"outcome predicted {episode.decision.predicted:.2f}" in words
        path = next((tmp_path / "whole").rglob(f"{session.split('/')[1]}/{episode.episode}-0.mcap"))
        recording = read_episode(path)
        assert recording.header.arena_yaml == made.arena_yaml
        assert verify(recording).difference is None

    async with start(tmp_path / "cut") as service:
        assert await service.create(20, fresh=True) == session
        assert await play(service, session, 2) == whole[:2]
    async with start(tmp_path / "cut") as service:
        assert await play(service, session, 2) == whole
