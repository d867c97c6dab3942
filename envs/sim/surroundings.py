"""Draws what surrounds every arena as the real build shows it: sky, fence and tiled floor."""

from __future__ import annotations

from functools import lru_cache
from math import floor, inf, radians
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.portable.compiled import cos, sin

if TYPE_CHECKING:
    Floats = npt.NDArray[np.float32]

FLOOR: Final = -0.01
"""Metres: height of the floor's top."""

# Numbers below were fitted to camera images of the real build (Linux, 4.x); colours are
# linear light.
# Where the sun stands; the sky's brightness follows the Rayleigh phase 0.75 (1 + cos^2) round it.
_SUN: Final = (0.322, 0.765, -0.557)
# Light of the sky over that phase, by the height of the direction (0: horizon, 1: zenith).
_SKY_HEIGHTS: Final = (0.10, 0.18, 0.22, 0.26, 0.30, 0.38, 0.46, 0.54, 0.62, 0.70, 0.78)
_SKY: Final = (
    (0.520, 0.750, 0.950),
    (0.420, 0.632, 0.883),
    (0.376, 0.575, 0.836),
    (0.337, 0.522, 0.790),
    (0.297, 0.467, 0.743),
    (0.245, 0.393, 0.660),
    (0.210, 0.341, 0.594),
    (0.184, 0.301, 0.537),
    (0.159, 0.263, 0.481),
    (0.143, 0.237, 0.441),
    (0.128, 0.212, 0.402),
)
# Fence: three 14 m panels a side behind posts, seen from inside from left to right; metres. Columns
# were read from the back and both sides of the real frames, which agree.
_SIDE: Final = 42.0
_PANEL: Final = 14.0
_FENCE_PICKETS: Final = 0.375
_FENCE_POST: Final = 0.0
_PICKET_TOP: Final = 5.99
_POST_TOP: Final = 7.08
_POST_MIDDLE: Final = 13.07
_POST_HALF: Final = 1.05
# How far the side of a post is seen beyond its front, towards the middle panel.
_POST_SIDE: Final = 0.28
_FENCE: Final = (0.389, 0.503, 0.611)
_FENCE_EAST: Final = (0.004, 0.005, 0.019)
_FENCE_NORTH: Final = (-0.018, -0.035, -0.059)
# Gaps between pickets: where the left slope begins, the dark slit, and where the right slope ends.
_OUTER_GAPS: Final = (
    (1.70, 1.80, 1.90, 2.05),
    (2.65, 2.75, 2.80, 2.90),
    (3.60, 3.65, 3.70, 3.85),
    (4.65, 4.70, 4.80, 4.90),
    (5.75, 5.85, 5.95, 6.00),
    (6.90, 6.95, 7.05, 7.15),
    (7.95, 8.05, 8.15, 8.25),
    (9.00, 9.10, 9.20, 9.25),
    (9.95, 10.05, 10.15, 10.20),
    (10.95, 11.00, 11.10, 11.20),
    (11.95, 12.05, 12.10, 12.20),
    (12.80, 12.80, 12.80, 12.90),
)
_MIDDLE_GAPS: Final = (
    (1.90, 1.95, 2.05, 2.20),
    (2.75, 2.85, 2.90, 2.95),
    (3.75, 3.80, 3.90, 3.95),
    (4.75, 4.75, 4.85, 5.00),
    (5.75, 5.85, 5.95, 6.00),
    (6.85, 6.95, 7.05, 7.15),
    (8.00, 8.00, 8.15, 8.20),
    (8.95, 9.00, 9.10, 9.25),
    (9.95, 10.00, 10.10, 10.15),
    (10.80, 10.90, 10.95, 11.10),
    (11.80, 11.90, 12.00, 12.10),
    (12.65, 12.70, 12.75, 12.80),
)
_SLOPE_LIGHT: Final = 0.9
_SLIT_LIGHT: Final = 0.75
_CELLS: Final = 20
"""Cells a metre in which the fence's columns are told apart."""
# Two rails, round: heights, half thicknesses, and light over the fence's by the place q on them, -1
# below to 1 above, as a + b q + c q^2.
_RAILS: Final = ((1.105, 0.15), (4.745, 0.16))
_RAIL_LIGHT: Final = ((0.99, 0.05, -0.07), (1.0, 0.16, -0.08), (1.0, 0.32, -0.04))
# The upper edge of the pickets.
_EDGE: Final = 0.085
_EDGE_LIGHT: Final = (0.93, 1.03, 1.2)

# Floor: bricks in running bond from the corner (-1, -1).
_BRICK_X: Final = 1.05
_BRICK_Z: Final = 0.7
_BRICK: Final = (0.222, 0.202, 0.121)
# The texture repeats every 8.4 m: brightness of each of its bricks in percent of `_BRICK`, the
# median over what frames of the real build show of it; 12 courses of 8 bricks.
_BRIGHTNESS: Final = (
    (100, 105, 114, 99, 103, 89, 105, 97),
    (115, 94, 121, 93, 102, 102, 89, 93),
    (117, 114, 98, 120, 96, 109, 90, 93),
    (106, 81, 121, 100, 102, 103, 99, 89),
    (102, 102, 114, 126, 96, 98, 84, 89),
    (88, 107, 126, 116, 116, 101, 98, 88),
    (92, 81, 81, 92, 93, 93, 110, 111),
    (109, 118, 98, 101, 127, 130, 92, 90),
    (100, 110, 81, 116, 121, 103, 98, 93),
    (120, 94, 124, 106, 92, 105, 118, 122),
    (101, 92, 94, 105, 103, 107, 113, 113),
    (98, 112, 94, 96, 100, 109, 95, 88),
)
_JOINT: Final = (0.75, 0.62, 0.45)
_JOINT_HALF: Final = 0.011
_COUNT: Final = 64
"""Courses, and bricks of a course, that are told apart; a power of two, and more than there are."""


@lru_cache(maxsize=8)
def sky_light(resolution: int, focal: float) -> tuple[Floats, Floats]:
    """What the sky needs of each pixel of a level camera.

    Returns:
        (n, n) 1 / length of the pixel's direction, which is 1 long ahead; (n, n, 3) the sky's
        light there over the phase.
    """
    across = (np.arange(resolution) + 0.5 - resolution / 2) / focal
    shortening = 1.0 / np.sqrt(1.0 + across[None, :] ** 2 + across[:, None] ** 2)
    height = -across[:, None] * shortening
    sky = np.stack(
        [np.interp(height, _SKY_HEIGHTS, channel) for channel in zip(*_SKY, strict=True)], axis=-1
    )
    return shortening.astype(np.float32), sky.astype(np.float32)


@lru_cache(maxsize=1)
def brick_shades() -> npt.NDArray[np.float64]:
    """By how much each brick is brighter than the mean, as a share, course by course."""
    number = np.arange(_COUNT)
    tile = np.array(_BRIGHTNESS) / 100.0 - 1.0
    return tile[number[:, None] % tile.shape[0], number[None, :] % tile.shape[1]].ravel()


@lru_cache(maxsize=1)
def picket_shades() -> npt.NDArray[np.float64]:
    """Light of a side of the fence over its plain light, cell by cell from the left, no posts."""
    cells = np.ones(round(_SIDE * _CELLS) + 1)
    for panel, gaps in enumerate((_OUTER_GAPS, _MIDDLE_GAPS, _OUTER_GAPS)):
        for gap in gaps:
            left, dark, light, right = (round((panel * _PANEL + at) * _CELLS) for at in gap)
            cells[left:right] = _SLOPE_LIGHT
            cells[dark:light] = _SLIT_LIGHT
    return cells


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def clear_depth(y: float, resolution: int, focal: float) -> Floats:
    """(n, n) depth of the floor seen from height y, infinite where it is not seen."""
    depth = np.empty((resolution, resolution), np.float32)
    for row in range(resolution):
        at = (FLOOR - y) / ((resolution / 2 - row - 0.5) / focal)
        depth[row] = at if at > 0.0 else inf
    return depth


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def draw_surroundings(
    x: float,
    y: float,
    z: float,
    yaw: float,
    focal: float,
    shortening: Floats,
    sky: Floats,
    shades: npt.NDArray[np.float64],
    pickets: npt.NDArray[np.float64],
    light: Floats,
    depth: Floats,
) -> None:
    """Fill floor, fence and sky in wherever `depth` says that no primitive stands before them.

    x, y, z is the eye in metres, yaw its heading in degrees, focal the pixels per unit of slope;
    `shortening` and `sky` come from `sky_light`, `shades` from `brick_shades`, `pickets` from
    `picket_shades`, `depth` from `clear_depth`, less where primitives were drawn. `light`,
    (n, n, 3) and linear, is written.
    """
    n = len(depth)
    fence = _look_at_fence(x, z, yaw, focal, n, pickets)
    brick, joint = np.empty(n, np.int32), np.empty(n, np.bool_)
    for row in range(n):
        v = (n / 2 - row - 0.5) / focal
        floor_at = inf
        if v * (FLOOR - y) > 0.0:
            floor_at = (FLOOR - y) / v
            _look_at_bricks(x, z, fence[0], fence[1], floor_at, brick, joint)
            # The floor's pattern fades where a pixel covers more than a brick.
            footprint = floor_at * floor_at / (focal * max(y - FLOOR, 0.05))
            spread = min(1.0, 0.4 * _BRICK_Z / footprint)
            clear = min(1.0, 2.0 * _JOINT_HALF / footprint)
            _draw_floor(
                floor_at, fence[2], shades, spread, clear, brick, joint, light[row], depth[row]
            )
        _draw_fence_and_sky(
            y, v, floor_at, fence, shortening[row], sky[row], light[row], depth[row]
        )


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _draw_floor(
    floor_at: float,
    fence_at: npt.NDArray[np.float64],
    shades: npt.NDArray[np.float64],
    spread: float,
    clear: float,
    brick: npt.NDArray[np.int32],
    joint: npt.NDArray[np.bool_],
    light: Floats,
    depth: Floats,
) -> None:
    """Draw the floor in a row, up to the fence."""
    dark_red = 1.0 - clear * (1.0 - _JOINT[0])
    dark_green = 1.0 - clear * (1.0 - _JOINT[1])
    dark_blue = 1.0 - clear * (1.0 - _JOINT[2])
    covered = np.float32(floor_at)
    for column in range(len(depth)):
        if depth[column] < covered or floor_at >= fence_at[column]:
            continue
        bright = 1.0 + spread * shades[brick[column]]
        red, green, blue = _BRICK[0] * bright, _BRICK[1] * bright, _BRICK[2] * bright
        if joint[column]:
            red, green, blue = red * dark_red, green * dark_green, blue * dark_blue
        light[column, 0], light[column, 1], light[column, 2] = red, green, blue


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _draw_fence_and_sky(
    y: float,
    v: float,
    floor_at: float,
    fence: npt.NDArray[np.float64],
    shortening: Floats,
    sky: Floats,
    light: Floats,
    depth: Floats,
) -> None:
    """Draw what is beyond the floor in a row, by the columns of `_look_at_fence`."""
    dx, dz, at, top, east, north, shade, railed = fence
    covered = np.float32(floor_at)
    for column in range(len(depth)):
        if depth[column] < covered or floor_at < at[column]:
            continue
        height = y + v * at[column]
        if height > top[column]:
            sun = dx[column] * _SUN[0] + dz[column] * _SUN[2]
            c = (sun + v * _SUN[1]) * shortening[column]
            phase = 0.75 + 0.75 * c * c
            for channel in range(3):
                light[column, channel] = sky[column, channel] * phase
        else:
            _fence_light(
                height, east[column], north[column], shade[column], railed[column] > 0.0,
                light[column],
            )  # fmt: skip


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _look_at_fence(
    x: float, z: float, yaw: float, focal: float, n: int, pickets: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """(8, n), for each column: its pixels lie in one upright plane and meet the fence at one depth.

    Its direction's x and z, 1 long ahead; the fence's depth and top there, its normal's x and z,
    its light over the plain one, and whether it has rails there (1) or is a post (0).
    """
    sin_yaw, cos_yaw = sin(radians(yaw)), cos(radians(yaw))
    columns = np.empty((8, n))
    for column in range(n):
        u = (column + 0.5 - n / 2) / focal
        dx, dz = sin_yaw + u * cos_yaw, cos_yaw - u * sin_yaw
        at, east, north, along = _meet_fence(x, z, dx, dz, _FENCE_POST)
        top, shade, railed = _POST_TOP, 1.0, 0.0
        if min(abs(along - _POST_MIDDLE), abs(40.0 - along - _POST_MIDDLE)) > _POST_HALF:
            at, east, north, along = _meet_fence(x, z, dx, dz, _FENCE_PICKETS)
            beyond = min(along, 40.0 - along) - _POST_MIDDLE - _POST_HALF
            if min(along, 40.0 - along) < 0.0 or 0.0 < beyond < _POST_SIDE:
                # The side of a post, in the corner or beside the middle panel.
                inwards = 1.0 if along < 20.0 else -1.0
                east, north = (inwards, 0.0) if east == 0.0 else (0.0, inwards)
            else:
                # From the left, as seen from inside.
                place = along + 1.0 if east - north > 0.0 else 41.0 - along
                top, shade, railed = _PICKET_TOP, pickets[int(place * _CELLS)], 1.0
        columns[0, column], columns[1, column], columns[2, column], columns[3, column] = (
            dx,
            dz,
            at,
            top,
        )
        columns[4, column], columns[5, column] = east, north
        columns[6, column], columns[7, column] = shade, railed
    return columns


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _meet_fence(
    x: float, z: float, dx: float, dz: float, beyond: float
) -> tuple[float, float, float, float]:
    """Depth of the fence's plane, its normal's x and z, and the place along it in metres."""
    to_x = ((40.0 + beyond if dx > 0.0 else -beyond) - x) / dx if dx != 0.0 else inf
    to_z = ((40.0 + beyond if dz > 0.0 else -beyond) - z) / dz if dz != 0.0 else inf
    if to_x < to_z:
        return to_x, -1.0 if dx > 0.0 else 1.0, 0.0, z + dz * to_x
    return to_z, 0.0, -1.0 if dz > 0.0 else 1.0, x + dx * to_z


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _fence_light(
    height: float, east: float, north: float, shade: float, railed: bool, out: Floats
) -> None:
    """Light of the fence at a height."""
    for channel in range(3):
        value = _FENCE[channel] + _FENCE_EAST[channel] * east + _FENCE_NORTH[channel] * north
        if railed:
            rail = _RAILS[0] if height < 3.0 else _RAILS[1]
            q = (height - rail[0]) / rail[1]
            if abs(q) < 1.0:
                a, b, c = _RAIL_LIGHT[channel]
                value *= a + (b + c * q) * q
            elif height > _PICKET_TOP - _EDGE:
                value *= _EDGE_LIGHT[channel]
            else:
                value *= shade
        out[channel] = value


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _look_at_bricks(
    x: float,
    z: float,
    dx: npt.NDArray[np.float64],
    dz: npt.NDArray[np.float64],
    at: float,
    brick: npt.NDArray[np.int32],
    joint: npt.NDArray[np.bool_],
) -> None:
    """Which brick each pixel of a row of floor shows, and whether it is a joint there.

    Without branches, so that several pixels are worked out at once.
    """
    for column in range(len(dx)):
        course = (z + dz[column] * at + 1.0) / _BRICK_Z
        line = floor(course)
        shift = 0.5 * (line - 2.0 * floor(0.5 * line))
        place = (x + dx[column] * at + 1.0) / _BRICK_X + shift
        number = floor(place)
        across = abs(course - line - 0.5)
        along = abs(place - number - 0.5)
        joint[column] = (across > 0.5 - _JOINT_HALF / _BRICK_Z) | (
            along > 0.5 - _JOINT_HALF / _BRICK_X
        )
        in_course = np.int32(number) & (_COUNT - 1)
        brick[column] = (np.int32(line) & (_COUNT - 1)) * _COUNT + in_course
