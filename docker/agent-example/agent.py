"""An agent that goes forward and now and then turns; put your own in its place."""

from __future__ import annotations

import numpy as np

from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.types import Observation

FORWARD, FORWARD_RIGHT, FORWARD_LEFT = 3, 4, 5


class Example:
    """Draws its turns from the episode's seed, so that a session can be repeated."""

    def reset(self, info: EpisodeInfo) -> None:
        """A new episode."""
        self._rng = np.random.default_rng(info.seed)

    def act(self, observation: Observation) -> int:
        """Choose one of nine actions."""
        return int(self._rng.choice([FORWARD, FORWARD, FORWARD, FORWARD_RIGHT, FORWARD_LEFT]))
