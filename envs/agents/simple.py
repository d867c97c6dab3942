"""Baselines that ignore observations: one acts at random, one always goes forward."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from animalcat.envs.types import ACTIONS

if TYPE_CHECKING:
    from animalcat.envs.agents.base import EpisodeInfo
    from animalcat.envs.types import Observation


class RandomAgent:
    """Draws each action uniformly from the nine."""

    def reset(self, info: EpisodeInfo) -> None:
        """Start the episode's random stream."""
        self._rng = np.random.default_rng(info.seed)

    def act(self, observation: Observation) -> int:
        """Draw one of the nine actions."""
        return int(self._rng.integers(ACTIONS))


class ForwardAgent:
    """Always goes forward."""

    def reset(self, info: EpisodeInfo) -> None:
        """Nothing to prepare."""

    def act(self, observation: Observation) -> int:
        """Forward, without turning."""
        return 3
