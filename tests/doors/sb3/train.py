"""A Stable-Baselines3 training loop, as its documentation has it; knows animalcat by import alone.

    python train.py {MlpPolicy|CnnPolicy} STEPS

Runs beside a package `envs` of its own, which holds a wrapper. Prints one line of JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy

import animalcat  # noqa: F401  makes the environment known

Brave = importlib.import_module("envs").Brave  # lint bans the statement: it means the user's
SENSES = {
    "MlpPolicy": {"sensors": ["rays"]},
    "CnnPolicy": {"sensors": ["camera"], "camera": True, "rays": False},
}


def main(policy: str, steps: str) -> None:
    """Train, and let the trained agent play an episode."""
    torch.set_num_threads(1)
    env = Brave(gymnasium.make("animalcat/Arena-v0", **SENSES[policy]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)
    model = PPO(policy, env, n_steps=int(steps) // 4, batch_size=50, n_epochs=2, seed=1)
    before = np.concatenate([p.detach().numpy().ravel() for p in model.policy.parameters()])
    model.learn(int(steps))
    after = np.concatenate([p.detach().numpy().ravel() for p in model.policy.parameters()])
    model.save("agent.zip")
    mean, _ = evaluate_policy(PPO.load("agent.zip"), env, n_eval_episodes=1, warn=False)
    told = {
        "steps": model.num_timesteps,
        "finite": bool(np.isfinite(after).all()),
        "moved": float(abs(after - before).max()),
        "return": float(mean),
        "own": sys.modules["envs"].__file__,
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
