"""What the simulator reads of bodies without asking PhysX for each, and zones within reach."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from animalcat.envs.sim.physics import STATE, Ball, Body, Physics
from animalcat.envs.sim.zones import Zone

AGENT = (20.0, 10.0, 5.0)
BALL = Body((Ball(0.5),), (10.0, 3.0, 30.0), mass=1.0)


def places(physics: Physics) -> list[list[float]]:
    """Where the bodies that can move are, by their packed states."""
    states = np.frombuffer(physics.state(), np.float32).reshape(-1, STATE)
    return states[:, 4:7].tolist()


def test_states_are_those_of_now_without_a_step_in_between() -> None:
    physics = Physics(AGENT, [BALL])
    physics.advance((0.0, 0.0, 0.0))
    fallen = places(physics)
    other = physics.add(Body(BALL.colliders, (1.0, 2.0, 3.0), mass=1.0))
    assert places(physics) == [*fallen, [1.0, 2.0, 3.0]]
    physics.move(other, (4.0, 5.0, 6.0))
    assert places(physics) == [*fallen, [4.0, 5.0, 6.0]]
    physics.place_agent((30.0, 1.0, 30.0))
    assert places(physics) == [*fallen, [4.0, 5.0, 6.0]]
    physics.remove(0)
    assert places(physics) == [[4.0, 5.0, 6.0]]


METRES = st.floats(-5.0, 5.0)
EXTENT = st.floats(0.0, 4.0)


@given(
    st.tuples(METRES, METRES, METRES),
    st.tuples(EXTENT, EXTENT, EXTENT),
    st.floats(-360.0, 360.0),
    st.tuples(METRES, METRES, METRES),
    st.tuples(METRES, METRES, METRES),
)
def test_a_zone_that_the_agent_can_come_to_is_within_its_reach(
    center: tuple[float, float, float],
    half: tuple[float, float, float],
    yaw: float,
    here: tuple[float, float, float],
    there: tuple[float, float, float],
) -> None:
    zone = Zone(center, half, yaw, deadly=True)
    way = math.dist(here, there)
    if zone.holds(there):
        assert zone.within(way + 1e-9, here)
    if zone.within(way, there):
        assert zone.gap(there) <= way + 0.5
