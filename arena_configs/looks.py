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

Color = tuple[float, float, float]

REVISION: Final = "3"
"""Raised whenever the simulator's camera draws anything otherwise. Recordings keep it, so that the
digests of images that other rules drew are not said to differ."""

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
        rimmed: Whether it is a box that is lighter near the edges of its sides.
        panel: Where its object's picture is on it, if it carries one.
    """

    rings: tuple[Ring, ...]
    sides: int = 4
    color: Color | None = None
    alpha: float = 1.0
    rimmed: bool = False
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
        (2.18, 0.1, 0.12, 0.17),
        (2.72, 0.26, 0.26, 1.24),
        (3.11, 0.2, 0.27, 1.83),
        (3.46, 0.15, 0.2, 2.3),
        (4.0, 0.28, -0.07, 2.53),
        (5.08, 0.09, 0.03, 2.2),
        (5.4, 0.09, -0.15, 1.82),
        (6.01, 0.9, 0.0, 0.15),
    ),
)

# Housings, after their camera images: a foot and a lid of the object's colour, hollow below and
# above the glass, and glass on all sides. The images show the side of +x; in the opposite side they
# show, behind one pane, the frame of a door that is just wide enough for a goal. Metres.
_FOOT: Final = 0.813
_BODY: Final = 0.733
_SHEET: Final = 0.02
_WALL: Final = 0.08
_DOOR: Final = 0.5
_DOOR_TOP: Final = 1.137
_DOOR_BAR: Final = 0.1
_GLASS_COLOR: Final = (0.975, 0.975, 0.975)  # as camera images show it


def _block(half: float, y: tuple[float, float]) -> Piece:
    """A square block in the middle, of the object's own colour."""
    return _slab((-half, half), y, (-half, half))


def _storey(
    half: float,
    y: tuple[float, float],
    thick: float = _WALL,
    color: Color | None = None,
    alpha: float = 1.0,
) -> tuple[Piece, ...]:
    """Four walls round a square, without what lies in the door."""
    inner = half - thick
    side, other, deep = (inner, half), (-half, -inner), (-half, inner)
    low, high = min(y[1], _DOOR_TOP), max(y[0], _DOOR_TOP)
    bounds = [
        (side, y, (-half, half)),
        (deep, y, side),
        (deep, y, other),
        (other, (y[0], low), (-inner, -_DOOR)),
        (other, (y[0], low), (_DOOR, inner)),
        (other, (high, y[1]), (-inner, inner)),
    ]
    return tuple(_slab(x, y, z, color, alpha) for x, y, z in bounds if y[0] < y[1])


def _glass(y: tuple[float, float]) -> tuple[Piece, ...]:
    """Panes; what stands inside is seen through one, what stands behind through two."""
    return _storey(_BODY, y, _SHEET, _GLASS_COLOR, _GLASS)


def _door(foot: float) -> tuple[Piece, ...]:
    """The frame of the door: a bar on two posts."""
    x = (_SHEET + 0.01 - _BODY, _SHEET + 0.05 - _BODY)
    out, post = _DOOR + _DOOR_BAR, (foot, _DOOR_TOP)
    return (
        _slab(x, (_DOOR_TOP, _DOOR_TOP + _DOOR_BAR), (-out, out)),
        _slab(x, post, (-out, -_DOOR)),
        _slab(x, post, (_DOOR, out)),
    )


_DISPENSER: Final = (
    *_storey(_FOOT, (-0.02, 0.235)),
    *_storey(_BODY, (0.235, 0.741)),
    *_door(0.741),
    *_storey(_BODY, (3.632, 4.16), _SHEET),
    _block(_FOOT, (4.16, 4.417)),
    *_glass((0.741, 3.632)),
)
_CONTAINER: Final = (
    *_storey(_FOOT, (-0.02, 0.235)),
    *_storey(_BODY, (0.235, 0.352)),
    *_door(0.352),
    *_storey(_FOOT, (1.37, 1.5), 2 * _WALL),
    _block(_FOOT, (1.5, 1.637)),
    *_glass((0.352, 1.37)),
)

# A pillar with cap and foot, and a box with the button on the side of +x.
_ASIDE: Final = -0.205
"""Metres in z by which the camera image shows the pillar beside its object's position."""


def _post(half: float, y: tuple[float, float]) -> Piece:
    return _slab((-half, half), y, (_ASIDE - half, _ASIDE + half))


_BUTTON: Final = (
    _post(0.205, (0.0, 0.254)),
    _post(0.114, (0.254, 1.34)),
    _post(0.205, (1.34, 1.576)),
    _post(0.293, (0.59, 1.07)),
    _slab(
        (0.293, 0.343),
        (0.662, 0.976),
        (_ASIDE - 0.157, _ASIDE + 0.157),
        (37 / 255, 190 / 255, 230 / 255),
    ),
)

_BROWN: Final = (125 / 255, 96 / 255, 73 / 255)
# The face looks along -x: in the documentation's example an agent at x 10 reads signs at x 20.
_WHITE: Final = (237 / 255, 232 / 255, 237 / 255)
_PANEL: Final = Panel((0.23, 1.77), (-0.77, 0.77))
_SIGN: Final = (
    _slab((-0.03, 0.05), (0.0, 2.0), (-1.5, 1.5), _BROWN),
    replace(_slab((-0.05, -0.03), (0.0, 2.0), (-1.5, 1.5), _WHITE), panel=_PANEL),
)
# The mesh of the carton is a cube of 2 cm, drawn 110 times as large as its object.
_CARTON_HALF: Final = 1.1
_CARTON_WALL: Final = 0.06
_CARTON: Final = (
    _block(_CARTON_HALF, (0.0, _CARTON_WALL)),
    *(
        _slab(x, (_CARTON_WALL, 2 * _CARTON_HALF), z)
        for x, z in (
            ((-_CARTON_HALF, _CARTON_WALL - _CARTON_HALF), (-_CARTON_HALF, _CARTON_HALF)),
            ((_CARTON_HALF - _CARTON_WALL, _CARTON_HALF), (-_CARTON_HALF, _CARTON_HALF)),
            ((-_CARTON_HALF, _CARTON_HALF), (-_CARTON_HALF, _CARTON_WALL - _CARTON_HALF)),
            ((-_CARTON_HALF, _CARTON_HALF), (_CARTON_HALF - _CARTON_WALL, _CARTON_HALF)),
        )
    ),
)


def _bars(*x_and_z: tuple[float, float, float, float]) -> tuple[Piece, ...]:
    """Rimmed boxes of 1 m height: the least and the greatest x, the same of z."""
    return tuple(
        replace(_slab((x0, x1), (-0.5, 0.5), (z0, z1)), rimmed=True) for x0, x1, z0, z1 in x_and_z
    )


LOOKS: Final[Mapping[str, tuple[Piece, ...]]] = MappingProxyType(
    {
        "UBlock": _bars((-0.5, 0.5, -6.0, 6.0), (0.5, 2.5, -6.0, -5.0), (0.5, 2.5, 5.0, 6.0)),
        "LBlock": _bars((-0.5, 0.5, -6.0, 5.0), (0.5, 2.5, -6.0, -5.0)),
        "JBlock": _bars((-0.5, 0.5, -6.0, 5.0), (-2.5, -0.5, -6.0, -5.0)),
        "SpawnerTree": _TREE,
        "SpawnerDispenserTall": _DISPENSER,
        "SpawnerContainerShort": _CONTAINER,
        "SpawnerButton": _BUTTON,
        "HollowBox": _CARTON,
        "SignBoard": _SIGN,
    }
)
"""Name of a kind -> its pieces, in the object's own coordinate frame, which is that of
`ObjectKind.parts` but in metres if the size is fixed."""
