from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.arena_configs.features import FEATURES, aaio_features
from animalcat.arena_configs.model import Arena, ArenaError, Item, Vector3
from animalcat.arena_configs.placement import fix, place


def goal(x: float, z: float, size: float = 1.0, name: str = "GoodGoal") -> Item:
    side = Vector3(x=size, y=size, z=size)
    return Item(name=name, positions=(Vector3(x=x, z=z),), sizes=(side,), rotations=(0.0,))


def features(yaw: float, *goals: Item) -> dict[str, float]:
    agent = Item(name="Agent", positions=(Vector3(x=20, z=20),), rotations=(yaw,))
    arena = Arena(time_limit=250, items=(agent, *goals))
    return aaio_features(place(arena, np.random.default_rng(0)))


def at(angle: float, distance: float = 10.0) -> tuple[float, float]:
    radians = math.radians(angle)
    return 20 + distance * math.sin(radians), 20 + distance * math.cos(radians)


@pytest.mark.parametrize(
    ("angle", "behind", "side"),
    [
        (0, 0, 0),
        (4.9, 0, 0),
        (5.1, 0, 1),
        (49.9, 0, 1),
        (50.1, 0.5, 1),
        (90, 0.5, 1),
        (129.9, 0.5, 1),
        (130.1, 1, 1),
        (174.9, 1, 1),
        (175.1, 1, 0),
        (180, 1, 0),
        (-175.1, 1, 0),
        (-150, 1, -1),
        (-90, 0.5, -1),
        (-30, 0, -1),
        (-4.9, 0, 0),
    ],
)
@pytest.mark.parametrize("yaw", [0.0, 45.0, 200.0, 359.0])
def test_where_the_reward_is(angle: float, behind: float, side: float, yaw: float) -> None:
    measured = features(yaw, goal(*at(yaw + angle)))
    assert (measured["rewardBehind"], measured["XPos"]) == (behind, side)
    assert measured["rewardDistance"] == pytest.approx(10.0, abs=1e-4)


def test_distance_is_from_centre_to_centre() -> None:
    # The agent's centre is at 0.51 m, that of a ball of 4 m at 0.01 + 1.998 m.
    measured = features(0.0, goal(20, 32, size=4.0))
    assert measured["rewardDistance"] == pytest.approx(math.hypot(12.0, 1.498))
    assert measured["rewardSize"] == 4.0


@pytest.mark.parametrize(("asked", "size"), [(0.1, 0.5), (0.5, 0.5), (3.0, 3.0), (9.0, 5.0)])
def test_size_is_what_was_asked_within_limits(asked: float, size: float) -> None:
    assert features(0.0, goal(20, 32, size=asked))["rewardSize"] == size


def test_the_nearest_good_goal_counts() -> None:
    others = (goal(20, 22, name="BadGoal"), goal(18, 20, name="DecoyGoal"))
    measured = features(0.0, *others, goal(30, 20), goal(8, 20, name="GoodGoalMulti"))
    assert (measured["rewardDistance"], measured["XPos"]) == (pytest.approx(10.0, abs=1e-4), 1)


def test_without_a_reward_there_are_none() -> None:
    with pytest.raises(ArenaError, match="no reward"):
        features(0.0, goal(20, 22, name="BadGoal"))


def test_features_of_what_was_drawn_are_those_of_the_fixed_arena() -> None:
    arena = Arena(time_limit=250, items=(Item(name="Agent"), Item(name="GoodGoal")))
    drawn = aaio_features(place(arena, np.random.default_rng(3)))
    fixed = aaio_features(place(fix(arena, np.random.default_rng(3)), np.random.default_rng(9)))
    assert fixed == pytest.approx(drawn, abs=2e-3)
    assert set(drawn) == set(FEATURES)
