"""Friction between the agent and what it touches, as the physics gives it to a body that cannot
turn."""

from __future__ import annotations

import pytest

from animalcat.envs.sim.movement import AgentBody
from animalcat.envs.sim.physics import AGENT_DRAG, FRICTION, GRAVITY, Physics
from animalcat.envs.types import PHYSICS_STEP
from tests.envs import motion

KEEP = 1.0 - AGENT_DRAG * PHYSICS_STEP
RESTING = GRAVITY * PHYSICS_STEP * KEEP
"""m/s that the floor gives an agent at rest in a step."""


def sliding(height: float, fall: float, speed: float) -> AgentBody:
    """An agent in the step after it was at this height, with these speeds."""
    agent = AgentBody(Physics((20.0, 0.49, 5.0), []), 0.0)
    agent.put((20.0, height, 5.0), (0.0, -fall, speed), 0.0, grounded=False)
    agent.step(0, 0)
    return agent


@pytest.mark.parametrize("speed", [5.0, 0.5, 0.15])
def test_the_floor_slows_an_agent_as_far_as_its_weight_allows(speed: float) -> None:
    after = max(0.0, speed * KEEP - FRICTION * RESTING)
    assert sliding(0.49, 0.0, speed).velocity == pytest.approx((0.0, 0.0, after), abs=1e-6)


def test_the_floor_stops_a_slow_agent_at_once() -> None:
    # A ball that could roll would keep 5/7 of its speed.
    assert sliding(0.49, 0.0, 0.1).velocity == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)


def test_a_landing_takes_speed_by_its_impulse_and_more_of_the_way_by_its_depth() -> None:
    fall, speed, depth = 3.387, 8.5, 0.038
    impulse = (fall + GRAVITY * PHYSICS_STEP) * KEEP
    agent = sliding(0.49 - depth, fall, speed)
    assert agent.velocity[2] == pytest.approx(speed * KEEP - FRICTION * impulse, abs=1e-4)
    pushed = impulse + 0.8 * depth / PHYSICS_STEP
    way = (speed * KEEP - FRICTION * pushed) * PHYSICS_STEP
    assert agent.position[2] - 5.0 == pytest.approx(way, abs=1e-5)
    assert agent.grounded


def test_an_agent_that_slides_along_a_block_takes_it_along() -> None:
    light, heavy = motion.drag_object("LightBlock"), motion.drag_object("HeavyBlock")
    assert light[0] > 0.2 > heavy[0] > 0.05  # without friction 0.04 and 0.004
    assert motion.drag_object("LightBlock") == light
