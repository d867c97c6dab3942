"""A training with Stable-Baselines3 that is measured, and the same without; prints a line of JSON.

python sb3_training.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.logger import configure

from animalcat import Arena
from animalcat.doors.sb3 import MeasureCallback

STEPS = 256
ARENAS = {f"{d} m": Arena.goal(distance=d, size=2) for d in (3, 6, 9, 20)}


def train(log: Path, *callbacks: MeasureCallback | CheckpointCallback) -> PPO:
    """Train."""
    env = gymnasium.make("animalcat/Arena-v0", sensors=["rays"])
    model = PPO("MlpPolicy", env, n_steps=128, batch_size=64, n_epochs=2, seed=1)
    model.set_logger(configure(str(log), ["csv"]))
    return model.learn(STEPS, callback=list(callbacks))


def main(folder: str) -> None:
    """Train twice."""
    torch.set_num_threads(1)
    home = Path(folder)
    callback = MeasureCallback(
        ARENAS,
        every=128,
        folder=home / "study",
        layout="aaio",
        max_episodes=2,
        certify=False,
        deterministic=False,
    )
    measured = train(home, callback, CheckpointCallback(1000, str(home)))
    plain = train(home / "plain")
    pairs = zip(measured.policy.parameters(), plain.policy.parameters(), strict=True)
    prints = [one.session.identity.fingerprint for one in callback.results.values()]
    told = {
        "steps": list(callback.results),
        "same": all(bool((one == other).all()) for one, other in pairs),
        "deterministic": [one.options["deterministic"] for one in prints],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
