"""A mirror, a turn of the whole arena and paint change nothing that is measured by playing."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from animalcat.arena_configs.features.definition import Reading
from animalcat.arena_configs.features.registry import FEATURES, measure_features
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.model import RGB, Arena, Item
from animalcat.arena_configs.placement import place
from animalcat.envs.measure import measure_playing
from tests.symmetry import PAINTED, SYMMETRIES
from tests.things import thing as unpainted


def thing(name: str, x: float, z: float, *size: float, wait: float = 0, **more: float) -> Item:
    """One object, painted if it may have any colour; an agent may be held for a while."""
    paint = {"colors": (RGB(r=40, g=90, b=200),)} if name in PAINTED else {}
    held = {"frozen_agent_delays": (wait,)} if wait else {}
    return unpainted(name, x, z, *size, **more, **paint, **held)


def ball(x: float, z: float, size: float = 1, y: float = 0, name: str = "GoodGoal") -> Item:
    return thing(name, x, z, size, size, size, y=y)


SCENES = {
    "falls behind one of two screens": Arena(
        time_limit=500,
        items=(
            thing("Agent", 19.3, 3, yaw=8, wait=3),
            thing("Wall", 12.2, 20, 5, 4, 1),
            thing("Wall", 29.4, 22, 5, 4, 1),
            ball(12.6, 23.1, y=9),
            ball(29.1, 25.3, y=8, name="DecoyGoalMulti"),
        ),
    ),
    "rolls off a ramp": Arena(
        time_limit=500,
        items=(
            thing("Agent", 15.2, 3, yaw=345),
            thing("Ramp", 25, 24, 5, 3, 6, yaw=270),
            thing("Wall", 16, 18.7, 11, 3, 0.7),
            ball(25.7, 24, 1.5, y=6),
        ),
    ),
    "in the dark": Arena(
        time_limit=500,
        blackouts=(10, 35, 60, 72),
        items=(thing("Agent", 20, 5, yaw=30), thing("Wall", 8, 20, 1, 2, 9), ball(14, 22)),
    ),
    "lost on the way": Arena(
        time_limit=500,
        items=(
            thing("Agent", 19.4, 14, yaw=20),
            thing("WallTransparent", 20, 20, 12, 4, 1),
            thing("Wall", 13, 15, 1, 4, 9),
            thing("Wall", 27, 15, 1, 4, 9),
            thing("DeathZone", 33, 26, 6, 0.5, 6),
            ball(20.7, 24, 1.5),
        ),
    ),
}
LOOK = {"s": 0.061}
"""Seconds between two looks: a body that rolls rolls a little differently in every direction."""


def readings(arena: Arena) -> dict[str, Reading]:
    survey = Survey(place(arena, np.random.default_rng(0)))
    values, missing = measure_features(survey, *measure_playing(survey))
    return {name: values.get(name, missing.get(name, "")) for name in FEATURES}


@cache
def plain(scene: str) -> dict[str, Reading]:
    return readings(SCENES[scene])


@pytest.mark.parametrize("change", SYMMETRIES)
@pytest.mark.parametrize("scene", SCENES)
def test_what_must_not_matter_does_not(scene: str, change: str) -> None:
    arena, symmetry = SCENES[scene], SYMMETRIES[change]
    after = arena.model_copy(update={"items": tuple(map(symmetry.change, arena.items))})
    assert symmetry.differences(plain(scene), readings(after), LOOK) == []


def test_the_scenes_ask_for_everything_that_takes_playing() -> None:
    played = {name for name, feature in FEATURES.items() if feature.measured == "playing"}
    found = [plain(scene) for scene in SCENES]
    asked = {
        name
        for name in played
        if any(one[name] and not isinstance(one[name], str) for one in found)
    }
    assert asked == played
    assert {one["hidingPlaces"] for one in found} >= {1.0, 2.0}
