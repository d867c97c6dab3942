"""How fast the sensors see: rays, and camera frames beside a bare ray cast of the same scene."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from math import cos, inf, radians, sin, tan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.envs.sim.camera import FIELD_OF_VIEW, render
from animalcat.envs.sim.rays import cast_rays
from animalcat.envs.sim.scene import Primitive, Scene, Shape, Style
from animalcat.envs.sim.sight import meet_box, meet_shell, meet_sphere
from animalcat.envs.types import CameraSpec, RaySpec

EYE: Final = (20.0, 0.49, 20.0)
Floats = npt.NDArray[np.float32]


def scene(seed: int, boxes: int = 18, ramps: int = 3, balls: int = 4, tunnels: int = 0) -> Scene:
    """A scattered arena; nothing within 3 m of the eye."""
    rng = np.random.default_rng(seed)
    shapes = [Shape.BOX] * boxes + [Shape.WEDGE] * ramps + [Shape.SHELL] * tunnels
    return Scene.of(
        [_scattered(rng, shape, Style.PLAIN) for shape in shapes]
        + [_scattered(rng, Shape.SPHERE, Style.EMISSIVE) for _ in range(balls)]
    )


def _scattered(rng: np.random.Generator, shape: Shape, style: Style) -> Primitive:
    bearing, away = rng.uniform(0, 2 * np.pi), rng.uniform(5, 19)
    yaw = rng.uniform(0, 2 * np.pi)
    half = (0.8, 0.8, 0.8) if shape is Shape.SPHERE else tuple(rng.uniform(0.3, 2, 3).tolist())
    if shape is Shape.SHELL:
        half = (1.5, 1.5, 2.0)
    return Primitive(
        shape,
        (
            20 + away * sin(bearing),
            half[1] if shape is not Shape.SHELL else 0.0,
            20 + away * cos(bearing),
        ),
        half,
        rotation=((cos(yaw), 0, sin(yaw)), (0, 1, 0), (-sin(yaw), 0, cos(yaw))),
        tag=1,
        style=style,
    )


@njit(error_model="numpy")
def bare_cast(
    kind: npt.NDArray[np.uint8],
    center: Floats,
    rotation: Floats,
    half: Floats,
    x: float,
    y: float,
    z: float,
    yaw: float,
    n: int,
) -> Floats:
    """Depth of the nearest primitive, floor or wall for each pixel: a ray each, no shading."""
    focal = n / 2 / tan(radians(FIELD_OF_VIEW / 2))
    s, c = sin(radians(yaw)), cos(radians(yaw))
    depth = np.empty((n, n), np.float32)
    for row in range(n):
        v = (n / 2 - row - 0.5) / focal
        for column in range(n):
            u = (column + 0.5 - n / 2) / focal
            dx, dz = s + u * c, c - u * s
            best = (-0.01 - y) / v if v < 0.0 else inf
            best = min(best, ((40.0 if dx > 0.0 else 0.0) - x) / dx)
            best = min(best, ((40.0 if dz > 0.0 else 0.0) - z) / dz)
            for k in range(len(kind)):
                m = rotation[k]
                rx, ry, rz = x - center[k, 0], y - center[k, 1], z - center[k, 2]
                ox = m[0, 0] * rx + m[1, 0] * ry + m[2, 0] * rz
                oy = m[0, 1] * rx + m[1, 1] * ry + m[2, 1] * rz
                oz = m[0, 2] * rx + m[1, 2] * ry + m[2, 2] * rz
                lx = m[0, 0] * dx + m[1, 0] * v + m[2, 0] * dz
                ly = m[0, 1] * dx + m[1, 1] * v + m[2, 1] * dz
                lz = m[0, 2] * dx + m[1, 2] * v + m[2, 2] * dz
                hx, hy, hz = half[k, 0], half[k, 1], half[k, 2]
                if kind[k] == 1:
                    t = meet_sphere(ox, oy, oz, lx, ly, lz, hx)[0]
                elif kind[k] == 3:
                    t = meet_shell(ox, oy, oz, lx, ly, lz, hx, hy, hz)[0]
                else:
                    t = meet_box(ox, oy, oz, lx, ly, lz, hx, hy, hz, kind[k] == 2)[0]
                if 0.01 < t < best:
                    best = t
            depth[row, column] = best
    return depth


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Measure; medians of rates per second, over scenes of 25 primitives and all headings.

    Args:
        quick: Fewer repetitions.
    """
    scenes = [scene(seed) for seed in range(8)]
    tunnels = [scene(seed, boxes=14, tunnels=4) for seed in range(8)]
    rounds = 5 if quick else 25
    rows: list[dict[str, Any]] = []
    rays = RaySpec()
    for name, seen in (("rays, 25 primitives", scenes), ("rays, 4 of them tunnels", tunnels)):
        rate = _rate(lambda i, seen=seen: cast_rays(seen[i % 8], EYE, 37.0 * i, rays), 400, rounds)
        rows.append({"name": name, "median": rate * (2 * rays.per_side + 1), "unit": "rays/s"})
    for side in (84, 150):
        spec = CameraSpec(side)
        frames = _rate(
            lambda i, spec=spec: render(scenes[i % 8], EYE, 37.0 * i, spec, False), 16, rounds
        )
        bare = _rate(lambda i, side=side: _bare(scenes[i % 8], 37.0 * i, side), 4, rounds)
        rows.append(
            {
                "name": f"camera {side}x{side} / bare cast",
                "median": frames,
                "unit": "frames/s",
                "baseline": bare,
                "ratio": frames / bare,
            }
        )
    return rows


def _bare(seen: Scene, yaw: float, side: int) -> Floats:
    return bare_cast(seen.kind, seen.center, seen.rotation, seen.half, *EYE, yaw, side)


def _rate(call: Callable[[int], object], calls: int, rounds: int) -> float:
    """Median rate of `call(i)` per second, after one call that compiles it."""
    call(0)
    rates: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        for i in range(calls):
            call(i)
        rates.append(calls / (time.perf_counter() - began))
    return statistics.median(rates)
