"""Draws demands.png: six arenas made by hand, each with the demands of one group on its map.

Run it where animalcat is installed: `python docs/pictures/demands.py docs/pictures/demands.png`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from animalcat.arena_configs.features import Survey, measure_features
from animalcat.arena_configs.model import RGB, Arena, Item, Vector3
from animalcat.arena_configs.placement import place
from animalcat.cli.arena.map import draw_arena

GREY = (120.0, 130.0, 140.0)


def thing(
    name: str,
    x: float,
    z: float,
    size: tuple[float, float, float] | None = None,
    *,
    y: float = 0.0,
    yaw: float = 0.0,
) -> Item:
    """One object."""
    return Item(
        name=name,
        positions=(Vector3(x=x, y=y, z=z),),
        rotations=(yaw,),
        sizes=() if size is None else (Vector3(x=size[0], y=size[1], z=size[2]),),
        colors=(RGB(r=GREY[0], g=GREY[1], b=GREY[2]),) if name in ("Wall", "Ramp") else (),
    )


def goal(x: float, z: float, size: float = 2.0, name: str = "GoodGoal", y: float = 0.0) -> Item:
    """One goal."""
    return thing(name, x, z, (size, size, size), y=y)


PANELS: list[tuple[str, tuple[str, ...], tuple[Item, ...]]] = [
    (
        "way: length, detour and turns",
        ("wayLength", "detour", "wayTurns", "timeNeeded"),
        (
            thing("Agent", 20, 4),
            thing("Wall", 15, 14, (30, 3, 1)),
            thing("Wall", 25, 26, (30, 3, 1)),
            goal(20, 35),
        ),
    ),
    (
        "way: a ramp and a platform are needed",
        ("rampNeeded", "platformNeeded", "wayClimb"),
        (
            thing("Agent", 8, 5),
            thing("Wall", 20, 30, (16, 2, 10)),
            thing("Ramp", 20, 21, (6, 2, 8), yaw=180),
            goal(23, 32, y=2.0),
        ),
    ),
    (
        "way: a choice that cannot be undone",
        ("drops", "choiceWays", "choiceRight", "choiceDistance"),
        (
            thing("Agent", 20, 3, y=1.0),
            thing("Wall", 20, 20, (2, 1, 40)),
            goal(31, 33),
        ),
    ),
    (
        "way: lava on the straight and on the shortest, and the margin",
        ("lavaStraight", "lavaShortest", "lavaDetour", "lavaMargin"),
        (
            thing("Agent", 20, 4),
            thing("DeathZone", 15, 20, (30, 0.5, 8)),
            thing("DeathZone", 37, 20, (6, 0.5, 8)),
            goal(20, 35),
        ),
    ),
    (
        "sight: solid where the goal is in sight from the way",
        ("goalSeen", "goalSeenOnWay", "occluders", "glassInSight"),
        (
            thing("Agent", 12, 4, yaw=20),
            thing("Wall", 14, 20, (22, 4, 1)),
            thing("WallTransparent", 33, 20, (8, 4, 1)),
            goal(16, 34, 3.0),
        ),
    ),
    (
        "rewards: the order that gives most",
        ("bestReturn", "orderGain", "rewardsInBestOrder"),
        (
            thing("Agent", 20, 4),
            goal(20, 12),
            goal(6, 22, 1.0, "GoodGoalMulti"),
            goal(14, 34, 2.0, "GoodGoalMulti"),
            goal(34, 30, 3.0, "GoodGoalMulti"),
        ),
    ),
]
"""Title, demands to name, and what stands in the arena."""


def draw(axes: Axes, title: str, names: tuple[str, ...], items: tuple[Item, ...]) -> None:
    """Draw one arena with what was measured of it below."""
    placement = place(Arena(time_limit=250, items=items), np.random.default_rng(0))
    survey = Survey(placement)
    values = measure_features(survey).values
    draw_arena(axes, placement, survey=survey)
    measured = ", ".join(f"{name} {values[name]:.3g}" for name in names)
    axes.set(xlabel="", ylabel="", xticks=[], yticks=[])
    axes.set_title(f"{title}\n{measured}", fontsize=9)


def main(path: Path) -> None:
    """Draw all of them."""
    figure = Figure(figsize=(15.0, 11.0), layout="constrained")
    for number, panel in enumerate(PANELS, 1):
        draw(figure.add_subplot(2, 3, number), *panel)
    figure.savefig(path, dpi=60)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
