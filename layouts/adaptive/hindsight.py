"""Hindsight: whether a layout still fails once it knows the agent, which confirms an alarm or not.

The alarm bets against what is predicted *before* each outcome. An agent that is rare in the prior,
such as one that can do nearly everything, is predicted badly for tens of episodes by the right
layout too. In hindsight, when all outcomes are known, the right layout explains them; a wrong one
does not. So a raised alarm stands only while outcomes of some stratum, or of some part of the
session, are further from what the posterior expects of them now than chance would have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.model.likelihood import trials_of
from animalcat.layouts.model.spec import Bernoulli

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

LEVEL: Final = 0.1
"""P-value, corrected for the number of strata (Bonferroni), below which a layout fails."""
MATTERS: Final = 0.1
"""Least mean residual of a stratum that counts, as a share of the most an outcome can be. An agent
that never fails is predicted at 0.97 at best, which 400 episodes tell from 1: that is no reason to
distrust its profile."""
PARTS: Final = 3
"""Parts of the session that are looked at as strata are, for agents that change."""


def fails(
    posterior: LivePosterior,
    evaluator: Evaluator,
    columns: Floats,
    outcomes: Floats,
    ways: Sequence[Ints],
) -> bool:
    """Whether the layout fails on outcomes that its posterior knows.

    Args:
        posterior: What is known now.
        evaluator: Of the same layout.
        columns: (episodes, columns): the instances, as `evaluator.columns` gave them.
        outcomes: (episodes,) or (episodes, outcomes), in the order played, NaN where one is
            missing.
        ways: Ways to part the episodes, each (episodes,): the number of the stratum.
    """
    parts = np.arange(len(outcomes)) * PARTS // max(1, len(outcomes))
    found: list[Floats] = []
    for k, y in enumerate(outcomes.reshape(len(outcomes), len(evaluator.layout.outcomes)).T):
        there = np.flatnonzero(~np.isnan(y))
        apart, variance = _residuals(posterior, evaluator, columns[there], y[there], k)
        found += [_by_stratum(apart, variance, way[there]) for way in (parts, *ways)]
    z = np.concatenate(found)
    return bool(2.0 * ndtr(-np.abs(z).max(initial=0.0)) * max(1, z.size) < LEVEL)


def _by_stratum(apart: Floats, variance: Floats, strata: Ints) -> Floats:
    """How far the outcomes of each stratum are from expected, in standard deviations.

    It is 0 where that does not matter. Spread is what is expected or what is seen, whichever is
    larger: a single outcome that was unlikely makes no misfit.
    """
    total, expected, seen = (np.bincount(strata, v) for v in (apart, variance, apart**2))
    count, spread = np.bincount(strata), np.maximum(expected, seen)
    matters = np.abs(total) >= MATTERS * count
    found = spread > 0.0
    return np.where(matters[found], total[found] / np.sqrt(spread[found]), 0.0)


def _residuals(
    posterior: LivePosterior, evaluator: Evaluator, columns: Floats, outcomes: Floats, outcome: int
) -> tuple[Floats, Floats]:
    """Values of one outcome less what is expected of them, and their variance: both (episodes,).

    Both as shares of the most that an outcome can be.
    """
    layout, theta, weights = evaluator.layout, posterior.particles, posterior.weights
    likelihood = layout.outcomes[outcome].likelihood
    most = trials_of(layout, likelihood, columns)
    p = evaluator.by_instance(theta, columns, np.float64, outcome)
    mean = p @ weights
    if isinstance(likelihood, Bernoulli):
        return outcomes - mean, np.maximum(mean * (1.0 - mean), 0.0)
    size = evaluator.sample_sizes(theta, columns, outcome)
    attempts = most[:, np.newaxis] if size is None else 1.0 + size
    within = (p * (1.0 - p) / attempts) @ weights
    between = p**2 @ weights - mean**2
    return outcomes / most - mean, np.maximum(within + between, 0.0)
