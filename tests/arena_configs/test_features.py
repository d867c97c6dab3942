from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES, measure_features
from animalcat.arena_configs.features.start import dark_share
from animalcat.arena_configs.model import Arena, Item, Vector3
from animalcat.arena_configs.placement import place


def goal(x: float, z: float, size: float = 1.0, name: str = "GoodGoal") -> Item:
    side = Vector3(x=size, y=size, z=size)
    return Item(name=name, positions=(Vector3(x=x, z=z),), sizes=(side,), rotations=(0.0,))


def measure_all(yaw: float, *things: Item, time_limit: int = 250) -> MeasuredFeatures:
    agent = Item(name="Agent", positions=(Vector3(x=20, z=20),), rotations=(yaw,))
    arena = Arena(time_limit=time_limit, items=(agent, *things))
    return measure_features(place(arena, np.random.default_rng(0)))


def features(yaw: float, *things: Item) -> dict[str, float]:
    return measure_all(yaw, *things).values


def at(angle: float, distance: float = 10.0) -> tuple[float, float]:
    radians = math.radians(angle)
    return 20 + distance * math.sin(radians), 20 + distance * math.cos(radians)


def test_what_does_not_apply_says_why() -> None:
    values, missing = measure_all(0.0, goal(20, 22, name="BadGoal"), time_limit=0)
    assert {name: why for name, why in missing.items() if FEATURES[name].group == "arena"} == {
        **dict.fromkeys(("rewardDistance", "rewardSize", "rewardBehind", "XPos"), "no reward"),
        **dict.fromkeys(("wallsInWay", "lavaInWay"), "no reward"),
        "timeLimit": "no time limit",
    }
    assert values.keys() | missing.keys() == FEATURES.keys()
    assert (values["rewards"], values["badGoals"], values["rewardSum"]) == (0.0, 1.0, 0.0)
    button = Item(name="SpawnerButton", positions=(Vector3(x=5, z=5),))
    assert "any reward" in measure_all(0.0, button).missing["greatestReturn"]


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
