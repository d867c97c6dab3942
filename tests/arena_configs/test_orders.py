"""The order in which builds of Animal-AI draw, against the generator's own stream."""

from __future__ import annotations

import pytest

from animalcat.arena_configs.builds import Build
from animalcat.arena_configs.draws import UnityDraws, UnityRandom
from animalcat.arena_configs.model import RGB, Arena, Item, Point, Vector3
from animalcat.arena_configs.placement import Placement, place

ANY = Vector3(x=-1, y=0, z=-1)
UNIT = Vector3(x=1, y=1, z=1)


def item(name: str, *positions: Vector3, **fields: object) -> Item:
    return Item.model_validate({"name": name, "positions": positions, **fields})


AGENT = item("Agent", Vector3(x=20, y=0, z=1), rotations=(0.0,), skins=("hedgehog",))
"""Draws nothing."""


def put(*items: Item, build: Build = "3.1.3", seed: int = 0, random_seed: int = 0) -> Placement:
    return place(Arena(items=items, random_seed=random_seed), UnityDraws(seed, build))


def test_the_agent_comes_first_wherever_it_stands_and_draws_a_skin() -> None:
    agent, ball = item("Agent", ANY), item("GoodGoal", ANY, sizes=(UNIT,))
    placement = put(ball, agent)
    random = UnityRandom(0)
    x, z, yaw = (random.uniform(0, high) for high in (40, 40, 360))
    random.integers(3)
    goal = [random.uniform(0.4995, 39.5005) for _ in range(2)]
    assert (placement.agent.position.x, placement.agent.position.z) == (x, z)
    assert placement.agent.yaw == yaw
    position = placement.objects[0].position
    assert [position.x, position.z] == pytest.approx(goal, abs=1e-5)
    named = put(ball, agent.model_copy(update={"skins": ("panda",)}))
    assert named.agent.yaw == placement.agent.yaw
    assert named.objects[0].position != position


def test_a_ball_draws_a_yaw_even_where_there_is_nothing_to_turn() -> None:
    balls = item("GoodGoal", Vector3(x=9, y=0, z=9), ANY, sizes=(UNIT, UNIT), rotations=())
    first, second = put(AGENT, balls).objects
    random = UnityRandom(0)
    random.bits()
    assert first.yaw == 0.0
    assert second.position.x == pytest.approx(random.uniform(0.4995, 39.5005), abs=1e-5)


@pytest.mark.parametrize(
    ("build", "name", "color", "draws"),
    [
        ("3.1.3", "Wall", None, 3),
        ("3.1.3", "Ramp", RGB(r=-1, g=10, b=20), 1),
        ("3.1.3", "CylinderTunnel", None, 3),
        ("4.1", "CylinderTunnel", RGB(r=5, g=10, b=-1), 1),
        ("4.x", "Wall", RGB(r=-1, g=10, b=20), 3),
        ("4.x", "CylinderTunnel", None, 0),
        ("3.1.3", "WallTransparent", None, 0),
        ("3.1.3", "Wall", RGB(r=1, g=10, b=20), 0),
    ],
)
def test_colours_are_drawn_after_the_place(
    build: str, name: str, color: RGB | None, draws: int
) -> None:
    thing = item(
        name,
        Vector3(x=30, y=0, z=30),
        sizes=(Vector3(x=3, y=3, z=3),),
        rotations=(0.0,),
        colors=() if color is None else (color,),
    )
    ball = item("GoodGoal", ANY, sizes=(UNIT,), rotations=(0.0,))
    placement = put(AGENT, thing, ball, build=build)
    random = UnityRandom(0)
    shades = [255 * random.uniform(0, 1) for _ in range(draws)]
    assert [v for k, v in placement.drawn.items() if "colors" in k] == pytest.approx(shades)
    x = placement.objects[1].position.x
    assert x == pytest.approx(random.uniform(0.4995, 39.5005), abs=1e-5)


def test_what_finds_no_spot_draws_no_colour_and_draws_again_at_every_try() -> None:
    full = item("Wall", Vector3(x=20, y=0, z=20), sizes=(Vector3(x=38, y=9, z=36),))
    full = full.model_copy(update={"rotations": (0.0,), "colors": (RGB(),)})
    big = item("Wall", Vector3(x=-1, y=0, z=20), sizes=(Vector3(x=9, y=1, z=9),), rotations=(0.0,))
    ball = item("GoodGoal", Vector3(x=-1, y=0, z=39), sizes=(UNIT,), rotations=(0.0,))
    placement = put(AGENT, full, big, ball)
    assert [skipped.source for skipped in placement.skipped] == [(2, 0)]
    corner = placement.objects[1]
    assert corner.cornered
    assert (corner.source, corner.position, corner.yaw) == ((2, 0), Point(0.0, 0.5, 0.0), 0.0)
    assert (corner.size.x, corner.color) == (pytest.approx(9 * 0.999), None)
    random = UnityRandom(0)
    for _ in range(20):
        random.bits()
    x = placement.objects[2].position.x
    assert x == pytest.approx(random.uniform(0.4995, 39.5005), abs=1e-5)


@pytest.mark.parametrize("position", [(), (Vector3(x=10, y=-1, z=10),)])
def test_a_height_of_minus_one_is_drawn_before_x_in_the_old_build(
    position: tuple[Vector3, ...],
) -> None:
    ball = item("GoodGoal", *position, sizes=(UNIT,))
    height = UnityRandom(0).uniform(0, 100)
    old, new = (put(AGENT, ball, build=build).objects[0] for build in ("3.1.3", "4.x"))
    assert old.position.y == pytest.approx(height + 0.5095)
    assert new.position.y == pytest.approx(0.5095)


def test_sizes_come_before_the_place_one_for_a_ball_and_one_for_each_side() -> None:
    ball = item("GoodGoal", ANY, sizes=(Vector3(x=-1, y=-1, z=-1),))
    wall = item("Wall", ANY, sizes=(Vector3(x=-1, y=2, z=-1),))
    random = UnityRandom(0)
    assert put(AGENT, ball).objects[0].size.x == random.uniform(0.5, 5.0)
    random = UnityRandom(0)
    size = put(AGENT, wall).objects[0].size
    assert [size.x, size.z] == [random.uniform(0.1, 40.0), random.uniform(0.1, 40.0)]


def test_the_stream_goes_on_and_a_random_seed_counts_after_the_build() -> None:
    arena = Arena(items=(item("Agent", ANY),), random_seed=7)
    draws = UnityDraws(0)
    first = place(arena, draws)
    assert first.agent == put(item("Agent", ANY)).agent
    assert place(arena, draws).agent == put(item("Agent", ANY), seed=7).agent
    free = arena.model_copy(update={"random_seed": 0})
    draws = UnityDraws(0)
    assert place(free, draws).agent != place(free, draws).agent


def test_the_agent_is_a_point_that_zones_block() -> None:
    walls = item("Wall", Vector3(x=20, y=0, z=20), sizes=(Vector3(x=30, y=5, z=30),))
    zone = item("DeathZone", Vector3(x=20, y=0, z=3), sizes=(Vector3(x=39, y=4, z=4),))
    fixed = [one.model_copy(update={"rotations": (0.0,)}) for one in (walls, zone)]
    spots = [put(*fixed, seed=seed, build="4.x").agent.position for seed in range(60)]
    outside = [max(abs(x - 20), abs(z - 20)) - 14.985 for x, _, z in spots]
    assert min(outside) >= 0
    assert min(outside) < 0.5  # where the body would not fit
    assert all(not (0.5 < x < 39.5 and 1.1 < z < 4.9) for x, _, z in spots)
