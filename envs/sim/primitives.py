"""Draws a scene's primitives by casting a ray through each pixel that one can cover.

The light of the real build (fitted to its camera images) is the sky's alone: no sun, no shadows.
"""

from __future__ import annotations

from math import inf, radians, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.envs.sim.looks import ITSELF
from animalcat.envs.sim.sight import (
    NEAR,
    cross_slab,
    meet_shell,
    meet_sphere,
    meet_within,
    screen_bounds,
)
from animalcat.portable.compiled import cos, sin
from animalcat.portable.kernels import power

if TYPE_CHECKING:
    from animalcat.envs.sim.looks import Pieces

    Floats = npt.NDArray[np.float32]
    Bytes = npt.NDArray[np.uint8]

_SPHERE, _WEDGE, _SHELL = 1, 2, 3
_ZONE, _EMISSIVE, _TRANSPARENT, _DECAYING, _RIPENING = 1, 2, 3, 4, 5
_RED, _GREY, _GLOWING = 6, 7, 8
_DARK, _OWN = 1, 2
_PLAIN: Final = np.uint8(0)
"""A style without anything of its own, of the type that styles have in a scene."""

# Light that falls on a surface with normal n: base + level * sqrt(1 - n.y^2) + up * n.y
# + east * n.x + north * n.z, for red, green and blue.
_LIGHT_BASE: Final = (0.273, 0.367, 0.535)
_LIGHT_LEVEL: Final = (0.168, 0.191, 0.150)
_LIGHT_UP: Final = (0.034, 0.146, 0.383)
_LIGHT_EAST: Final = (0.017, 0.029, 0.050)
_LIGHT_NORTH: Final = (-0.029, -0.051, -0.087)

# Unity draws balls as meshes whose outline has 24 sides: this is the mean distance of the outline
# from the middle, in radii, cos(a) / a * asinh(tan(a)) with a = pi / 24.
_FACETED: Final = 0.9943

# Zones are fog, thick below and thin at the top, that gives off this part of its colour.
_FOG_LIGHT: Final = 0.6
_FOG_TOP: Final = 0.62
_FOG_DEPTH: Final = 0.32

# U, L and J blocks: each side of each box is lighter near its edges, beyond these shares of its
# half extents.
_RIM_UP: Final = 0.765
_RIM_ACROSS: Final = 0.88
_RIM_LIGHT: Final = 1.44

# Goals on which light falls besides what they send out, by the materials of the prefabs (linear):
# those whose value changes, BadGoals, and decoys.
_CHANGING_BASE: Final = (0.913, 0.723, 0.138)
_RED_BASE: Final = (0.624, 0.0976, 0.0976)
_RED_GLOW: Final = (0.6226, 0.0980, 0.0969)
_GREY_BASE: Final = (0.4452, 0.4452, 0.4452)
_GREY_GLOW: Final = (0.4452, 0.4452, 0.4452)

# Symbols of goals whose value changes: a black ring with four arrows on each of six sides of the
# ball, after the frames. In radii. The first side looks nearly along +x (rows: the ball's axes in
# which the six sides lie), the four beside it are turned about that axis.
_SIDES: Final = ((0.994, -0.056, -0.092), (0.056, 0.998, -0.003), (0.092, -0.003, 0.996))
_SIDES_TURN: Final = (0.79, 0.62)
_HALF_TURN: Final = 0.7071
_SYMBOL: Final = 0.5
_RING_INNER: Final = 0.178
_RING_OUTER: Final = 0.435
_RING_CUT: Final = 0.415
_OUTLINE: Final = 0.02
_ORANGE: Final = (0.98, 0.21, 0.045)
_BLUE: Final = (0.0, 0.521, 1.0)


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def from_afar(center: Floats, x: float, y: float, z: float) -> npt.NDArray[np.int64]:
    """Primitives from far to near by the centre, as Unity mixes transparent ones.

    Args:
        center: (primitives, 3), in metres.
        x: Of the eye, in metres.
        y: Of the eye.
        z: Of the eye.
    """
    away, order = np.empty(len(center)), np.empty(len(center), np.int64)
    for k in range(len(center)):
        dx, dy, dz = center[k, 0] - x, center[k, 1] - y, center[k, 2] - z
        away[k] = dx * dx + dy * dy + dz * dz
        place = k  # from far to near, among those that are before it
        while place > 0 and away[order[place - 1]] < away[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
    return order


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
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
    order: npt.NDArray[np.int64],
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

    The arrays are those of a `Scene`, and `order` is what `from_afar` returns; x, y, z is the eye
    in metres, yaw its heading in degrees, focal the pixels per unit of slope. `light`, (n, n, 3)
    and linear, is written; the solid primitives also write `depth`, (n, n) metres along the
    heading. What lies beyond `depth` is not drawn.
    """
    sin_yaw, cos_yaw = sin(radians(yaw)), cos(radians(yaw))
    for k in order:
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


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
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
        hx *= _FACETED
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
    own, glow = np.empty(3, np.float32), np.empty(3, np.float32)
    for channel in range(3):
        glow[channel] = 0.0
        if changing:
            own[channel], glow[channel] = _CHANGING_BASE[channel], color[channel]
        elif style == _RED:
            own[channel], glow[channel] = _RED_BASE[channel], _RED_GLOW[channel]
        elif style == _GREY:
            own[channel], glow[channel] = _GREY_BASE[channel], _GREY_GLOW[channel]
        elif style == _GLOWING:
            own[channel], glow[channel] = _to_linear(color[channel]), color[channel]
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
    upright = right_y == 0.0
    for row in range(top, bottom + 1):
        v = (n / 2 - row - 0.5) / focal
        bx, by, bz = ahead_x + v * m[1, 0], ahead_y + v * m[1, 1], ahead_z + v * m[1, 2]
        # Of what stands upright, all rays of a row cross the height alike.
        low, high = cross_slab(oy, by, hy)
        for column in range(left, right + 1):
            u = (column + 0.5 - n / 2) / focal
            dx, dy, dz = bx + u * right_x, by + u * right_y, bz + u * right_z
            if shape == _SPHERE:
                t, face = meet_sphere(ox, oy, oz, dx, dy, dz, hx)
            elif shape == _SHELL:
                t, face = meet_shell(ox, oy, oz, dx, dy, dz, hx, hy, hz)
            else:
                if not upright:
                    low, high = cross_slab(oy, dy, hy)
                t, face = meet_within(
                    ox, oy, oz, dx, dy, dz, hx, hy, hz, low, high, shape == _WEDGE
                )
            if not NEAR < t < depth[row, column]:
                continue
            if face >= 0:
                shown = faces[face]
            else:
                # -1: outward from the axis or the centre, -2: inward.
                sign = 1.0 if face == -1 else -1.0
                nx = sign * (ox + dx * t) / (hx * hx)
                ny = sign * (oy + dy * t) / (hy * hy)
                nz = sign * (oz + dz * t) / (hz * hz) if shape == _SPHERE else 0.0
                size = sqrt(nx * nx + ny * ny + nz * nz)
                nx, ny, nz = nx / size, ny / size, nz / size
                _shade(style, own, m, nx, ny, nz, curved)
                for channel in range(3):
                    curved[channel] += glow[channel]
                if changing:
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


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _on_rim(side: Floats, x: float, y: float, z: float) -> bool:
    """Whether a place on a side of a box, each axis from -1 to 1, lies near the side's edges."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if abs(side[0]) > 0.5:
        return ay > _RIM_UP or az > _RIM_ACROSS
    if abs(side[1]) > 0.5:
        return max(ax, az) > _RIM_ACROSS
    return ay > _RIM_UP or ax > _RIM_ACROSS


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _shade(
    style: int | np.uint8, own: Floats, m: Floats, nx: float, ny: float, nz: float, out: Floats
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


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _add_symbol(style: int, left: float, nx: float, ny: float, nz: float, out: Floats) -> None:
    """Draw the symbol of a changing goal where it covers local direction n.

    `left` is the share of the change that is still to come, and the radius of the black disc.
    """
    side, up, right = _SIDES
    x = abs(side[0] * nx + side[1] * ny + side[2] * nz)
    y = up[0] * nx + up[1] * ny + up[2] * nz
    z = right[0] * nx + right[1] * ny + right[2] * nz
    a = abs(_SIDES_TURN[0] * y + _SIDES_TURN[1] * z)
    b = abs(_SIDES_TURN[0] * z - _SIDES_TURN[1] * y)
    # Of the three, the largest is the side; the others are the place on it. On the turned sides
    # the arrows lie along the others, on the first two between them.
    if x >= a and x >= b:
        p, q = abs(y), abs(z)
    else:
        other = min(a, b)
        p, q = _HALF_TURN * (x + other), _HALF_TURN * abs(x - other)
    p, q = max(p, q), min(p, q)
    if p > _SYMBOL:
        return
    ink = _ORANGE if style == _DECAYING else _BLUE
    out2 = p * p + q * q
    if _on_arrow(style, p, q, 0.0):
        drawn = 1.0 if _on_arrow(style, p, q, _OUTLINE) else 0.0
        for channel in range(3):
            out[channel] = drawn * ink[channel]
    elif _RING_INNER**2 < out2 < (_RING_OUTER * left) ** 2 and p < _RING_CUT:
        for channel in range(3):
            out[channel] = 0.0


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _on_arrow(style: int, p: float, q: float, inside: float) -> bool:
    """Whether a place p >= q >= 0 on a symbol lies so far inside an arrow, all of it in radii.

    The shaft lies along the diagonal; the head points to the middle, or away from it.
    """
    along, off = (p + q) / 2.0, (p - q) / 2.0
    shaft = off < 0.055 - inside and 0.15 + inside < along < 0.4 - inside
    if style == _DECAYING:
        return shaft or (q > 0.045 + inside and along < 0.215 - inside)
    return shaft or (p < 0.49 - inside and along > 0.335 + inside)


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
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
    away, order = np.empty(last - first), np.empty(last - first, np.int64)
    for p in range(first, last):
        away[p - first] = 0.0
        for axis in range(3):
            at = center[axis] - (x if axis == 0 else y if axis == 1 else z)
            for k in range(3):
                at += m[axis, k] * scale[k] * (pieces.bounds[p, 0, k] - pieces.middle[look, k])
            away[p - first] += at * at
        place = p - first  # from far to near, among the few that are before it
        while place > 0 and away[order[place - 1] - first] < away[p - first]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = p
    for p in order:
        if (pieces.color[p, 3] < 1.0) != see_through:
            continue
        for axis in range(3):
            middle[axis] = scale[axis] * (pieces.bounds[p, 0, axis] - pieces.middle[look, axis])
        own = pieces.color[p, :3] if pieces.color[p, 0] >= 0.0 else color[:3]
        _draw_piece(
            pieces.planes[pieces.first_plane[p] : pieces.first_plane[p + 1]],
            pieces.middle[look], scale, middle, pieces.bounds[p], own, pieces.color[p, 3],
            bool(pieces.rimmed[p]), pieces.panel[p], picture, pixels, color[:3],
            center, m, x, y, z, sin_yaw, cos_yaw, focal, light, depth,
        )  # fmt: skip


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _draw_piece(
    planes: Floats,
    origin: Floats,
    scale: npt.NDArray[np.float64],
    middle: npt.NDArray[np.float64],
    bounds: Floats,
    color: Floats,
    alpha: float,
    rimmed: bool,
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
    n, half = len(depth), bounds[1]
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
    faces, rims = np.empty((count, 3), np.float32), np.empty((count, 3), np.float32)
    place = np.empty(3)
    inked, dark = np.empty(3, np.float32), np.empty(3, np.float32)
    for channel in range(3):
        inked[channel], dark[channel] = 0.0, 0.0
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
        _shade(_PLAIN, own, m, wx / size, wy / size, wz / size, faces[k])
        for channel in range(3):
            rims[k, channel] = _RIM_LIGHT * faces[k, channel]
        if painted and nx < -0.9:
            front = k
            _shade(_PLAIN, mark, m, wx / size, wy / size, wz / size, inked)
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
            if rimmed:
                for axis in range(3):
                    at = eye[axis] + enter * (ahead[axis] + u * right[axis] + v * up[axis])
                    place[axis] = (at - bounds[0, axis]) / half[axis]
                if _on_rim(planes[face], place[0], place[1], place[2]):
                    shown = rims[face]
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


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _pixel(panel: Floats, picture: npt.NDArray[np.int32], pixels: Bytes, y: float, z: float) -> int:
    """Pixel of the picture at a position on the face; 0 beside the panel."""
    down = (panel[1] - y) / (panel[1] - panel[0])
    across = (panel[3] - z) / (panel[3] - panel[2])
    if not (0.0 <= down < 1.0 and 0.0 <= across < 1.0):
        return 0
    line, place = int(down * picture[1]), int(across * picture[2])
    return int(pixels[picture[0] + line * picture[2] + place])


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _to_linear(code: float) -> float:
    """Linear light of an sRGB code in 0..1."""
    return code / 12.92 if code <= 0.04045 else power((code + 0.055) / 1.055, 2.4)
