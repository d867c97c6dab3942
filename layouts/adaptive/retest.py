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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

GRID: Final = 201
"""Number of grid points for the posterior of determinism."""
LEAST: Final = 1e-6
"""Least probability of an outcome drawn anew, so that nothing is ever ruled out by a prediction."""


_ROWS: Final = 45
"""Rows of one product: of more, the library's threads would wait busily for each other."""
_SHARES: Final = 101
"""Grid points of each share when a prior is learnt."""


@dataclass(frozen=True, slots=True)
class DeterminismPrior:
    """What is known of an agent's determinism before it repeats anything.

    Attributes:
        random: Share of agents that are fully random, like those that sample their actions.
        deterministic: Share of agents that are fully deterministic, like those that always take the
            best action. The determinism of the rest is uniform between.
    """

    random: float = 1.0 / 3.0
    deterministic: float = 1.0 / 3.0

    def __post_init__(self) -> None:
        if not (self.random >= 0.0 <= self.deterministic):
            raise ValueError(
                f"shares {self.random:g} and {self.deterministic:g} must be at least 0"
            )
        if not self.random + self.deterministic <= 1.0 + 1e-9:
            raise ValueError(
                f"shares {self.random:g} and {self.deterministic:g} are together more than 1"
            )

    def on_grid(self) -> Floats:
        """Probability of every determinism on the grid from 0 to 1; nowhere quite 0."""
        rest = max(1.0 - (self.random + self.deterministic), 0.0)
        shares = np.full(GRID, rest / (GRID - 2))
        shares[0], shares[-1] = self.random, self.deterministic
        return np.maximum(shares, _LEAST_SHARE)


_LEAST_SHARE: Final = 1e-9
"""Least prior probability of a grid point, so that evidence can always outweigh a prior."""
UNKNOWN: Final = DeterminismPrior()
"""The prior where no earlier agents are known: a third each."""


class Retest:
    """What pairs of plays say about an agent, as a posterior over its determinism."""

    def __init__(self, prior: DeterminismPrior = UNKNOWN) -> None:
        """Begin with what is known of agents before this one.

        Args:
            prior: Shares of agents that are fully random and fully deterministic.
        """
        self._values: Floats = np.linspace(0.0, 1.0, GRID)
        self._logs: Floats = portable.log(prior.on_grid())
        self._gained: dict[int, Floats] = {}
        self.pairs = 0
        """Repeats so far."""
        self.agreements = 0
        """Number of those repeats whose outcome equalled that of the play before."""

    @property
    def determinism(self) -> float:
        """Posterior mean of the probability that a repeat copies the outcome before."""
        return float(portable.dot(self._shares, self._values))

    @property
    def sd(self) -> float:
        """Posterior standard deviation of that probability."""
        return float(np.sqrt(portable.dot(self._shares, (self._values - self.determinism) ** 2)))

    def weights(self, plays: npt.ArrayLike) -> Floats:
        """How many outcomes one more play of an instance counts as.

        Args:
            plays: How often each instance was played before; any shape.

        Returns:
            The same shape, in [0, 1]; 1 for an instance that was not played yet.
        """
        before = np.asarray(plays, dtype=np.int64)
        most = int(before.max(initial=0))
        if most not in self._gained:
            k = np.arange(1.0, most + 1.0)[:, np.newaxis]
            each = _worth(k + 1.0, self._values) - _worth(k, self._values)
            parts = [
                portable.dot(each[at : at + _ROWS], self._shares) for at in range(0, most, _ROWS)
            ]
            self._gained[most] = np.concatenate(([1.0], *parts))
        return self._gained[most][before]

    def mean_weights(self, edges: Ints) -> Floats:
        """How many outcomes one more play counts as, in the mean over ranges of plays.

        Args:
            edges: (ranges + 1,), growing from 0, 1: how often an instance was played before the
                first play of each range, and after the last one.

        Returns:
            (ranges,), in [0, 1].
        """
        at = edges[1:, np.newaxis].astype(np.float64)
        each = _worth(at[1:], self._values) - _worth(at[:-1], self._values)
        parts = [
            portable.dot(each[k : k + _ROWS], self._shares) for k in range(0, len(each), _ROWS)
        ]
        return np.concatenate(([1.0], *parts)) / np.diff(edges)

    def update(self, same: bool, chance: float, times: float = 1.0) -> None:
        """Take in a repeat.

        Args:
            same: Whether its outcome equalled that of the play before.
            chance: Predicted probability of its outcome if it was drawn anew. An agreement that was
                likely anyway tells little.
            times: How many repeats it stands for.
        """
        self._logs += times * portable.log(_likelihood(self._values, same, chance))
        self._gained.clear()
        self.pairs += 1
        self.agreements += same

    @property
    def _shares(self) -> Floats:
        shares = portable.exp(self._logs - self._logs.max())
        return shares / shares.sum()


def learnt_prior(agents: Iterable[Sequence[tuple[bool, float]]]) -> DeterminismPrior:
    """Learn from the repeats of earlier agents how many agents are random and deterministic.

    The shares of fully random agents, fully deterministic ones and those between have a uniform
    Dirichlet prior. So without repeats they are a third each. Their posterior mean is computed on a
    grid.

    Args:
        agents: For each agent its repeats: whether the outcome equalled that of the play before,
            and the probability of the outcome if it was drawn anew.
    """
    values = np.linspace(0.0, 1.0, GRID)
    steps = np.linspace(0.0, 1.0, _SHARES)
    random, fixed = (axis.ravel() for axis in np.meshgrid(steps, steps))
    possible = random + fixed <= 1.0 + 1e-9
    random, fixed = random[possible], fixed[possible]
    between = np.maximum(1.0 - random - fixed, 0.0)
    logs = np.zeros(len(random))
    for pairs in agents:
        each = np.zeros(GRID)
        for same, chance in pairs:
            each += portable.log(_likelihood(values, same, chance))
        likelihoods = portable.exp(each - each.max())
        logs += portable.log(
            random * likelihoods[0]
            + fixed * likelihoods[-1]
            + between * likelihoods[1:-1].mean()
            + 1e-300
        )
    shares = portable.exp(logs - logs.max())
    shares /= shares.sum()
    return DeterminismPrior(float(portable.dot(shares, random)), float(portable.dot(shares, fixed)))


def _likelihood(values: Floats, same: bool, chance: float) -> Floats:
    """Probability of a repeat's outcome for every determinism, at least a tiny bit above 0."""
    anew = min(max(chance, LEAST), 1.0)
    return np.maximum((1.0 - values) * anew + values * same, 1e-300)


def _worth(plays: Floats, determinism: Floats) -> Floats:
    """Number of different instances that tell as much as some plays of one instance."""
    return plays / np.maximum(1.0 + (plays - 1.0) * determinism, LEAST)
