"""A mirror, a turn of the whole arena and paint change no demand but those that they must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animalcat.arena_configs.features.definition import Reading
from animalcat.arena_configs.features.registry import FEATURES, measure_features
from animalcat.arena_configs.model import RGB, Arena, Item
from animalcat.arena_configs.placement import place
from tests.symmetry import COLOURS, PAINTED, SYMMETRIES
from tests.things import thing as unpainted


def thing(name: str, x: float, z: float, *size: float, shade: int = 60, **more: float) -> Item:
    """One object, painted if it may have any colour."""
    paint = {"colors": (RGB(r=shade, g=250 - shade, b=shade / 2),)} if name in PAINTED else {}
    return unpainted(name, x, z, *size, **more, **paint)


def readings(*items: Item, **about: object) -> dict[str, Reading]:
    arena = Arena.model_validate({"time_limit": 250, "blackouts": (4, 60), **about})
    arena = arena.model_copy(update={"items": items})
    values, missing = measure_features(place(arena, np.random.default_rng(0)))
    return {name: values.get(name, missing.get(name, "")) for name in FEATURES}


SCENE = (
    thing("Agent", 12, 4.3, yaw=25),
    thing("Wall", 14, 14.2, 18, 2, 0.7),
    thing("Wall", 30, 22.1, 13, 3, 0.7, yaw=20, shade=200),
    thing("Ramp", 33.5, 9, 5, 1.5, 6),
    thing("DeathZone", 10, 27, 7, 0.5, 6),
    thing("WallTransparent", 21.5, 31, 5, 2, 0.5, yaw=45),
    thing("LightBlock", 25.2, 17, 1, 1, 2),
    thing("CylinderTunnel", 5, 20, 4, 4, 5, yaw=90),
    thing("GoodGoal", 19, 35.5, 2, 2, 2),
    thing("GoodGoalMulti", 34, 35, 1, 1, 1),
    thing("BadGoal", 4, 37, 1, 1, 1),
)
"""Something of everything, on the floor."""
RIDGE = (
    thing("Agent", 20.4, 2, y=1, yaw=10),
    thing("Wall", 20.4, 20, 1, 1, 40),
    thing("Wall", 9.2, 24, 18, 3, 1, shade=120),
    thing("GoodGoal", 7.7, 33, 1.5, 1.5, 1.5),
)
"""A choice for good between two sides."""
UPSTAIRS = (
    thing("Agent", 17, 5, yaw=330),
    thing("Wall", 20, 30, 10, 2, 10),
    thing("Ramp", 20.6, 22, 4, 2, 6, yaw=180),
    thing("HotZone", 20, 15, 40, 0.5, 4),
    thing("WallTransparent", 18.7, 16, 2, 3, 0.5),
    thing("GoodGoal", 21, 31, 1, 1, 1, y=4),
)
"""A goal that falls onto a platform, to which a ramp leads."""
PUSHED = (
    thing("Agent", 18.6, 5),
    thing("Wall", 9, 20, 18, 3, 1),
    thing("Wall", 31, 20, 18, 3, 1),
    thing("LightBlock", 20, 20, 3.9, 1, 1),
    thing("DeathZone", 26, 10, 20, 0.5, 4),
    thing("DecoyGoal", 30, 30, 1, 1, 1),
    thing("GoodGoal", 20, 30, 1, 1, 1),
)
"""A block in the only way."""
SCENES = {"floor": SCENE, "ridge": RIDGE, "upstairs": UPSTAIRS, "pushed": PUSHED}


@pytest.mark.parametrize("change", SYMMETRIES)
@pytest.mark.parametrize("scene", SCENES)
def test_what_must_not_matter_does_not(scene: str, change: str) -> None:
    items, symmetry = SCENES[scene], SYMMETRIES[change]
    after = readings(*map(symmetry.change, items))
    assert symmetry.differences(readings(*items), after) == []


def test_the_scenes_ask_for_nearly_everything() -> None:
    """What is 0 or missing everywhere would not be seen to change."""
    found = [readings(*items) for items in SCENES.values()]
    told = {
        name
        for name, feature in FEATURES.items()
        if feature.measured == "placement"
        and any(one[name] and not isinstance(one[name], str) for one in found)
    }
    silent = {name for name, one in FEATURES.items() if one.measured == "placement"} - told
    # These are about single objects, and read nothing of where they stand.
    assert silent <= {
        *("bouncingRewards", "changingRewards", "spawners", "operated", "frozenTime", "patterns"),
        *("gainByWaiting", "lossByWaiting", "valueRate", "tunnelNeeded", "rewardBehind"),
        *("goalBehind", "leastReturn"),
    }


def test_paint_and_mirrors_do_change_what_they_must() -> None:
    plain = readings(*SCENE)
    dyed = readings(*map(SYMMETRIES["paint"].change, SCENE))
    assert {name for name in plain if plain[name] != dyed[name]} == COLOURS - {"wallColours"}
    mirror = SYMMETRIES["mirror"]
    seen = readings(*map(mirror.change, SCENE))
    assert {name for name in mirror.signed if plain[name] != seen[name]} == mirror.signed


def test_the_order_of_items_changes_nothing() -> None:
    agent, *others = SCENE
    assert readings(agent, *others[::-1]) == pytest.approx(readings(*SCENE))


# Coordinates that nothing else has: what just touches would be decided by rounding.
spots = st.integers(20, 380).map(lambda k: k / 10 + 0.0137)
yaws = st.integers(0, 3).map(lambda k: 90.0 * k) | st.integers(0, 359).map(lambda k: k + 0.31)


def lengths(low: float, high: float) -> st.SearchStrategy[float]:
    return st.integers(round(10 * low), round(10 * high)).map(lambda k: k / 10 + 0.0021)


def things(name: str, *size: tuple[float, float], most: int = 1) -> st.SearchStrategy[list[Item]]:
    shades = st.integers(0, 250)
    one = st.builds(
        lambda x, z, size, yaw, shade: thing(name, x, z, *size, yaw=yaw, shade=shade),
        *(spots, spots, st.tuples(*(lengths(*limits) for limits in size)), yaws, shades),
    )
    return st.lists(one, max_size=most)


goals = st.builds(
    lambda name, x, z, size, y: thing(name, x, z, size, size, size, y=y),
    st.sampled_from(["GoodGoal", "GoodGoalMulti", "BadGoal", "DecoyGoal"]),
    *(spots, spots, lengths(0.5, 4), st.sampled_from([0.0, 1.5])),
)
arenas = st.builds(
    lambda agent, *others: (agent, *(item for some in others for item in some)),
    st.builds(
        lambda x, z, y, yaw: thing("Agent", x, z, y=y, yaw=yaw), spots, spots, st.just(0.0), yaws
    ),
    things("Wall", (2, 20), (0.2, 3), (0.3, 2), most=3),
    things("Wall", (4, 10), (1, 2), (4, 10)),
    things("Ramp", (3, 6), (0.5, 2), (3, 6)),
    things("DeathZone", (2, 10), (0.5, 0.5), (2, 10)),
    things("HotZone", (3, 8), (0.5, 0.5), (3, 8)),
    things("WallTransparent", (3, 10), (2, 3), (0.3, 0.5)),
    things("LightBlock", (1, 4), (1, 1), (1, 2)),
    things("CylinderTunnel", (4, 6), (4, 6), (4, 6)),
    st.lists(goals, min_size=1, max_size=3),
)


@given(items=arenas, change=st.sampled_from(sorted(SYMMETRIES)))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_whatever_stands_there(items: tuple[Item, ...], change: str) -> None:
    symmetry = SYMMETRIES[change]
    after = readings(*map(symmetry.change, items))
    assert symmetry.differences(readings(*items), after) == []
