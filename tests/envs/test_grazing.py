"""Spheres swept over the tops of boxes in single precision: what PhysX 4.1's library answers."""

from __future__ import annotations

from math import cos, inf, sin

import numpy as np
import numpy.typing as npt
import pytest

from animalcat.envs.sim.grazing import INSIDE, aims, over_box
from animalcat.envs.sim.rays import cast_rays
from animalcat.envs.sim.scene import Primitive, Scene, Shape, tag_index
from animalcat.envs.types import RAY_LENGTH, RaySpec

HALF = np.array([1.0, 0.25, 2.5], np.float32)
CENTER = np.zeros(3, np.float32)


def axes(lean: float) -> npt.NDArray[np.float32]:
    """Of a box that leans, so that its top rises toward +z if the angle (in radians) is < 0."""
    c, s = cos(lean), sin(lean)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]], np.float32)


def sweep_box(gap: float, lean: float = 0.0, yaw: float = 0.0) -> float:
    """Distance over a box of 2 x 0.5 x 5 m, from 0.5 m before its rear edge, this far above it."""
    [aim, *_] = aims(0.0, -2.0, yaw, 1, 30.0)
    return over_box(axes(lean), CENTER, HALF, 0.0, 0.75 + gap, -2.0, aim)


@pytest.mark.parametrize(("gap", "expected"), [(1e-3, inf), (1e-6, inf), (0.0, INSIDE)])
def test_a_level_top_is_passed_over_or_the_sphere_is_in_it(gap: float, expected: float) -> None:
    assert sweep_box(gap) == expected


def test_rounding_decides_at_the_far_edge() -> None:
    # PhysX 4.1 finds the front edge, 4.5 m ahead, although the sphere passes 2e-7 m above it.
    assert sweep_box(2e-7) == 4.5
    assert sweep_box(2e-7, yaw=30.0) == inf


@pytest.mark.parametrize(("gap", "distance"), [(1e-5, 3.0041), (1e-6, 2.1040), (-1e-5, 1.0014)])
def test_a_top_that_rises_by_a_millionth_stops_the_sphere(gap: float, distance: float) -> None:
    # Without rounding: 2 m and the gap over the slope of 1e-5, less what the gap is at the start.
    assert sweep_box(gap, lean=-1e-5) == pytest.approx(distance, abs=1e-4)
    assert sweep_box(gap, lean=1e-5) in (INSIDE, inf)


def test_directions_are_unit_and_radii_are_rounded() -> None:
    rays = aims(20.0, 2.0, 6.0, 7, 30.0)
    assert rays.shape == (15, 4)
    assert np.hypot(rays[:, 0], rays[:, 1]) == pytest.approx(1.0, abs=1e-6)
    assert rays[0, :2] == pytest.approx([sin(np.radians(6)), cos(np.radians(6))], abs=1e-7)
    assert rays[1, 0] > rays[0, 0] > rays[2, 0]  # right before left
    assert rays[:, 2] == pytest.approx(RAY_LENGTH, abs=1e-4)
    assert rays[:, 3] == pytest.approx(0.5, abs=1e-6)
    assert len(set(rays[:, 3].tolist())) > 1


def test_the_sensor_asks_only_for_boxes_that_lean() -> None:
    spec = RaySpec(1, 30.0)

    def distance(lean: float, gap: float) -> float:
        c, s = cos(lean), sin(lean)
        rotation = ((1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c))
        box = Primitive(
            Shape.BOX, (20.0, 0.0, 20.0), (1.0, 0.25, 2.5), rotation=rotation,
            tag=tag_index("Immovable"),
        )  # fmt: skip
        rays = cast_rays(Scene.of([box]), (20.0, 0.75 + gap, 18.0), 0.0, spec)
        return float(rays[spec.tags + 1]) * RAY_LENGTH

    wall = 21.5  # of the arena, beyond the box
    assert distance(0.0, 0.0) == pytest.approx(wall)
    assert distance(0.0, 2e-7) == pytest.approx(wall)
    assert distance(-1e-5, 1e-6) == pytest.approx(2.1, abs=0.1)
    # Where nothing grazes, leaning by so little is of no effect.
    assert distance(-1e-5, 2e-3) == pytest.approx(wall)
