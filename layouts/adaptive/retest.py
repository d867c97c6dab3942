"""Test and retest: how random an agent is, and how much a repeat counts as evidence.

A deterministic agent plays the same arena with the same seed in the same way, so the outcome is no
new evidence; an agent that acts at random gives a new draw. Pairs of plays of one instance show
which it is: with probability `determinism` the second outcome is a copy of the first, otherwise it
is drawn anew. An instance that suits an agent better than its demands say has the same effect and
is treated the same: the outcomes of one instance are correlated.

So k plays of an instance tell as much as k / (1 + (k - 1) determinism) plays of different ones.
This is the design effect of clusters (Kish 1965, Survey sampling), with determinism as the
correlation within a cluster. A repeat counts as what it adds to that number, in expectation after
the pairs so far.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

_ALTOGETHER: Final = 1.0 / 3.0
"""Prior probability that an agent is fully deterministic, and also that it is fully random, like
agents that always take the best action or that sample their actions. The rest is uniform between.
"""
GRID: Final = 201
"""Number of grid points for the posterior of determinism."""
LEAST: Final = 1e-6
"""Least probability of an outcome drawn anew, so that nothing is ever ruled out by a prediction."""


class Retest:
    """What pairs of plays say about an agent, as a posterior over its determinism."""

    def __init__(self) -> None:
        self._values: Floats = np.linspace(0.0, 1.0, GRID)
        self._logs: Floats = np.full(GRID, np.log((1.0 - 2.0 * _ALTOGETHER) / (GRID - 2)))
        self._logs[[0, -1]] = np.log(_ALTOGETHER)
        self.pairs = 0
        """Repeats so far."""
        self.agreements = 0
        """Number of those repeats whose outcome equalled that of the play before."""

    @property
    def determinism(self) -> float:
        """Posterior mean of the probability that a repeat copies the outcome before."""
        return float(self._shares @ self._values)

    @property
    def sd(self) -> float:
        """Posterior standard deviation of that probability."""
        return float(np.sqrt(self._shares @ (self._values - self.determinism) ** 2))

    def weights(self, plays: npt.ArrayLike) -> Floats:
        """How many outcomes one more play of an instance counts as.

        Args:
            plays: How often each instance was played before; any shape.

        Returns:
            The same shape, in [0, 1]; 1 for an instance that was not played yet.
        """
        before = np.asarray(plays, dtype=np.int64)
        k = np.arange(1.0, before.max(initial=0) + 1.0)[:, np.newaxis]
        gained = (_worth(k + 1.0, self._values) - _worth(k, self._values)) @ self._shares
        return np.concatenate(([1.0], gained))[before]

    def update(self, same: bool, chance: float) -> None:
        """Take in a repeat.

        Args:
            same: Whether its outcome equalled that of the play before.
            chance: Predicted probability of its outcome if it was drawn anew. An agreement that was
                likely anyway tells little.
        """
        anew = min(max(chance, LEAST), 1.0)
        self._logs += np.log(np.maximum((1.0 - self._values) * anew + self._values * same, 1e-300))
        self.pairs += 1
        self.agreements += same

    @property
    def _shares(self) -> Floats:
        shares = np.exp(self._logs - self._logs.max())
        return shares / shares.sum()


def _worth(plays: Floats, determinism: Floats) -> Floats:
    """Number of different instances that tell as much as some plays of one instance."""
    return plays / np.maximum(1.0 + (plays - 1.0) * determinism, LEAST)
