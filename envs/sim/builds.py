"""Differences between builds of Animal-AI, and what a build refuses to load."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from animalcat.arena_configs.model import ArenaError

if TYPE_CHECKING:
    from animalcat.arena_configs.catalogue import ObjectKind
    from animalcat.arena_configs.model import Arena
    from animalcat.arena_configs.placement import PlacedObject

Build = Literal["4.x", "4.1", "3.1.3"]
BUILDS: Final[tuple[Build, ...]] = ("4.x", "4.1", "3.1.3")
"""4.x: 4.3.1, which the catalogue describes. 4.1: 4.0 and 4.1, whose ramps have a ray tag of
their own. 3.1.3: pushable blocks some 200 times lighter, tunnels take colours, blackouts are not
looked at (reference/animal-ai.md sections 1.3 and 2)."""


@cache
def as_built(kind: ObjectKind, build: Build) -> ObjectKind:
    """An object's constants in a build."""
    if build == "4.1" and kind.name == "Ramp":
        return replace(kind, tag="Ramp")
    if build == "3.1.3":
        tunnel = kind.name == "CylinderTunnel"
        rule = "settable" if tunnel else kind.color_rule
        return replace(kind, mass=kind.mass_3x, color_rule=rule)
    return kind


def in_build(thing: PlacedObject, build: Build) -> PlacedObject:
    """A placed object as a build has it."""
    if build == "4.x":
        return thing
    kind = as_built(thing.kind, build)
    color = thing.color
    if kind.color_rule == "settable" and color is None and thing.item.colors:
        rgb = thing.item.colors[0]
        if min(rgb.r, rgb.g, rgb.b) >= 0:
            color = (min(rgb.r / 255, 1.0), min(rgb.g / 255, 1.0), min(rgb.b / 255, 1.0))
    return replace(thing, kind=kind, color=color)


def refuse(arena: Arena, build: Build) -> None:
    """Raise an error for what the build refuses when it loads a file.

    Raises:
        ArenaError: The blackouts do not increase, or extend beyond the time limit.
    """
    times = arena.blackouts
    if build == "3.1.3" or not times or times[0] < 0:
        return
    if any(later <= sooner for sooner, later in itertools.pairwise(times)):
        raise ArenaError(f"blackouts: the times must increase, and {list(times)} do not")
    if times[-1] > arena.time_limit:
        raise ArenaError(
            f"blackouts: {times[-1]} is after the time limit {arena.time_limit}; leave it out or "
            "raise timeLimit"
        )
