"""Solid parts of placed objects and whether two of them overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.catalogue import ObjectKind, PartShape
from animalcat.arena_configs.model import ARENA_SIDE, Point
from animalcat.portable import scalars
from animalcat.portable.products import product

Array = npt.NDArray[np.float64]

SHELL_INNER: Final = 1.0 / 1.04
"""Inner radius of a tunnel divided by its outer one. It is not in the mesh data; the shell is thin.
"""

_TOUCH: Final = 1e-9
"""Metres by which solids may overlap and still only touch."""

_THIN: Final = 1e-6
"""Least half extent, in metres, with which a solid is tested: a goal may start at size 0."""

_SHELL_FACES: Final = 12


@dataclass(frozen=True, slots=True)
class Solid:
    """A placed collider of an object.

    Attributes:
        shape: box, sphere, wedge or shell; local axes as in `catalogue.Collider`.
        center: Centre in metres, in the arena's coordinate frame.
        half: Half extents along the local axes, in metres.
        yaw: Degrees clockwise seen from above.
    """

    shape: PartShape
    center: Point
    half: Point
    yaw: float


def rotate(x: float, z: float, yaw: float) -> tuple[float, float]:
    """Rotate local (x, z) by a yaw in degrees, clockwise seen from above."""
    if yaw == 0.0:
        return x, z
    sin, cos = scalars.sin(math.radians(yaw)), scalars.cos(math.radians(yaw))
    return x * cos + z * sin, z * cos - x * sin


def solids(kind: ObjectKind, origin: Point, size: Point, yaw: float) -> tuple[Solid, ...]:
    """Place the colliders of an object.

    Args:
        kind: The kind of object.
        origin: Where its origin stands, in metres.
        size: Its size in metres.
        yaw: Its yaw in degrees, including the built-in one.
    """
    ox, oy, oz = origin
    sx, sy, sz = size[0] * kind.ratio[0], size[1] * kind.ratio[1], size[2] * kind.ratio[2]
    placed: list[Solid] = []
    for part in kind.parts:
        cx, cy, cz = part.center
        x, z = rotate(cx * sx, cz * sz, yaw) if cx or cz else (0.0, 0.0)
        width, height, depth = part.size
        half = Point(width * sx / 2, height * sy / 2, depth * sz / 2)
        placed.append(Solid(part.shape, Point(ox + x, oy + cy * sy, oz + z), half, yaw))
    return tuple(placed)


def outline(solid: Solid) -> tuple[tuple[float, float], ...]:
    """Corners (x, z) of the rectangle that a solid covers from above, in metres."""
    corners = ((-1, -1), (-1, 1), (1, 1), (1, -1))
    turned = (rotate(x * solid.half.x, z * solid.half.z, solid.yaw) for x, z in corners)
    return tuple((solid.center.x + x, solid.center.z + z) for x, z in turned)


WALLS: Final = tuple(
    Solid("box", Point(x, 195.0, z), Point(half_x, 200.0, half_z), 0.0)
    for x, z, half_x, half_z in (
        (-0.5, ARENA_SIDE / 2, 0.5, ARENA_SIDE / 2 + 1),
        (ARENA_SIDE + 0.5, ARENA_SIDE / 2, 0.5, ARENA_SIDE / 2 + 1),
        (ARENA_SIDE / 2, -0.5, ARENA_SIDE / 2 + 1, 0.5),
        (ARENA_SIDE / 2, ARENA_SIDE + 0.5, ARENA_SIDE / 2 + 1, 0.5),
    )
)
"""The four invisible walls of the arena; their inner faces are at 0 and 40."""


def overlaps(box: Solid, other: Solid) -> bool:
    """Whether a box and a solid share more than their surface.

    A shell counts as hollow for a box that lies entirely inside it, and as full for others.

    Args:
        box: A solid whose half extents are those of an oriented box.
        other: Any solid.
    """
    if not _bounds_meet(box, other):
        return False
    if other.shape == "sphere":
        return _box_meets_sphere(box, other)
    if _beside(box, other):
        return False
    if other.shape == "box":
        return True
    if not _separable(_world(box, "box"), _world(other, other.shape)):
        return other.shape != "shell" or not _inside_shell(box, other)
    return False


class Obstacles:
    """Solids that a box may overlap; their bounds are tested before the exact shapes."""

    def __init__(self) -> None:
        self._solids: list[Solid] = []
        self._bounds: list[tuple[float, float, float, float, float, float]] = []

    def add(self, solid: Solid) -> None:
        """Add a solid."""
        self._solids.append(solid)
        self._bounds.append(_bounds(solid))

    def first_met(self, box: Solid, among: int | None = None) -> int | None:
        """Index of the first solid, among the first `among` (None for all), that a box overlaps."""
        left, low, near, right, high, far = _bounds(box)
        # In Python this is quicker than in numpy up to a hundred solids.
        met = (
            index
            for index, (x, y, z, to_x, to_y, to_z) in enumerate(self._bounds[:among])
            if x < right and left < to_x and z < far and near < to_z and y < high and low < to_y
            if overlaps(box, self._solids[index])
        )
        return next(met, None)


def outside_by(solid: Solid) -> float:
    """How far a solid reaches beyond the arena's walls, in metres; 0.0 when it is inside."""
    x, z = _footprint(solid)
    return max(
        0.0,
        x - solid.center.x,
        z - solid.center.z,
        solid.center.x + x - ARENA_SIDE,
        solid.center.z + z - ARENA_SIDE,
    )


def covers(solid: Solid, point: Point) -> bool:
    """Whether a point is above, in or below a solid."""
    right, ahead = rotate(point.x - solid.center.x, point.z - solid.center.z, -solid.yaw)
    return abs(right) <= solid.half.x and abs(ahead) <= solid.half.z


def _bounds_meet(a: Solid, b: Solid) -> bool:
    """Whether the axis-aligned bounding boxes overlap: fast, and exact at right angles."""
    ax, az = _footprint(a)
    bx, bz = _footprint(b)
    return (
        abs(a.center.x - b.center.x) < ax + bx - _TOUCH
        and abs(a.center.z - b.center.z) < az + bz - _TOUCH
        and abs(a.center.y - b.center.y) < a.half.y + b.half.y - _TOUCH
    )


def _bounds(solid: Solid) -> tuple[float, float, float, float, float, float]:
    """Least x, y and z, and greatest x, y and z, in metres."""
    (x, y, z), height = solid.center, solid.half.y
    width, depth = _footprint(solid)
    return x - width, y - height, z - depth, x + width, y + height, z + depth


def _footprint(solid: Solid) -> tuple[float, float]:
    """Half extents in x and z of the axis-aligned bounding box."""
    if solid.shape == "sphere" or solid.yaw == 0.0:
        return solid.half.x, solid.half.z
    sin, cos = abs(scalars.sin(math.radians(solid.yaw))), abs(scalars.cos(math.radians(solid.yaw)))
    return solid.half.x * cos + solid.half.z * sin, solid.half.x * sin + solid.half.z * cos


def _beside(a: Solid, b: Solid) -> bool:
    """Whether a side separates the rectangles that two solids cover, seen from above.

    Together with the heights, which `_bounds_meet` compares, this is exact for boxes.
    """
    dx, dz = b.center.x - a.center.x, b.center.z - a.center.z
    turn = math.radians(b.yaw - a.yaw)
    sin, cos = abs(scalars.sin(turn)), abs(scalars.cos(turn))
    for first, second in ((a, b), (b, a)):
        right, ahead = rotate(dx, dz, -first.yaw)
        x, z = max(second.half.x, _THIN), max(second.half.z, _THIN)
        width = max(first.half.x, _THIN) + x * cos + z * sin
        depth = max(first.half.z, _THIN) + x * sin + z * cos
        if abs(right) >= width - _TOUCH or abs(ahead) >= depth - _TOUCH:
            return True
    return False


def _box_meets_sphere(box: Solid, sphere: Solid) -> bool:
    x, z = rotate(sphere.center.x - box.center.x, sphere.center.z - box.center.z, -box.yaw)
    local = (x, sphere.center.y - box.center.y, z)
    gaps = (max(0.0, abs(c) - h) for c, h in zip(local, box.half, strict=True))
    return sum(gap * gap for gap in gaps) < sphere.half.x * sphere.half.x


def _inside_shell(box: Solid, shell: Solid) -> bool:
    local = product(_world(box, "box")[0] - np.asarray(shell.center), _rotation(shell.yaw))
    # The lower half of a tunnel is under the floor, so only the arch can be met.
    radial = scalars.square(local[:, 0] / shell.half.x) + scalars.square(local[:, 1] / shell.half.y)
    return bool(np.all(radial <= SHELL_INNER * SHELL_INNER))


def _separable(a: tuple[Array, Array, Array], b: tuple[Array, Array, Array]) -> bool:
    """Whether a plane separates two convex bodies (separating axis theorem)."""
    crosses = np.cross(a[2][:, None, :], b[2][None, :, :]).reshape(-1, 3)
    axes = np.concatenate([a[1], b[1], crosses])
    lengths = np.linalg.norm(axes, axis=1)
    axes = axes[lengths > 1e-9] / lengths[lengths > 1e-9, None]
    on_a, on_b = product(a[0], axes.T), product(b[0], axes.T)
    gaps = np.maximum(on_a.min(0) - on_b.max(0), on_b.min(0) - on_a.max(0))
    return bool(np.any(gaps >= -_TOUCH))


def _rotation(yaw: float) -> Array:
    """Rotation matrix from local to world for column vectors; a row vector times it goes back."""
    sin, cos = scalars.sin(math.radians(yaw)), scalars.cos(math.radians(yaw))
    return np.array([[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]])


def _world(solid: Solid, shape: PartShape) -> tuple[Array, Array, Array]:
    """Vertices, face normals and edge directions in the arena's coordinate frame."""
    vertices, normals, edges = _unit(shape)
    half, turn = np.maximum(solid.half, _THIN), _rotation(solid.yaw).T
    return (
        product(vertices * half, turn) + np.asarray(solid.center),
        product(normals / half, turn),
        product(edges * half, turn),
    )


@cache
def _unit(shape: PartShape) -> tuple[Array, Array, Array]:
    """Vertices, face normals and edge directions of a shape with half extents 1."""
    axes = np.eye(3)
    if shape == "wedge":
        vertices = [(x, y, z) for x in (-1, 1) for y, z in ((-1, -1), (-1, 1), (1, 1))]
        normals, edges = [*axes, (0, 1, -1)], [*axes, (0, 1, 1)]
    elif shape == "shell":
        angles = [2 * math.pi * (i + 0.5) / _SHELL_FACES for i in range(_SHELL_FACES)]
        ring = [(scalars.cos(a), scalars.sin(a)) for a in angles]
        vertices = [(x, y, z) for x, y in ring for z in (-1, 1)]
        between = [a + math.pi / _SHELL_FACES for a in angles]
        normals = [axes[2], *((scalars.cos(a), scalars.sin(a), 0) for a in between)]
        edges = [axes[2], *((-scalars.sin(a), scalars.cos(a), 0) for a in between)]
    else:
        vertices = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
        normals, edges = [*axes], [*axes]
    return np.array(vertices, float), np.array(normals, float), np.array(edges, float)
