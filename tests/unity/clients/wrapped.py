"""Plays through `animalai` 6's own Gymnasium wrappers, and writes down what they gave.

    python wrapped.py {single|sync|async} EXECUTABLE PORT ARENA SEEN.npz

Every 3rd action turns; two environments where there are several; stops after 40 steps.
Arrays of the file: `reset/KEY`, then `STEP/KEY`, `STEP/reward`, `STEP/terminated`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from animalai.environment import AnimalAIEnvironment
from animalai.wrappers import AnimalAIGymnasiumWrapper, make_animalai_vec_env

STEPS = 40
OPTIONS = {"resolution": 16, "useRayCasts": True}


def make(kind: str, executable: str, port: int, arena: str) -> Any:
    """The wrapped environment, or two of them in Gymnasium's vector environment."""
    if kind == "single":
        env = AnimalAIEnvironment(
            file_name=executable, base_port=port, arenas_configurations=arena, **OPTIONS
        )
        return AnimalAIGymnasiumWrapper(env)
    return make_animalai_vec_env(
        2,
        vectorization_mode=kind,
        base_port=port,
        arenas_configurations=arena,
        env_kwargs={"file_name": executable, **OPTIONS},
    )


def main(kind: str, executable: str, port: str, arena: str, seen_path: str) -> None:
    """Reset, and play until the episode is over or STEPS are done."""
    seen: dict[str, Any] = {}
    env = make(kind, executable, int(port), arena)
    try:
        observation, _ = env.reset(options={"arena_config": arena})
        seen.update({f"reset/{key}": value for key, value in observation.items()})
        for step in range(STEPS):
            action = [1, 1] if step % 3 == 2 else [1, 0]
            batch = np.array(action if kind == "single" else [action, action])
            observation, reward, terminated, truncated, _ = env.step(batch)
            assert not np.any(truncated)
            assert env.observation_space.contains(observation)
            seen.update({f"{step}/{key}": value for key, value in observation.items()})
            seen[f"{step}/reward"], seen[f"{step}/terminated"] = reward, terminated
            if np.all(terminated):
                break
    finally:
        env.close()
    np.savez(seen_path, **seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
