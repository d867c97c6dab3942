"""Arenas of the tests: every value fixed, so that no seed changes them."""

from __future__ import annotations

from pathlib import Path

from animalcat.arena_configs.model import RGB, Arena, ArenaConfig, Item, Vector3
from animalcat.arena_configs.writer import to_yaml
from tests.small import start, thing

FORWARD, RIGHT, LEFT = (1, 0), (0, 1), (0, 2)


def spot(x: float, *, time_limit: int = 50) -> Arena:
    """An empty arena that an observation tells from others: the agent stands at x."""
    return Arena(time_limit=time_limit, items=(start(x=x, z=20),))


def near_goal(distance: float = 3.0) -> Arena:
    """A goal straight ahead, between coloured walls."""
    wall = Item(
        name="Wall",
        positions=(Vector3(x=15, y=0, z=12), Vector3(x=26, y=0, z=9)),
        rotations=(0.0, 30.0),
        sizes=(Vector3(x=1, y=3, z=6), Vector3(x=2, y=1, z=4)),
        colors=(RGB(r=200, g=60, b=20), RGB(r=20, g=90, b=200)),
    )
    goal = thing("GoodGoal", 20, 0, 5 + distance, size=(1, 1, 1))
    return Arena(time_limit=100, items=(start(x=20, z=5), goal, wall))


def write(folder: Path, name: str, *arenas: Arena, **fields: object) -> Path:
    """A configuration file that holds the arenas, numbered from 0."""
    config = ArenaConfig(arenas=dict(enumerate(arenas)), **fields)  # pyright: ignore[reportArgumentType]
    path = folder / name
    path.write_text(to_yaml(config))
    return path
