"""`animalai` 6's own Gymnasium wrappers, one environment and several, on the stand-in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from animalcat.envs.types import CameraSpec, ObservationSpec, RaySpec

from .arenas import FORWARD, near_goal, write
from .conftest import Client, Command, free_port
from .expected import Game

GOAL = near_goal(4)


@pytest.mark.parametrize("kind", ["single", "sync", pytest.param("async", marks=pytest.mark.slow)])
def test_a_wrapper_gives_what_the_simulator_gives(
    newest: Client, executable: str, tmp_path: Path, kind: str
) -> None:
    arena, path = write(tmp_path, "goal.yml", GOAL), tmp_path / "seen.npz"
    newest.run("wrapped.py", kind, executable, str(free_port()), arena, path)
    seen = dict(np.load(path))
    steps = len([name for name in seen if name.endswith("/reward")])
    # The wrapper's constructor resets a second time, and then the script does.
    turns = [(1, 1) if step % 3 == 2 else FORWARD for step in range(steps)]
    commands: list[Command] = [("reset", ""), ("reset", ""), *(("step", *turn) for turn in turns)]
    game = Game(ObservationSpec(CameraSpec(16), RaySpec(2, 60.0)), [GOAL])
    _, _, reset, *expected = game.follow(commands)

    assert reset.decision is not None
    _assert_same(seen, "reset", reset.decision.observation, kind)
    for step, message in enumerate(expected):
        told = message.terminal or message.decision
        assert told is not None
        _assert_same(seen, str(step), told.observation, kind)
        np.testing.assert_allclose(seen[f"{step}/reward"], told.reward, atol=1e-6)
        assert (seen[f"{step}/terminated"] == (message.terminal is not None)).all()
    assert seen[f"{steps - 1}/terminated"].all(), "it went to the goal"


def _assert_same(seen: dict[str, np.ndarray], name: str, wanted: object, kind: str) -> None:
    """Every sensor of every environment is the simulator's."""
    for sensor in ("camera", "rays", "health", "velocity", "position"):
        value = np.asarray(getattr(wanted, sensor))
        if sensor == "camera":
            value = np.moveaxis(value, 2, 0) / np.float32(255)
        found = seen[f"{name}/{sensor}"]
        for one in [found] if kind == "single" else found:
            np.testing.assert_array_equal(one, value.astype(np.float32), f"{name}/{sensor}")
