"""Differences between builds of Animal-AI, and what a build refuses to load."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from animalcat.arena_configs.builds import heeded_item
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.placement import shade
from animalcat.envs.types import PHYSICS_STEP

if TYPE_CHECKING:
    from animalcat.arena_configs.builds import Build
    from animalcat.arena_configs.catalogue import ObjectKind
    from animalcat.arena_configs.model import Arena
    from animalcat.arena_configs.placement import PlacedObject


@cache
def constants_in_build(kind: ObjectKind, build: Build) -> ObjectKind:
    """An object's constants in a build (reference/animal-ai.md sections 1.3 and 2)."""
    if build == "4.2":
        return replace(kind, color_rule="fixed") if kind.name in ("Wall", "Ramp") else kind
    if build in ("4.1", "3.1.3") and kind.name == "CylinderTunnel":
        kind = replace(kind, color_rule="settable")
    if build == "4.1" and kind.name == "Ramp":
        kind = replace(kind, tag="Ramp")
    return replace(kind, mass=kind.mass_3x) if build == "3.1.3" else kind


def step_seconds(build: Build) -> float:
    """How long a physics step of a build is.

    Unity 6 counts time in ticks of 1/141,120,000 s and cuts its 0.02 s, in single precision a
    little less, to whole ticks (found by fitting a log of the real build: every velocity and
    position of 115 steps then agrees in all seven digits that it shows).
    """
    return 2_822_399 / 141_120_000 if build == "4.x" else PHYSICS_STEP


def in_build(thing: PlacedObject, build: Build) -> PlacedObject:
    """A placed object as a build has it."""
    if build == "4.x":
        return thing
    kind = constants_in_build(thing.kind, build)
    item = heeded_item(thing.item, build)
    color = None if kind.color_rule == "fixed" else thing.color
    if kind.color_rule == "settable" and color is None and item.colors:
        rgb = item.colors[0]
        if min(rgb.r, rgb.g, rgb.b) >= 0:
            color = shade(rgb)
    return replace(thing, kind=kind, color=color, item=item)


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
