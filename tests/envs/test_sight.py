"""Rays that run along the sides of what they meet."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.envs.sim.camera import render
from animalcat.envs.sim.scene import Primitive, Scene, Shape, Style
from animalcat.envs.sim.visibility import clear_share, hiders
from animalcat.envs.types import CameraSpec

BALL = Primitive(Shape.SPHERE, (20.0, 0.5, 24.0), (0.5, 0.5, 0.5))
"""Straight ahead of the eye, so that rays to it are parallel to an axis."""
EYE = (20.0, 0.5, 2.0)


def test_the_middle_column_of_an_odd_camera_shows_a_block() -> None:
    scene = Scene.of([Primitive(Shape.BOX, (20.0, 2.0, 20.0), (4.0, 2.0, 2.0))])
    for yaw, eye in ((0.0, (20.0, 1.0, 12.0)), (180.0, (20.0, 1.0, 28.0))):
        seen = render(scene, eye, yaw, CameraSpec(41), dark=False)
        middle, beside = seen[12:22, 20].astype(int), seen[12:22, 19]
        assert np.abs(middle - beside).max() <= 1


@pytest.mark.parametrize("shape", [Shape.BOX, Shape.WEDGE])
@pytest.mark.parametrize(("style", "share"), [(0, 0.0), (3, 1.0)])
def test_what_stands_straight_before_a_ball_hides_it_unless_it_is_glass(
    shape: Shape, style: int, share: float
) -> None:
    wall = Primitive(shape, (20.0, 2.0, 20.0), (3.0, 2.0, 2.0), style=Style(style))
    scene = Scene.of([BALL, wall])
    assert clear_share(scene, hiders(scene, 0), EYE, BALL.center, 0.5) == share
