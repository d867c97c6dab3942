"""What maps show of an arena from above: discs and polygons, in metres."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.catalogue import PartShape
from animalcat.arena_configs.geometry import Solid, outline
from animalcat.arena_configs.placement import PlacedObject
from animalcat.arena_configs.tags import LOGGED_TAGS
from animalcat.envs.state import Column

Colour: TypeAlias = tuple[int, int, int]
State: TypeAlias = npt.NDArray[np.float32]

FLOOR: Final[Colour] = (243, 234, 217)
AGENT: Final[Colour] = (31, 94, 168)
"""Colour of the agent in what is recorded of it."""
ZONES: Final = ("DeathZone", "HotZone", "DataZone")
"""Tags of what one walks through."""
_ZONE_OPACITY: Final = 0.5
_LEAST_OPACITY: Final = 0.3
"""So that what is transparent in the arena is seen on the map."""
_RECORDED_OPACITY: Final = 225 / 255
_RECORDED_ZONE_OPACITY: Final = 150 / 255
_SPHERE: Final = 1
"""The number of a ball among the shapes of `envs.sim.scene.Shape`."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One solid from above. x points right and z up.

    Attributes:
        kind: What it is: a sphere, or a box, a wedge (a ramp) or a shell (a tunnel).
        x: Of its centre, in metres.
        z: Of its centre, in metres.
        half_x: Half its width before it is turned; of a sphere its radius, in metres.
        half_z: Half its depth before it is turned, in metres.
        yaw: By how much it is turned, in degrees clockwise.
        corners: Of the rectangle that it covers; empty for a sphere.
        colour: Red, green and blue, 0 to 255.
        opacity: 0 to 1.
        goal: Whether it is known to be a reward.
        layer: Shapes are drawn in this order, so that what is higher hides what is lower.
    """

    kind: PartShape
    x: float
    z: float
    half_x: float
    half_z: float
    yaw: float
    corners: tuple[tuple[float, float], ...]
    colour: Colour
    opacity: float
    goal: bool
    layer: tuple[bool, float]


def of_things(things: Iterable[PlacedObject]) -> list[Shape]:
    """The shapes of placed objects, from the lowest to the highest."""
    return sorted(
        (of_solid(thing, solid) for thing in things for solid in thing.solids()),
        key=lambda shape: shape.layer,
    )


def of_solid(thing: PlacedObject, solid: Solid) -> Shape:
    """The shape of one of an object's solids."""
    red, green, blue = (round(255 * part) for part in thing.color or thing.kind.color)
    return Shape(
        kind=solid.shape,
        x=solid.center.x,
        z=solid.center.z,
        half_x=solid.half.x,
        half_z=solid.half.z,
        yaw=solid.yaw,
        corners=() if solid.shape == "sphere" else outline(solid),
        colour=(red, green, blue),
        opacity=_ZONE_OPACITY if thing.kind.zone else max(thing.kind.alpha, _LEAST_OPACITY),
        goal=thing.kind.goal,
        layer=(not thing.kind.zone, thing.position.y + thing.size.y / 2),
    )


def of_state(rows: Iterable[State], colour_of: Callable[[str], Colour]) -> list[Shape]:
    """The shapes of what the simulator tells of a step, from the lowest to the highest.

    Args:
        rows: One of each solid, by the columns of `envs.state.Column`.
        colour_of: The colour of objects with a tag.
    """
    return sorted((_of_row(row, colour_of) for row in rows), key=lambda shape: shape.layer)


def _of_row(row: State, colour_of: Callable[[str], Colour]) -> Shape:
    tag = tag_of(row)
    x, y, z = map(float, row[Column.CENTER : Column.CENTER + 3])
    width, height, depth = map(float, row[Column.HALF : Column.HALF + 3])
    turn = list(map(float, row[Column.ROTATION : Column.ROTATION + 9]))
    sphere = round(float(row[Column.SHAPE])) == _SPHERE
    # It may lie on its side: its axes are those that it has in the world.
    right, ahead = (width * turn[0], width * turn[6]), (depth * turn[2], depth * turn[8])
    corners = tuple(
        (x + a * right[0] + b * ahead[0], z + a * right[1] + b * ahead[1])
        for a, b in ((-1, -1), (-1, 1), (1, 1), (1, -1))
    )
    return Shape(
        kind="sphere" if sphere else "box",
        x=x,
        z=z,
        half_x=width,
        half_z=depth,
        yaw=math.degrees(math.atan2(turn[2], turn[8])),
        corners=() if sphere else corners,
        colour=colour_of(tag),
        opacity=_RECORDED_ZONE_OPACITY if tag in ZONES else _RECORDED_OPACITY,
        goal=False,
        layer=(tag not in ZONES, y + height),
    )


def tag_of(row: State) -> str:
    """The tag of an object in what the simulator tells of a step; empty for none."""
    number = round(float(row[Column.TAG]))
    return LOGGED_TAGS[number] if number >= 0 else ""


def hex_of(colour: Colour) -> str:
    """A colour as pages and matplotlib write it, such as "#f3ead9"."""
    return "#" + bytes(colour).hex()
