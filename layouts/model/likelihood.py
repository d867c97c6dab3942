"""Likelihoods: how probable outcomes are, given the probability or mean score that is predicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.spec import Bernoulli, Beta, Binomial, Layout, Likelihood
from animalcat.portable import arrays as portable
from animalcat.portable import scalars

Floats: TypeAlias = npt.NDArray[np.float64]

LEAST: Final = 1e-15
"""Least probability of an outcome, so that no draw is ruled out for ever. It is also the least
distance of a mean score from 0 and 1, where the Beta distribution is not defined."""
LEAST_SIZE: Final = 1e-9
"""Least sample size of a score; the Beta distribution is not defined at 0."""
_TERMS: Final = 8
"""Number of terms of the series in `log_beyond`; accurate to 1e-5 while sample size x edge is at
most 1."""


def trials_of(layout: Layout, likelihood: Likelihood, features: Floats) -> Floats:
    """Maximum of an outcome: the number of trials for counts, otherwise 1.

    Args:
        layout: The layout.
        likelihood: Likelihood of the outcome.
        features: (instances, features), or columns that begin with the features.

    Returns:
        (instances,).
    """
    if isinstance(likelihood, Binomial):
        return features[:, layout.feature_names.index(likelihood.trials)]
    return np.ones(len(features))


def as_shares(layout: Layout, columns: Floats, outcomes: npt.ArrayLike) -> Floats:
    """All outcomes as shares of their maximum, (episodes, outcomes); NaN where missing.

    A score at its edge or beyond is 0 or 1: `Layout.check_outcomes` moved it from there.
    """
    shares = np.array(outcomes, np.float64).reshape(len(columns), len(layout.outcomes))
    for own, node in zip(shares.T, layout.outcomes, strict=True):
        own /= trials_of(layout, node.likelihood, columns)
        if isinstance(node.likelihood, Beta):
            edge = node.likelihood.edge
            own[own <= edge], own[own >= 1.0 - edge] = 0.0, 1.0
    return shares


def log_density(
    likelihood: Likelihood, p: Floats, size: Floats | None, trials: Floats, outcomes: Floats
) -> Floats:
    """Log probability of outcomes (log density for scores) under every draw.

    Counts and scores belong to the exponential family: the result is a product of statistics of the
    outcomes and parameters of the draws. So the parameters are computed once, however many outcomes
    an instance has.

    Args:
        likelihood: Likelihood of the outcomes.
        p: (instances, draws), probability of success or mean score.
        size: (instances, draws), sample size of scores; None for other outcomes.
        trials: (instances,), as returned by `trials_of`.
        outcomes: (instances, outcomes), each as returned by `Layout.check_outcomes`, none missing.

    Returns:
        (instances, outcomes, draws).
    """
    if isinstance(likelihood, Bernoulli):
        chance = np.where(
            outcomes[:, :, np.newaxis] == 1.0, p[:, np.newaxis], 1.0 - p[:, np.newaxis]
        )
        return portable.log(np.maximum(chance, LEAST))
    mean = np.clip(p, LEAST, 1.0 - LEAST)
    if isinstance(likelihood, Binomial):
        most = trials[:, np.newaxis]
        failures = most - outcomes
        ways = (
            portable.gammaln(most + 1.0)
            - portable.gammaln(outcomes + 1.0)
            - portable.gammaln(failures + 1.0)
        )
        counted = _product(outcomes, portable.log(mean), failures, portable.log1p(-mean))
        return counted + ways[:, :, np.newaxis]
    assert size is not None  # scores have one
    size = np.maximum(size, LEAST_SIZE)
    a, b = mean * size, (1.0 - mean) * size
    edge = likelihood.edge if likelihood.edge > 0.0 else -1.0
    low, high = outcomes <= edge, outcomes >= 1.0 - edge
    out = np.empty((*outcomes.shape, p.shape[1]))
    within = np.flatnonzero(~(low | high).all(axis=1))
    y, a_in, b_in = np.where(low | high, 0.5, outcomes)[within], a[within], b[within]
    out[within] = _product(portable.log(y), a_in - 1.0, portable.log1p(-y), b_in - 1.0)
    out[within] += (
        portable.gammaln(a_in + b_in) - portable.gammaln(a_in) - portable.gammaln(b_in)
    )[:, np.newaxis]
    for there, near, far in ((low, a, b), (high, b, a)):
        some = np.flatnonzero(there.any(axis=1))
        if some.size:  # all outcomes at an edge say the same
            said = log_beyond(
                near[some], far[some], edge, portable.log, portable.gammaln, np.maximum
            )
            instance, which = np.nonzero(there)
            out[instance, which] = said[np.searchsorted(some, instance)]
    return out


def _product(first: Floats, of_first: Floats, second: Floats, of_second: Floats) -> Floats:
    """Combine two statistics (instances, outcomes) with two parameters (instances, draws)."""
    return first[:, :, np.newaxis] * of_first[:, np.newaxis] + (
        second[:, :, np.newaxis] * of_second[:, np.newaxis]
    )


def log_beyond(
    a: Any,
    b: Any,
    edge: float,
    log: Callable[[Any], Any],
    gammaln: Callable[[Any], Any],
    maximum: Callable[[Any, float], Any],
) -> Any:
    """Log probability that a score ~ Beta(a, b) is at most `edge`, for a score at the edge.

    It uses the series of the incomplete beta function (DLMF 8.17.7), whose gradient is simple. The
    functions are numpy's or PyTensor's, so that both evaluators share the formula.

    Args:
        a: First parameter; for the upper edge, pass the second parameter first.
        b: Second parameter.
        edge: Above 0, and small.
        log: Natural logarithm.
        gammaln: Logarithm of the gamma function.
        maximum: Maximum of an array and a number.
    """
    term: Any = 1.0
    total: Any = 1.0
    for k in range(1, _TERMS + 1):
        term = term * (k - b) * (edge / k)
        total = total + term * a / (a + k)
    scale = gammaln(a + b) - gammaln(a + 1.0) - gammaln(b)
    return a * scalars.log(edge) + scale + log(maximum(total, LEAST))


def draw_outcomes(
    likelihood: Likelihood,
    p: Floats,
    size: Floats | None,
    trials: Floats,
    generator: np.random.Generator,
) -> Floats:
    """Draw an outcome for every instance and draw.

    Args:
        likelihood: Likelihood of the outcomes.
        p: (instances, draws), probability of success or mean score.
        size: (instances, draws), sample size of scores; None for other outcomes.
        trials: (instances,), as returned by `trials_of`.
        generator: Source of randomness.

    Returns:
        (instances, draws), of the likelihood's kind; scores stay within its edge.
    """
    match likelihood:
        case Bernoulli():
            return (generator.random(p.shape) < p).astype(np.float64)
        case Binomial():
            count = np.zeros(p.shape)
            for trial in range(int(trials.max(initial=0.0))):
                counts = trial < trials[:, np.newaxis]
                count += counts & (generator.random(p.shape) < p)
            return count
        case _:
            assert size is not None  # scores have one
            mean = np.clip(p, LEAST, 1.0 - LEAST)
            size = np.maximum(size, LEAST_SIZE)
            edge = max(likelihood.edge, np.finfo(np.float64).eps)
            a, b = mean * size, (1.0 - mean) * size
            score = portable.betaincinv(a, b, generator.random(p.shape))
            return np.clip(score, edge, 1.0 - edge)
