"""Agents of the campaign on a cluster, which stop in mid-episode while a file is there."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.types import Observation

HERE = Path(__file__).parent


class Walks:
    """Walks at random; waits at the third decision of an episode while `hold-EPISODE` is there."""

    choices = (3, 3, 3, 4, 5)

    def reset(self, info: EpisodeInfo) -> None:
        self._rng = np.random.default_rng(info.seed)
        self._hold = HERE / f"hold-{info.episode}"
        self._steps = 0

    def act(self, observation: Observation) -> int:
        self._steps += 1
        if self._steps == 3 and self._hold.exists():
            (HERE / f"{type(self).__name__}-held").touch()
            while self._hold.exists():
                time.sleep(0.02)
        return int(self._rng.choice(self.choices))


class Turns(Walks):
    """Turns more."""

    choices = (1, 3, 4, 5)
