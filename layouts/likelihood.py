"""How likely outcomes are, given the probability (or mean score) that a layout predicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlog1py, xlogy

from animalcat.layouts.spec import Bernoulli, Beta, Binomial, Layout

Floats: TypeAlias = npt.NDArray[np.float64]

LEAST: Final = 1e-15
"""Least probability of an outcome, so that no draw is ruled out for ever; and nearest that the
mean of a score comes to 0 and 1, since the Beta distribution has none there."""
LEAST_SIZE: Final = 1e-9
"""Least sample size of a score; the Beta distribution has none at 0."""
_TERMS: Final = 8
"""Of the series of `log_beyond`; right to 1e-5 while sample size x edge is 1 at most."""


def log_density(
    layout: Layout, p: Floats, size: Floats | None, features: Floats, outcomes: Floats
) -> Floats:
    """Log probability, or log density of scores, of every outcome under every draw.

    Args:
        layout: The layout.
        p: (instances, draws), probability of success or mean score.
        size: (instances, draws), sample size of scores; None where outcomes are no scores.
        features: (instances, features).
        outcomes: (instances,), as `Layout.check_outcomes` gave them.

    Returns:
        (instances, draws).
    """
    y = outcomes[:, np.newaxis]
    if size is not None:
        mean = np.clip(p, LEAST, 1.0 - LEAST)
        size = np.maximum(size, LEAST_SIZE)
        a, b = mean * size, (1.0 - mean) * size
        edge = layout.outcome.edge if isinstance(layout.outcome, Beta) else 0.0
        low = (outcomes <= edge) & (edge > 0.0)
        high = (outcomes >= 1.0 - edge) & (edge > 0.0)
        within = ~(low | high)
        out = np.empty(a.shape)
        out[low] = log_beyond(a[low], b[low], edge, np.log, gammaln, np.maximum)
        out[high] = log_beyond(b[high], a[high], edge, np.log, gammaln, np.maximum)
        a, b, y = a[within], b[within], y[within]
        scale = gammaln(a + b) - gammaln(a) - gammaln(b)
        out[within] = scale + (a - 1.0) * np.log(y) + (b - 1.0) * np.log1p(-y)
        return out
    if isinstance(layout.outcome, Binomial):
        trials = features[:, [layout.feature_names.index(layout.outcome.trials)]]
        ways = gammaln(trials + 1.0) - gammaln(y + 1.0) - gammaln(trials - y + 1.0)
        share = np.clip(p, LEAST, 1.0 - LEAST)
        return ways + xlogy(y, share) + xlog1py(trials - y, -share)
    return np.log(np.maximum(np.where(y == 1.0, p, 1.0 - p), LEAST))


def log_beyond(
    a: Any,
    b: Any,
    edge: float,
    log: Callable[[Any], Any],
    gammaln: Callable[[Any], Any],
    maximum: Callable[[Any, float], Any],
) -> Any:
    """Log probability that a score ~ Beta(a, b) is at most `edge`: what a score at the edge says.

    By the series of the incomplete beta function (DLMF 8.17.7), whose gradient is plain. The
    functions are numpy's or PyTensor's; so both evaluators have the same.

    Args:
        a: First parameter; for the upper edge give the second one first.
        b: Second parameter.
        edge: Above 0, and small.
        log: Natural logarithm.
        gammaln: Logarithm of the gamma function.
        maximum: Of an array and a number.
    """
    term: Any = 1.0
    total: Any = 1.0
    for k in range(1, _TERMS + 1):
        term = term * (k - b) * (edge / k)
        total = total + term * a / (a + k)
    scale = gammaln(a + b) - gammaln(a + 1.0) - gammaln(b)
    return a * math.log(edge) + scale + log(maximum(total, LEAST))


def draw_outcomes(
    layout: Layout,
    p: Floats,
    size: Floats | None,
    features: Floats,
    generator: np.random.Generator,
) -> Floats:
    """Draw an outcome for every instance and draw.

    Args:
        layout: The layout.
        p: (instances, draws), probability of success or mean score.
        size: (instances, draws), sample size of scores; None where outcomes are no scores.
        features: (instances, features).
        generator: Where randomness comes from.

    Returns:
        (instances, draws), of the layout's kind of outcome; scores stay within the layout's edge.
    """
    match layout.outcome:
        case Bernoulli():
            return (generator.random(p.shape) < p).astype(np.float64)
        case Binomial(_, trials):
            most = features[:, [layout.feature_names.index(trials)]].astype(np.int64)
            return generator.binomial(most, np.clip(p, 0.0, 1.0)).astype(np.float64)
        case _:
            assert size is not None  # scores have one
            mean = np.clip(p, LEAST, 1.0 - LEAST)
            size = np.maximum(size, LEAST_SIZE)
            edge = max(layout.outcome.edge, np.finfo(np.float64).eps)
            return np.clip(generator.beta(mean * size, (1.0 - mean) * size), edge, 1.0 - edge)
