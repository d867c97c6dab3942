from __future__ import annotations

import collections

import numpy as np
import pytest

from animalcat.arena_configs.checks import check_arena
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.language import shares
from animalcat.arena_configs.families.library import FAMILIES, load_family
from animalcat.arena_configs.features.registry import measure_features
from animalcat.arena_configs.geometry import Solid, overlaps
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ArenaConfig, ArenaError, Point
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.writer import to_yaml


@pytest.fixture(scope="module")
def navigation() -> list[FamilyInstance]:
    return generate("navigation", 300, np.random.default_rng(2024))


def test_navigation_is_fixed_and_clean(navigation: list[FamilyInstance]) -> None:
    assert len({instance.name for instance in navigation}) == 300
    assert len({to_yaml(instance.arena) for instance in navigation}) == 300
    for name, arena in ((one.name, one.arena) for one in navigation):
        rng = np.random.default_rng(0)
        placement = place(arena, rng)
        assert (placement.drawn, placement.skipped) == ({}, ()), name
        assert check_arena(arena, rng) == (), name
        for grammar in ("4.x", "3.x"):
            loaded = load_text(to_yaml(arena, grammar), name, strict=True)
            assert loaded.config == ArenaConfig(arenas={0: arena})


@pytest.mark.slow
def test_navigation_covers_its_demands(navigation: list[FamilyInstance]) -> None:
    rng = np.random.default_rng(0)
    rows = [(measure_features(place(i.arena, rng)).values, i.paradigm) for i in navigation]
    distances = [features["rewardDistance"] for features, _ in rows]
    sizes = [features["rewardSize"] for features, _ in rows]
    assert (min(distances) < 2, max(distances) > 35) == (True, True)
    assert (min(sizes) < 0.6, max(sizes) > 4.5) == (True, True)
    behind = {"front": 0.0, "side": 0.5, "behind": 1.0}
    for features, paradigm in rows:
        assert features["rewardBehind"] == behind[paradigm.partition("-")[2]], paradigm
    sides = collections.Counter(features["XPos"] for features, _ in rows)
    assert abs(sides[1.0] - sides[-1.0]) < 15
    assert sides[0.0] > 10


def test_navigation_leaves_a_way_past_what_stands_there() -> None:
    """The agent starts clear of all, and so does the goal; between them is a way."""
    for paradigm in ("walls-behind", "zone-front"):
        for one in generate("navigation", 25, np.random.default_rng(3), paradigm=paradigm):
            placement = place(one.arena, np.random.default_rng(0))
            things = [solid for thing in placement.objects[1:] for solid in thing.solids()]
            here, there = placement.agent.position, placement.objects[0].position
            for x, z in ((here.x, here.z), (there.x, there.z)):
                ball = Solid("sphere", Point(x, 0.5, z), Point(0.5, 0.5, 0.5), 0.0)
                assert not any(overlaps(solid, ball) for solid in things), one.name
            assert measure_features(placement).values["wayLength"] < 60.0, one.name


def test_navigation_pass_marks_mean_reaching_the_goal(navigation: list[FamilyInstance]) -> None:
    for arena in (one.arena for one in navigation):
        reward = arena.items[1].sizes[0].x * 0.999
        assert -1.0 < arena.pass_mark < reward - 0.999  # at the end of time, or dead: no pass


def test_same_seed_same_instances() -> None:
    first, again = (generate("navigation", 20, np.random.default_rng(7)) for _ in range(2))
    other = generate("navigation", 20, np.random.default_rng(8))
    assert first == again
    assert first != other


def test_shares_follow_the_weights() -> None:
    family = load_family("navigation")
    for n in (0, 1, 7, 300):
        weights = [paradigm.weight for paradigm in family.paradigms]
        counts = shares(weights, n)
        assert sum(counts) == n
        for count, weight in zip(counts, weights, strict=True):
            assert abs(count - n * weight / sum(weights)) < 1


def test_unknown_family() -> None:
    with pytest.raises(ArenaError, match="navigation"):
        generate("swimming", 1, np.random.default_rng(0))
    assert "navigation" in FAMILIES
