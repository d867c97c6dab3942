from __future__ import annotations

import collections

import numpy as np
import pytest

from animalcat.arena_configs.checks import check_arena
from animalcat.arena_configs.families import FAMILIES, FamilyInstance, generate, load_polar
from animalcat.arena_configs.families.polar import parse_polar, passable, shares
from animalcat.arena_configs.features import measure_features
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena, ArenaConfig, ArenaError, Item, Vector3
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.writer import to_yaml

TINY = """
name: tiny
description: One paradigm.
goal: GoodGoalMulti
distance: {uniform: [3, 4]}
size: 1
time_limit: 100
pass_within: 0.5
paradigms:
- {name: only, weight: 1, angle: 0}
"""


@pytest.fixture(scope="module")
def navigation() -> list[FamilyInstance]:
    return generate("navigation", 300, np.random.default_rng(2024))


def test_navigation_is_fixed_clean_and_passable(navigation: list[FamilyInstance]) -> None:
    assert len({instance.name for instance in navigation}) == 300
    assert len({to_yaml(instance.arena) for instance in navigation}) == 300
    for name, arena in ((one.name, one.arena) for one in navigation):
        rng = np.random.default_rng(0)
        placement = place(arena, rng)
        assert (placement.drawn, placement.skipped) == ({}, ()), name
        assert check_arena(arena, rng) == (), name
        assert passable(placement), name
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
    family = load_polar("navigation")
    for n in (0, 1, 7, 300):
        weights = [paradigm.weight for paradigm in family.paradigms]
        counts = shares(weights, n)
        assert sum(counts) == n
        for count, weight in zip(counts, weights, strict=True):
            assert abs(count - n * weight / sum(weights)) < 1


def test_a_template_of_ones_own() -> None:
    instances = generate(parse_polar(TINY, "tiny.yaml"), 3, np.random.default_rng(0))
    assert [instance.name for instance in instances] == ["tiny-1", "tiny-2", "tiny-3"]
    for arena, paradigm in ((one.arena, one.paradigm) for one in instances):
        assert paradigm == "only"
        assert (arena.items[1].name, arena.time_limit) == ("GoodGoalMulti", 100)
        assert arena.pass_mark == pytest.approx(0.499)
        placement = place(arena, np.random.default_rng(0))
        assert 3 <= measure_features(placement).values["rewardDistance"] <= 4.001


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("size: 1", "size: {uniform: [5, 1]}"), "above the high end"),
        (("size: 1", "size: {log_uniform: [0, 1]}"), "greater than 0"),
        (("size: 1", "size: .inf"), "finite"),
        (("GoodGoalMulti", "BadGoal"), "BadGoal"),
        (("weight: 1", "weight: 0"), "greater than 0"),
        (("weight: 1", "wieght: 1"), "wieght"),
        (
            ("angle: 0}", "angle: 0, obstacles: [{kind: Unicorn, along: 0, size: [1, 1, 1]}]}"),
            "Unicorn",
        ),
        (("name: tiny", "name: !!python/object:os.system x"), "python"),
    ],
)
def test_wrong_templates_say_why(wrong: tuple[str, str], message: str) -> None:
    with pytest.raises(ArenaError, match=message):
        parse_polar(TINY.replace(*wrong), "tiny.yaml")


def test_ranges_without_room() -> None:
    crowded = parse_polar(TINY.replace("{uniform: [3, 4]}", "80"), "tiny.yaml")
    with pytest.raises(ArenaError, match="paradigm only"):
        generate(crowded.model_copy(update={"distance": 0.1}), 1, np.random.default_rng(0))


def test_unknown_family() -> None:
    with pytest.raises(ArenaError, match="navigation"):
        generate("swimming", 1, np.random.default_rng(0))
    assert "navigation" in FAMILIES


def test_passable_sees_walls_and_zones() -> None:
    agent = Item(name="Agent", positions=(Vector3(x=20, z=5),), rotations=(0.0,))
    side = Vector3(x=1, y=1, z=1)
    goal = Item(name="GoodGoal", positions=(Vector3(x=20, z=35),), sizes=(side,))
    for name, width, expected in (
        ("Wall", 40, False),
        ("DeathZone", 40, False),
        ("Wall", 38, False),
        ("Wall", 37, True),
    ):
        size = Vector3(x=width, y=1, z=1)
        wall = Item(name=name, positions=(Vector3(x=20, z=20),), sizes=(size,), rotations=(0.0,))
        placement = place(Arena(items=(agent, goal, wall)), np.random.default_rng(0))
        assert not placement.skipped
        assert passable(placement) == expected
