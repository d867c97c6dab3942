"""Where the camera's rays meet primitives, and how much of the screen one can cover.

Compiled functions elsewhere take these in, and numba's cache on disk looks at the file of the
caller alone: save `primitives.py` anew after a change here.
"""

from __future__ import annotations

from math import floor, inf, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.arena_configs.geometry import SHELL_INNER

if TYPE_CHECKING:
    Floats = npt.NDArray[np.float32]

NEAR: Final = 0.01
"""Least distance in metres ahead of the eye at which things are drawn."""
_PARALLEL: Final = 1e-30
"""Stands for a direction of 0."""


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def screen_bounds(
    cx: float,
    cy: float,
    cz: float,
    m: Floats,
    hx: float,
    hy: float,
    hz: float,
    sin_yaw: float,
    cos_yaw: float,
    focal: float,
    n: int,
) -> tuple[int, int, int, int]:
    """First and last row, first and last column that a box (relative to the eye) can cover."""
    corner = np.empty((8, 3))
    for i in range(8):
        lx = hx if i & 1 else -hx
        ly = hy if i & 2 else -hy
        lz = hz if i & 4 else -hz
        wx = cx + m[0, 0] * lx + m[0, 1] * ly + m[0, 2] * lz
        wz = cz + m[2, 0] * lx + m[2, 1] * ly + m[2, 2] * lz
        corner[i, 0] = wx * cos_yaw - wz * sin_yaw
        corner[i, 1] = cy + m[1, 0] * lx + m[1, 1] * ly + m[1, 2] * lz
        corner[i, 2] = wx * sin_yaw + wz * cos_yaw
    u0, u1, v0, v1 = inf, -inf, inf, -inf
    for i in range(8):
        a = corner[i]
        if a[2] > NEAR:
            u, v = a[0] / a[2], a[1] / a[2]
            u0, u1, v0, v1 = min(u0, u), max(u1, u), min(v0, v), max(v1, v)
        for bit in (1, 2, 4):
            b = corner[i ^ bit]
            if a[2] > NEAR >= b[2]:
                # The edge passes the eye's plane: cut it there.
                part = (a[2] - NEAR) / (a[2] - b[2])
                u = (a[0] + part * (b[0] - a[0])) / NEAR
                v = (a[1] + part * (b[1] - a[1])) / NEAR
                u0, u1, v0, v1 = min(u0, u), max(u1, u), min(v0, v), max(v1, v)
    if u0 > u1:
        return 0, -1, 0, -1
    edge = 2.0 * n / focal
    u0, u1 = max(u0, -edge), min(u1, edge)
    v0, v1 = max(v0, -edge), min(v1, edge)
    return (
        max(floor(n / 2 - v1 * focal), 0),
        min(floor(n / 2 - v0 * focal), n - 1),
        max(floor(n / 2 + u0 * focal), 0),
        min(floor(n / 2 + u1 * focal), n - 1),
    )


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def meet_sphere(
    ox: float, oy: float, oz: float, dx: float, dy: float, dz: float, radius: float
) -> tuple[float, int]:
    """Where a ray enters a sphere; inf if it misses it or starts inside."""
    a = dx * dx + dy * dy + dz * dz
    b = ox * dx + oy * dy + oz * dz
    c = ox * ox + oy * oy + oz * oz - radius * radius
    room = b * b - a * c
    if room < 0.0:
        return inf, -1
    return (-b - sqrt(room)) / a, -1


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def cross_slab(o: float, d: float, h: float) -> tuple[float, float]:
    """Where a ray from o at speed d enters and leaves what lies between -h and h."""
    # A ray along a slab is within it all the way, or never: far from here it enters and leaves.
    d = d if d != 0.0 else _PARALLEL
    sign = 1.0 if d > 0.0 else -1.0
    return (-sign * h - o) / d, (sign * h - o) / d


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def meet_box(
    ox: float,
    oy: float,
    oz: float,
    dx: float,
    dy: float,
    dz: float,
    hx: float,
    hy: float,
    hz: float,
    wedge: bool,
) -> tuple[float, int]:
    """Where a ray enters a box or a wedge, and by which face: -x +x -y +y -z +z, slope."""
    low, high = cross_slab(oy, dy, hy)
    return meet_within(ox, oy, oz, dx, dy, dz, hx, hy, hz, low, high, wedge)


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def meet_within(
    ox: float,
    oy: float,
    oz: float,
    dx: float,
    dy: float,
    dz: float,
    hx: float,
    hy: float,
    hz: float,
    low: float,
    high: float,
    wedge: bool,
) -> tuple[float, int]:
    """`meet_box` where a ray passes between bottom and top from `low` to `high` (`cross_slab`)."""
    enter, leave = cross_slab(ox, dx, hx)
    face = 1 if dx < 0.0 else 0
    if low > enter:
        enter, face = low, 3 if dy < 0.0 else 2
    leave = min(leave, high)
    near, far = cross_slab(oz, dz, hz)
    if near > enter:
        enter, face = near, 5 if dz < 0.0 else 4
    leave = min(leave, far)
    if wedge:
        above, rate = hz * oy + hy * oz, hz * dy + hy * dz
        at = -above / rate
        if rate < 0.0:
            if at > enter:
                enter, face = at, 6
        elif rate > 0.0:
            leave = min(leave, at)
        elif above > 0.0:
            return inf, 0
    if enter >= leave:
        return inf, 0
    return enter, face


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def meet_shell(
    ox: float,
    oy: float,
    oz: float,
    dx: float,
    dy: float,
    dz: float,
    hx: float,
    hy: float,
    hz: float,
) -> tuple[float, int]:
    """Where a ray meets a hollow cylinder along z: -1 outside, -2 inside, 4 or 5 an end's rim."""
    ax, ay, bx, by = ox / hx, oy / hy, dx / hx, dy / hy
    a, b, c = bx * bx + by * by, ax * bx + ay * by, ax * ax + ay * ay
    best, face = inf, -1
    room = b * b - a * (c - 1.0)
    if room >= 0.0:
        t = (-b - sqrt(room)) / a
        if t > NEAR and abs(oz + dz * t) <= hz:
            best = t
        room = b * b - a * (c - SHELL_INNER * SHELL_INNER)
        if room >= 0.0:
            t = (-b + sqrt(room)) / a
            if NEAR < t < best and abs(oz + dz * t) <= hz:
                best, face = t, -2
    if dz != 0.0:
        t = (-hz - oz) / dz if dz > 0.0 else (hz - oz) / dz
        if NEAR < t < best:
            out2 = (ax + bx * t) ** 2 + (ay + by * t) ** 2
            if SHELL_INNER * SHELL_INNER <= out2 <= 1.0:
                best, face = t, 4 if dz > 0.0 else 5
    return best, face
