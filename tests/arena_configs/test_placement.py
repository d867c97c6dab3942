from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animalcat.arena_configs.catalogue import KINDS
from animalcat.arena_configs.geometry import outside_by
from animalcat.arena_configs.model import RGB, Arena, ArenaError, Item, Point, Vector3
from animalcat.arena_configs.placement import PlacedObject, Placement, fix, place


def v(x: float, y: float, z: float) -> Vector3:
    return Vector3(x=x, y=y, z=z)


def item(name: str, *positions: Vector3, **fields: object) -> Item:
    return Item.model_validate({"name": name, "positions": positions, **fields})


AGENT = item("Agent", v(20, 0, 1), rotations=(0.0,))


def put(*items: Item, seed: int = 0, agent: Item | None = AGENT) -> Placement:
    everything = (agent, *items) if agent else items
    return place(Arena(time_limit=250, items=everything), np.random.default_rng(seed))


def one(thing: Item) -> PlacedObject:
    (placed,) = put(thing).objects
    return placed


@pytest.mark.parametrize("corner", [(0.0, 5.0), (5.0, 0.0), (40.0, 5.0), (-1, 40.0)])
def test_agent_on_the_edge_goes_to_the_corner(corner: tuple[float, float]) -> None:
    start = put(agent=item("Agent", v(corner[0], 0, corner[1]), rotations=(0.0,))).agent
    assert start.position == Point(1.0, 0.51, 1.0)


def test_missing_agent_starts_clear_of_everything() -> None:
    walls = item("Wall", v(20, 0, 20), sizes=(v(30, 5, 30),), rotations=(0.0,))
    zone = item("DeathZone", v(20, 0, 3), sizes=(v(39, 1, 4),), rotations=(0.0,))
    for seed in range(30):
        x, _, z = put(walls, zone, agent=None, seed=seed).agent.position
        assert min(x, z) >= 0.5
        assert max(x, z) <= 39.5
        assert max(abs(x - 20), abs(z - 20)) >= 15.4
        assert z >= 5.4 or not 0.1 <= x <= 39.9


@pytest.mark.parametrize(
    ("thing", "size", "y"),
    [
        (item("Wall", v(20, 0, 20), sizes=(v(2, 3, 4),)), (1.998, 2.997, 3.996), 1.5085),
        (item("Wall", v(20, 1, 20), sizes=(v(99, 0, 4),)), (39.96, 0.0999, 3.996), 1.05995),
        (item("GoodGoal", v(20, 0, 20), sizes=(v(1, 9, 9),)), (0.999, 0.999, 0.999), 0.5095),
        (item("GoodGoal", v(20, 0, 20), sizes=(v(9, 1, 1),)), (4.995, 4.995, 4.995), 2.5075),
        (item("CylinderTunnel", v(20, 3, 20), sizes=(v(3, 4, 5),)), (2.997, 3.996, 4.995), 0.0),
        (item("DeathZone", v(20, 3, 20), sizes=(v(3, 0, 5),)), (2.997, 0.4995, 4.995), -0.15),
        (item("SpawnerContainerShort", v(20, 1, 20)), (1.67, 1.67, 1.67), 1.01),
        (item("SignBoard", v(20, 0, 20)), (1.0, 1.0, 1.0), 0.01),
    ],
)
def test_size_and_height(thing: Item, size: tuple[float, ...], y: float) -> None:
    placed = one(thing.model_copy(update={"rotations": (0.0,)}))
    assert placed.size == pytest.approx(size)
    assert placed.position == pytest.approx((20.0, y, 20.0))


def test_rewards_of_zones_and_changing_goals() -> None:
    assert one(item("DeathZone", v(20, 0, 20))).reward == -1.0
    assert one(item("HotZone", v(20, 0, 20))).reward == pytest.approx(-10 / 1250)
    endless = place(Arena(items=(AGENT, item("HotZone", v(20, 0, 20)))), np.random.default_rng(0))
    assert endless.objects[0].reward == -0.001
    decay = one(item("DecayGoal", v(20, 0, 20)))
    assert (decay.reward, decay.size.x) == (2.5, pytest.approx(2.4975))
    grow = one(item("GrowGoal", v(20, 0, 20)))
    assert grow.size.x == pytest.approx(0.4995)
    assert grow.item.change_rates == (0.005,)


def test_copies_are_as_many_as_the_longest_list() -> None:
    balls = item("GoodGoalMulti", v(5, 0, 5), sizes=(v(1, 1, 1),) * 10)
    placement = put(balls)
    assert len(placement.objects) + len(placement.skipped) == 10
    assert placement.objects[0].position.x == 5.0
    assert [thing.source[1] for thing in placement.objects] == sorted(
        thing.source[1] for thing in placement.objects
    )


def test_what_overlaps_is_skipped() -> None:
    first = item("Wall", v(20, 0, 20), sizes=(v(4, 2, 4),), rotations=(0.0,))
    touching = item("Wall", v(24, 0, 20), sizes=(v(4, 2, 4),), rotations=(0.0,))
    above = item("GoodGoal", v(20, 2, 20), sizes=(v(1, 1, 1),))
    inside = item("GoodGoal", v(20, 1, 20), sizes=(v(1, 1, 1),))
    turned = item("Wall", v(15.3, 0, 15.3), sizes=(v(4, 2, 4),), rotations=(45.0,))
    beyond = item("Wall", v(39, 0, 20), sizes=(v(4, 2, 4),), rotations=(0.0,))
    on_agent = item("BadGoal", v(20, 0, 1.5), sizes=(v(1, 1, 1),))
    placement = put(first, touching, above, inside, turned, beyond, on_agent)
    assert [thing.source[0] for thing in placement.objects] == [1, 2, 3, 5]
    assert [(s.source[0], s.reason) for s in placement.skipped] == [
        (4, "it would overlap Wall 1.0"),
        (6, "it would overlap the arena's wall"),
        (7, "it would overlap the agent"),
    ]


def test_zones_may_lie_on_objects_but_not_in_walls() -> None:
    wall = item("Wall", v(20, 0, 20), sizes=(v(4, 2, 4),), rotations=(0.0,))
    zone = item(
        "HotZone", v(20, 0, 20), v(39, 0, 20), sizes=(v(8, 1, 8),) * 2, rotations=(0.0, 0.0)
    )
    whole = item("DeathZone", v(20, 0, 20), sizes=(v(40, 1, 40),), rotations=(0.0,))
    placement = put(wall, zone, whole)
    assert [thing.name for thing in placement.objects] == ["Wall", "HotZone", "DeathZone"]
    assert [skipped.source for skipped in placement.skipped] == [(2, 1)]


NAMES = st.sampled_from([*sorted(KINDS), "Unicorn", "Cardbox2"])
COORDINATES = st.one_of(st.just(-1.0), st.floats(0, 41))
VECTORS = st.builds(Vector3, x=COORDINATES, y=st.floats(-1, 3), z=COORDINATES)
SIZES = st.builds(Vector3, x=st.floats(-1, 12), y=st.floats(-1, 12), z=st.floats(-1, 12))
COLORS = st.builds(RGB, r=st.floats(-1, 256), g=st.floats(-1, 256), b=st.floats(-1, 256))
ITEMS = st.builds(
    Item,
    name=NAMES,
    positions=st.lists(VECTORS, max_size=2).map(tuple),
    rotations=st.lists(st.floats(-1, 360), max_size=2).map(tuple),
    sizes=st.lists(SIZES, max_size=2).map(tuple),
    colors=st.lists(COLORS, max_size=1).map(tuple),
    initial_values=st.lists(st.floats(0, 5), max_size=1).map(tuple),
)
ARENAS = st.builds(
    Arena, time_limit=st.integers(0, 500), items=st.lists(ITEMS, max_size=6).map(tuple)
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(ARENAS, st.integers(0, 2**32))
def test_fixing_leaves_nothing_to_chance(arena: Arena, seed: int) -> None:
    try:
        placement = place(arena, np.random.default_rng(seed))
    except ArenaError:
        return
    assert placement == place(arena, np.random.default_rng(seed))
    fixed = fix(arena, np.random.default_rng(seed))
    again = place(fixed, np.random.default_rng(seed + 1))
    assert (again.drawn, again.skipped) == ({}, ())
    assert place(fixed, np.random.default_rng(seed + 2)) == again
    assert fix(fixed, np.random.default_rng(seed)) == fixed
    assert again.agent == placement.agent
    assert len(again.objects) == len(placement.objects)
    for old, new in zip(placement.objects, again.objects, strict=True):
        assert (new.name, new.yaw, new.color) == (old.name, old.yaw, old.color)
        assert (new.position.x, new.position.z) == (old.position.x, old.position.z)
        drawn = any(f"items[{old.source[0]}].sizes" in key for key in placement.drawn)
        factor = 0.999 if drawn else 1.0
        for before, after in zip(old.size, new.size, strict=True):
            assert before * factor - 1e-9 <= after <= before + 1e-9
    for thing in placement.objects:
        assert math.isfinite(thing.reward)
        if thing.kind.ball:
            assert outside_by(thing.solids()[0]) <= 1e-6
