"""Ways that geometry finds are walked in the simulator, in little more time than they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.routes import Route
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec
from tests.things import ON_FOOT

SECONDS_PER_DECISION = 0.06
DEGREES_PER_DECISION = 6.0


def walk_along(arena: Arena, way: Route, yaw: float) -> tuple[float, float]:
    """Go from bend to bend, slowly to turns; return the last reward and the seconds."""
    environment = SimEnvironment(ObservationSpec(None, None))
    try:
        environment.load(arena, 0)
        step, points, k = environment.step(0), way.points, 1
        turns = {turn.at for turn in way.turns()}
        for decision in range(1, 400):
            (x, _, z), (_, _, speed) = step.observation.position, step.observation.velocity
            while k < len(points) - 1 and _is_passed(points[k - 1], points[k], float(x), float(z)):
                k += 1
            to = points[k]
            away = math.hypot(to.x - x, to.z - z)
            off = (math.degrees(math.atan2(to.x - x, to.z - z)) - yaw + 180) % 360 - 180
            turn = 0 if abs(off) < DEGREES_PER_DECISION / 2 else 1 if off > 0 else 2
            yaw += DEGREES_PER_DECISION * (0, 1, -1)[turn]
            slow = to in turns and away < 1.4 + speed**2 / 24
            forward = abs(off) < 12 and speed < (3 if slow else 27)
            step = environment.step(3 * forward + turn)
            if step.ended_by is not None:
                return step.reward, decision * SECONDS_PER_DECISION
        return 0.0, math.inf
    finally:
        environment.close()


def _is_passed(a: tuple[float, ...], b: tuple[float, ...], x: float, z: float) -> bool:
    away = math.hypot(b[0] - x, b[2] - z)
    beyond = (b[0] - a[0]) * (x - b[0]) + (b[2] - a[2]) * (z - b[2]) > 0
    return away < 0.35 or (away < 1.5 and beyond)


@pytest.mark.parametrize("name", ON_FOOT)
def test_a_way_is_walked_in_its_time(name: str) -> None:
    arena = Arena(time_limit=500, items=ON_FOOT[name])
    placement = place(arena, np.random.default_rng(0))
    assert not placement.skipped
    way = Survey(placement).way
    assert not isinstance(way, str)
    reward, seconds = walk_along(arena, way, placement.agent.yaw)
    assert reward > 0.5
    needed = way.seconds(placement.agent.yaw)
    # What it leaves out: steps, slopes and falls cost up to a second, and so does slowing to turn.
    level = max(point.y for point in way.points) - min(point.y for point in way.points) < 0.1
    spare = 0.1 + (0.0 if level else 1.2) + 1.5 * len(way.turns())
    assert needed - 0.1 <= seconds <= needed + spare
