"""When and how long goals are hidden, on arenas whose answers are obvious."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.features.definition import Reading
from animalcat.arena_configs.features.registry import FEATURES, measure_features
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.placement import place
from animalcat.envs.measure import LONGEST, OcclusionInterval, gaps, measure_playing, watch


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


def measured(*items: str, **more: str | float) -> dict[str, Reading]:
    return measure_playing(survey(*items, **more)).readings  # pyright: ignore[reportArgumentType]


WALL = item("Wall", 20, 20, (12, 4, 1))
DROPS = item("GoodGoal", 20, 24, (1, 1, 1), y=9)


def test_in_plain_view_nothing_is_hidden() -> None:
    found = measured(item("GoodGoal", 20, 20))
    assert found["occluderPresence"] == found["hiddenStanding"] == found["hiddenMoving"] == 0.0
    assert found["goalTravel"] == pytest.approx(0.0, abs=0.05)
    for name in ("timeUnderOcc", "hiddenFrom", "numPositions", "hidingPlaces"):
        assert isinstance(found[name], str)


def test_every_feature_of_hiding_is_measured() -> None:
    names = {name for name, feature in FEATURES.items() if feature.measured == "playing"}
    assert set(measured(DROPS, WALL)) == names
    assert set(measured(WALL)) == names


def test_a_goal_that_falls_behind_a_wall_is_hidden_until_one_goes_and_looks() -> None:
    found = measured(DROPS, WALL, delay=5)
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


def test_a_goal_that_moves_on_in_the_dark_is_not_where_it_was_last_seen() -> None:
    made = generate("chick-task", 1, np.random.default_rng(0), controls=["open"])
    for one, shows in zip(made, (0.0, 1.0), strict=True):
        placed = place(one.arena, np.random.default_rng(0))
        assert measure_playing(Survey(placed)).readings["lastPlaceShows"] == shows


def test_a_goal_that_never_shows_leaves_no_last_place() -> None:
    reading = measured(item("GoodGoal", 20, 24), WALL)["lastPlaceShows"]
    assert reading == "the goal never shows to an agent that stands still"


def test_a_goal_that_falls_behind_glass_stays_in_view() -> None:
    found = measured(DROPS, WALL.replace("name: Wall", "name: WallTransparent"))
    assert found["hiddenStanding"] == 0.0
    assert found["occluderPresence"] == 0.0


def test_lights_out_hide_what_lies_in_view() -> None:
    found = measured(item("GoodGoal", 20, 20), head="    blackouts: [10, 35]\n")
    assert found["hiddenFrom"] == pytest.approx(1.0, abs=0.07)
    assert found["hiddenStanding"] == pytest.approx(2.5, abs=0.13)
    assert found["occluderPresence"] == 1.0


def test_a_light_that_stays_out_hides_for_no_time_that_is_known() -> None:
    found = measured(item("GoodGoal", 20, 20), head="    blackouts: [10]\n")
    assert found["occluderPresence"] == 1.0
    for name in ("hiddenStanding", "hiddenFrom", "timeUnderOcc"):
        assert found[name] == "the light stays out"


def test_the_longest_of_several_dark_times_counts() -> None:
    found = measured(item("GoodGoal", 20, 20), head="    blackouts: [5, 10, 20, 60, 70, 80]\n")
    assert found["hiddenStanding"] == pytest.approx(4.0, abs=0.13)
    assert found["hiddenFrom"] == pytest.approx(2.0, abs=0.07)


def test_a_light_that_blinks_hides_as_long_as_it_is_out() -> None:
    found = measured(item("GoodGoal", 20, 20), head="    blackouts: [-20]\n")
    assert found["hiddenStanding"] == pytest.approx(2.0, abs=0.13)


def test_a_goal_that_was_never_seen_is_not_hidden() -> None:
    found = measured(item("GoodGoal", 20, 22), WALL)
    assert found["hiddenStanding"] == 0.0


def test_a_goal_is_lost_on_a_way_that_leads_round() -> None:
    """From the start it shows over a low screen that cannot be crossed; the way leads behind."""
    low = item("WallTransparent", 20, 20, (12, 4, 1))
    sides = item("Wall", 13, 15, (1, 4, 9)), item("Wall", 27, 15, (1, 4, 9))
    found = measured(item("GoodGoal", 20, 24), low, *sides, agent="x: 20, y: 0, z: 14")
    assert found["hiddenStanding"] == 0.0
    moving = found["hiddenMoving"]
    assert isinstance(moving, float)
    assert moving > 0.3
    assert found["timeUnderOcc"] == moving
    assert found["occluderPresence"] == 1.0


@pytest.mark.parametrize("screens", [1, 2, 3])
def test_places_are_counted(screens: int) -> None:
    places = [20 + 10 * (k - (screens - 1) / 2) for k in range(screens)]
    walls = [item("Wall", x, 20, (4, 4, 1)) for x in places]
    found = measured(item("GoodGoal", places[0], 22, y=9), *walls)
    assert found["hidingPlaces"] == screens
    assert found["numPositions"] == max(1, screens - 1)


def test_holes_are_counted() -> None:
    """A ball in a hole of a raised floor: strips of wall leave two holes between them."""
    floor = [item("Wall", x, 28, (w, 3, 24)) for x, w in ((10, 20), (23, 2), (33, 14))]
    ends = [item("Wall", x, z, (2, 3, d)) for x in (21, 25) for z, d in ((19, 6), (32, 16))]
    base = item("Wall", 20, 8, (40, 3, 16))
    found = measured(item("GoodGoal", 21, 23, y=9), base, *floor, *ends, agent="x: 20, y: 3, z: 4")
    assert found["hidingPlaces"] == 2


def test_decoys_are_watched_too() -> None:
    decoy = item("DecoyGoal", 18, 24, y=9)
    found = measured(item("GoodGoal", 35, 10), decoy, WALL)
    assert found["decoysHidden"] == 1.0
    assert found["occluderPresence"] == 0.0


@pytest.mark.parametrize("degrees", [90, 180])
def test_a_turned_arena_hides_alike(degrees: int) -> None:
    def turned(x: float, z: float, turn: int) -> tuple[float, float]:
        a, b = x - 20, z - 20
        return {0: (x, z), 90: (20 + b, 20 - a), 180: (20 - a, 20 - b)}[turn]

    def scene(turn: int) -> dict[str, Reading]:
        (gx, gz), (wx, wz), (ax, az) = (turned(*at, turn) for at in ((18, 24), (20, 20), (20, 2)))
        goal, wall = item("GoodGoal", gx, gz, y=9), item("Wall", wx, wz, (12, 4, 1), turn=turn)
        return measured(goal, wall, agent=f"x: {ax}, y: 0, z: {az}", delay=3)

    one, other = scene(0), scene(degrees)
    for name in ("hiddenFrom", "occluderPresence", "hidingPlaces"):
        assert one[name] == other[name]
    # The agent turns on its way only in one of the two, and places lie on a grid.
    assert one["hiddenStanding"] == pytest.approx(other["hiddenStanding"], abs=0.2)


def test_it_ends_in_time_though_something_never_rests() -> None:
    spawner = item("SpawnerTree", 30, 30)
    looked = watch(survey(item("GoodGoal", 20, 20), spawner), [])
    assert not looked.rested
    assert looked.seconds[-1] <= LONGEST


def test_gaps_are_between_the_looks_that_show_it() -> None:
    seconds = np.arange(8.0)
    assert gaps(seconds, np.array([0, 0, 1, 0, 0, 1, 1, 0], np.bool_)) == [
        OcclusionInterval(2.0, 5.0),
        OcclusionInterval(6.0, math.inf),
    ]
    assert gaps(seconds, np.zeros(8, np.bool_)) == []
    assert gaps(seconds, np.ones(8, np.bool_)) == []


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
