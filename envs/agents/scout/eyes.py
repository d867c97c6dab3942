"""What the camera shows of goals, lava and slopes: patches of their colours.

Goals shine by themselves, so their colour is the same from everywhere; behind glass it is paler.
"""

from __future__ import annotations

from functools import lru_cache
from math import degrees, hypot, radians
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.portable.compiled import asin, atan, tan
from animalcat.portable.products import product

if TYPE_CHECKING:
    Image = npt.NDArray[np.uint8]
    Codes = npt.NDArray[np.uint8]
    Numbers = npt.NDArray[np.int64]

GREEN: Final = 1
YELLOW: Final = 2
RED: Final = 3
ODD: Final = 4
"""Kinds of goals: green ones end the episode, yellow ones do not, red ones cost; others."""
PINK: Final = 5
"""The colour that slopes have by custom."""

_FIELD: Final = 100.0
"""Degrees that the camera shows, in both directions."""
_SEGMENTS: Final = (
    (GREEN, (188, 224, 138), (196, 216, 180)),
    (YELLOW, (245, 221, 104), (221, 215, 170)),
)
"""Codes of each kind, in the open and behind glass."""
_NEAR: Final = 13.0
"""How far from these a code may be."""
_BINS: Final = 32


class Patch(NamedTuple):
    """A patch of a goal's colour.

    Attributes:
        kind: Kind of goal.
        bearing: Degrees to the right of its middle.
        rise: Degrees by which its middle is above the horizon.
        bottom: The same for its lower edge.
        radius: Degrees: half of its greater extent.
        pixels: Its area.
        cut: Whether it reaches the image's edge.
    """

    kind: int
    bearing: float
    rise: float
    bottom: float
    radius: float
    pixels: int
    cut: bool


@lru_cache(maxsize=1)
def _kinds() -> Codes:
    """Kind of goal by colour, in bins of eight codes."""
    middle = (np.arange(_BINS) + 0.5) * (256 / _BINS)
    red, green, blue = np.meshgrid(middle, middle, middle, indexing="ij")
    codes = np.stack([red, green, blue], axis=-1)
    table = np.zeros((_BINS,) * 3, np.uint8)
    for kind, open_air, glass in _SEGMENTS:
        start, way = np.array(open_air, float), np.subtract(glass, open_air).astype(float)
        share = np.clip((product(codes - start, way)) / float(product(way, way)), 0.0, 1.0)
        off = np.linalg.norm(codes - (start + share[..., None] * way), axis=-1)
        table[off < _NEAR] = kind
    ball = (red > 215) & (green > 85) & (green < 140) & (np.abs(blue - green) < 25)
    table[ball] = RED
    table[(red > 1.7 * green) & (blue > 1.7 * green) & (red > 70) & (blue > 70)] = PINK
    return table


def find_patches(image: Image) -> list[Patch]:
    """The goals that an image shows.

    Args:
        image: (n, n, 3) uint8.
    """
    size = len(image)
    focal = size / 2 / tan(radians(_FIELD / 2))
    patches: list[Patch] = []
    for kind, left, right, top, low, pixels in _patches(image, _kinds()).tolist():
        wide, tall = (right + 1 - left) / 2, (low + 1 - top) / 2
        u, v = left + wide - size / 2, size / 2 - top - tall
        slant = hypot(focal, u)
        half = max(wide * focal / slant, tall) / hypot(slant, v)
        patches.append(
            Patch(
                kind,
                degrees(atan(u / focal)),
                degrees(atan(v / slant)),
                degrees(atan((size / 2 - low - 1) / slant)),
                degrees(asin(min(half, 0.99))),
                pixels,
                left == 0 or top == 0 or right == size - 1 or low == size - 1,
            )
        )
    return patches


def find_feet(image: Image, pink: bool) -> list[tuple[float, float, float]]:
    """Bearing and depression, in degrees, of the lowest pixel of pink, or of lava, by columns.

    The depression is that of the pixel's lower edge, and then that of its upper one.

    Args:
        image: (n, n, 3) uint8.
        pink: Whether slopes are looked for; otherwise lava, of which all pixels are given.
    """
    size = len(image)
    focal = size / 2 / tan(radians(_FIELD / 2))
    feet: list[tuple[float, float, float]] = []
    for column, row in _lowest(image, _kinds(), pink).tolist():
        u, v = column + 0.5 - size / 2, row + 1 - size / 2
        slant = hypot(focal, u)
        feet.append(
            (degrees(atan(u / focal)), degrees(atan(v / slant)), degrees(atan((v - 1) / slant)))
        )
    return feet


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _patches(image: Image, kinds: Codes) -> Numbers:
    """Kind, left, right, top and lower edge, and area of each patch of at least one pixel."""
    size = len(image)
    marks = np.zeros((size, size), np.uint8)
    for row in range(size):
        for column in range(size):
            kind = kinds[
                image[row, column, 0] >> 3, image[row, column, 1] >> 3, image[row, column, 2] >> 3
            ]
            if kind and kind != PINK:
                marks[row, column] = kind
    patches = np.empty((64, 6), np.int64)
    number = 0
    stack = np.empty(size * size, np.int64)
    for row in range(size):
        for column in range(size):
            kind = marks[row, column]
            if not kind:
                continue
            marks[row, column] = 0
            stack[0], used = row * size + column, 1
            left, right, top, low, pixels = column, column, row, row, 0
            while used > 0:
                used -= 1
                r, c = stack[used] // size, stack[used] % size
                pixels += 1
                left, right = min(left, c), max(right, c)
                top, low = min(top, r), max(low, r)
                for dr in range(-1, 2):
                    for dc in range(-1, 2):
                        a, b = r + dr, c + dc
                        if 0 <= a < size and 0 <= b < size and marks[a, b] == kind:
                            marks[a, b] = 0
                            stack[used] = a * size + b
                            used += 1
            if number < len(patches):
                patches[number, 0], patches[number, 1], patches[number, 2] = kind, left, right
                patches[number, 3], patches[number, 4], patches[number, 5] = top, low, pixels
                number += 1
    return patches[:number].copy()


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _lowest(image: Image, kinds: Codes, pink: bool) -> Numbers:
    """Column and row of pixels of pink (the lowest in every other column), or of lava (all)."""
    size = len(image)
    pixels = np.empty((size * size, 2), np.int64)
    number = 0
    for column in range(0, size, 2):
        for row in range(size - 1, size // 2, -1):
            red, green, blue = (
                np.int64(image[row, column, 0]),
                np.int64(image[row, column, 1]),
                np.int64(image[row, column, 2]),
            )
            if pink:
                if kinds[red >> 3, green >> 3, blue >> 3] == PINK:
                    pixels[number, 0], pixels[number, 1] = column, row
                    number += 1
                    break
            elif 110 < red < 150 and 35 < green < 75 and 28 < blue < 65:
                pixels[number, 0], pixels[number, 1] = column, row
                number += 1
    return pixels[:number].copy()
