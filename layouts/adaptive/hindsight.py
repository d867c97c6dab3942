"""Hindsight: whether a layout still fails once it knows the agent, which confirms an alarm.

The alarm bets against what is predicted *before* each outcome. An agent that is rare in the prior,
such as one that can do nearly everything, is predicted badly for tens of episodes even by the right
layout. In hindsight, once all outcomes are known, the right layout explains them and a wrong one
does not. So a raised alarm stands only while the outcomes of some stratum, or of some part of the
session, are further from what the posterior now expects of them than chance allows.
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
_MATTERS: Final = 0.1
"""Least mean residual of a stratum that counts, as a share of an outcome's maximum. An agent that
never fails is predicted at 0.97 at best, which 400 episodes distinguish from 1; that is no reason
to distrust its profile."""
PARTS: Final = 3
"""Number of parts into which the session is divided; each is tested like a stratum, to notice
agents that change."""


def fails(
    posterior: LivePosterior,
    evaluator: Evaluator,
    columns: Floats,
    outcomes: Floats,
    ways: Sequence[Ints],
) -> bool:
    """Test whether the layout fails on outcomes that its posterior already knows.

    Args:
        posterior: The posterior after all of these episodes.
        evaluator: Evaluator of the same layout.
        columns: (episodes, columns): the instances played, as `evaluator.columns` returned them.
        outcomes: (episodes,) or (episodes, outcomes), in the order played; NaN where one is
            missing.
        ways: Stratifications of the episodes, each (episodes,): the index of the stratum.
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
    """How far the outcomes of each stratum are from what is expected, in standard deviations.

    It is 0 where the difference is too small to matter. The larger of the expected and the observed
    spread is used, so that a single unlikely outcome makes no misfit.
    """
    total, expected, seen = (np.bincount(strata, v) for v in (apart, variance, apart**2))
    count, spread = np.bincount(strata), np.maximum(expected, seen)
    matters = np.abs(total) >= _MATTERS * count
    found = spread > 0.0
    return np.where(matters[found], total[found] / np.sqrt(spread[found]), 0.0)


def _residuals(
    posterior: LivePosterior, evaluator: Evaluator, columns: Floats, outcomes: Floats, outcome: int
) -> tuple[Floats, Floats]:
    """Residuals of one outcome and their variances, both (episodes,), as shares of its maximum."""
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
