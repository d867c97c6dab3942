"""A backend without arenas: an episode is four decisions, and succeeds by a chance that is known.

The agent's decisions are the digits of a number between 0 and 1. The episode succeeds where that is
below the chance of its instance. So an agent that draws its decisions flips a coin for every
episode, and the same seed brings the same outcome, however often the episode is begun.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.envs.types import EndedBy, ObservationSpec, Phase, Step

DECISIONS: Final = 4
ACTIONS: Final = 9


def decided(number: float) -> bytes:
    """The decisions that stand for a number in [0, 1)."""
    whole = int(number * ACTIONS**DECISIONS)
    return bytes(whole // ACTIONS**k % ACTIONS for k in reversed(range(DECISIONS)))


class Coins:
    """Plays no arena; see the module. A subclass says where the chances are.

    Attributes:
        file: File of the chances, by the name of the instance, as JSON.
    """

    file: Path

    def __init__(self, spec: ObservationSpec) -> None:
        """Take the specification of observations, which are all alike."""
        self.spec = spec
        self._seen = spec.generate(np.random.default_rng(0))
        self._chance, self._taken = 0.0, list[int]()

    def load(self, arena: Arena, seed: int) -> Step:
        """Refuse: what it plays has no arena."""
        raise ArenaError("coins are flipped by demands, and not in arenas")

    def load_demands(self, instance: str, demands: Mapping[str, float], seed: int) -> Step:
        """Begin an episode of an instance that has a chance."""
        self._chance, self._taken = self._chances[instance], []
        return Step(Phase.FIRST, 0.0, None, self._seen)

    def step(self, action: int) -> Step:
        """Take a decision; the last one decides."""
        self._taken.append(action)
        if len(self._taken) < DECISIONS:
            return Step(Phase.MID, 0.0, None, self._seen)
        number = sum(a * ACTIONS**k for k, a in enumerate(reversed(self._taken)))
        success = number < self._chance * ACTIONS**DECISIONS
        ended = EndedBy.GOAL if success else EndedBy.TIME_LIMIT
        return Step(Phase.LAST, 1.0 if success else -1.0, ended, self._seen)

    def close(self) -> None:
        """There is nothing to close."""

    @cached_property
    def _chances(self) -> dict[str, float]:
        return json.loads(self.file.read_text("utf-8"))
