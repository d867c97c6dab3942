"""Hindsight: whether a layout still fails once it knows the agent, which confirms an alarm.

The alarm bets against what is predicted *before* each outcome. An agent that is rare in the prior,
such as one that can do nearly everything, is predicted badly for tens of episodes even by the right
layout. In hindsight, once all outcomes are known, the right layout explains them and a wrong one
does not. So a raised alarm stands only while the outcomes of some stratum, or of some part of the
session, are further from what the posterior now expects of them than chance allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.likelihood import trials_of
from animalcat.layouts.model.spec import Bernoulli
from animalcat.layouts.watching.beyond import lift_capabilities
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

LEVEL: Final = 0.02
"""P-value, corrected for the number of strata (Bonferroni), below which a layout fails."""
_MATTERS: Final = 0.1
"""Least mean residual of a stratum that counts, as a share of an outcome's maximum. An agent that
never fails is predicted at 0.97 at best, which 400 episodes distinguish from 1; that is no reason
to distrust its profile."""
_SLOPES: Final = np.linspace(1.0, 4.0, 31)
"""Slopes that an agent may have, as multiples of the layout's."""
_SLOPE_SD: Final = 0.75
"""Standard deviation of that slope's prior."""
_EDGE: Final = 0.005
"""Predictions are kept this far from 0 and 1 where a slope is looked for."""
_ROWS: Final = 2000
"""Episodes that are predicted at a time, so that arrays stay small."""
PARTS: Final = 3
"""Number of parts into which the session is divided; each is tested like a stratum, to notice
agents that change."""


class Belief(NamedTuple):
    """What was known of an agent at some time.

    Attributes:
        particles: (particles, latents), in the units of the latents.
        weights: (particles,), summing to 1.
    """

    particles: Floats
    weights: Floats


def fails(
    belief: Belief,
    evaluator: Evaluator,
    columns: Floats,
    outcomes: Floats,
    groups: Sequence[Sequence[Ints]],
    lift: float = 0.0,
) -> bool:
    """Test whether the layout fails on outcomes that its posterior already knows.

    The agent may be sharper than the layout's slopes: successes and failures are compared with
    predictions of the slope that suits them best.

    Args:
        belief: What was known after all of these episodes.
        evaluator: Evaluator of the same layout.
        columns: (episodes, columns): the instances played, as `evaluator.columns` returned them.
        outcomes: (episodes,) or (episodes, outcomes), in the order played; NaN where one is
            missing.
        groups: Groups of stratifications of the episodes, each stratification (episodes,): the
            index of the stratum, -1 for none. Every group has an equal part of the level, so that a
            group of many strata does not take what others need. Parts of the session belong to the
            first.
        lift: How far beyond the ranges an agent near their top is, in shares of the ranges.
    """
    theta = lift_capabilities(evaluator.layout, belief.particles, lift)
    parts = np.arange(len(outcomes)) * PARTS // max(1, len(outcomes))
    z_scores: list[list[Floats]] = [[] for _ in groups] or [[]]
    for k, y in enumerate(outcomes.reshape(len(outcomes), len(evaluator.layout.outcomes)).T):
        there = np.flatnonzero(~np.isnan(y))
        known = theta, belief.weights
        apart, variance = _residuals(known, evaluator, columns[there], y[there], k)
        for g, ways in enumerate(groups or [[]]):
            z_scores[g] += [
                _by_stratum(apart, variance, way[there])
                for way in ((parts, *ways) if not g else ways)
            ]
    return any(_correct_p_value(np.concatenate(z)) * len(z_scores) < LEVEL for z in z_scores if z)


def _correct_p_value(z: Floats) -> float:
    """P-value of the largest of these residuals, corrected for their number."""
    return 2.0 * float(portable.ndtr(-np.abs(z).max(initial=0.0))) * max(1, z.size)


def _by_stratum(apart: Floats, variance: Floats, strata: Ints) -> Floats:
    """How far the outcomes of each stratum are from what is expected, in standard deviations.

    It is 0 where the difference is too small to matter. The larger of the expected and the observed
    spread is used, so that a single unlikely outcome makes no misfit.
    """
    known = strata >= 0
    strata = strata[known]
    total, expected, squares = (
        np.bincount(strata, values[known]) for values in (apart, variance, apart**2)
    )
    count, spread = np.bincount(strata), np.maximum(expected, squares)
    matters = np.abs(total) >= _MATTERS * count
    varied = spread > 0.0
    return np.where(matters[varied], total[varied] / np.sqrt(spread[varied]), 0.0)


def _residuals(
    known: tuple[Floats, Floats],
    evaluator: Evaluator,
    columns: Floats,
    outcomes: Floats,
    outcome: int,
) -> tuple[Floats, Floats]:
    """Residuals of one outcome and their variances, both (episodes,), as shares of its maximum."""
    layout, (theta, weights) = evaluator.layout, known
    likelihood = layout.outcomes[outcome].likelihood
    most = trials_of(layout, likelihood, columns)
    bernoulli = isinstance(likelihood, Bernoulli)
    mean, variance = np.empty(len(columns)), np.empty(len(columns))
    for start in range(0, len(columns), _ROWS):
        part = slice(start, start + _ROWS)
        p = np.clip(evaluator.by_instance(theta, columns[part], np.float64, outcome), 0.0, 1.0)
        mean[part] = portable.dot(p, weights)
        if not bernoulli:
            size = evaluator.sample_sizes(theta, columns[part], outcome)
            attempts = most[part, np.newaxis] if size is None else 1.0 + size
            within = portable.dot(p * (1.0 - p) / attempts, weights)
            between = portable.dot(p**2, weights) - mean[part] ** 2
            variance[part] = np.maximum(within + between, 0.0)
    if bernoulli:
        if len(mean):
            mean = _sharpen(mean, outcomes)
        return outcomes - mean, np.maximum(mean * (1.0 - mean), 0.0)
    return outcomes / most - mean, variance


def _sharpen(mean: Floats, outcomes: Floats) -> Floats:
    """Predictions with the slope of their logits, 1 at least, under which outcomes are likeliest.

    The slope has a normal prior about 1, as that of a running shift has.
    """
    z: Floats = portable.logit(np.clip(mean, _EDGE, 1.0 - _EDGE))
    signed = np.where(outcomes > 0.5, z, -z)
    likelihood = portable.log_expit(_SLOPES[:, np.newaxis] * signed).sum(axis=1)
    best = np.argmax(likelihood - 0.5 * ((_SLOPES - 1.0) / _SLOPE_SD) ** 2)
    return np.asarray(portable.expit(_SLOPES[best] * z), np.float64)
