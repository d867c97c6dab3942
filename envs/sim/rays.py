"""Ray perception: spheres swept over the floor, as Unity's ray sensor casts them.

A swept sphere first touches a solid where its centre comes as near as its radius. Along a line, the
squared distance to a box or a wedge is convex, and quadratic between the planes that separate the
regions of faces, edges and corners. So the contact is found exactly, piece by piece.
"""

from __future__ import annotations

from math import inf, radians, sqrt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.arena_configs.geometry import SHELL_INNER
from animalcat.arena_configs.tags import MISSED
from animalcat.envs.sim.grazing import GRAZED, INSIDE, UPRIGHT, aims, over_box
from animalcat.envs.types import RAY_LENGTH, RAY_RADIUS
from animalcat.portable.compiled import cos, sin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.envs.sim.scene import Scene
    from animalcat.envs.sim.vector import Vector
    from animalcat.envs.types import RaySpec

    Floats = npt.NDArray[np.float32]

_SINK: Final = 1e-6
"""Metres by which rays start lower than the agent, so that its sphere is in what it rests on.

For walls that may lean, by however little, see `grazing`: there it is left to single precision.

An agent on a wall grazes the tops of other walls of the same height, and in the real build it does
not see beyond them (inferred: so two competition arenas, 09-29 and 09-30, give the real reward to
the last digit, and where grazing is left to rounding they do not)."""

_ARENA_TAG: Final = 0
_BOX: Final = np.uint8(0)
_SPHERE: Final = np.uint8(1)
_WEDGE: Final = np.uint8(2)
# The types are those that a scene's arrays have, so that nothing is compiled for others too.
_WALL_HALF: Final[Any] = np.float32(0.5)
_WALL_LENGTH: Final[Any] = np.float32(21.0)
_WALL_HEIGHT: Final[Any] = np.float32(1.0)
_SHORTEST_STEP: Final = 2e-3
_TOLERANCE: Final = 1e-7


def cast_rays(
    scene: Scene,
    origin: Sequence[float] | npt.NDArray[Any],
    yaw_degrees: float,
    spec: RaySpec,
) -> npt.NDArray[np.float32]:
    """Sweep the sensor's spheres through a scene and its four arena walls.

    As in Unity, what already touches the sphere at its start is not detected; zones are.

    Args:
        scene: The primitives.
        origin: x, y, z of the agent's centre, in metres.
        yaw_degrees: Its heading, clockwise from +z.
        spec: Number of rays, angle and number of tags.

    Returns:
        (spec.size,) float32. Each ray, in the order centre, right 1, left 1, right 2, ..., has one
        number per tag (1 for the tag that was hit), 1 if nothing was hit, and the distance that the
        sphere's centre travelled, divided by `RAY_LENGTH`.
    """
    x, y, z = float(origin[0]), float(origin[1]), float(origin[2])
    rays, _, _ = RaySensor(spec).observe(scene, (x, y, z), float(yaw_degrees), (0.0, 0.0, 0.0))
    return rays


class RaySensor:
    """Rays of one specification, and with them the rest of what an agent perceives.

    It keeps what does not change from one decision to the next: most of a call's time would go into
    handing it over.
    """

    def __init__(self, spec: RaySpec) -> None:
        """Prepare for rays of this specification."""
        self._spec, self._size = spec, spec.size
        self._scene: Scene | None = None
        self._arguments: tuple[Any, ...] = ()

    def observe(
        self, scene: Scene, position: Vector, yaw_degrees: float, velocity: Vector
    ) -> tuple[Floats, Floats, Floats]:
        """What the agent perceives but its health and camera image, as new arrays.

        Args:
            scene: The primitives.
            position: x, y, z of the agent's centre, in metres.
            yaw_degrees: Its heading, clockwise from +z.
            velocity: In the world's coordinate frame, in m/s.

        Returns:
            What `cast_rays` returns; (3,) the velocity in the agent's coordinate frame: right, up,
            forward; (3,) the position.
        """
        if scene is not self._scene:
            spec, self._scene = self._spec, scene
            self._arguments = (*_arrays(scene), spec.per_side, float(spec.max_degrees), spec.tags)
        rays = np.empty(self._size, np.float32)
        local, place = np.empty(3, np.float32), np.empty(3, np.float32)
        numbers: tuple[Any, ...] = (*self._arguments, *position, yaw_degrees, *velocity)
        _observe(rays, local, place, *numbers)
        return rays, local, place


def find_hits(
    scene: Scene,
    origin: Sequence[float] | npt.NDArray[Any],
    yaw_degrees: float,
    spec: RaySpec,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """What `cast_rays` finds, before it is encoded.

    Returns:
        For each ray the distance in metres, at most `RAY_LENGTH`, and the index of the tag in
        `LOGGED_TAGS`: `UNLISTED` for another tag, `MISSED` where nothing was hit.
    """
    return _cast(*_arguments(scene, origin, yaw_degrees, spec))


def _arguments(
    scene: Scene,
    origin: Sequence[float] | npt.NDArray[Any],
    yaw_degrees: float,
    spec: RaySpec,
) -> Any:
    """The arguments of `_cast`."""
    return (
        *_arrays(scene),
        float(origin[0]),
        float(origin[1]) - _SINK,
        float(origin[2]),
        float(yaw_degrees),
        spec.per_side,
        float(spec.max_degrees),
    )


def _arrays(scene: Scene) -> tuple[npt.NDArray[Any], ...]:
    """What `_cast` needs of a scene."""
    return scene.kind, scene.center, scene.rotation, scene.half, scene.tag, scene.active


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _cast(
    kind: npt.NDArray[np.uint8],
    center: npt.NDArray[np.float32],
    rotation: npt.NDArray[np.float32],
    half: npt.NDArray[np.float32],
    tag: npt.NDArray[np.int8],
    active: npt.NDArray[np.bool_],
    x: float,
    y: float,
    z: float,
    yaw: float,
    per_side: int,
    max_degrees: float,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """`find_hits` over plain arrays."""
    rays = 2 * per_side + 1
    heading = np.empty((rays, 2))
    for i in range(rays):
        side = (i + 1) // 2 if i % 2 else -(i // 2)
        angle = radians(yaw + side * max_degrees / (per_side if per_side > 1 else 1))
        heading[i, 0] = sin(angle)
        heading[i, 1] = cos(angle)
    nearest, hit = np.empty(rays), np.empty(rays, np.int64)
    for i in range(rays):
        nearest[i], hit[i] = RAY_LENGTH, MISSED
    aim, aimed = np.empty((0, 4), np.float32), False

    # The arena's walls are boxes 1 m thick and 42 m long whose inner faces bound 0..40.
    for wall in range(4):
        across = 20.5 if wall % 2 else -20.5
        if wall < 2:
            ox, oz, hx, hz = x - 20.0 - across, z - 20.0, _WALL_HALF, _WALL_LENGTH
        else:
            ox, oz, hx, hz = x - 20.0, z - 20.0 - across, _WALL_LENGTH, _WALL_HALF
        if _touches(_BOX, ox, 0.0, oz, hx, _WALL_HEIGHT, hz):
            continue
        for i in range(rays):
            dx, dz = heading[i, 0], heading[i, 1]
            t = _to_convex(_BOX, ox, 0.0, oz, dx, 0.0, dz, hx, _WALL_HEIGHT, hz, nearest[i])
            if t < nearest[i]:
                nearest[i] = t
                hit[i] = _ARENA_TAG

    for k in range(len(kind)):
        if not active[k]:
            continue
        rx, ry, rz = x - center[k, 0], y - center[k, 1], z - center[k, 2]
        m = rotation[k]
        hx, hy, hz = float(half[k, 0]), float(half[k, 1]), float(half[k, 2])
        shape = kind[k]
        reach2 = hx * hx if shape == _SPHERE else hx * hx + hy * hy + hz * hz
        reach = sqrt(reach2) + RAY_RADIUS
        away2 = rx * rx + ry * ry + rz * rz
        ox = m[0, 0] * rx + m[1, 0] * ry + m[2, 0] * rz
        oy = m[0, 1] * rx + m[1, 1] * ry + m[2, 1] * rz
        oz = m[0, 2] * rx + m[1, 2] * ry + m[2, 2] * rz
        leans = m[1, 0] != 0.0 or m[1, 2] != 0.0
        if (
            shape == _BOX
            and leans
            and m[1, 1] > UPRIGHT
            and abs(oy + _SINK - hy - RAY_RADIUS) < GRAZED
        ):
            if not aimed:
                aim, aimed = aims(x, z, yaw, per_side, max_degrees), True
            for i in range(rays):
                t = over_box(m, center[k], half[k], x, y + _SINK, z, aim[i])
                if INSIDE < t < nearest[i]:
                    nearest[i] = t
                    hit[i] = tag[k]
            continue
        if away2 <= reach * reach and _touches(shape, ox, oy, oz, hx, hy, hz):
            continue
        for i in range(rays):
            wx, wz = heading[i, 0], heading[i, 1]
            along = -(rx * wx + rz * wz)
            # Behind, beyond what is already hit, or off the line by more than the reach.
            if along < -reach or along - reach > nearest[i]:
                continue
            if away2 - along * along > reach * reach:
                continue
            if shape == _SPHERE:
                t = _to_sphere(along, away2, hx + RAY_RADIUS)
            else:
                dx = m[0, 0] * wx + m[2, 0] * wz
                dy = m[0, 1] * wx + m[2, 1] * wz
                dz = m[0, 2] * wx + m[2, 2] * wz
                if shape in (_BOX, _WEDGE):
                    t = _to_convex(shape, ox, oy, oz, dx, dy, dz, hx, hy, hz, nearest[i])
                else:
                    t = _to_shell(ox, oy, oz, dx, dy, dz, hx, hy, hz, nearest[i])
            if t < nearest[i]:
                nearest[i] = t
                hit[i] = tag[k]

    return nearest, hit


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _observe(
    rays: Floats,
    local: Floats,
    place: Floats,
    kind: npt.NDArray[np.uint8],
    center: npt.NDArray[np.float32],
    rotation: npt.NDArray[np.float32],
    half: npt.NDArray[np.float32],
    tag: npt.NDArray[np.int8],
    active: npt.NDArray[np.bool_],
    per_side: int,
    max_degrees: float,
    tags: int,
    x: float,
    y: float,
    z: float,
    yaw: float,
    vx: float,
    vy: float,
    vz: float,
) -> None:
    """`RaySensor.observe` over plain arrays."""
    nearest, hit = _cast(
        kind, center, rotation, half, tag, active, x, y - _SINK, z, yaw, per_side, max_degrees
    )
    for i in range(len(rays)):
        rays[i] = 0.0
    for i in range(len(hit)):
        block = i * (tags + 2)
        if hit[i] == MISSED:
            rays[block + tags] = 1.0
        elif 0 <= hit[i] < tags:
            rays[block + hit[i]] = 1.0
        rays[block + tags + 1] = nearest[i] / RAY_LENGTH
    s, c = sin(radians(yaw)), cos(radians(yaw))
    local[0], local[1], local[2] = vx * c - vz * s, vy, vx * s + vz * c
    place[0], place[1], place[2] = x, y, z


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _touches(
    shape: np.uint8, x: float, y: float, z: float, hx: float, hy: float, hz: float
) -> bool:
    """Whether the sphere at a local point overlaps the shape."""
    if shape == _SPHERE:
        return x * x + y * y + z * z <= (hx + RAY_RADIUS) ** 2
    if shape == _BOX:
        return _box_gap2(x, y, z, hx, hy, hz) <= RAY_RADIUS * RAY_RADIUS
    if shape == _WEDGE:
        _, _, gap2 = _wedge_quadratic(x, y, z, 0.0, 0.0, 0.0, hx, hy, hz, 0.0)
        return gap2 <= RAY_RADIUS * RAY_RADIUS
    return _shell_gap(x, y, z, hx, hy, hz) <= RAY_RADIUS


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _to_sphere(along: float, away2: float, radius: float) -> float:
    """Distance to a sphere of summed radius with its centre `along` ahead, sqrt(`away2`) off."""
    room = along * along - away2 + radius * radius
    if room < 0.0 or along < 0.0:
        return inf
    return along - sqrt(room)


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _to_convex(
    shape: np.uint8,
    ox: float,
    oy: float,
    oz: float,
    dx: float,
    dy: float,
    dz: float,
    hx: float,
    hy: float,
    hz: float,
    limit: float,
) -> float:
    """Distance of the sphere's centre from a local point to a box or a wedge; inf if missed."""
    t, end = _slabs(ox, oy, oz, dx, dy, dz, hx, hy, hz, limit)
    while t < end:
        after = end
        for half, o, d in ((hx, ox, dx), (hy, oy, dy), (hz, oz, dz)):
            if d != 0.0:
                for plane in (-half, half):
                    at = (plane - o) / d
                    if t < at < after:
                        after = at
        if shape == _WEDGE:
            # The slope's plane s = 0, and the planes w = +-L across it at its two edges.
            size = sqrt(hy * hy + hz * hz)
            s0, s1 = (hz * oy + hy * oz) / size, (hz * dy + hy * dz) / size
            w0, w1 = (hz * oz - hy * oy) / size, (hz * dz - hy * dy) / size
            if s1 != 0.0 and t < -s0 / s1 < after:
                after = -s0 / s1
            if w1 != 0.0:
                for plane in (-size, size):
                    at = (plane - w0) / w1
                    if t < at < after:
                        after = at
        middle = 0.5 * (t + after)
        if shape == _WEDGE:
            a, b, c = _wedge_quadratic(ox, oy, oz, dx, dy, dz, hx, hy, hz, middle)
        else:
            a, b, c = _box_quadratic(ox, oy, oz, dx, dy, dz, hx, hy, hz, middle)
        room = b * b - a * (c - RAY_RADIUS * RAY_RADIUS)
        if a > 0.0 and room >= 0.0:
            root = (-b - sqrt(room)) / a
            # A root just before the piece is one of the slab's own face, up to rounding.
            if t - 1e-9 <= root <= after:
                return max(root, 0.0)
        if a * after + b > 0.0:
            return inf
        t = after
    return inf


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _slabs(
    ox: float,
    oy: float,
    oz: float,
    dx: float,
    dy: float,
    dz: float,
    hx: float,
    hy: float,
    hz: float,
    limit: float,
) -> tuple[float, float]:
    """Where a ray enters and leaves the box grown by the sphere's radius, within 0 to limit."""
    enter, leave = 0.0, limit
    for half, o, d in ((hx, ox, dx), (hy, oy, dy), (hz, oz, dz)):
        grown = half + RAY_RADIUS
        if d == 0.0:
            if abs(o) > grown:
                return 0.0, -1.0
        else:
            near, far = (-grown - o) / d, (grown - o) / d
            if near > far:
                near, far = far, near
            enter, leave = max(enter, near), min(leave, far)
    return enter, leave


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _box_gap2(x: float, y: float, z: float, hx: float, hy: float, hz: float) -> float:
    """Squared distance of a local point to a box."""
    gx, gy, gz = max(abs(x) - hx, 0.0), max(abs(y) - hy, 0.0), max(abs(z) - hz, 0.0)
    return gx * gx + gy * gy + gz * gz


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _box_quadratic(
    ox: float,
    oy: float,
    oz: float,
    dx: float,
    dy: float,
    dz: float,
    hx: float,
    hy: float,
    hz: float,
    t: float,
) -> tuple[float, float, float]:
    """a, b, c of the squared distance a t^2 + 2 b t + c to a box in the piece that holds t."""
    a, b, c = 0.0, 0.0, 0.0
    for half, o, d in ((hx, ox, dx), (hy, oy, dy), (hz, oz, dz)):
        p = o + d * t
        if abs(p) > half:
            gap = o - (half if p > 0.0 else -half)
            a, b, c = a + d * d, b + gap * d, c + gap * gap
    return a, b, c


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _wedge_quadratic(
    ox: float,
    oy: float,
    oz: float,
    dx: float,
    dy: float,
    dz: float,
    hx: float,
    hy: float,
    hz: float,
    t: float,
) -> tuple[float, float, float]:
    """As `_box_quadratic`, for a wedge: a segment along x times a right triangle in y and z."""
    a, b, c = 0.0, 0.0, 0.0
    x, y, z = ox + dx * t, oy + dy * t, oz + dz * t
    if abs(x) > hx:
        gap = ox - (hx if x > 0.0 else -hx)
        a, b, c = dx * dx, gap * dx, gap * gap
    size = sqrt(hy * hy + hz * hz)
    above = (hz * y + hy * z) / size
    down = (hz * z - hy * y) / size
    below, behind = y < -hy, z < -hz
    foot = z > hz and down > size
    crest = y > hy and down < -size
    if below or foot or crest:
        gap = oy - (hy if crest else -hy)
        a, b, c = a + dy * dy, b + gap * dy, c + gap * gap
    if behind or foot or crest:
        gap = oz - (hz if foot else -hz)
        a, b, c = a + dz * dz, b + gap * dz, c + gap * gap
    if not (below or behind or foot or crest) and above > 0.0:
        gap, rate = (hz * oy + hy * oz) / size, (hz * dy + hy * dz) / size
        a, b, c = a + rate * rate, b + gap * rate, c + gap * gap
    return a, b, c


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _to_shell(
    ox: float,
    oy: float,
    oz: float,
    dx: float,
    dy: float,
    dz: float,
    hx: float,
    hy: float,
    hz: float,
    limit: float,
) -> float:
    """Distance of the sphere's centre to a hollow cylinder, by steps no longer than the gap."""
    t, end = _slabs(ox, oy, oz, dx, dy, dz, hx, hy, hz, limit)
    free = t
    while t < end:
        gap = _shell_gap(ox + dx * t, oy + dy * t, oz + dz * t, hx, hy, hz) - RAY_RADIUS
        if gap <= 0.0:
            while t - free > _TOLERANCE:
                middle = 0.5 * (free + t)
                x, y, z = ox + dx * middle, oy + dy * middle, oz + dz * middle
                if _shell_gap(x, y, z, hx, hy, hz) > RAY_RADIUS:
                    free = middle
                else:
                    t = middle
            return t
        free = t
        t += max(gap, _SHORTEST_STEP)
    return inf


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _shell_gap(x: float, y: float, z: float, hx: float, hy: float, hz: float) -> float:
    """Distance of a local point to the wall of a hollow elliptic cylinder along z."""
    beyond = max(abs(z) - hz, 0.0)
    outward = (x / hx) ** 2 + (y / hy) ** 2
    if outward > 1.0:
        off = _ellipse_distance(abs(x), abs(y), hx, hy)
    elif outward < SHELL_INNER * SHELL_INNER:
        off = _ellipse_distance(abs(x), abs(y), hx * SHELL_INNER, hy * SHELL_INNER)
    else:
        off = 0.0
    return sqrt(off * off + beyond * beyond)


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _ellipse_distance(x: float, y: float, a: float, b: float) -> float:
    """Distance of a point of the first quadrant to the ellipse with half axes a and b.

    The foot is found by replacing the ellipse with its circle of curvature, five times over.
    """
    if abs(a - b) < 1e-6 * a:
        return abs(sqrt(x * x + y * y) - a)
    c, s = sqrt(0.5), sqrt(0.5)
    for _ in range(5):
        ex, ey = (a * a - b * b) / a * c**3, (b * b - a * a) / b * s**3
        radius = sqrt((a * c - ex) ** 2 + (b * s - ey) ** 2)
        qx, qy = x - ex, y - ey
        scale = radius / max(sqrt(qx * qx + qy * qy), 1e-12)
        c = min(max((qx * scale + ex) / a, 0.0), 1.0)
        s = min(max((qy * scale + ey) / b, 0.0), 1.0)
        norm = max(sqrt(c * c + s * s), 1e-12)
        c, s = c / norm, s / norm
    return sqrt((x - a * c) ** 2 + (y - b * s) ** 2)
