"""How much of a ball can be seen from somewhere in a scene, and where a ball has room in it.

Opaque primitives hide; transparent ones and zones, which are mist, do not. An object that the
camera draws as a mesh counts as the primitive that stands for it.
"""

from __future__ import annotations

import math
from math import sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.arena_configs.sightlines import DISC
from animalcat.envs.sim.scene import Shape, Style
from animalcat.envs.sim.sight import meet_box, meet_shell, meet_sphere

if TYPE_CHECKING:
    from animalcat.envs.sim.scene import Scene

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_SPHERE, _WEDGE, _SHELL = int(Shape.SPHERE), int(Shape.WEDGE), int(Shape.SHELL)
_NEAR: Final = 1e-3
_PASSED: Final = 1.0 - 1e-3
_SLACK: Final = 0.02
"""Metres by which a ball may touch what it lies on or leans against."""


def hiders(scene: Scene, but: int = -1) -> npt.NDArray[np.int64]:
    """Rows of a scene that hide what is behind them.

    Args:
        scene: The scene.
        but: A row to leave out: that of what is looked at; -1 for none.
    """
    glass = (scene.style == Style.ZONE) | (scene.style == Style.TRANSPARENT)
    rows = np.flatnonzero(scene.active & ~scene.overlap_ok & ~glass)
    return rows[rows != but]


def clear_share(
    scene: Scene,
    rows: npt.NDArray[np.int64],
    eye: npt.ArrayLike,
    center: npt.ArrayLike,
    radius: float,
) -> float:
    """Share of a ball's disc, as seen from somewhere, that nothing hides.

    Args:
        scene: The scene.
        rows: What may hide it, from `hiders`.
        eye: From where, x, y, z in metres.
        center: The ball's centre, in metres.
        radius: Its radius, in metres.
    """
    return float(clear_shares(scene, rows, np.atleast_2d(eye), np.atleast_2d(center), radius)[0])


def clear_shares(
    scene: Scene,
    rows: npt.NDArray[np.int64],
    eyes: npt.ArrayLike,
    centers: npt.ArrayLike,
    radius: float,
    enough: float = math.inf,
) -> Floats:
    """Shares of a ball's disc that nothing hides, for some eyes and places of the ball.

    Args:
        scene: The scene.
        rows: What may hide it, from `hiders`.
        eyes: (n, 3), or (1, 3) for all the same, in metres.
        centers: (m, 3) the ball's centres, or (1, 3) for all the same, in metres.
        radius: Its radius, in metres.
        enough: The first share that is at least this ends the search.

    Returns:
        (max(n, m),), or fewer if the search ended sooner.
    """
    return np.asarray(
        _clear_shares(
            scene.kind,
            scene.center,
            scene.rotation,
            scene.half,
            rows,
            np.ascontiguousarray(eyes, np.float64),
            np.ascontiguousarray(centers, np.float64),
            radius,
            DISC,
            enough,
        )
    )


def has_room(
    scene: Scene, rows: npt.NDArray[np.int64], centers: npt.ArrayLike, radius: float
) -> Mask:
    """Where a ball overlaps no box and no wedge; tunnels and balls take no room.

    Args:
        scene: The scene.
        rows: What takes room, as indices of rows.
        centers: (n, 3) centres of the ball, in metres.
        radius: Its radius, in metres.

    Returns:
        (n,) bool.
    """
    solid = rows[~np.isin(scene.kind[rows], (Shape.SPHERE, Shape.SHELL))]
    return np.asarray(
        _has_room(
            scene.kind,
            scene.center,
            scene.rotation,
            scene.half,
            solid,
            np.ascontiguousarray(centers, np.float64),
            max(radius - _SLACK, 0.0),
        )
    )


@njit(cache=True, error_model="numpy", nogil=True)
def _clear_share(
    kind: npt.NDArray[np.uint8],
    center: npt.NDArray[np.float32],
    rotation: npt.NDArray[np.float32],
    half: npt.NDArray[np.float32],
    rows: npt.NDArray[np.int64],
    eye: Floats,
    ball: Floats,
    radius: float,
    disc: Floats,
) -> float:
    ahead = ball - eye
    length = sqrt(ahead[0] ** 2 + ahead[1] ** 2 + ahead[2] ** 2)
    if length < _NEAR:
        return 1.0
    ahead /= length
    right = np.array([ahead[2], 0.0, -ahead[0]])
    span = sqrt(right[0] ** 2 + right[2] ** 2)
    if span < 1e-9:
        right[:] = 1.0, 0.0, 0.0
    else:
        right /= span
    up = np.array(
        [
            ahead[1] * right[2] - ahead[2] * right[1],
            ahead[2] * right[0] - ahead[0] * right[2],
            ahead[0] * right[1] - ahead[1] * right[0],
        ]
    )
    # What is too far from the line of sight hides nothing.
    near = np.empty(len(rows), np.int64)
    count = 0
    for row in rows:
        if kind[row] == _SPHERE:
            reach = float(half[row, 0])
        else:
            reach = sqrt(half[row, 0] ** 2 + half[row, 1] ** 2 + half[row, 2] ** 2)
        x, y, z = center[row, 0] - eye[0], center[row, 1] - eye[1], center[row, 2] - eye[2]
        along = min(max(x * ahead[0] + y * ahead[1] + z * ahead[2], 0.0), length)
        off = (x - along * ahead[0]) ** 2 + (y - along * ahead[1]) ** 2
        off += (z - along * ahead[2]) ** 2
        if off < (reach + radius) ** 2:
            near[count] = row
            count += 1
    seen = 0
    for point in disc:
        x = ball[0] + radius * (point[0] * right[0] + point[1] * up[0]) - eye[0]
        y = ball[1] + radius * (point[0] * right[1] + point[1] * up[1]) - eye[1]
        z = ball[2] + radius * (point[0] * right[2] + point[1] * up[2]) - eye[2]
        hidden = False
        for row in near[:count]:
            m = rotation[row]
            rx, ry, rz = eye[0] - center[row, 0], eye[1] - center[row, 1], eye[2] - center[row, 2]
            ox = m[0, 0] * rx + m[1, 0] * ry + m[2, 0] * rz
            oy = m[0, 1] * rx + m[1, 1] * ry + m[2, 1] * rz
            oz = m[0, 2] * rx + m[1, 2] * ry + m[2, 2] * rz
            dx = m[0, 0] * x + m[1, 0] * y + m[2, 0] * z
            dy = m[0, 1] * x + m[1, 1] * y + m[2, 1] * z
            dz = m[0, 2] * x + m[1, 2] * y + m[2, 2] * z
            hx, hy, hz = float(half[row, 0]), float(half[row, 1]), float(half[row, 2])
            if kind[row] == _SPHERE:
                at, _ = meet_sphere(ox, oy, oz, dx, dy, dz, hx)
            elif kind[row] == _SHELL:
                at, _ = meet_shell(ox, oy, oz, dx, dy, dz, hx, hy, hz)
            else:
                at, _ = meet_box(ox, oy, oz, dx, dy, dz, hx, hy, hz, kind[row] == _WEDGE)
            if _NEAR / length < at < _PASSED:
                hidden = True
                break
        if not hidden:
            seen += 1
    return seen / len(disc)


@njit(cache=True, error_model="numpy", nogil=True)
def _clear_shares(
    kind: npt.NDArray[np.uint8],
    center: npt.NDArray[np.float32],
    rotation: npt.NDArray[np.float32],
    half: npt.NDArray[np.float32],
    rows: npt.NDArray[np.int64],
    eyes: Floats,
    balls: Floats,
    radius: float,
    disc: Floats,
    enough: float,
) -> Floats:
    shares = np.empty(max(len(eyes), len(balls)))
    for k in range(len(shares)):
        eye, ball = eyes[k if len(eyes) > 1 else 0], balls[k if len(balls) > 1 else 0]
        shares[k] = _clear_share(kind, center, rotation, half, rows, eye, ball, radius, disc)
        if shares[k] >= enough:
            return shares[: k + 1]
    return shares


@njit(cache=True, error_model="numpy", nogil=True)
def _has_room(
    kind: npt.NDArray[np.uint8],
    center: npt.NDArray[np.float32],
    rotation: npt.NDArray[np.float32],
    half: npt.NDArray[np.float32],
    rows: npt.NDArray[np.int64],
    balls: Floats,
    radius: float,
) -> Mask:
    room = np.ones(len(balls), np.bool_)
    for row in rows:
        m = rotation[row]
        hx, hy, hz = float(half[row, 0]), float(half[row, 1]), float(half[row, 2])
        slope = sqrt(hy * hy + hz * hz)
        for k in range(len(balls)):
            if not room[k]:
                continue
            rx = balls[k, 0] - center[row, 0]
            ry = balls[k, 1] - center[row, 1]
            rz = balls[k, 2] - center[row, 2]
            x = m[0, 0] * rx + m[1, 0] * ry + m[2, 0] * rz
            y = m[0, 1] * rx + m[1, 1] * ry + m[2, 1] * rz
            z = m[0, 2] * rx + m[1, 2] * ry + m[2, 2] * rz
            if kind[row] == _WEDGE and (hz * y + hy * z) / slope > radius:
                continue  # above its slope
            ax, ay, az = max(abs(x) - hx, 0.0), max(abs(y) - hy, 0.0), max(abs(z) - hz, 0.0)
            if ax * ax + ay * ay + az * az < radius * radius:
                room[k] = False
    return room
