"""Ray perception against a brute-force distance field, and against figures worked out by hand."""

from __future__ import annotations

import itertools
from math import cos, radians, sin

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animalcat.arena_configs.geometry import SHELL_INNER
from animalcat.envs.sim.rays import RaySensor, cast_rays
from animalcat.envs.sim.scene import Primitive, Scene, Shape, tag_index
from animalcat.envs.types import RAY_LENGTH, RAY_RADIUS, RaySpec

Array = npt.NDArray[np.float64]
EMPTY = Scene.of([])


def rotation(yaw: float, tilt: float = 0.0) -> tuple[tuple[float, float, float], ...]:
    c, s = cos(radians(yaw)), sin(radians(yaw))
    turn = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    c, s = cos(radians(tilt)), sin(radians(tilt))
    return tuple(map(tuple, turn @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])))


def decode_rays(values: npt.NDArray[np.float32], spec: RaySpec) -> list[tuple[int | None, float]]:
    """Tag (None: a miss, -1: an unlisted tag) and distance in metres of each ray."""
    rays: list[tuple[int | None, float]] = []
    for block in values.reshape(-1, spec.tags + 2):
        ones = np.flatnonzero(block[: spec.tags])
        assert len(ones) <= 1
        assert block[spec.tags] in (0.0, 1.0)
        missed = block[spec.tags] == 1.0
        assert not (missed and len(ones))
        tag = None if missed else int(ones[0]) if len(ones) else -1
        rays.append((tag, round(float(block[spec.tags + 1]) * RAY_LENGTH, 5)))
    return rays


def directions(yaw: float, spec: RaySpec) -> list[tuple[float, float]]:
    delta = spec.max_degrees / spec.per_side
    angles = [0.0]
    for i in range(1, spec.per_side + 1):
        angles += [i * delta, -i * delta]
    return [(sin(radians(yaw + a)), cos(radians(yaw + a))) for a in angles]


# --- an independent distance field -------------------------------------------------------------


def triangle_distance(p: Array, a: Array, b: Array, c: Array) -> Array:
    """Distance of points to a triangle: to its plane where they project inside, else its edges."""
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal)
    inside = np.ones(len(p), bool)
    best = np.full(len(p), np.inf)
    for u, v in ((a, b), (b, c), (c, a)):
        edge = v - u
        inside &= np.cross(edge, p - u) @ normal >= 0
        part = np.clip((p - u) @ edge / (edge @ edge), 0, 1)[:, None]
        best = np.minimum(best, np.linalg.norm(p - u - part * edge, axis=1))
    return np.where(inside, np.abs((p - a) @ normal), best)


def wedge_distance(p: Array, h: Array) -> Array:
    low, back, top = (-h[1], h[2]), (-h[1], -h[2]), (h[1], -h[2])
    points = np.array([[x, y, z] for x in (-h[0], h[0]) for y, z in (back, low, top)])
    best = np.full(len(p), np.inf)
    for face in itertools.combinations(range(6), 3):
        a, b, c = points[list(face)]
        normal = np.cross(b - a, c - a)
        if np.all((points - a) @ normal > -1e-9) or np.all((points - a) @ normal < 1e-9):
            best = np.minimum(best, triangle_distance(p, a, b, c))
    solid = np.all(np.abs(p) <= h, axis=1) & (h[2] * p[:, 1] + h[1] * p[:, 2] <= 0)
    return np.where(solid, 0.0, best)


def shell_distance(p: Array, h: Array) -> Array:
    angle = np.linspace(0, 2 * np.pi, 2000)
    ring = np.stack([h[0] * np.cos(angle), h[1] * np.sin(angle)], axis=1)
    outward = (p[:, 0] / h[0]) ** 2 + (p[:, 1] / h[1]) ** 2
    off = np.zeros(len(p))
    for scale, where in ((1.0, outward > 1), (SHELL_INNER, outward < SHELL_INNER**2)):
        for i in np.flatnonzero(where):
            off[i] = np.sqrt(np.min(np.sum((ring * scale - p[i, :2]) ** 2, axis=1)))
    return np.hypot(off, np.maximum(np.abs(p[:, 2]) - h[2], 0))


def distance(scene: Scene, k: int, world: Array) -> Array:
    p = (world - scene.center[k]) @ scene.rotation[k].astype(float)
    h = scene.half[k].astype(float)
    match Shape(int(scene.kind[k])):
        case Shape.SPHERE:
            return np.maximum(np.linalg.norm(p, axis=1) - h[0], 0)
        case Shape.BOX:
            return np.linalg.norm(np.maximum(np.abs(p) - h, 0), axis=1)
        case Shape.WEDGE:
            return wedge_distance(p, h)
        case Shape.SHELL:
            return shell_distance(p, h)


@st.composite
def primitives(draw: st.DrawFn, shapes: tuple[Shape, ...], *, round_shells: bool) -> Primitive:
    def number(low: float, high: float) -> float:
        return draw(st.floats(low, high, allow_nan=False))

    shape = draw(st.sampled_from(shapes))
    half = (number(0.0625, 4), number(0.0625, 4), number(0.0625, 4))
    if shape is Shape.SHELL:
        half = (max(half[0], 0.5), max(half[0] if round_shells else half[1], 0.5), half[2])
    return Primitive(
        shape,
        (number(0, 40), number(-1, 3), number(0, 40)),
        half,
        rotation=rotation(number(0, 360), draw(st.sampled_from((0.0, 0.0, 10.0, 90.0)))),
        tag=draw(st.integers(-1, 17)),
    )


def check_against_field(scene: Scene, origin: Array, yaw: float, tolerance: float) -> None:
    """No ray passes through anything, and each ends where it touches what it says."""
    spec = RaySpec(per_side=3, max_degrees=75, tags=18)
    rays = decode_rays(cast_rays(scene, origin, yaw, spec), spec)
    seen = [
        k
        for k in range(len(scene))
        if scene.active[k] and distance(scene, k, origin[None])[0] > RAY_RADIUS
    ]
    steps = np.array([[dx, 0, dz] for dx, dz in directions(yaw, spec)])
    lengths = np.array([length for _, length in rays])
    ends = origin + lengths[:, None] * steps
    ways = np.linspace(0, np.minimum(lengths, 60), 400)
    paths = origin + ways[:, :, None] * steps
    nearest = {k: distance(scene, k, paths.reshape(-1, 3)).reshape(ways.shape).min(0) for k in seen}
    at_end = {k: distance(scene, k, ends) for k in seen}
    for ray, (tag, length) in enumerate(rays):
        for k in seen:
            assert nearest[k][ray] >= RAY_RADIUS - tolerance, (k, tag, length)
        if tag is None:
            assert length == RAY_LENGTH
            continue
        x, _, z = ends[ray]
        at_wall = np.abs(np.array([x - 0.5, 39.5 - x, z - 0.5, 39.5 - z]))
        touched = [k for k in seen if abs(at_end[k][ray] - RAY_RADIUS) < tolerance]
        tags = [int(scene.tag[k]) for k in touched] + ([0] if at_wall.min() < 1e-3 else [])
        assert tag in tags


@settings(max_examples=25, deadline=None)
@given(
    st.lists(primitives((Shape.BOX, Shape.SPHERE, Shape.WEDGE), round_shells=True), max_size=6),
    st.floats(0.6, 39.4),
    st.floats(0.6, 39.4),
    st.floats(-360, 720),
)
def test_rays_agree_with_a_distance_field(
    items: list[Primitive], x: float, z: float, yaw: float
) -> None:
    check_against_field(Scene.of(items), np.array([x, 0.49, z]), yaw, 1e-4)


@settings(max_examples=10, deadline=None)
@given(
    st.lists(primitives((Shape.SHELL,), round_shells=False), min_size=1, max_size=2),
    st.floats(0.6, 39.4),
    st.floats(0.6, 39.4),
    st.floats(-360, 720),
)
def test_rays_agree_with_a_distance_field_on_tunnels(
    items: list[Primitive], x: float, z: float, yaw: float
) -> None:
    # The field's ring is a polygon of 2,000 sides.
    check_against_field(Scene.of(items), np.array([x, 0.49, z]), yaw, 5e-3)


# --- by hand -----------------------------------------------------------------------------------


def wall(
    center: tuple[float, float, float], *, tag: str = "Immovable", **more: object
) -> Primitive:
    half = more.pop("half", (0.5, 0.5, 0.5))
    return Primitive(Shape.BOX, center, half, tag=tag_index(tag), **more)  # type: ignore[arg-type]


def test_order_is_centre_right_left_and_walls_are_the_arena() -> None:
    spec = RaySpec(per_side=2, max_degrees=90)
    rays = decode_rays(cast_rays(EMPTY, (30.0, 0.49, 20.0), 0.0, spec), spec)
    assert [tag for tag, _ in rays] == [0] * 5
    by_hand = [19.5, 9.5 * 2**0.5, 19.5 * 2**0.5, 9.5, 29.5]
    assert [length for _, length in rays] == pytest.approx(by_hand, rel=1e-6)


def test_a_frontal_hit_is_the_surface_distance_less_the_radius() -> None:
    spec = RaySpec(per_side=1)
    scene = Scene.of([wall((20, 0.5, 30))])
    values = cast_rays(scene, (20, 0.49, 20), 0.0, spec)
    assert values.dtype == np.float32
    assert values.shape == (spec.size,)
    assert decode_rays(values, spec)[0] == (1, pytest.approx(9.0, rel=1e-6))
    assert values[13] == np.float32(9.0 / 200)


def test_what_touches_the_start_is_not_seen_and_what_is_behind_it_is() -> None:
    spec = RaySpec(per_side=1)
    zone = wall((20, -0.1, 20), tag="HotZone", half=(3, 0.25, 3), zone=True)
    against = wall((20, 0.5, 20.9))
    far = wall((20, 0.5, 35), tag="Movable")
    scene = Scene.of([zone, against, far])
    assert decode_rays(cast_rays(scene, (20, 0.49, 20), 0.0, spec), spec)[0] == (2, 14.0)
    # Seen again from a step aside.
    assert decode_rays(cast_rays(scene, (20, 0.49, 10), 0.0, spec), spec)[0][0] == 8


def test_an_unlisted_tag_is_a_hit_without_a_name() -> None:
    scene = Scene.of([wall((20, 0.5, 30), tag="DecoyGoal")])
    for tags, seen in ((12, -1), (18, 12)):
        spec = RaySpec(per_side=1, tags=tags)
        assert decode_rays(cast_rays(scene, (20, 0.49, 20), 0.0, spec), spec)[0] == (seen, 9.0)


def test_a_sensor_sees_what_a_single_cast_sees_in_the_scene_it_is_given() -> None:
    spec = RaySpec(per_side=2, tags=18)
    sensor = RaySensor(spec)
    near, far = (Scene.of([wall((20, 0.5, z))]) for z in (25, 30))
    for scene in (near, far, near):
        rays, velocity, position = sensor.observe(scene, (20.0, 0.49, 20.0), 90.0, (1.0, 2.0, 3.0))
        assert (rays == cast_rays(scene, (20.0, 0.49, 20.0), 90.0, spec)).all()
        assert velocity.tolist() == [-3.0, 2.0, 1.0]
        assert position.tolist() == [20.0, np.float32(0.49), 20.0]
