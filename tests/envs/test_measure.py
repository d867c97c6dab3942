"""When and how long goals are hidden, on arenas whose answers are obvious."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from animalcat.arena_configs.features.definition import Reading
from animalcat.arena_configs.features.registry import FEATURES, measure_features
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.placement import place
from animalcat.envs.measure import measure_playing


def item(
    name: str,
    x: float,
    z: float,
    size: Sequence[float] = (1, 1, 1),
    y: float = 0.0,
    turn: float = 0.0,
    more: str = "",
) -> str:
    a, b, c = size
    return (
        f"    - !Item\n      name: {name}\n"
        f"      positions: [!Vector3 {{x: {x}, y: {y}, z: {z}}}]\n"
        f"      sizes: [!Vector3 {{x: {a}, y: {b}, z: {c}}}]\n      rotations: [{turn}]\n{more}"
    )


def survey(
    *items: str, agent: str = "x: 20, y: 0, z: 2", delay: float = 0, head: str = ""
) -> Survey:
    text = (
        f"!ArenaConfig\narenas:\n  0: !Arena\n    pass_mark: 0\n    t: 500\n{head}    items:\n"
        f"    - !Item\n      name: Agent\n      positions: [!Vector3 {{{agent}}}]\n"
        f"      rotations: [0]\n      frozenAgentDelays: [{delay}]\n"
    ) + "".join(items)
    arena = load_text(text, "test").config.arenas[0]
    return Survey(place(arena, np.random.default_rng(0)))


def measure_all(*items: str, **more: str | float) -> dict[str, Reading]:
    return measure_playing(survey(*items, **more)).readings  # pyright: ignore[reportArgumentType]


WALL = item("Wall", 20, 20, (12, 4, 1))
DROPS = item("GoodGoal", 20, 24, (1, 1, 1), y=9)


def test_every_feature_of_hiding_is_measured() -> None:
    names = {name for name, feature in FEATURES.items() if feature.measured == "playing"}
    assert set(measure_all(DROPS, WALL)) == names
    assert set(measure_all(WALL)) == names


def test_a_goal_that_falls_behind_a_wall_is_hidden_until_one_goes_and_looks() -> None:
    found = measure_all(DROPS, WALL, delay=5)
    assert found["occluderPresence"] == 1.0
    # It falls 5 to 6 m until the wall hides it from the floor, 22 m away.
    lost = found["hiddenFrom"]
    assert isinstance(lost, float)
    assert math.sqrt(2 * 4 / 9.81) < lost < math.sqrt(2 * 9 / 9.81)
    # The agent may move after 5 s, and has some 19 m to go until it sees behind the wall.
    standing = found["hiddenStanding"]
    assert isinstance(standing, float)
    assert 5.0 + 1.0 < lost + standing < 5.0 + 3.0
    assert found["timeUnderOcc"] == standing
    assert found["goalTravel"] == pytest.approx(9.0, abs=0.3)
    assert found["lastPlaceShows"] == 1.0, "it shows where it was last seen to fall"


def test_a_goal_that_falls_behind_glass_stays_in_view() -> None:
    found = measure_all(DROPS, WALL.replace("name: Wall", "name: WallTransparent"))
    assert found["hiddenStanding"] == 0.0
    assert found["occluderPresence"] == 0.0


def test_lights_out_hide_what_lies_in_view() -> None:
    found = measure_all(item("GoodGoal", 20, 20), head="    blackouts: [10, 35]\n")
    assert found["hiddenFrom"] == pytest.approx(1.0, abs=0.07)
    assert found["hiddenStanding"] == pytest.approx(2.5, abs=0.13)
    assert found["occluderPresence"] == 1.0


def test_holes_are_counted() -> None:
    """A ball in a hole of a raised floor: strips of wall leave two holes between them."""
    floor = [item("Wall", x, 28, (w, 3, 24)) for x, w in ((10, 20), (23, 2), (33, 14))]
    ends = [item("Wall", x, z, (2, 3, d)) for x in (21, 25) for z, d in ((19, 6), (32, 16))]
    base = item("Wall", 20, 8, (40, 3, 16))
    found = measure_all(
        item("GoodGoal", 21, 23, y=9), base, *floor, *ends, agent="x: 20, y: 3, z: 4"
    )
    assert found["hidingPlaces"] == 2


def test_the_way_leads_to_where_the_goal_comes_to_rest() -> None:
    """It falls onto a ramp, rolls down and lies somewhere else than it was placed."""
    placed = survey(item("GoodGoal", 20, 20, y=6), item("Ramp", 20, 20, (6, 3, 6), turn=0))
    played = measure_playing(placed)
    assert isinstance(played.readings["goalTravel"], float)
    assert played.readings["goalTravel"] > 6.0
    way = played.at_rest.way
    assert not isinstance(way, str)
    features = measure_features(placed, *played).values
    assert features["wayLength"] == pytest.approx(way.length)
    assert features["wayLength"] != measure_features(placed).values["wayLength"]
    assert features["rewardDistance"] == measure_features(placed).values["rewardDistance"]
