"""Marked places are seen at every physics step, whatever a decision lasts."""

from __future__ import annotations

import pytest

from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.backends import make_environment
from animalcat.envs.places import can_watch, watch, watchable
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import Environment, ObservationSpec, Phase, Step
from animalcat.envs.unity.late import LateSimEnvironment
from tests.small import FORWARD, start, thing

AHEAD = Arena(time_limit=60, items=(start(z=3.0), thing("GoodGoal", 20, 0, 30)))
WRONG, RIGHT = MarkedPlace(False, 20, 14, 0.3), MarkedPlace(True, 20, 22, 3.0)
PLACES = (RIGHT, WRONG)


def course(environment: Environment, *places: MarkedPlace, turn: int = 0) -> list[Step]:
    steps = [environment.load(AHEAD, 0)]
    watch(environment, places)
    while steps[-1].phase is not Phase.LAST:
        steps.append(environment.step(FORWARD + turn * (len(steps) % 2)))
    return steps


def spec(period: int) -> ObservationSpec:
    return ObservationSpec(rays=None, decision_period=period)


@pytest.mark.parametrize("turn", [0, 1])
def test_every_decision_period_sees_the_place_that_was_reached_first(turn: int) -> None:
    found = [course(SimEnvironment(spec(p)), *PLACES, turn=0)[-1].reached for p in range(1, 21)]
    assert found == [2] * 20
    one = course(SimEnvironment(spec(1)), *PLACES, turn=turn)
    # What the positions at every step say.
    inside = [
        number
        for step in one[1:]
        for number, place in enumerate(PLACES, 1)
        if place.holds(*step.observation.position[[0, 2]].tolist())
    ]
    assert one[-1].reached == (inside or [0])[0]


def test_a_place_that_was_left_within_one_decision_is_restored_with_a_snapshot() -> None:
    environment, other = SimEnvironment(spec(20)), SimEnvironment(spec(20))
    environment.load(AHEAD, 0)
    environment.watch(PLACES)
    while not environment.step(FORWARD).reached:
        pass
    assert other.restore(environment.snapshot()).reached == 2
    environment.load(AHEAD, 0)
    assert environment.step(FORWARD).reached == 0  # another episode, in which nothing is watched
    with pytest.raises(RuntimeError, match="no arena"):
        SimEnvironment(spec(20)).watch(PLACES)


def test_a_backend_of_decisions_alone_watches_only_if_they_are_physics_steps() -> None:
    one, three = (watchable(LateSimEnvironment(spec(period))) for period in (1, 3))
    assert isinstance(three, LateSimEnvironment)
    assert course(three, *PLACES)[-1].reached == 0
    assert course(one, *PLACES)[-1].reached == 2
    assert course(one)[-1].reached == 0
    simulator = make_environment("sim", spec(3))
    assert watchable(simulator) is simulator
    assert can_watch("sim", spec(20))
    assert can_watch("unity:/a/build", spec(1))
    assert not can_watch("unity:/a/build", spec(2))
