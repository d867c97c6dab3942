"""Objects, small arenas and tables of outcomes that several tests use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from animalcat.arena_configs.model import Item, Vector3
from animalcat.cli.layout.outcomes import _cover, _table
from animalcat.layouts.model.instances import CoveredOutcomes
from animalcat.layouts.model.spec import Layout


def thing(
    name: str, x: float, z: float, *size: float, y: float = 0, yaw: float = 0, **more: Any
) -> Item:
    """One object at a place; its size is given along x, y and z, or not at all."""
    sizes = (Vector3(x=size[0], y=size[1], z=size[2]),) if size else ()
    place = Vector3(x=x, y=y, z=z)
    return Item(name=name, positions=(place,), sizes=sizes, rotations=(yaw,), **more)


AGENT = thing("Agent", 20, 5)
GOAL = thing("GoodGoal", 20, 35, 2, 2, 2)
ON_FOOT = {
    "open": (AGENT, GOAL),
    "behind": (thing("Agent", 20, 5, yaw=180), GOAL),
    "zigzag": (AGENT, thing("Wall", 15, 15, 30, 3, 1), thing("Wall", 25, 25, 30, 3, 1), GOAL),
    "step": (AGENT, thing("Wall", 20, 20, 40, 0.2, 10), GOAL),
    "ramp": (
        AGENT,
        thing("Wall", 20, 33, 12, 2, 12),
        thing("Ramp", 20, 24, 5, 2, 6, yaw=180),
        thing("GoodGoal", 20, 35, 2, 2, 2, y=2),
    ),
    "down": (
        thing("Agent", 20, 5, y=1),
        thing("Wall", 20, 20, 1, 1, 40),
        thing("GoodGoal", 32, 30, 1, 1, 1),
    ),
    "tunnel": (
        AGENT,
        thing("CylinderTunnel", 20, 20, 6, 6, 6),
        thing("Wall", 8.3, 20, 16.6, 5, 1),
        thing("Wall", 31.7, 20, 16.6, 5, 1),
        GOAL,
    ),
    "between lava": (
        AGENT,
        thing("DeathZone", 9, 20, 18, 0.5, 10),
        thing("DeathZone", 31, 20, 18, 0.5, 10),
        GOAL,
    ),
}
"""Arenas that an agent can solve by walking, with nothing moving in them."""


def covered_outcomes(
    source: Path | str, agents: Sequence[str], layouts: Sequence[Layout]
) -> CoveredOutcomes:
    """The outcomes of a table that layouts describe, as the commands of layouts read it."""
    return _cover(*_table(source, agents), layouts)
