"""Checkpoints that `train.py` saved, as agents: `Step5000` plays the weights in `5000.npz`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from animalcat import Actions, EpisodeInfo, Observation

REPEAT = 3
"""Decisions for which an action holds."""


class Checkpoint:
    """Plays a saved policy by its rays. It is a small network without a memory."""

    file: ClassVar[Path]

    def __init__(self) -> None:
        with np.load(self.file) as saved:
            self.layers = [saved[name] for name in saved.files]

    def reset(self, info: EpisodeInfo) -> None:
        """Draw actions from the episode's seed."""
        self.rng = np.random.default_rng(info.seed)

    def act(self, observation: Observation) -> Actions:
        """Draw an action from the policy's probabilities, and hold it for a while."""
        if observation.rays is None or len(observation.rays) != self.layers[0].shape[1]:
            raise ValueError(
                f"{self.file} was trained on {self.layers[0].shape[1]} numbers of rays"
            )
        values = observation.rays
        for weight, bias in zip(self.layers[:-2:2], self.layers[1:-2:2], strict=True):
            values = np.tanh(weight @ values + bias)
        logits = self.layers[-2] @ values + self.layers[-1]
        chances = np.exp(logits - logits.max())
        action = self.rng.choice(len(chances), p=chances / chances.sum())
        return Actions([action] * REPEAT)


for path in Path(__file__).parent.glob("*.npz"):
    name = f"Step{path.stem}"
    globals()[name] = type(name, (Checkpoint,), {"file": path, "__module__": __name__})
