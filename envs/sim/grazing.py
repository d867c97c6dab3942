"""Spheres swept level over the top of a box, rounded to single precision as PhysX rounds them.

An agent that stands on a wall sweeps its rays' spheres along that wall's top, and over the tops of
walls of the same height. Whether such a sphere is in the wall, passes over it or hits an edge far
ahead is decided by the last digits of single precision, so these sweeps take the steps of PhysX 4.1
(compared with its library, bit for bit, over 15,000 sweeps of all kinds: 99.5 % are the same, and
one hits what the other passes).
"""

from __future__ import annotations

from math import inf, radians, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.envs.types import RAY_LENGTH, RAY_RADIUS
from animalcat.portable.compiled import cos, sin

GRAZED: Final = 1e-3
"""Metres between a sphere's lowest point and a box's top within which rounding may decide."""
UPRIGHT: Final = 0.999
"""Least cosine of the angle between a box's own vertical and the world's."""
INSIDE: Final = -1.0
"""The distance that stands for a sphere that is in the box before it moves."""

_RADIUS: Final = np.float32(RAY_RADIUS)
_LENGTH: Final = np.float32(RAY_LENGTH)
_ZERO: Final = np.float32(0.0)
_ONE: Final = np.float32(1.0)
_TINY: Final = np.float32(1.1920929e-07)
_PAST: Final = np.float32(1e-3)
"""Metres past the ends of an edge within which it is still taken for a cylinder."""
_BEHIND: Final = np.float32(-1e-5)
"""Metres by which a face may be hit before the start."""
_NEAR: Final = np.float32(10.0)
"""Metres from an edge at which a ray from farther away is begun."""
_FAR: Final = np.float32(3.4e38)
"""The greatest number, for a ray along a face."""


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def aims(
    x: float, z: float, yaw: float, per_side: int, max_degrees: float
) -> npt.NDArray[np.float32]:
    """Where the ray sensor's spheres go, from what Unity makes of angles and ends of rays.

    Args:
        x: Of the agent's centre.
        z: Of the agent's centre.
        yaw: Its heading in degrees.
        per_side: Rays on each side of the middle one.
        max_degrees: Angle of the last of them.

    Returns:
        (rays, 4): direction along x and z, length and radius. Unity scales the radius with the
        length, which is rounded at the place of its end.
    """
    rays = np.empty((2 * per_side + 1, 4), np.float32)
    half = 0.5 * radians(yaw)
    turn_y, turn_w = np.float32(sin(half)), np.float32(cos(half))
    along = _ONE - np.float32(2.0) * turn_y * turn_y
    across = np.float32(2.0) * turn_y * turn_w
    delta = np.float32(max_degrees) / np.float32(max(1, per_side))
    start_x, start_z = np.float32(x), np.float32(z)
    for i in range(len(rays)):
        side = np.float32((i + 1) // 2 if i % 2 else -(i // 2))
        angle = float(np.float32(radians(np.float32(90.0) - side * delta)))
        right, ahead = np.float32(cos(angle)) * _LENGTH, np.float32(sin(angle)) * _LENGTH
        dx = (start_x + (along * right + across * ahead)) - start_x
        dz = (start_z + (along * ahead - across * right)) - start_z
        length = np.float32(sqrt(dx * dx + dz * dz))
        rays[i, 0], rays[i, 1] = dx / length, dz / length
        rays[i, 2], rays[i, 3] = length, _RADIUS * length / _LENGTH
    return rays


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def over_box(
    axes: npt.NDArray[np.float32],
    center: npt.NDArray[np.float32],
    half: npt.NDArray[np.float32],
    x: float,
    y: float,
    z: float,
    aim: npt.NDArray[np.float32],
) -> float:
    """Distance that a sphere can go before it touches a box whose top it grazes.

    Args:
        axes: (3, 3) rows of the box's rotation, from local to world.
        center: (3,) of the box.
        half: (3,) its half extents.
        x: Of the sphere's centre.
        y: Of the sphere's centre.
        z: Of the sphere's centre.
        aim: A row of `aims`.

    Returns:
        The distance; inf if it passes; `INSIDE` if it is in the box already.
    """
    start = (np.float32(x), np.float32(y), np.float32(z))
    aim_x, aim_z, length, radius = aim[0], aim[1], aim[2], aim[3]
    hx, hy, hz = half[0], half[1], half[2]
    ex, ey, ez = start[0] - center[0], start[1] - center[1], start[2] - center[2]
    lx = axes[0, 0] * ex + axes[1, 0] * ey + axes[2, 0] * ez
    ly = axes[0, 1] * ex + axes[1, 1] * ey + axes[2, 1] * ez
    lz = axes[0, 2] * ex + axes[1, 2] * ey + axes[2, 2] * ez
    if _overlaps(axes, half, ex, ey, ez, lx, ly, lz, radius):
        return INSIDE
    nearest, hit = length, False

    # The four edges of the top, as capsules.
    top = hy if ly > _ZERO else -hy
    corners = np.empty((4, 3), np.float32)
    for k in range(3):
        right, up, ahead = axes[k, 0] * hx, axes[k, 1] * top, axes[k, 2] * hz
        corners[0, k] = (center[k] - right) + (up - ahead)
        corners[1, k] = (center[k] + right) + (up - ahead)
        corners[2, k] = (center[k] + right) + (up + ahead)
        corners[3, k] = (center[k] - right) + (up + ahead)
    for k in range(4):
        # In this direction and order PhysX goes round them.
        t = _to_capsule(start, aim_x, aim_z, corners[(k + 1) % 4], corners[k], radius)
        if _ZERO <= t <= nearest:
            nearest, hit = t, True

    # The top itself: a ray against the box that is higher by the radius.
    dx = axes[0, 0] * aim_x + axes[2, 0] * aim_z
    dy = axes[0, 1] * aim_x + axes[2, 1] * aim_z
    dz = axes[0, 2] * aim_x + axes[2, 2] * aim_z
    t = _distance_to_box(lx, ly, lz, dx, dy, dz, hx, hy + radius, hz)
    if _BEHIND <= t <= nearest:
        nearest, hit = max(t, _ZERO), True
    return float(nearest) if hit else inf


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _overlaps(
    axes: npt.NDArray[np.float32],
    half: npt.NDArray[np.float32],
    ex: np.float32,
    ey: np.float32,
    ez: np.float32,
    lx: np.float32,
    ly: np.float32,
    lz: np.float32,
    radius: np.float32,
) -> bool:
    """Whether a sphere touches a box: its centre from the box's, in the world's and its axes."""
    nx = min(max(lx, -half[0]), half[0])
    ny = min(max(ly, -half[1]), half[1])
    nz = min(max(lz, -half[2]), half[2])
    gx = ex - (axes[0, 0] * nx + axes[0, 1] * ny + axes[0, 2] * nz)
    gy = ey - (axes[1, 0] * nx + axes[1, 1] * ny + axes[1, 2] * nz)
    gz = ez - (axes[2, 0] * nx + axes[2, 1] * ny + axes[2, 2] * nz)
    return gx * gx + gy * gy + gz * gz <= radius * radius


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _distance_to_box(
    ox: np.float32,
    oy: np.float32,
    oz: np.float32,
    dx: np.float32,
    dy: np.float32,
    dz: np.float32,
    hx: np.float32,
    hy: np.float32,
    hz: np.float32,
) -> np.float32:
    """Where a local ray enters a box, which may be behind its start; nan if it misses."""
    near, far = -_FAR, _FAR
    for o, d, h in ((ox, dx, hx), (oy, dy, hy), (oz, dz, hz)):
        if -_TINY < d < _TINY:
            if o < -h or o > h:
                return np.float32(np.nan)
            continue
        share = _ONE / d
        first, second = (-h - o) * share, (h - o) * share
        if first > second:
            first, second = second, first
        near, far = max(near, first), min(far, second)
        if near > far or far < _TINY:
            return np.float32(np.nan)
    return near


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _gap(
    start: tuple[np.float32, np.float32, np.float32],
    first: npt.NDArray[np.float32],
    last: npt.NDArray[np.float32],
) -> np.float32:
    """Distance of a point to the edge between two corners."""
    wx, wy, wz = last[0] - first[0], last[1] - first[1], last[2] - first[2]
    fx, fy, fz = start[0] - first[0], start[1] - first[1], start[2] - first[2]
    along = fx * wx + fy * wy + fz * wz
    if along > _ZERO:
        size = wx * wx + wy * wy + wz * wz
        share = _ONE if along >= size else along / size
        fx, fy, fz = fx - share * wx, fy - share * wy, fz - share * wz
    return np.float32(sqrt(fx * fx + fy * fy + fz * fz))


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _to_capsule(
    start: tuple[np.float32, np.float32, np.float32],
    aim_x: np.float32,
    aim_z: np.float32,
    first: npt.NDArray[np.float32],
    last: npt.NDArray[np.float32],
    radius: np.float32,
) -> np.float32:
    """Where a level ray enters the capsule round an edge; nan if it misses."""
    gap = _gap(start, first, last) - radius
    if gap <= _ZERO:
        return _ZERO
    # From afar the ray is begun nearer to the edge, where single precision is finer.
    ahead = gap - _NEAR if gap > _NEAR else _ZERO
    start = (start[0] + aim_x * ahead, start[1], start[2] + aim_z * ahead)

    # Axes of the capsule: w along it, u and v across.
    wx, wy, wz = last[0] - first[0], last[1] - first[1], last[2] - first[2]
    size = np.float32(sqrt(wx * wx + wy * wy + wz * wz))
    share = _ONE / size
    wx, wy, wz = wx * share, wy * share, wz * share
    if abs(wx) >= abs(wy):
        share = _ONE / np.float32(sqrt(wx * wx + wz * wz))
        ux, uy, uz = -wz * share, _ZERO, wx * share
    else:
        share = _ONE / np.float32(sqrt(wy * wy + wz * wz))
        ux, uy, uz = _ZERO, wz * share, -wy * share
    vx, vy, vz = wy * uz - wz * uy, wz * ux - wx * uz, wx * uy - wy * ux
    share = _ONE / np.float32(sqrt(vx * vx + vy * vy + vz * vz))
    vx, vy, vz = vx * share, vy * share, vz * share

    du, dv, dw = ux * aim_x + uz * aim_z, vx * aim_x + vz * aim_z, wx * aim_x + wz * aim_z
    share = _ONE / np.float32(sqrt(du * du + dv * dv + dw * dw))
    du, dv, dw = du * share, dv * share, dw * share
    fx, fy, fz = start[0] - first[0], start[1] - first[1], start[2] - first[2]
    pu, pv = ux * fx + uy * fy + uz * fz, vx * fx + vy * fy + vz * fz
    pw = wx * fx + wy * fy + wz * fz
    away = pu * pu + pv * pv - radius * radius
    if abs(dw) >= _ONE - _TINY:  # along the edge
        if away > _ZERO:
            return np.float32(np.nan)
        root = np.float32(sqrt(-away))
        return (-(pw + root) if dw > _ZERO else -(size - pw + root)) * share + ahead

    a, b = du * du + dv * dv, pu * du + pv * dv
    room = b * b - a * away
    if room < _ZERO:
        return np.float32(np.nan)
    nearest, count = _FAR, 0
    root, one = np.float32(sqrt(room)), _ONE / a
    for t in ((-b - root) * one, (-b + root) * one):
        if -_PAST <= pw + t * dw <= size + _PAST:
            nearest, count = min(nearest, t), count + 1
    if count < 2:  # it enters or leaves by the balls at the ends
        b += pw * dw
        away += pw * pw
        room = b * b - away
        if room > _ZERO:
            root = np.float32(sqrt(room))
            for t in (-b - root, -b + root):
                if pw + t * dw <= _ZERO:
                    nearest, count = min(nearest, t), count + 1
        b -= dw * size
        room = b * b - (away + size * (size - np.float32(2.0) * pw))
        if room > _ZERO:
            root = np.float32(sqrt(room))
            for t in (-b - root, -b + root):
                if pw + t * dw >= size:
                    nearest, count = min(nearest, t), count + 1
    return nearest * share + ahead if count else np.float32(np.nan)
