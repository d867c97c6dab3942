from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES, measure_features
from animalcat.arena_configs.features.start import dark_share
from animalcat.arena_configs.model import Arena, Item, Vector3
from animalcat.arena_configs.placement import fix, place


def goal(x: float, z: float, size: float = 1.0, name: str = "GoodGoal") -> Item:
    side = Vector3(x=size, y=size, z=size)
    return Item(name=name, positions=(Vector3(x=x, z=z),), sizes=(side,), rotations=(0.0,))


def measured(yaw: float, *things: Item, time_limit: int = 250) -> MeasuredFeatures:
    agent = Item(name="Agent", positions=(Vector3(x=20, z=20),), rotations=(yaw,))
    arena = Arena(time_limit=time_limit, items=(agent, *things))
    return measure_features(place(arena, np.random.default_rng(0)))


def features(yaw: float, *things: Item) -> dict[str, float]:
    return measured(yaw, *things).values


def block(name: str, x: float, z: float, width: float = 1.0, y: float = 0.0) -> Item:
    size = Vector3(x=width, y=1, z=1)
    return Item(name=name, positions=(Vector3(x=x, y=y, z=z),), sizes=(size,), rotations=(0.0,))


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


def test_what_does_not_apply_says_why() -> None:
    values, missing = measured(0.0, goal(20, 22, name="BadGoal"), time_limit=0)
    assert {name: why for name, why in missing.items() if FEATURES[name].group == "arena"} == {
        **dict.fromkeys(("rewardDistance", "rewardSize", "rewardBehind", "XPos"), "no reward"),
        **dict.fromkeys(("wallsInWay", "lavaInWay"), "no reward"),
        "timeLimit": "no time limit",
    }
    assert values.keys() | missing.keys() == FEATURES.keys()
    assert (values["rewards"], values["badGoals"], values["rewardSum"]) == (0.0, 1.0, 0.0)
    button = Item(name="SpawnerButton", positions=(Vector3(x=5, z=5),))
    assert "any reward" in measured(0.0, button).missing["greatestReturn"]


@pytest.mark.parametrize(
    ("things", "found"),
    [
        ([], {"wallsInWay": 0, "obstacles": 0, "rewards": 1, "endingRewards": 1}),
        ([block("Wall", 20, 30)], {"wallsInWay": 1, "obstacles": 1}),
        ([block("Wall", 21.01, 30)], {"wallsInWay": 0, "obstacles": 1}),
        ([block("Wall", 20.95, 30)], {"wallsInWay": 1}),
        ([block("Wall", 20, 38)], {"wallsInWay": 0}),  # behind the reward
        ([block("Wall", 20, 30, y=3)], {"wallsInWay": 0}),  # the agent passes below
        ([block("Wall", 20, 28), block("LightBlock", 20, 32)], {"wallsInWay": 2, "movables": 1}),
        ([block("WallTransparent", 3, 3)], {"transparentWalls": 1, "obstacles": 1}),
        ([block("Ramp", 20, 30)], {"ramps": 1, "wallsInWay": 1}),
        ([block("DeathZone", 20, 30)], {"lava": 1, "lavaInWay": 1, "obstacles": 0}),
        ([block("DeathZone", 5, 5)], {"lava": 1, "lavaInWay": 0, "leastReturn": -2}),
        ([block("HotZone", 20, 30)], {"hotZones": 1, "lava": 0, "wallsInWay": 0}),
        ([goal(5, 5, name="GoodGoalMulti")], {"rewards": 2, "endingRewards": 1}),
        ([goal(5, 5, 2.0)], {"rewardSum": 0.999 + 1.998, "greatestReturn": 1.998}),
        ([goal(5, 5, 2.0, "BadGoal")], {"badGoals": 1, "leastReturn": -1 - 1.998}),
        ([goal(5, 5, name="DecoyGoal")], {"decoys": 1, "rewards": 1}),
        ([goal(5, 5, name="GoodGoalBounce")], {"bouncingRewards": 1}),
        ([goal(5, 5, name="RipenGoal")], {"changingRewards": 1, "rewards": 2}),
        ([Item(name="SpawnerTree", positions=(Vector3(x=5, z=5),))], {"spawners": 1}),
    ],
)
def test_what_stands_in_an_arena(things: list[Item], found: dict[str, float]) -> None:
    values = features(0.0, goal(20, 35), *things)
    assert {name: values[name] for name in found} == pytest.approx(found, abs=1e-2)


def test_a_reward_on_a_platform_is_raised_and_has_a_wall_in_its_way() -> None:
    platform = Item(
        name="Wall",
        positions=(Vector3(x=20, z=30),),
        sizes=(Vector3(x=4, y=2, z=4),),
        rotations=(0.0,),
    )
    above = Item(
        name="GoodGoal",
        positions=(Vector3(x=20, y=2, z=30),),
        sizes=(Vector3(x=1, y=1, z=1),),
    )
    values = features(0.0, platform, above)
    assert (values["raisedRewards"], values["wallsInWay"]) == (1, 1)


@pytest.mark.parametrize(
    ("blackouts", "time_limit", "share"),
    [
        ((), 250, 0.0),
        ((0, 50), 250, 0.2),
        ((20, 25, 35), 100, 0.7),
        ((-20,), 100, 0.4),
        ((-20,), 0, 0.5),
        ((10, 400), 100, 0.9),
        ((10, 20), 0, 0.0),
        ((10,), 0, 1.0),
    ],
)
def test_how_much_of_the_time_is_dark(
    blackouts: tuple[int, ...], time_limit: int, share: float
) -> None:
    assert dark_share(blackouts, time_limit) == pytest.approx(share)


def test_features_of_what_was_drawn_are_those_of_the_fixed_arena() -> None:
    arena = Arena(time_limit=250, items=(Item(name="Agent"), Item(name="GoodGoal")))
    drawn = measure_features(place(arena, np.random.default_rng(3))).values
    fixed = measure_features(
        place(fix(arena, np.random.default_rng(3)), np.random.default_rng(9))
    ).values
    # A given size loses 0.1 %, a drawn one none.
    assert fixed == pytest.approx(drawn, rel=2e-3, abs=6e-3)
    assert {name for name in FEATURES if FEATURES[name].group == "arena"} <= set(drawn)
    assert all(FEATURES[name].low <= value <= FEATURES[name].high for name, value in drawn.items())
