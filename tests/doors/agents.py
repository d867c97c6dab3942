"""The policy as agents, in each form that an answer may have; commands load them from here."""

from __future__ import annotations

from typing import Any

import numpy as np

import animalcat
from tests.doors.policy import Model, pair


class Flat:
    """An integer."""

    def reset(self, info: animalcat.EpisodeInfo) -> None: ...

    def act(self, observation: animalcat.Observation) -> Any:
        return self.form(*pair(observation.rays))

    def form(self, move: int, turn: int) -> Any:
        return 3 * move + turn


class Pair(Flat):
    """A tuple."""

    def form(self, move: int, turn: int) -> Any:
        return move, turn


class Several(Flat):
    """One action as several."""

    def form(self, move: int, turn: int) -> Any:
        return animalcat.Actions([(move, turn)])


class Rows(Flat):
    """One action as an array (1, 2)."""

    def form(self, move: int, turn: int) -> Any:
        return np.array([[move, turn]], np.uint8)


class Predicting(Flat):
    """What a model of Stable-Baselines3 predicts."""

    model = Model()

    def act(self, observation: animalcat.Observation) -> Any:
        return self.model.predict(observation.rays, deterministic=True)[0]


class Asking:
    """As a coroutine."""

    async def reset(self, info: animalcat.EpisodeInfo) -> None: ...

    async def act(self, observation: animalcat.Observation) -> Any:
        return np.array(pair(observation.rays))
