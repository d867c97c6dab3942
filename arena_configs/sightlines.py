"""What can be seen from where in an arena as it is placed, by casting rays on its solids.

Opaque solids and goals hide; transparent ones and zones, which are mist, do not.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.geometry import SHELL_INNER, Solid
from animalcat.arena_configs.model import Point
from animalcat.arena_configs.placement import PlacedObject, Placement
from animalcat.portable import scalars
from animalcat.portable.products import length, product

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

HALF_VIEW: Final = 50.0
"""Half of the camera's field of view, to each side and up and down, in degrees."""
SEEN: Final = 0.05
"""Share of a goal's disc from which it counts as seen."""

_RINGS: Final = ((0, 1), (1, 6), (2, 12), (3, 18))
_NEAR: Final = 1e-6


def _disc() -> Array:
    """Points on a disc of radius 1, each for an equal part of it; its mirror image is the same."""
    points = [
        (ring / 3.5 * scalars.sin(angle), ring / 3.5 * scalars.cos(angle))
        for ring, number in _RINGS
        for angle in (2 * math.pi * k / number for k in range(number))
    ]
    return np.array(points)


DISC: Final = _disc()


class Look(NamedTuple):
    """A look at a goal from somewhere.

    Attributes:
        clear: Share of its disc that nothing hides.
        framed: Share that is within the camera's view too, for a given heading.
        degrees: Its visual angle.
        hiders: What hides parts of it.
        glass: Transparent objects before its centre.
    """

    clear: float
    framed: float
    degrees: float
    hiders: tuple[PlacedObject, ...]
    glass: tuple[PlacedObject, ...]


class Sight:
    """Tells what can be seen from where in a placed arena."""

    def __init__(self, placement: Placement) -> None:
        """Begin.

        Args:
            placement: The placed arena.
        """
        self._parts = [
            (thing, solid)
            for thing in placement.objects
            if not thing.kind.zone
            for solid in thing.solids()
        ]
        self._centers = np.array([solid.center for _, solid in self._parts]).reshape(-1, 3)
        self._radii = np.array([math.hypot(*solid.half) for _, solid in self._parts])

    def look(self, eye: Point, goal: PlacedObject, center: Point, yaw: float | None = None) -> Look:
        """Look at a goal.

        Args:
            eye: From where.
            goal: At what.
            center: Where its centre is.
            yaw: Heading of the camera, in degrees; None if it looks at the goal.
        """
        origin, radius = np.array(eye), goal.size.x / 2
        near = [
            part for part in self._near(origin, np.array(center), radius) if part[0] is not goal
        ]
        away = max(math.dist(eye, center), 1e-9)
        degrees = 2.0 * math.degrees(scalars.asin(min(1.0, radius / away)))
        if not near and yaw is None:
            return Look(1.0, 1.0, degrees, (), ())
        ends = _facing(origin, np.array(center), radius)
        hidden = np.zeros(len(ends), np.bool_)
        hiders: dict[int, PlacedObject] = {}
        glass: dict[int, PlacedObject] = {}
        for thing, solid in near:
            met = crossed_lines(solid, origin, ends)
            if thing.kind.alpha >= 1.0 and met.any():
                hidden |= met
                hiders[id(thing)] = thing
            elif met[0]:
                glass[id(thing)] = thing
        clear = ~hidden
        framed = clear if yaw is None else clear & _in_frame(ends - origin, yaw)
        return Look(
            float(clear.mean()),
            float(framed.mean()),
            degrees,
            tuple(hiders.values()),
            tuple(glass.values()),
        )

    def _near(self, eye: Array, center: Array, radius: float) -> list[tuple[PlacedObject, Solid]]:
        """Solids that may be between an eye and a ball: the spheres around them are."""
        if not self._parts:
            return []
        along = center - eye
        share = product(self._centers - eye, along) / max(float(product(along, along)), _NEAR)
        nearest = eye + np.clip(share, 0.0, 1.0)[:, None] * along
        off = self._centers - nearest
        reaches = self._radii + radius
        met = (off * off).sum(axis=1) <= reaches * reaches
        return [self._parts[k] for k in np.flatnonzero(met)]


def _in_frame(lines: Array, yaw: float) -> Mask:
    """Whether lines from the camera are within its picture."""
    x, y, z = lines.T
    sin, cos = scalars.sin(math.radians(yaw)), scalars.cos(math.radians(yaw))
    right, ahead = x * cos - z * sin, x * sin + z * cos
    limit = scalars.tan(math.radians(HALF_VIEW)) * ahead
    return (ahead > 0.0) & (np.abs(right) <= limit) & (np.abs(y) <= limit)


def _facing(eye: Array, center: Array, radius: float) -> Array:
    """Points on a ball's disc as seen from somewhere, its centre first."""
    x, y, z = center - eye
    flat, length = math.hypot(x, z), math.hypot(x, y, z)
    if flat < _NEAR:
        return center + radius * np.stack([DISC[:, 0], 0.0 * DISC[:, 0], DISC[:, 1]], axis=1)
    right = np.array([z, 0.0, -x]) / flat
    up = np.array([-x * y, flat * flat, -z * y]) / (flat * length)
    return center + radius * (DISC[:, :1] * right + DISC[:, 1:] * up)


def crossed_lines(solid: Solid, eye: Array, ends: Array) -> Mask:
    """Which of the lines from the eye to the ends, (n, 3), pass through a solid, (n,)."""
    middle = np.array(solid.center)
    half = np.maximum(np.array(solid.half), 1e-6)
    reach = length(half)
    low = np.minimum(eye, ends.min(0)) - reach
    high = np.maximum(eye, ends.max(0)) + reach
    if (middle < low).any() or (middle > high).any():
        return np.zeros(len(ends), np.bool_)
    sin, cos = scalars.sin(math.radians(solid.yaw)), scalars.cos(math.radians(solid.yaw))
    turn = np.array([[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]])
    start = product(eye - middle, turn)
    along = product(ends - eye, turn)
    if solid.shape == "sphere":
        return _ball(start, along, solid.half.x)
    if solid.shape == "shell":
        outer = _tube(start, along, half)
        return outer | _tube(start, along, half * np.array([SHELL_INNER, SHELL_INNER, 1.0]))
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = (-half - start) / along, (half - start) / along
    outside = (np.abs(along) < 1e-12) & (np.abs(start) > half)
    enter: Array = np.where(np.abs(along) < 1e-12, -np.inf, np.minimum(one, other)).max(axis=1)
    leave: Array = np.where(np.abs(along) < 1e-12, np.inf, np.maximum(one, other)).min(axis=1)
    if solid.shape == "wedge":
        # Below the slope: y / half.y <= z / half.z.
        height = start[1] / half[1] - start[2] / half[2]
        rise = along[:, 1] / half[1] - along[:, 2] / half[2]
        with np.errstate(divide="ignore", invalid="ignore"):
            at = -height / rise
        enter = np.where(rise < -1e-12, np.maximum(enter, at), enter)
        leave = np.where(rise > 1e-12, np.minimum(leave, at), leave)
        outside[:, 0] |= (np.abs(rise) <= 1e-12) & (height > 0.0)
    passes = np.maximum(enter, _NEAR) < np.minimum(leave, 1.0 - _NEAR)
    return passes & ~outside.any(1)


def _ball(start: Array, along: Array, radius: float) -> Mask:
    a = (along * along).sum(1)
    b = product(along, start)
    c = float(product(start, start)) - radius * radius
    root = b * b - a * c
    far = np.sqrt(np.maximum(root, 0.0))
    return (root > 0.0) & (-b + far > _NEAR * a) & (-b - far < (1.0 - _NEAR) * a)


def _tube(start: Array, along: Array, half: Array) -> Mask:
    """Which lines cross the upper half of an elliptic tube along z."""
    p, d = start[:2] / half[:2], along[:, :2] / half[:2]
    a, b, c = (d * d).sum(1), product(d, p), float(product(p, p)) - 1.0
    root = b * b - a * c
    met = np.zeros(len(along), np.bool_)
    with np.errstate(divide="ignore", invalid="ignore"):
        for sign in (-1.0, 1.0):
            at = (-b + sign * np.sqrt(np.maximum(root, 0.0))) / a
            z, y = start[2] + at * along[:, 2], start[1] + at * along[:, 1]
            there = (root > 0.0) & (a > 1e-12) & (at > _NEAR) & (at < 1.0 - _NEAR)
            met |= there & (np.abs(z) <= half[2]) & (y >= 0.0)
    return met
