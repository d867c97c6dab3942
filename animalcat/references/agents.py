"""The reference agents that were trained: small PPO policies by rays, from their weights.

docs/reference-profiles.md has their recipe.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np

from animalcat import Actions, EpisodeInfo, Observation

REPEAT = 3
"""Decisions for which an action holds, as in training."""


class _Ppo:
    """Plays a policy with two layers of 64 units and no memory."""

    weights: ClassVar[str]

    def __init__(self) -> None:
        with np.load(Path(__file__).with_name(self.weights)) as saved:
            self.layers = [saved[name].astype(np.float64) for name in saved.files]

    def reset(self, info: EpisodeInfo) -> None:
        """Draw actions from the episode's seed."""
        self.rng = np.random.default_rng(info.seed)

    def act(self, observation: Observation) -> Actions:
        """Draw an action from the policy's probabilities, and hold it for a while."""
        if observation.rays is None or len(observation.rays) != self.layers[0].shape[1]:
            raise ValueError(f"{self.weights} was trained on rays of the default specification")
        values = observation.rays.astype(np.float64)
        for weight, bias in zip(self.layers[:-2:2], self.layers[1:-2:2], strict=True):
            values = np.tanh(weight @ values + bias)
        logits = self.layers[-2] @ values + self.layers[-1]
        chances = np.exp(logits - logits.max())
        action = int(self.rng.choice(len(chances), p=chances / chances.sum()))
        return Actions([action] * REPEAT)


class PpoIntroductory(_Ppo):
    """Trained on the family introductory."""

    weights = "ppo-introductory.npz"


class PpoNavigation(_Ppo):
    """Trained on the family navigation."""

    weights = "ppo-navigation.npz"


class PpoObjectPermanence(_Ppo):
    """Trained on the family object-permanence."""

    weights = "ppo-object-permanence.npz"
