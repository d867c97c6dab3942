"""Varies any arena in what no demand depends on: where it all stands, sides, and walls' colours.

Unlike a twin, a variation is the same task to whoever has learnt it by heart from the agent's own
view. It is what can be had of an arena of which nobody knows how it was made.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from animalcat.arena_configs.families.variants import (
    colours,
    mirrored,
    repainted,
    shifted,
    shifted_point,
)
from animalcat.arena_configs.model import ARENA_SIDE, RGB, Arena
from animalcat.arena_configs.placement import AGENT_RADIUS, place
from animalcat.arena_configs.sequence import episode_arenas, of_parts
from animalcat.portable import scalars

SHIFTS: Final = 40
"""Turns that are tried for one at which everything still has room."""
MARGIN: Final = 1e-3
"""Metres that are left to the outer walls, since positions are whole millimetres."""


class Variation(NamedTuple):
    """A varied arena, and how points of its floor moved.

    Attributes:
        arena: The arena.
        flipped: Whether it is a mirror image, before it is turned and shifted.
        degrees: By how much it is turned about its middle, clockwise; of arenas that merge the
            first, as for the shifts.
        dx: Metres by which it is shifted along x.
        dz: Metres by which it is shifted along z.
        painted: Whether walls or ramps have other colours.
    """

    arena: Arena
    flipped: bool
    degrees: float
    dx: float
    dz: float
    painted: bool

    def point(self, x: float, z: float) -> tuple[float, float]:
        """Where a point of the original arena's floor is."""
        return shifted_point(
            ARENA_SIDE - x if self.flipped else x, z, self.degrees, self.dx, self.dz
        )

    @property
    def told(self) -> str:
        """How it differs, in words."""
        parts = ["mirrored"] * self.flipped
        parts += ["turned"] * bool(self.degrees) + ["shifted"] * bool(self.dx or self.dz)
        parts += ["in other colours"] * self.painted
        return ", ".join(parts) or "unchanged"


def variations(arena: Arena, rng: np.random.Generator, *, mirror: bool) -> Iterator[Variation]:
    """Vary an arena, in the order of how much each differs; every one is another draw.

    First everything is turned and shifted at random, if it has room anywhere else than where it is;
    then it is turned by quarters of a circle and shifted, then only turned. Each comes in other
    colours first. Arenas that merge are mirrored together, and turned and shifted each by itself.

    Args:
        arena: An arena with every value explicit, or several that merge.
        rng: Source of all randomness.
        mirror: Whether it may be a mirror image.
    """
    flipped = mirror and bool(rng.integers(2))
    parts = episode_arenas(arena)
    plain = [mirrored(part) if flipped else part for part in parts]
    paint = {old: _colour(rng) for old in dict.fromkeys(chain(*map(colours, parts)))}
    moves = [
        [*_room(part, rng, 1.0), *_room(part, rng, 90.0), _Move(_quarter(rng), 0.0, 0.0)]
        for part in plain
    ]
    tried = min(map(len, moves))
    for move in zip(*(own[-tried:] for own in moves), strict=True):
        moved = [shifted(part, *own) for part, own in zip(plain, move, strict=True)]
        if paint:
            yield Variation(_repainted(moved, paint), flipped, *move[0], painted=True)
        yield Variation(of_parts(moved), flipped, *move[0], painted=False)
    if paint:
        yield Variation(_repainted(plain, paint), flipped, 0.0, 0.0, 0.0, painted=True)


def _repainted(parts: Sequence[Arena], paint: Mapping[RGB, RGB]) -> Arena:
    return of_parts([repainted(part, paint) for part in parts])


class _Move(NamedTuple):
    degrees: float
    dx: float
    dz: float


def _colour(rng: np.random.Generator) -> RGB:
    red, green, blue = (float(rng.integers(256)) for _ in range(3))
    return RGB(r=red, g=green, b=blue)


def _quarter(rng: np.random.Generator) -> float:
    return 90.0 * float(rng.integers(1, 4))


def _room(arena: Arena, rng: np.random.Generator, grid: float) -> list[_Move]:
    """A turn and a shift at random with which everything is within the arena; none if none is.

    Args:
        arena: The arena.
        rng: Source of all randomness.
        grid: The turn is so many degrees times a whole number.
    """
    placement = place(arena, np.random.default_rng(0))
    start = placement.agent.position
    corners = _corners(start.x, start.z, AGENT_RADIUS, AGENT_RADIUS, 0.0)
    for thing in placement.objects:
        for solid in thing.solids():
            half, at = solid.half, solid.center
            corners += _corners(at.x, at.z, half.x, half.z, solid.yaw)
    for _ in range(SHIFTS):
        degrees = grid * float(rng.integers(round(360 / grid)))
        points = np.array([shifted_point(x, z, degrees, 0.0, 0.0) for x, z in corners])
        low = MARGIN - points.min(axis=0)
        high = ARENA_SIDE - MARGIN - points.max(axis=0)
        if (low < high).all():
            dx = round(float(rng.uniform(float(low[0]), float(high[0]))), 3)
            dz = round(float(rng.uniform(float(low[1]), float(high[1]))), 3)
            return [_Move(degrees, dx, dz)]
    return []


def _corners(
    x: float, z: float, half_x: float, half_z: float, yaw: float
) -> list[tuple[float, float]]:
    sin, cos = scalars.sin(math.radians(yaw)), scalars.cos(math.radians(yaw))
    return [
        (x + dx * cos + dz * sin, z + dz * cos - dx * sin)
        for dx in (-half_x, half_x)
        for dz in (-half_z, half_z)
    ]
