"""The agent moves as in the real Unity build: recorded traces, open loop and a decision ahead."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.placement import place
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.physics import Vector
from animalcat.envs.sim.world import World
from animalcat.envs.testing import FORWARD, NOOP, start, thing
from animalcat.envs.types import ObservationSpec

pytestmark = pytest.mark.filterwarnings("error")

PLAIN = ObservationSpec(rays=None, decision_period=1)

# The actions of ramp-and-wall, 3 x move + turn for each decision from row 0 on, found by beam
# search over the nine actions; at every decision the test shows that no other fits better.
RAMP_ACTIONS = [
    int(digit)
    for digit in "0747777144455334343333552201012222020686827774443335355523054587171445550"
]
# Off the ramp's edge the agent glances off the platform's face in the air; there the real build
# took the face for ground (its normal had y > 0 by a rounding error) and thrust backward.
GLANCE = 32


def rows(path: Path) -> list[dict[str, float]]:
    with path.open() as file:
        return [
            {key: float(value or 0) for key, value in row.items()}  # no action after the last row
            for row in csv.DictReader(file)
        ]


def position(row: dict[str, float]) -> Vector:
    return row["x"], row["y"], row["z"]


def velocity(row: dict[str, float]) -> Vector:
    return row["v_right"], row["v_up"], row["v_forward"]


@pytest.mark.data
@pytest.mark.parametrize("name", ["flat-floor", "flat-floor-2"])
def test_the_floor_traces_replay_open_loop(
    data_dir: Path, name: str, record_property: pytest.RecordProperty
) -> None:
    trace = rows(data_dir / "unity-traces" / f"{name}.csv")
    environment = SimEnvironment(PLAIN)
    environment.load(Arena(time_limit=500, items=(start(z=1.0),)), seed=0)
    seen = environment.step(NOOP).observation  # row 0 is one physics step after the reset
    far = fast = 0.0
    for row in trace:
        far = max(far, float(np.abs(seen.position - position(row)).max()))
        fast = max(fast, float(np.abs(seen.velocity - velocity(row)).max()))
        for _ in range(3):
            action = int(3 * row["action_move"] + row["action_turn"])
            seen = environment.step(action).observation
    record_property("metres", far)
    record_property("metres per second", fast)
    assert far < 1e-4
    assert fast < 3e-5


def heading(vector: Vector, yaw: float) -> Vector:
    """A vector in the agent's frame, in the world's."""
    sin, cos = math.sin(math.radians(yaw)), math.cos(math.radians(yaw))
    return vector[0] * cos + vector[2] * sin, vector[1], vector[2] * cos - vector[0] * sin


@pytest.mark.data
def test_ramp_and_wall_a_decision_ahead(
    data_dir: Path, record_property: pytest.RecordProperty
) -> None:
    trace = rows(data_dir / "unity-traces" / "ramp-and-wall.csv")
    arena = load_config(data_dir / "unity-traces" / "ramp-and-wall.yml").config.arenas[0]
    placement = place(arena, np.random.default_rng(0))

    def ahead(index: int, yaw: float, grounded: bool, action: int) -> tuple[float, World]:
        """Speed error after three physics steps from a row, the ramp being settled."""
        world = World(placement)
        world.play(0, 0, 8)
        row = trace[index]
        world.agent.put(position(row), heading(velocity(row), yaw), yaw, grounded)
        world.play(*divmod(action, 3), 3)
        wrong = np.subtract(world.agent.local_velocity, velocity(trace[index + 1]))
        return float(np.abs(wrong).max()), world

    yaw, grounded = 0.0, False
    errors: list[float] = []
    for index, action in enumerate(RAMP_ACTIONS):
        error, world = ahead(index, yaw, grounded, action)
        others = min(ahead(index, yaw, grounded, other)[0] for other in range(9))
        assert error <= others + 1e-5 or index == GLANCE
        errors.append(error)
        yaw, grounded = world.agent.yaw, world.agent.grounded
    meeting, climbing, leaving = errors[19], errors[20:24], errors[24]
    record_property("m/s meeting the ramp", meeting)
    record_property("m/s on the ramp", max(climbing))
    record_property("m/s at the ramp's edge", leaving)
    assert meeting < 0.02
    assert max(climbing) < 0.007
    assert leaving < 0.003
    assert errors[31] < 0.004  # into the platform's face from the air
    assert errors[GLANCE] > 1.0  # the one decision that differs: see GLANCE
    corner, known = errors[7], {7, 19, 20, 21, 22, 23, 24, 31, GLANCE}
    assert corner < 2e-4
    rest = [error for index, error in enumerate(errors) if index not in known]
    record_property("m/s on the floor, in the air, at walls", max(rest))
    assert max(rest) < 2e-5


def test_full_thrust_from_rest_and_the_resting_height() -> None:
    environment = SimEnvironment(ObservationSpec(rays=None))
    environment.load(Arena(items=(start(),)), seed=0)
    for _ in range(8):
        environment.step(NOOP)
    seen = environment.step(FORWARD).observation
    assert seen.velocity[2] == pytest.approx(2.4810271, abs=1e-6)  # the real trace
    assert seen.position[1] == pytest.approx(0.49000004, abs=1e-7)


def test_a_wall_stops_the_agent_where_the_real_build_stops_it() -> None:
    environment = SimEnvironment(ObservationSpec(rays=None))
    wall = thing("Wall", 20.0, 0.0, 25.0, size=(40.0, 1.5, 30.0))
    environment.load(Arena(items=(start(), wall)), seed=0)
    for _ in range(60):
        step = environment.step(FORWARD)
    assert step.observation.position[2] == pytest.approx(9.515, abs=1e-4)
    assert np.abs(step.observation.velocity).max() < 1e-5


def test_the_agent_turns_six_degrees_a_decision_also_in_the_air() -> None:
    environment = SimEnvironment(ObservationSpec(rays=None))
    environment.load(Arena(items=(start(),)), seed=0)
    for _ in range(15):  # from 5 on: a quarter turn right, begun while still falling
        environment.step(1)
    for _ in range(3):
        step = environment.step(FORWARD)
    assert step.observation.position[0] > 20.3
    assert step.observation.position[2] == pytest.approx(5.0, abs=1e-5)


def test_a_frozen_agent_neither_moves_nor_pays() -> None:
    environment = SimEnvironment(ObservationSpec(rays=None, decision_period=5))
    item = start().model_copy(update={"frozen_agent_delays": (2.0,)})
    environment.load(Arena(time_limit=100, items=(item,)), seed=0)
    for _ in range(20):
        step = environment.step(4)
        assert (step.reward, step.observation.health) == (0.0, 100.0)
    assert step.observation.position[[0, 2]].tolist() == [20.0, 5.0]
    step = environment.step(FORWARD)
    assert step.reward == pytest.approx(-5 / 500)
    assert step.observation.velocity[2] > 3.0
    assert step.observation.velocity[0] == 0.0
