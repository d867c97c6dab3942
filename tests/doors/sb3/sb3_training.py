"""Trainings with Stable-Baselines3 that are measured; prints a line of JSON.

python sb3_training.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack, VecNormalize

import animalcat
from animalcat import Arena
from animalcat.doors.sb3 import MeasureCallback
from animalcat.envs.agents.fingerprint import differences
from animalcat.envs.agents.objects import fingerprint_of

STEPS = 256
ARENAS = {f"{d} m": Arena.goal(distance=d, size=2) for d in (3, 6, 9, 20)}


def train(log: Path, *callbacks: MeasureCallback | CheckpointCallback) -> PPO:
    """Train."""
    env = gymnasium.make("animalcat/Arena-v0", sensors=["rays"])
    model = PPO("MlpPolicy", env, n_steps=128, batch_size=64, n_epochs=2, seed=1)
    model.set_logger(configure(str(log), ["csv"]))
    return model.learn(STEPS, callback=list(callbacks))


def make(**kinds: Any) -> VecFrameStack:
    """Make two environments, of which a model sees two frames."""
    named = {"sensors": ["rays"]}
    return VecFrameStack(make_vec_env("animalcat/Arena-v0", 2, env_kwargs=named, **kinds), 2)


def measure(model: PPO, home: Path, env: Any = None) -> str:
    """Measure a model in one episode; in what it was measured, or why it was not."""
    options: dict[str, Any] = {"layout": "aaio", "max_episodes": 1, "certify": False}
    try:
        result = animalcat.measure(model, ARENAS, folder=home / "study", env=env, **options)
    except animalcat.AnimalcatError as error:
        return str(error)
    known = result.session.identity.fingerprint
    return f"{result.session.id} {known.options.get('wrappers')}"


def train_wrapped(home: Path) -> dict[str, str]:
    """Train behind wrappers, and measure as it is, loaded without them, and loaded with them."""
    env = VecNormalize(make())
    model = PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=1).learn(64)
    model.save(home / "model.zip")
    env.save(str(home / "statistics.pkl"))
    kinds: dict[str, Any] = {
        "vec_env_cls": SubprocVecEnv,
        "vec_env_kwargs": {"start_method": "fork"},
    }
    apart = make(wrapper_class=gymnasium.wrappers.FlattenObservation, **kinds)
    loaded = PPO.load(home / "model.zip", custom_objects={"_last_obs": None})
    told = {
        "trained": measure(model, home),
        "loaded": measure(PPO.load(home / "model.zip"), home),
        "given": measure(loaded, home, VecNormalize.load(str(home / "statistics.pkl"), make())),
        "apart": measure(loaded, home, apart),
    }
    apart.close()
    return told


def read_tensors() -> list[bool]:
    """Whether a changed tensor is another agent, of each kind of tensor."""
    kinds = (torch.zeros(2, dtype=torch.bfloat16), torch.zeros(()), torch.eye(2).to_sparse())
    agent = type("Agent", (), {})()
    found: list[bool] = []
    for tensor in (*kinds, torch.nn.Linear(2, 2).weight):
        agent.net = {"layers": [tensor]}
        first = fingerprint_of(agent)
        agent.net = {"layers": [torch.ones_like(tensor.to_dense())]}
        found.append(first.known and bool(differences(first, fingerprint_of(agent))))
    return found


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
        "wrapped": train_wrapped(home),
        "tensors": read_tensors(),
        "deterministic": [one.options["deterministic"] for one in prints],
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
