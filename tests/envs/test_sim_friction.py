"""Friction between the agent and what it touches: both sides take their share."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.benchmarks import movement
from animalcat.envs.sim.friction import FIXED, Grip, give, rub
from animalcat.envs.sim.physics import FLOOR, Body, Box, Physics
from animalcat.envs.sim.vector import Vector

AGENT = (20.0, 0.49, 5.0)
POINT = (20.4, 10.3, 19.2)
HUGE = 1e9
"""kg m/s: more than the floor holds."""


def speed_at_point(impulse: Vector | None) -> np.ndarray:
    """Velocity of a point of a box in the air, a step after the box was pushed there."""
    box = Body((Box((0.5, 1.0, 1.5)),), (20.0, 10.0, 20.0), yaw=30.0, mass=50.0)
    physics = Physics(AGENT, [box])
    if impulse is not None:
        physics.push(0, POINT, impulse)
    physics.advance((0.0, 0.0, 0.0))
    return np.array(physics.grip(0, POINT, HUGE).velocity)


@pytest.mark.parametrize("impulse", [(7.0, 0.0, 0.0), (0.0, 7.0, 0.0), (3.0, -4.0, 5.0)])
def test_a_point_gives_in_to_an_impulse_as_the_engine_has_it(impulse: Vector) -> None:
    box = Body((Box((0.5, 1.0, 1.5)),), (20.0, 10.0, 20.0), yaw=30.0, mass=50.0)
    expected = Physics(AGENT, [box]).grip(0, POINT, HUGE).give @ impulse
    moved = speed_at_point(impulse) - speed_at_point(None)
    assert moved == pytest.approx(expected, rel=0.01, abs=0.002)  # it turns a little meanwhile


def test_what_cannot_move_gives_in_nowhere_and_takes_no_push() -> None:
    physics = Physics(AGENT, [Body((Box((1.0, 1.0, 1.0)),), (10.0, 1.0, 10.0))])
    for body in (FLOOR, 0):
        assert physics.grip(body, (10.0, 1.0, 9.0), HUGE) is FIXED
        physics.push(body, (10.0, 1.0, 9.0), (0.0, 0.0, 100.0))
    physics.advance((0.0, 0.0, 0.0))
    assert physics.position(0) == (10.0, 1.0, 10.0)


def test_the_floor_holds_a_block_at_rest_against_a_little_and_not_against_more() -> None:
    block = Body((Box((0.5, 0.5, 0.5)),), (20.0, 0.49, 20.0), mass=100.0)
    physics = Physics(AGENT, [block])
    hold = 0.6 * 100.0 * 9.81 * 0.02
    point = (20.0, 0.9, 19.5)
    assert not physics.grip(0, point, 0.9 * hold).give.any()
    assert physics.grip(0, point, 1.1 * hold).give.any()


def test_friction_that_can_makes_both_sides_equally_fast_and_keeps_momentum() -> None:
    ball = Grip((0.0, 0.0, 1.0), np.eye(3) / 25.0)
    velocity = (0.0, 0.0, 6.0)
    after = rub(velocity, velocity, (-1.0, 0.0, 0.0), 100.0, 100.0, ball)
    drag = 100.0 * (np.array(velocity) - after)
    assert ball.velocity + ball.give @ drag == pytest.approx(np.array(after))
    assert after == pytest.approx((0.0, 0.0, (6.0 * 100 + 1.0 * 25) / 125))


def test_friction_takes_its_limit_against_the_slip_and_not_against_the_motion() -> None:
    faster = Grip((0.0, 0.0, 9.0), np.eye(3) / 1e6)
    velocity = (0.0, 0.0, 6.0)
    assert rub(velocity, velocity, (-1.0, 0.0, 0.0), 0.5, 100.0) == (0.0, 0.0, 5.5)
    assert rub(velocity, velocity, (-1.0, 0.0, 0.0), 0.5, 100.0, faster) == (0.0, 0.0, 6.5)


def test_off_the_centre_a_point_gives_in_more_across_the_arm_and_not_along_it() -> None:
    across = give(10.0, np.ones(3), np.eye(3), np.array([2.0, 0.0, 0.0]))
    assert across == pytest.approx(np.diag([0.1, 4.1, 4.1]))


def test_an_agent_that_slides_along_a_block_takes_it_along() -> None:
    light, heavy = movement.dragged("LightBlock"), movement.dragged("HeavyBlock")
    assert light[0] > 0.2 > heavy[0] > 0.05  # without friction 0.04 and 0.004
    assert movement.dragged("LightBlock") == light
