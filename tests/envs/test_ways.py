"""Ways that geometry finds are walked in the simulator, in little more time than they say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.arena_configs.features import Survey
from animalcat.arena_configs.model import Arena, Item, Vector3
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.routes import Route
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec

SECONDS_PER_DECISION = 0.06
DEGREES_PER_DECISION = 6.0


def thing(name: str, x: float, z: float, *size: float, y: float = 0, yaw: float = 0) -> Item:
    sizes = (Vector3(x=size[0], y=size[1], z=size[2]),) if size else ()
    return Item(name=name, positions=(Vector3(x=x, y=y, z=z),), sizes=sizes, rotations=(yaw,))


AGENT = thing("Agent", 20, 5)
GOAL = thing("GoodGoal", 20, 35, 2, 2, 2)
ARENAS = {
    "open": (AGENT, GOAL),
    "behind": (thing("Agent", 20, 5, yaw=180), GOAL),
    "zigzag": (AGENT, thing("Wall", 15, 15, 30, 3, 1), thing("Wall", 25, 25, 30, 3, 1), GOAL),
    "step": (AGENT, thing("Wall", 20, 20, 40, 0.2, 10), GOAL),
    "ramp": (
        AGENT,
        thing("Wall", 20, 33, 12, 2, 12),
        thing("Ramp", 20, 24, 5, 2, 6, yaw=180),
        thing("GoodGoal", 20, 35, 2, 2, 2, y=2),
    ),
    "down": (
        thing("Agent", 20, 5, y=1),
        thing("Wall", 20, 20, 1, 1, 40),
        thing("GoodGoal", 32, 30, 1, 1, 1),
    ),
    "tunnel": (
        AGENT,
        thing("CylinderTunnel", 20, 20, 6, 6, 6),
        thing("Wall", 8.3, 20, 16.6, 5, 1),
        thing("Wall", 31.7, 20, 16.6, 5, 1),
        GOAL,
    ),
    "between lava": (
        AGENT,
        thing("DeathZone", 9, 20, 18, 0.5, 10),
        thing("DeathZone", 31, 20, 18, 0.5, 10),
        GOAL,
    ),
}


def walked(arena: Arena, way: Route, yaw: float) -> tuple[float, float]:
    """Go from bend to bend, slowly to turns; return the last reward and the seconds."""
    environment = SimEnvironment(ObservationSpec(None, None))
    try:
        environment.load(arena, 0)
        step, points, k = environment.step(0), way.points, 1
        turns = {turn.at for turn in way.turns()}
        for decision in range(1, 400):
            (x, _, z), (_, _, speed) = step.observation.position, step.observation.velocity
            while k < len(points) - 1 and _passed(points[k - 1], points[k], float(x), float(z)):
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


def _passed(a: tuple[float, ...], b: tuple[float, ...], x: float, z: float) -> bool:
    away = math.hypot(b[0] - x, b[2] - z)
    beyond = (b[0] - a[0]) * (x - b[0]) + (b[2] - a[2]) * (z - b[2]) > 0
    return away < 0.35 or (away < 1.5 and beyond)


@pytest.mark.parametrize("name", ARENAS)
def test_a_way_is_walked_in_its_time(name: str) -> None:
    arena = Arena(time_limit=500, items=ARENAS[name])
    placement = place(arena, np.random.default_rng(0))
    assert not placement.skipped
    way = Survey(placement).way
    assert not isinstance(way, str)
    reward, seconds = walked(arena, way, placement.agent.yaw)
    assert reward > 0.5
    needed = way.seconds(placement.agent.yaw)
    # What it leaves out: steps, slopes and falls cost up to a second, and so does slowing to turn.
    level = max(point.y for point in way.points) - min(point.y for point in way.points) < 0.1
    spare = 0.1 + (0.0 if level else 1.2) + 1.5 * len(way.turns())
    assert needed - 0.1 <= seconds <= needed + spare
