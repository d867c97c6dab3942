"""The appearance of objects as arrays of bounding planes, ready for the camera."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import pi
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.catalogue import KINDS
from animalcat.arena_configs.looks import LOOKS, Piece
from animalcat.portable.products import length, product
from animalcat.portable.scalars import cos, sin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animalcat.arena_configs.catalogue import ObjectKind

    Floats = npt.NDArray[np.float32]
    Indices = npt.NDArray[np.int32]

ITSELF: Final = -1
"""A row that is drawn as the primitive it is."""
HIDDEN: Final = -2
"""A row that is not drawn: another row of its object has the look."""

_NAMES: Final = tuple(LOOKS)
_FLAT: Final = 1e-9


class Pieces(NamedTuple):
    """All looks. Piece p of look k has first[k] <= p < first[k + 1], its planes likewise.

    Attributes:
        middle: (k, 3) centre of the collider that carries a look, in the look's coordinate frame.
        half: (k, 3) that collider's half extents there.
        first: (k + 1,) pieces.
        bounds: (p, 2, 3) centre and half extents of a piece's bounding box.
        color: (p, 4) red, green, blue (sRGB; negative: the object's own) and opacity.
        first_plane: (p + 1,) planes.
        planes: (n, 4) outward normal and distance from the look's origin.
        rimmed: (p,) whether a box is lighter near the edges of its sides.
        panel: (p, 4) lower and upper y, least and greatest z of the picture on the face that looks
            along -x; all 0 if there is none.
    """

    middle: Floats
    half: Floats
    first: Indices
    bounds: Floats
    color: Floats
    first_plane: Indices
    planes: Floats
    rimmed: npt.NDArray[np.bool_]
    panel: Floats


def look_index(kind: ObjectKind, part: int) -> int:
    """What the row of one part of an object shows: a look, `ITSELF` or `HIDDEN`."""
    if kind.name not in LOOKS:
        return ITSELF
    return HIDDEN if part > 0 else _NAMES.index(kind.name)


@lru_cache(maxsize=1)
def pieces() -> Pieces:
    """The looks of the catalogue."""
    return assemble(LOOKS)


def assemble(looks: Mapping[str, tuple[Piece, ...]]) -> Pieces:
    """Convert looks, given by the name of their kind, to arrays in the same order."""
    middle: list[npt.NDArray[np.float64]] = []
    half: list[npt.NDArray[np.float64]] = []
    bounds: list[tuple[npt.NDArray[np.float64], ...]] = []
    color: list[tuple[float, ...]] = []
    planes: list[npt.NDArray[np.float64]] = []
    panel: list[tuple[float, ...]] = []
    first, first_plane = [0], [0]
    for name, look in looks.items():
        kind = KINDS[name]
        part = kind.parts[0]
        unit = np.multiply(kind.size_min, kind.ratio) if kind.fixed_size else np.ones(3)
        middle.append(np.multiply(part.center, unit))
        half.append(np.multiply(part.size, unit) / 2)
        for piece in look:
            corners = ring_corners(piece).reshape(-1, 3)
            low, high = corners.min(axis=0), corners.max(axis=0)
            bounds.append(((low + high) / 2, (high - low) / 2))
            color.append((*(piece.color or (-1.0, -1.0, -1.0)), piece.alpha))
            planes.append(_planes(piece))
            panel.append((*piece.panel.y, *piece.panel.z) if piece.panel else (0.0,) * 4)
            first_plane.append(first_plane[-1] + len(planes[-1]))
        first.append(len(bounds))
    return Pieces(
        np.array(middle, np.float32),
        np.array(half, np.float32),
        np.array(first, np.int32),
        np.array(bounds, np.float32),
        np.array(color, np.float32),
        np.array(first_plane, np.int32),
        np.concatenate(planes).astype(np.float32),
        np.array([piece.rimmed for look in looks.values() for piece in look], np.bool_),
        np.array(panel, np.float32),
    )


def ring_corners(piece: Piece) -> npt.NDArray[np.float64]:
    """Corners of a piece, (rings, sides, 3), in the look's coordinate frame."""
    angles = [(side + 0.5) * 2 * pi / piece.sides for side in range(piece.sides)]
    reach = 1 / cos(pi / piece.sides)
    return np.array(
        [
            [
                (r.x + reach * r.half_x * cos(a), r.y, r.z + reach * r.half_z * sin(a))
                for a in angles
            ]
            for r in piece.rings
        ]
    )


def _planes(piece: Piece) -> npt.NDArray[np.float64]:
    """(n, 4) outward unit normals and distances of a piece's faces."""
    corners = ring_corners(piece)
    faces = [(0.0, -1.0, 0.0, -piece.rings[0].y), (0.0, 1.0, 0.0, piece.rings[-1].y)]
    inside = corners.reshape(-1, 3).mean(axis=0)
    for low, high in pairwise(corners):
        for side in range(piece.sides):
            other = (side + 1) % piece.sides
            # The longer of the two edges: a ring may be a point.
            edges = (low[other] - low[side], high[other] - high[side])
            edge = max(edges, key=lambda e: float(product(e, e)))
            normal = np.cross(edge, high[side] - low[side])
            size = length(normal)
            if size < _FLAT:
                continue
            distance = float(product(normal, low[side]))
            # Outward: away from the middle.
            size = size if float(product(normal, inside)) <= distance else -size
            x, y, z = (normal / size).tolist()
            faces.append((x, y, z, distance / size))
    return np.array(faces)
