"""Train a small PPO agent on one family of arenas, and save checkpoints that play anywhere.

    make env-sb3
    .clients/sb3/bin/python docs/examples/training/train.py checkpoints

Each checkpoint is a file of arrays, the weights of the policy. `agents.py`, which is copied beside
them, plays them without PyTorch or Stable-Baselines3.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from agents import REPEAT
from stable_baselines3 import PPO

import animalcat  # noqa: F401  makes the environment known
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.model import Arena


class Practice(gymnasium.Wrapper):
    """Plays another arena in each episode, and takes each action several times."""

    def __init__(self, arenas: list[Arena]) -> None:
        super().__init__(gymnasium.make("animalcat/Arena-v0", sensors=["rays"], flat_actions=True))
        self.arenas = arenas

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Begin an episode in an arena drawn at random."""
        arena = self.arenas[int(self.np_random.integers(len(self.arenas)))]
        return self.env.reset(seed=seed, options={"arena": arena})

    def step(self, action: Any):
        """Take an action `REPEAT` times, or until the episode ends."""
        total = 0.0
        for _ in range(REPEAT):
            seen, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return seen, total, terminated, truncated, info


def save(model: PPO, file: Path) -> None:
    """Save the layers of the policy: weights and biases, from the rays to the actions."""
    layers = [*model.policy.mlp_extractor.policy_net.parameters()]
    layers += model.policy.action_net.parameters()
    np.savez(file, *(layer.detach().numpy() for layer in layers))


def main() -> None:
    """Train, and save a checkpoint at each of some steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where checkpoints are written")
    parser.add_argument("--family", default="navigation", help="family of arenas to train on")
    parser.add_argument("--arenas", type=int, default=300, help="number of arenas to train on")
    parser.add_argument("--steps", default="0,2000,5000,10000,20000,40000", help="checkpoints")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()

    torch.set_num_threads(1)
    rng = np.random.default_rng(chosen.seed)
    # Of the part that is for practice: no arena of it is in a battery of the part `test`.
    drawn = generate(chosen.family, chosen.arenas, rng, part="practice")
    env = Practice([one.arena for one in drawn])
    model = PPO("MlpPolicy", env, n_steps=1000, batch_size=100, ent_coef=0.01, seed=chosen.seed)

    chosen.folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).parent / "agents.py", chosen.folder)
    for steps in map(int, chosen.steps.split(",")):
        if steps > model.num_timesteps:
            model.learn(steps - model.num_timesteps, reset_num_timesteps=False)
        save(model, chosen.folder / f"{steps}.npz")
        print(f"{chosen.folder / f'{steps}.npz'}: after {model.num_timesteps} steps", flush=True)


if __name__ == "__main__":
    main()
