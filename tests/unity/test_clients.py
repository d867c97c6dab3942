"""Unmodified clients play on the stand-in, and see what the simulator gives."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from animalcat.arena_configs.model import Arena
from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec
from tests.small import start

from .arenas import FORWARD, LEFT, RIGHT, near_goal, spot, write
from .compare import assert_same
from .conftest import LOST, Client, Drive, free_port
from .expected import Game


def test_a_plain_loop_sees_what_the_simulator_gives(
    client: Client, drive: Drive, tmp_path: Path
) -> None:
    """Two arenas to their ends in turn, a reset, a reset with another file, and on in it."""
    arenas, other = (near_goal(), spot(30, time_limit=6)), near_goal(6)
    first, second = write(tmp_path, "first.yml", *arenas), write(tmp_path, "second.yml", other)
    steps = [("step", *action) for action in (FORWARD, RIGHT, FORWARD, LEFT, FORWARD) * 10]
    commands = [*steps, ("reset", ""), *steps[:9], ("reset", second), *steps[:25]]
    record = drive(client, commands, arenas_configurations=first, useRayCasts=True)
    assert "error" not in record.report
    # On a busy machine the library can stop its server before the word that it closes is out.
    assert record.report["returncode"] in (0, LOST)
    shape = [3, 16, 16] if client.channels_first else [16, 16, 3]
    assert record.behaviour == {
        "branches": [3, 3],
        "continuous": 0,
        "names": ["CameraSensor", "RayPerceptionSensor", "VectorSensor_size7"],
        "shapes": [shape, [70], [7]],
    }
    game = Game(ObservationSpec(CameraSpec(16), RaySpec(2, 60.0)), arenas)
    assert_same(client, record.messages, game.follow(commands, [other]))
    ends = [message.terminal.reward for message in record.messages if message.terminal]
    assert max(ends) > 0.5 > 0 > min(ends), "a goal and a time-out"


@pytest.mark.data
def test_the_real_builds_own_trace_comes_out_at_the_client(
    client: Client, drive: Drive, data_dir: Path, tmp_path: Path
) -> None:
    """A recorded run of the real build 3.1.3, from its reset on, through the whole client."""
    with (data_dir / "unity-traces" / "flat-floor-2.csv").open() as file:
        rows = list(csv.DictReader(file))
    arena = Arena(time_limit=500, items=(start(x=20, z=1),))
    actions = [("step", int(row["action_move"]), int(row["action_turn"])) for row in rows[:-1]]
    record = drive(
        client,
        [("reset", ""), *actions],
        arenas_configurations=write(tmp_path, "flat.yml", arena),
        useCamera=False,
    )
    traced = [[float(v) for v in list(row.values())[3:]] for row in rows]
    seen = [message.decision.observations[0][1:] for message in record.messages[1:]]  # pyright: ignore[reportOptionalMemberAccess]
    np.testing.assert_allclose(seen, traced, atol=1e-3)


def play_out(client: Client, agent: str, executable: str, arena: Path) -> list[dict[str, float]]:
    """Return and number of steps of three episodes of one of animalai's own agents."""
    out = client.run("agents.py", agent, executable, str(free_port()), arena, "3")
    episodes = json.loads(out.splitlines()[-1])
    assert len(episodes) == 3
    return episodes


@pytest.mark.slow
def test_animalais_braitenberg_agent_goes_to_the_goal_it_sees(
    client: Client, executable: str, tmp_path: Path
) -> None:
    arena = write(tmp_path, "goal.yml", near_goal(10))
    for episode in play_out(client, "braitenberg", executable, arena):
        assert episode["return"] > 0.8
