"""Draws a scene's primitives by casting a ray through each pixel that one can cover.

The light of the real build (fitted to its camera images) is the sky's alone: no sun, no shadows.
"""

from __future__ import annotations

from math import cos, inf, radians, sin, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.envs.sim.looks import ITSELF
from animalcat.envs.sim.sight import NEAR, meet_box, meet_shell, meet_sphere, screen_bounds

if TYPE_CHECKING:
    from animalcat.envs.sim.looks import Pieces

    Floats = npt.NDArray[np.float32]
    Bytes = npt.NDArray[np.uint8]

_SPHERE, _WEDGE, _SHELL = 1, 2, 3
_ZONE, _EMISSIVE, _TRANSPARENT, _DECAYING, _RIPENING, _RIMMED = 1, 2, 3, 4, 5, 6
_DARK, _OWN = 1, 2

# Light that falls on a surface with normal n: base + level * sqrt(1 - n.y^2) + up * n.y
# + east * n.x + north * n.z, for red, green and blue.
_LIGHT_BASE: Final = (0.273, 0.367, 0.535)
_LIGHT_LEVEL: Final = (0.168, 0.191, 0.150)
_LIGHT_UP: Final = (0.034, 0.146, 0.383)
_LIGHT_EAST: Final = (0.017, 0.029, 0.050)
_LIGHT_NORTH: Final = (-0.029, -0.051, -0.087)

# Zones are fog, thick below and thin at the top, that gives off this part of its colour.
_FOG_LIGHT: Final = 0.6
_FOG_TOP: Final = 0.62
_FOG_DEPTH: Final = 0.32

# U, L and J blocks: each side of each box is lighter near its edges, beyond these shares of its
# half extents.
_RIM_UP: Final = 0.79
_RIM_ACROSS: Final = 0.88
_RIM_LIGHT: Final = 1.44

# Goals whose value changes: the colour of what light falls on (linear), the same for all of them,
# beneath what they send out. Symbols: a black disc with four arrows on each of six sides of the
# ball, of which one looks along +x. In radii; the ball's other axes are turned about x. The disc
# is full as long as the value is, and is gone with the change.
_CHANGING_BASE: Final = (0.913, 0.723, 0.138)
_SYMBOL: Final = 0.48
_SYMBOL_TURN: Final = (0.79, 0.62)
_ORANGE: Final = (0.98, 0.21, 0.045)
_BLUE: Final = (0.0, 0.45, 0.69)


@njit(cache=True, error_model="numpy", nogil=True)
def draw_primitives(
    kind: Bytes,
    center: Floats,
    rotation: Floats,
    half: Floats,
    color: Floats,
    style: Bytes,
    active: npt.NDArray[np.bool_],
    look: npt.NDArray[np.int8],
    picture: npt.NDArray[np.int32],
    pixels: Bytes,
    pieces: Pieces,
    see_through: bool,
    x: float,
    y: float,
    z: float,
    yaw: float,
    focal: float,
    light: Floats,
    depth: Floats,
) -> None:
    """Draw either the solid primitives or, on top of everything, the transparent ones.

    The arrays are those of a `Scene`; x, y, z is the eye in metres, yaw its heading in degrees,
    focal the pixels per unit of slope. `light`, (n, n, 3) and linear, is written; the solid
    primitives also write `depth`, (n, n) metres along the heading. What lies beyond `depth` is not
    drawn.
    """
    sin_yaw, cos_yaw = sin(radians(yaw)), cos(radians(yaw))
    away = np.empty(len(kind))
    for k in range(len(kind)):
        dx, dy, dz = center[k, 0] - x, center[k, 1] - y, center[k, 2] - z
        away[k] = dx * dx + dy * dy + dz * dz
    # From far to near by the centre, as Unity mixes them; solid ones need no order.
    for k in np.argsort(-away, kind="mergesort"):
        if not active[k]:
            continue
        clear = style[k] in (_ZONE, _TRANSPARENT)
        if look[k] >= 0:
            _draw_look(
                pieces, int(look[k]), center[k], rotation[k], half[k], color[k],
                picture[k], pixels, see_through,
                x, y, z, sin_yaw, cos_yaw, focal, light, depth,
            )  # fmt: skip
        elif look[k] == ITSELF and clear == see_through:
            _draw(
                int(kind[k]), center[k], rotation[k], half[k], color[k], int(style[k]),
                x, y, z, sin_yaw, cos_yaw, focal, light, depth,
            )  # fmt: skip


@njit(cache=True, error_model="numpy")
def _draw(
    shape: int,
    center: Floats,
    m: Floats,
    half: Floats,
    color: Floats,
    style: int,
    x: float,
    y: float,
    z: float,
    sin_yaw: float,
    cos_yaw: float,
    focal: float,
    light: Floats,
    depth: Floats,
) -> None:
    """Draw one primitive over what is farther; transparent ones do not write depth."""
    n = len(depth)
    rx, ry, rz = x - center[0], y - center[1], z - center[2]
    hx, hy, hz = float(half[0]), float(half[1]), float(half[2])
    if shape == _SPHERE:
        hy, hz = hx, hx
    top, bottom, left, right = screen_bounds(
        -rx, -ry, -rz, m, hx, hy, hz, sin_yaw, cos_yaw, focal, n
    )
    if top > bottom or left > right:
        return
    # The eye and the camera's axes (right, up, ahead) in the primitive's own coordinate frame.
    ox = m[0, 0] * rx + m[1, 0] * ry + m[2, 0] * rz
    oy = m[0, 1] * rx + m[1, 1] * ry + m[2, 1] * rz
    oz = m[0, 2] * rx + m[1, 2] * ry + m[2, 2] * rz
    right_x = m[0, 0] * cos_yaw - m[2, 0] * sin_yaw
    right_y = m[0, 1] * cos_yaw - m[2, 1] * sin_yaw
    right_z = m[0, 2] * cos_yaw - m[2, 2] * sin_yaw
    ahead_x = m[0, 0] * sin_yaw + m[2, 0] * cos_yaw
    ahead_y = m[0, 1] * sin_yaw + m[2, 1] * cos_yaw
    ahead_z = m[0, 2] * sin_yaw + m[2, 2] * cos_yaw

    faces = np.empty((7, 3), np.float32)
    slope = 1.0 / sqrt(hy * hy + hz * hz)
    changing = style in (_DECAYING, _RIPENING)
    own = np.empty(3, np.float32)
    for channel in range(3):
        if changing:
            own[channel] = _CHANGING_BASE[channel]
        elif style == _EMISSIVE:
            own[channel] = color[channel]
        else:
            own[channel] = _to_linear(color[channel])
    if style == _ZONE:
        for channel in range(3):
            own[channel] *= _FOG_LIGHT
    for face in range(7):
        nx, ny, nz = 0.0, 0.0, 0.0
        if face < 2:
            nx = -1.0 if face == 0 else 1.0
        elif face < 4:
            ny = -1.0 if face == 2 else 1.0
        elif face < 6:
            nz = -1.0 if face == 4 else 1.0
        else:
            ny, nz = hz * slope, hy * slope
        _shade(style, own, m, nx, ny, nz, faces[face])

    curved = np.empty(3, np.float32)
    for row in range(top, bottom + 1):
        v = (n / 2 - row - 0.5) / focal
        bx, by, bz = ahead_x + v * m[1, 0], ahead_y + v * m[1, 1], ahead_z + v * m[1, 2]
        for column in range(left, right + 1):
            u = (column + 0.5 - n / 2) / focal
            dx, dy, dz = bx + u * right_x, by + u * right_y, bz + u * right_z
            if shape == _SPHERE:
                t, face = meet_sphere(ox, oy, oz, dx, dy, dz, hx)
            elif shape == _SHELL:
                t, face = meet_shell(ox, oy, oz, dx, dy, dz, hx, hy, hz)
            else:
                t, face = meet_box(ox, oy, oz, dx, dy, dz, hx, hy, hz, shape == _WEDGE)
            if not NEAR < t < depth[row, column]:
                continue
            if face >= 0:
                shown = faces[face]
                if style == _RIMMED and _on_rim(
                    face, (ox + dx * t) / hx, (oy + dy * t) / hy, (oz + dz * t) / hz
                ):
                    for channel in range(3):
                        curved[channel] = _RIM_LIGHT * shown[channel]
                    shown = curved
            else:
                # -1: outward from the axis or the centre, -2: inward.
                sign = 1.0 if face == -1 else -1.0
                nx = sign * (ox + dx * t) / (hx * hx)
                ny = sign * (oy + dy * t) / (hy * hy)
                nz = sign * (oz + dz * t) / (hz * hz) if shape == _SPHERE else 0.0
                size = sqrt(nx * nx + ny * ny + nz * nz)
                nx, ny, nz = nx / size, ny / size, nz / size
                _shade(style, own, m, nx, ny, nz, curved)
                if changing:
                    for channel in range(3):
                        curved[channel] += color[channel]
                    _add_symbol(style, color[3], nx, ny, nz, curved)
                shown = curved
            if style in (_ZONE, _TRANSPARENT):
                alpha = color[3]
                if style == _ZONE:
                    below_top = (hy - (oy + dy * t)) / (2.0 * hy)
                    alpha *= _FOG_TOP + (1.0 - _FOG_TOP) * min(below_top / _FOG_DEPTH, 1.0)
                for channel in range(3):
                    behind = light[row, column, channel]
                    light[row, column, channel] = behind + alpha * (shown[channel] - behind)
            else:
                depth[row, column] = t
                for channel in range(3):
                    light[row, column, channel] = shown[channel]


@njit(cache=True, error_model="numpy")
def _on_rim(face: int, x: float, y: float, z: float) -> bool:
    """Whether a place on a side of a box, each axis from -1 to 1, lies near the side's edges."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if face < 2:
        return ay > _RIM_UP or az > _RIM_ACROSS
    if face < 4:
        return max(ax, az) > _RIM_ACROSS
    return ay > _RIM_UP or ax > _RIM_ACROSS


@njit(cache=True, error_model="numpy")
def _shade(
    style: int, own: Floats, m: Floats, nx: float, ny: float, nz: float, out: Floats
) -> None:
    """Light that a surface of colour `own` and local normal n emits."""
    if style in (_ZONE, _EMISSIVE):
        for channel in range(3):
            out[channel] = own[channel]
        return
    east = m[0, 0] * nx + m[0, 1] * ny + m[0, 2] * nz
    up = m[1, 0] * nx + m[1, 1] * ny + m[1, 2] * nz
    north = m[2, 0] * nx + m[2, 1] * ny + m[2, 2] * nz
    level = sqrt(max(1.0 - up * up, 0.0))
    for channel in range(3):
        out[channel] = own[channel] * (
            _LIGHT_BASE[channel]
            + _LIGHT_LEVEL[channel] * level
            + _LIGHT_UP[channel] * up
            + _LIGHT_EAST[channel] * east
            + _LIGHT_NORTH[channel] * north
        )


@njit(cache=True, error_model="numpy")
def _add_symbol(style: int, left: float, nx: float, ny: float, nz: float, out: Floats) -> None:
    """Draw the symbol of a changing goal where it covers local direction n.

    `left` is the share of the change that is still to come, and the radius of the black disc.
    """
    a = _SYMBOL_TURN[0] * ny + _SYMBOL_TURN[1] * nz
    b = _SYMBOL_TURN[0] * nz - _SYMBOL_TURN[1] * ny
    nx, a, b = abs(nx), abs(a), abs(b)
    # Of the three, the largest is the side; the others are the place on it.
    if nx >= a and nx >= b:
        p, q = abs(ny), abs(nz)
    elif a >= b:
        p, q = nx, b
    else:
        p, q = nx, a
    p, q = max(p, q) / _SYMBOL, min(p, q) / _SYMBOL
    if p > 1.0:
        return
    # The shaft lies along the diagonal; the head points to the middle, or away from it.
    along, off = (p + q) / 2.0, (p - q) / 2.0
    shaft = off < 0.14 and 0.24 < along < 0.98
    head = q > 0.2 and (p < 0.72 and q < 0.5 if style == _DECAYING else 0.72 < p < 0.92)
    if head or shaft:
        for channel in range(3):
            out[channel] = _ORANGE[channel] if style == _DECAYING else _BLUE[channel]
    elif p * p + q * q < left * left and not (q < 0.15 and p < 0.45):
        for channel in range(3):
            out[channel] = 0.0


@njit(cache=True, error_model="numpy")
def _draw_look(
    pieces: Pieces,
    look: int,
    center: Floats,
    m: Floats,
    half: Floats,
    color: Floats,
    picture: npt.NDArray[np.int32],
    pixels: Bytes,
    see_through: bool,
    x: float,
    y: float,
    z: float,
    sin_yaw: float,
    cos_yaw: float,
    focal: float,
    light: Floats,
    depth: Floats,
) -> None:
    """Draw the pieces of a look: either the solid or the transparent ones."""
    scale, middle = np.empty(3), np.empty(3)
    for axis in range(3):
        scale[axis] = half[axis] / pieces.half[look, axis]
    first, last = pieces.first[look], pieces.first[look + 1]
    away = np.zeros(last - first)
    for p in range(first, last):
        for axis in range(3):
            at = center[axis] - (x if axis == 0 else y if axis == 1 else z)
            for k in range(3):
                at += m[axis, k] * scale[k] * (pieces.bounds[p, 0, k] - pieces.middle[look, k])
            away[p - first] += at * at
    for index in np.argsort(-away, kind="mergesort"):
        p = first + index
        if (pieces.color[p, 3] < 1.0) != see_through:
            continue
        for axis in range(3):
            middle[axis] = scale[axis] * (pieces.bounds[p, 0, axis] - pieces.middle[look, axis])
        own = pieces.color[p, :3] if pieces.color[p, 0] >= 0.0 else color[:3]
        _draw_piece(
            pieces.planes[pieces.first_plane[p] : pieces.first_plane[p + 1]],
            pieces.middle[look], scale, middle, pieces.bounds[p, 1], own, pieces.color[p, 3],
            pieces.panel[p], picture, pixels, color[:3],
            center, m, x, y, z, sin_yaw, cos_yaw, focal, light, depth,
        )  # fmt: skip


@njit(cache=True, error_model="numpy")
def _draw_piece(
    planes: Floats,
    origin: Floats,
    scale: npt.NDArray[np.float64],
    middle: npt.NDArray[np.float64],
    half: Floats,
    color: Floats,
    alpha: float,
    panel: Floats,
    picture: npt.NDArray[np.int32],
    pixels: Bytes,
    ink: Floats,
    center: Floats,
    m: Floats,
    x: float,
    y: float,
    z: float,
    sin_yaw: float,
    cos_yaw: float,
    focal: float,
    light: Floats,
    depth: Floats,
) -> None:
    """Draw a convex piece; rays are cast in the look's own coordinate frame, where its planes are.

    If it has a panel, the picture is drawn on it in the colour `ink`.
    """
    n = len(depth)
    c = np.empty(3)
    eye = np.empty(3)
    right, up, ahead = np.empty(3), np.empty(3), np.empty(3)
    for axis in range(3):
        c[axis] = center[axis] - (x if axis == 0 else y if axis == 1 else z)
        for k in range(3):
            c[axis] += m[axis, k] * middle[k]
    top, bottom, first, last = screen_bounds(
        c[0], c[1], c[2], m, scale[0] * half[0], scale[1] * half[1], scale[2] * half[2],
        sin_yaw, cos_yaw, focal, n,
    )  # fmt: skip
    if top > bottom or first > last:
        return
    rx, ry, rz = x - center[0], y - center[1], z - center[2]
    for axis in range(3):
        s = scale[axis]
        eye[axis] = origin[axis] + (m[0, axis] * rx + m[1, axis] * ry + m[2, axis] * rz) / s
        right[axis] = (m[0, axis] * cos_yaw - m[2, axis] * sin_yaw) / s
        up[axis] = m[1, axis] / s
        ahead[axis] = (m[0, axis] * sin_yaw + m[2, axis] * cos_yaw) / s
    own, mark = np.empty(3, np.float32), np.empty(3, np.float32)
    for channel in range(3):
        own[channel] = _to_linear(color[channel])
        mark[channel] = _to_linear(ink[channel])
    count = len(planes)
    faces = np.empty((count, 3), np.float32)
    inked, dark = np.zeros(3, np.float32), np.zeros(3, np.float32)
    painted, front = picture[1] > 0 and panel[1] > panel[0], -1
    # How far the eye is inside each plane, and how fast it nears it along the camera's axes.
    room, by_right = np.empty(count), np.empty(count)
    by_up, by_ahead = np.empty(count), np.empty(count)
    for k in range(count):
        nx, ny, nz = planes[k, 0], planes[k, 1], planes[k, 2]
        room[k] = planes[k, 3] - (nx * eye[0] + ny * eye[1] + nz * eye[2])
        by_right[k] = nx * right[0] + ny * right[1] + nz * right[2]
        by_up[k] = nx * up[0] + ny * up[1] + nz * up[2]
        by_ahead[k] = nx * ahead[0] + ny * ahead[1] + nz * ahead[2]
        wx, wy, wz = nx / scale[0], ny / scale[1], nz / scale[2]
        size = sqrt(wx * wx + wy * wy + wz * wz)
        _shade(0, own, m, wx / size, wy / size, wz / size, faces[k])
        if painted and nx < -0.9:
            front = k
            _shade(0, mark, m, wx / size, wy / size, wz / size, inked)
    for row in range(top, bottom + 1):
        v = (n / 2 - row - 0.5) / focal
        for column in range(first, last + 1):
            u = (column + 0.5 - n / 2) / focal
            enter, leave, face = -inf, inf, -1
            for k in range(count):
                rate = by_ahead[k] + u * by_right[k] + v * by_up[k]
                at = room[k] / rate
                if rate < 0.0:
                    if at > enter:
                        enter, face = at, k
                elif rate > 0.0:
                    leave = min(leave, at)
                elif room[k] < 0.0:
                    leave = -inf
            if enter >= leave or not NEAR < enter < depth[row, column]:
                continue
            shown = faces[face]
            if face == front:
                py = eye[1] + enter * (ahead[1] + u * right[1] + v * up[1])
                pz = eye[2] + enter * (ahead[2] + u * right[2] + v * up[2])
                pixel = _pixel(panel, picture, pixels, py, pz)
                shown = inked if pixel == _OWN else dark if pixel == _DARK else shown
            for channel in range(3):
                behind = light[row, column, channel]
                light[row, column, channel] = (
                    behind + alpha * (shown[channel] - behind) if alpha < 1.0 else shown[channel]
                )
            if alpha >= 1.0:
                depth[row, column] = enter


@njit(cache=True, error_model="numpy")
def _pixel(panel: Floats, picture: npt.NDArray[np.int32], pixels: Bytes, y: float, z: float) -> int:
    """Pixel of the picture at a position on the face; 0 beside the panel."""
    down = (panel[1] - y) / (panel[1] - panel[0])
    across = (panel[3] - z) / (panel[3] - panel[2])
    if not (0.0 <= down < 1.0 and 0.0 <= across < 1.0):
        return 0
    line, place = int(down * picture[1]), int(across * picture[2])
    return int(pixels[picture[0] + line * picture[2] + place])


@njit(cache=True, error_model="numpy")
def _to_linear(code: float) -> float:
    """Linear light of an sRGB code in 0..1."""
    return code / 12.92 if code <= 0.04045 else ((code + 0.055) / 1.055) ** 2.4
