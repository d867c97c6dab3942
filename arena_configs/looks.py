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

# Housings, after their camera images, which show the side of +x: a foot and a lid, and between them
# glass on all sides with a door frame right behind it. Metres.
_FOOT: Final = 0.81
_BODY: Final = 0.733
_BEHIND: Final = _BODY - 0.02
_SHEET: Final = 0.02
_DOOR: Final = 0.518
_DOOR_TOP: Final = 1.129
_DOOR_BAR: Final = 0.086


def _block(half: float, y: tuple[float, float]) -> Piece:
    """A square block in the middle, of the object's own colour."""
    return _slab((-half, half), y, (-half, half))


def _glass(y: tuple[float, float]) -> tuple[Piece, ...]:
    """Four panes; what stands inside is seen through one, what stands behind through two."""
    pane, span, gap = (_BODY - _SHEET, _BODY), (-_BODY, _BODY), (_SHEET - _BODY, _BODY - _SHEET)
    white = (0.975, 0.975, 0.975)  # as camera images show it
    back = (-pane[1], -pane[0])
    return (
        _slab(pane, y, span, white, _GLASS),
        _slab(back, y, span, white, _GLASS),
        _slab(gap, y, pane, white, _GLASS),
        _slab(gap, y, back, white, _GLASS),
    )


def _door(foot: float) -> tuple[Piece, ...]:
    """The frame of the door: a bar on two posts."""
    x = (_BEHIND - 0.06, _BEHIND - 0.01)
    inner, post = _DOOR - _DOOR_BAR, (foot, _DOOR_TOP - _DOOR_BAR)
    return (
        _slab(x, (_DOOR_TOP - _DOOR_BAR, _DOOR_TOP), (-_DOOR, _DOOR)),
        _slab(x, post, (-_DOOR, -inner)),
        _slab(x, post, (inner, _DOOR)),
    )


_DISPENSER: Final = (
    _block(_FOOT, (0.0, 0.225)),
    _block(_BODY, (0.225, 0.741)),
    *_door(0.741),
    # The chute from which the goals fall.
    _slab((_BEHIND - 0.06, _BEHIND - 0.01), (3.23, 3.632), (-0.65, 0.65)),
    _block(_BODY, (3.632, 4.16)),
    _block(_FOOT, (4.16, 4.417)),
    *_glass((0.741, 3.632)),
)
_CONTAINER: Final = (
    _block(_FOOT, (0.0, 0.225)),
    _block(_BODY, (0.225, 0.352)),
    *_door(0.352),
    _block(_FOOT, (1.38, 1.637)),
    *_glass((0.352, 1.38)),
)

# A pillar with cap and foot, and a box with the button on the side of +x.
_ASIDE: Final = -0.205
"""Metres in z by which the camera image shows the pillar beside its object's position."""


def _post(half: float, y: tuple[float, float]) -> Piece:
    return _slab((-half, half), y, (_ASIDE - half, _ASIDE + half))


_BUTTON: Final = (
    _post(0.205, (0.0, 0.254)),
    _post(0.114, (0.254, 1.302)),
    _post(0.205, (1.302, 1.576)),
    _post(0.293, (0.572, 1.07)),
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
        "SpawnerDispenserTall": _DISPENSER,
        "SpawnerContainerShort": _CONTAINER,
        "SpawnerButton": _BUTTON,
        "HollowBox": _CARTON,
        "SignBoard": _SIGN,
    }
)
"""Name of a kind -> its pieces, in the object's own coordinate frame, which is that of
`ObjectKind.parts` but in metres if the size is fixed."""
