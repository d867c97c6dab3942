"""`animalcat/Arena-v0`, one or several, and `animalai`'s own wrappers on the stand-in: the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

import animalcat  # noqa: F401  makes the environment known
from animalcat.envs.gym import ArenaEnv

from .conftest import Client, free_port

CHANCE = """\
!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 250
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 10.5}]
      sizes: [!Vector3 {x: -1, y: -1, z: -1}]
    - !Item
      name: Wall
      positions: [!Vector3 {x: -1, y: 0, z: 30}, !Vector3 {x: -1, y: 0, z: 35}]
      sizes: [!Vector3 {x: 3, y: 2, z: 1}, !Vector3 {x: 5, y: 4, z: 1}]
"""
"""A goal within 40 decisions; its size and reward, and places and colours of walls are drawn."""
AS_ANIMALAI = {"animalai_reset": True, "rng": "unity"}
SIGHT = {"camera": True, "resolution": 16}
ENVIRONMENTS = 2
"""In a vector environment, with the seeds 0 and 1; `animalai` counts its seeds like that too."""

Array = npt.NDArray[Any]
Seen = dict[str, Array]


def turning(step: int) -> tuple[int, int]:
    """The actions of clients/wrapped.py."""
    return 1, int(step % 3 == 2)


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    path = tmp_path / "chance.yml"
    path.write_text(CHANCE)
    return path


def as_animalai(seen: dict[str, Array]) -> Seen:
    """What the wrapper makes of an observation: (C, H, W) from 0 to 1, and health as a number."""
    camera = np.moveaxis(seen["camera"], -1, -3) / np.float32(255)
    return {**seen, "camera": camera.astype(np.float32), "health": seen["health"][..., 0]}


def third_episode(env: gymnasium.Env[Any, Any], seed: int) -> dict[str, Array]:
    """The episode after the two resets that `animalai` does when it wraps an environment."""
    env.reset(seed=seed)
    env.reset()
    first, _ = env.reset()
    diary = {f"reset/{key}": value for key, value in as_animalai(first).items()}
    for step in range(40):
        seen, reward, terminated, truncated, _ = env.step(np.array(turning(step)))
        diary |= {f"{step}/{key}": value for key, value in as_animalai(seen).items()}
        diary |= {f"{step}/reward": np.array(reward), f"{step}/terminated": np.array(terminated)}
        assert not truncated
        if terminated:
            break
    return diary


def assert_same(found: Seen, wanted: Seen) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        if name.endswith("reward"):  # a double here, a single on the wire
            np.testing.assert_allclose(found[name], value, atol=1e-6, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("kind", ["sync", pytest.param("async", marks=pytest.mark.slow)])
def test_animalais_vector_environment(
    newest: Client, executable: str, arena: Path, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "seen.npz"
    newest.run("wrapped.py", kind, executable, str(free_port()), arena, path)
    env = ArenaEnv(arena, **AS_ANIMALAI, **SIGHT)
    one, other = (third_episode(env, seed) for seed in range(ENVIRONMENTS))
    steps = one.keys() & other.keys()  # of one that is over, animalai shows its next episode
    assert not np.array_equal(one["0/camera"], other["0/camera"])
    found = dict(np.load(path))
    assert_same(
        {name: found[name] for name in steps},
        {name: np.stack([one[name], other[name]]) for name in steps},
    )
