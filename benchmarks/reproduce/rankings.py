"""Elo and other rankings of the entrants of a contest, beside what a layout says of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from animalcat.layouts.model.instances import OutcomeTable

Floats: TypeAlias = npt.NDArray[np.float64]

_MEAN: Final = 1500.0
_SCALE: Final = 400.0
"""Elo ratings have this mean, and this difference where one wins ten times as often."""
_DRAWS: Final = 1.0
"""Draws that every pair is given beforehand, so that who always wins has a finite rating."""
_ROUNDS: Final = 2000


@dataclass(frozen=True, slots=True)
class Rating:
    """An entrant by its scores alone.

    Attributes:
        name: The entrant.
        score: Mean over the scenarios.
        elo: Elo rating from comparing every pair on every scenario. It is the likeliest one for all
            of them at once (Bradley and Terry 1952), so their order does not matter.
        rank: Mean rank over the scenarios; 1 is best.
    """

    name: str
    score: float
    elo: float
    rank: float


def ratings(table: OutcomeTable) -> list[Rating]:
    """Rate the entrants of a table whose instances are blocks of scenarios ("scenario-01-03")."""
    scenarios = [name.rpartition("-")[0] for name in table.instances.names]
    names = list(dict.fromkeys(scenarios))
    of = np.array([names.index(name) for name in scenarios])
    scores = np.stack(
        [np.nanmean(table.outcomes[:, of == i], axis=1) for i in range(len(names))], axis=1
    )
    ranks = np.stack([rankdata(-column) for column in scores.T], axis=1)
    elo = _elo(scores)
    return [
        Rating(name, float(scores[i].mean()), float(elo[i]), float(ranks[i].mean()))
        for i, name in enumerate(table.agents)
    ]


def _elo(scores: Floats) -> Floats:
    """Elo ratings of (entrants, scenarios) scores."""
    n = len(scores)
    wins, games = np.zeros((n, n)), np.zeros((n, n))
    for i, j in combinations(range(n), 2):
        won = float(np.sum(scores[i] > scores[j]) + 0.5 * np.sum(scores[i] == scores[j]))
        games[i, j] = games[j, i] = scores.shape[1] + _DRAWS
        wins[i, j], wins[j, i] = won + _DRAWS / 2, scores.shape[1] - won + _DRAWS / 2
    strength = np.ones(n)
    for _ in range(_ROUNDS):  # the minorise-maximise steps of Hunter (2004)
        shared = games / (strength[:, np.newaxis] + strength)
        np.fill_diagonal(shared, 0.0)
        new = wins.sum(axis=1) / shared.sum(axis=1)
        new /= np.exp(np.log(new).mean())
        if np.abs(np.log(new / strength)).max() < 1e-10:
            break
        strength = new
    return _MEAN + _SCALE * np.log10(strength)
