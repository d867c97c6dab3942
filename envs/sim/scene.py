"""What the sensors see of an arena: every visible primitive as a row of plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.signs import CLEAR, DARK, OWN
from animalcat.arena_configs.tags import LOGGED_TAGS, UNLISTED
from animalcat.envs.sim.looks import ITSELF

if TYPE_CHECKING:
    from collections.abc import Sequence

_PIXELS: Final = {CLEAR: 0, DARK: 1, OWN: 2}


class Shape(IntEnum):
    """The primitives a sensor can intersect: the values of `Scene.kind`."""

    BOX = 0
    SPHERE = 1
    WEDGE = 2
    SHELL = 3


class Style(IntEnum):
    """How the camera shades a primitive: the values of `Scene.style`."""

    PLAIN = 0
    ZONE = 1
    EMISSIVE = 2
    TRANSPARENT = 3
    DECAYING = 4
    RIPENING = 5
    RED = 6
    GREY = 7
    GLOWING = 8


def tag_index(tag: str) -> int:
    """Index of a tag in `LOGGED_TAGS`, or `UNLISTED`."""
    return LOGGED_TAGS.index(tag) if tag in LOGGED_TAGS else UNLISTED


@dataclass(frozen=True, slots=True)
class Primitive:
    """One row of a scene, before it becomes arrays.

    Attributes:
        shape: Its shape.
        center: Its centre in metres, in Unity's coordinate frame.
        half: Half extents in metres; a sphere's radius first; a shell's outer radii along x and y
            and its half length along z.
        color: Red, green, blue, alpha, 0 to 1, sRGB.
        rotation: Rows of the matrix from local to world coordinates.
        tag: Index in `LOGGED_TAGS`.
        style: How the camera shades it.
        zone: Whether bodies pass through it, so that a sensor may start inside.
        look: What the camera draws in its place, see `looks`.
        picture: Rows of the picture that its look carries, see `arena_configs.signs.Picture`.
    """

    shape: Shape
    center: tuple[float, float, float]
    half: tuple[float, float, float]
    color: tuple[float, float, float, float] = (0.5, 0.5, 0.5, 1.0)
    rotation: tuple[tuple[float, float, float], ...] = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
    tag: int = UNLISTED
    style: Style = Style.PLAIN
    zone: bool = False
    look: int = ITSELF
    picture: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """Everything a sensor can see but the floor, the fence and the arena's four walls.

    The arrays are written in place as bodies move; a row keeps its place while its object lives.
    All are C-contiguous, n rows, Unity frame (x right, y up, z forward), metres.

    Attributes:
        kind: (n,) uint8, a `Shape`.
        center: (n, 3) float32.
        rotation: (n, 3, 3) float32, local to world.
        half: (n, 3) float32 half extents; a sphere's radius in column 0; a shell's (a hollow
            cylinder along local z) outer radius x, outer radius y, half length. A wedge is the
            half of its box whose height falls linearly from full at local -z to 0 at local +z.
        tag: (n,) int8, index in `LOGGED_TAGS` or `UNLISTED`.
        color: (n, 4) float32 red, green, blue, alpha, 0 to 1, sRGB. Alpha of a ball that decays
            or ripens is the share of its change that is still to come; it is solid.
        style: (n,) uint8, a `Style`.
        active: (n,) bool; False once the object is collected.
        overlap_ok: (n,) bool; True for zones, inside which a sensor may start.
        look: (n,) int8; what the camera draws in the row's place, see `looks`.
        picture: (n, 3) int32; the picture that the look carries: its first pixel, rows (0: none)
            and columns.
        pixels: (m,) uint8 of all pictures, row by row: 0 clear, 1 dark, 2 of the row's colour.
    """

    kind: npt.NDArray[np.uint8]
    center: npt.NDArray[np.float32]
    rotation: npt.NDArray[np.float32]
    half: npt.NDArray[np.float32]
    tag: npt.NDArray[np.int8]
    color: npt.NDArray[np.float32]
    style: npt.NDArray[np.uint8]
    active: npt.NDArray[np.bool_]
    overlap_ok: npt.NDArray[np.bool_]
    look: npt.NDArray[np.int8]
    picture: npt.NDArray[np.int32]
    pixels: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, primitives: Sequence[Primitive]) -> Self:
        """Make a scene of these primitives, in this order, all active."""
        n = len(primitives)
        picture, pixels = _pictures(primitives)
        return cls(
            kind=np.array([p.shape for p in primitives], np.uint8),
            center=np.array([p.center for p in primitives], np.float32).reshape(n, 3),
            rotation=np.array([p.rotation for p in primitives], np.float32).reshape(n, 3, 3),
            half=np.array([p.half for p in primitives], np.float32).reshape(n, 3),
            tag=np.array([p.tag for p in primitives], np.int8),
            color=np.array([p.color for p in primitives], np.float32).reshape(n, 4),
            style=np.array([p.style for p in primitives], np.uint8),
            active=np.ones(n, np.bool_),
            overlap_ok=np.array([p.zone for p in primitives], np.bool_),
            look=np.array([p.look for p in primitives], np.int8),
            picture=picture,
            pixels=pixels,
        )

    def extended(self, primitives: Sequence[Primitive]) -> Scene:
        """Copy this scene with more rows after its own."""
        more = Scene.of(primitives)
        more.picture[:, 0] += len(self.pixels)
        names = [field.name for field in fields(Scene)]
        return Scene(
            **{name: np.concatenate([getattr(self, name), getattr(more, name)]) for name in names}
        )

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.kind)


def _pictures(
    primitives: Sequence[Primitive],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """`Scene.picture` and `Scene.pixels` of these primitives."""
    table = np.zeros((len(primitives), 3), np.int32)
    pixels: list[int] = []
    for row, primitive in enumerate(primitives):
        if primitive.picture:
            lines = primitive.picture
            table[row] = len(pixels), len(lines), len(lines[0])
            pixels.extend(_PIXELS[square] for line in lines for square in line)
    return table, np.array(pixels, np.uint8)
