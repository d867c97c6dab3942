"""The appearance of objects that are meshes in the real build, as a few convex solids.

Bodies and rays use the colliders of the catalogue; these solids are only drawn. The tree is fitted
to a camera image of the real build. The others follow the transforms in their prefabs and the
documented extents, and what those leave open is a guess (docs/design/sensors.md says which).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from animalcat.arena_configs.catalogue import HATCH_HEIGHT, HOUSING_WALL

Color = tuple[float, float, float]

REVISION: Final = "2"
"""Raised whenever the simulator's camera draws anything otherwise. Recordings keep it, so that the
digests of images that other rules drew are not said to differ; those without one have 1."""

_GLASS: Final = 0.25
"""Opacity of the spawners' perspex."""


class Ring(NamedTuple):
    """A regular polygon at some height of an object's own coordinate frame.

    Attributes:
        y: Height.
        x: x of the middle.
        z: z of the middle.
        half_x: Half extent in x, to the middle of a side.
        half_z: Half extent in z. All rings of a piece have the same ratio of the two, so that the
            faces between them are flat.
    """

    y: float
    x: float
    z: float
    half_x: float
    half_z: float


class Panel(NamedTuple):
    """Where a piece carries the picture of its object, on the face that looks along -x.

    A reader looks along +x, with +z on the left.

    Attributes:
        y: Lower and upper edge.
        z: Right and left edge.
    """

    y: tuple[float, float]
    z: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Piece:
    """A convex solid between polygons, one above the other.

    Attributes:
        rings: From the lowest to the highest.
        sides: Corners of each ring; 4 makes boxes and pyramids.
        color: Its colour (sRGB, 0 to 1), or None for the object's own.
        alpha: Opacity.
        panel: Where its object's picture is on it, if it carries one.
    """

    rings: tuple[Ring, ...]
    sides: int = 4
    color: Color | None = None
    alpha: float = 1.0
    panel: Panel | None = None


def _slab(
    x: tuple[float, float],
    y: tuple[float, float],
    z: tuple[float, float],
    color: Color | None = None,
    alpha: float = 1.0,
) -> Piece:
    """A box between these bounds."""
    middle_x, middle_z = (x[0] + x[1]) / 2, (z[0] + z[1]) / 2
    half_x, half_z = (x[1] - x[0]) / 2, (z[1] - z[0]) / 2
    rings = (Ring(level, middle_x, middle_z, half_x, half_z) for level in y)
    return Piece(tuple(rings), color=color, alpha=alpha)


def _round(sides: int, color: Color, *rings: tuple[float, float, float, float]) -> Piece:
    """A solid of round rings: height, x, z, radius."""
    return Piece(tuple(Ring(y, x, z, r, r) for y, x, z, r in rings), sides, color)


# As the camera image shows them under the same light: their material also reflects the sky.
_TRUNK: Final = (130 / 255, 84 / 255, 59 / 255)
_LEAVES: Final = (108 / 255, 167 / 255, 37 / 255)
_TREE: Final = (
    _round(7, _TRUNK, (0.0, 0.0, 0.0, 0.48), (0.34, 0.1, 0.0, 0.21)),
    _round(7, _TRUNK, (0.3, 0.1, 0.0, 0.21), (2.6, 0.2, 0.0, 0.17)),
    _round(
        8,
        _LEAVES,
        (2.05, 0.16, 0.0, 0.1),
        (3.0, 0.2, 0.0, 1.75),
        (4.05, 0.33, 0.0, 2.5),
        (5.31, -0.02, 0.0, 1.95),
        (5.93, 0.72, 0.0, 0.2),
    ),
)

_HALF: Final = 0.835
"""Half the width of the spawners that are boxes, metres."""
_SHEET: Final = HOUSING_WALL


def _cabinet(height: float) -> tuple[Piece, ...]:
    """A housing whose front (+z) is perspex above the hatch, which is a separate collider."""
    inner, front = _HALF - _SHEET, (_HALF - _SHEET, _HALF)
    full, span, gap = (0.0, height), (-_HALF, _HALF), (-inner, inner)
    return (
        _slab(span, full, (-_HALF, -inner)),
        _slab((-_HALF, -inner), full, (-inner, _HALF)),
        _slab((inner, _HALF), full, (-inner, _HALF)),
        _slab(gap, (height - _SHEET, height), (-inner, _HALF)),
        _slab(gap, (HATCH_HEIGHT, HATCH_HEIGHT + _SHEET), front),
        _slab(gap, (HATCH_HEIGHT + _SHEET, height - _SHEET), front, (1.0, 1.0, 1.0), _GLASS),
    )


_BUTTON: Final = (
    _slab((-0.25, 0.25), (0.0, 1.3), (-0.32, 0.32)),
    _slab((0.25, 0.3), (0.34, 0.84), (-0.29, 0.29)),
    _slab((0.3, 0.35), (0.53, 0.84), (-0.16, 0.16), (0.55, 0.8, 0.95)),
)

_BROWN: Final = (125 / 255, 96 / 255, 73 / 255)
# The face looks along -x: in the documentation's example an agent at x 10 reads signs at x 20.
_WHITE: Final = (237 / 255, 232 / 255, 237 / 255)
_PANEL: Final = Panel((0.23, 1.77), (-0.77, 0.77))
_SIGN: Final = (
    _slab((-0.03, 0.05), (0.0, 2.0), (-1.5, 1.5), _BROWN),
    replace(_slab((-0.05, -0.03), (0.0, 2.0), (-1.5, 1.5), _WHITE), panel=_PANEL),
)
_WALL: Final = 0.06
_CARTON: Final = (
    _slab((-1.06, 1.03), (0.0, 0.06), (-1.0, 1.04)),
    _slab((-1.06, -1.06 + _WALL), (0.0, 1.71), (-1.0, 1.04)),
    _slab((1.03 - _WALL, 1.03), (0.0, 1.71), (-1.0, 1.04)),
    _slab((-1.06, 1.03), (0.0, 1.71), (-1.0, -1.0 + _WALL)),
    _slab((-1.06, 1.03), (0.0, 1.71), (1.04 - _WALL, 1.04)),
)

LOOKS: Final[Mapping[str, tuple[Piece, ...]]] = MappingProxyType(
    {
        "SpawnerTree": _TREE,
        "SpawnerDispenserTall": _cabinet(4.46),
        "SpawnerContainerShort": _cabinet(1.67),
        "SpawnerButton": _BUTTON,
        "HollowBox": _CARTON,
        "SignBoard": _SIGN,
    }
)
"""Name of a kind -> its pieces, in the object's own coordinate frame, which is that of
`ObjectKind.parts` but in metres if the size is fixed."""
