"""A rival of every layout: the agent's difficulties add up, and one may make up for another.

It is one logistic regression of success on all features. Its coefficients are integrated out by
Laplace's method, so that it can be compared with the layout by how likely it makes what was played.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]

_SPREADS: Final = (1.0, 2.5)
"""Prior standard deviations of the coefficients of standardised features; each is as likely."""
_INTERCEPT: Final = 2.5
"""That of the intercept."""
_STEPS: Final = 60
"""Newton steps at most."""
_LONGEST: Final = 2.0
"""Length of a Newton step at most, so that none overshoots."""
_NEAR: Final = 1e-8
"""Length of a step at which the likeliest coefficients are found."""


@dataclass(frozen=True, slots=True, eq=False)
class SumRival:
    """A regression as it was fitted.

    Attributes:
        log_evidence: Logarithm of the probability of the outcomes, with coefficients integrated
            out.
        log_single: The same of the best regression on one feature alone.
        expected: (instances,): the success that it expects of every instance.
    """

    log_evidence: float
    log_single: float
    expected: Floats


def fit_sum(features: Floats, rows: npt.NDArray[np.int64], outcomes: Floats) -> SumRival | None:
    """Fit the rival; None where fewer than two features differ, so that nothing adds up.

    Args:
        features: (instances, features) of the whole bank; NaN where one is missing.
        rows: (episodes,): the rows of the instances played.
        outcomes: (episodes,): 1 for success, 0 for failure.
    """
    known = np.isfinite(features)
    mean = np.where(known, features, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    apart = np.where(known, features - mean, 0.0)
    spread = np.sqrt((apart**2).mean(axis=0))
    varied = spread > 1e-9 * (1.0 + np.abs(mean))
    if varied.sum() < 2:
        return None
    design = np.column_stack([np.ones(len(apart)), apart[:, varied] / spread[varied]])
    fits = [_fit(design[rows], outcomes, spread) for spread in _SPREADS]
    logs = np.array([log for log, _ in fits])
    shares = portable.exp(logs - portable.logsumexp(logs))
    each = np.array([portable.expit(portable.dot(design, beta)) for _, beta in fits])
    whole = float(portable.logsumexp(logs) - portable.log(len(fits)))
    single = [
        _fit(design[rows][:, [0, k]], outcomes, spread)[0]
        for k in range(1, design.shape[1])
        for spread in _SPREADS
    ]
    return SumRival(whole, max(single), portable.dot(shares, each))


def _fit(x: Floats, y: Floats, spread: float) -> tuple[float, Floats]:
    """Logarithm of the evidence, and the likeliest coefficients, for one width of their prior."""
    precision = np.full(x.shape[1], spread**-2.0)
    precision[0] = _INTERCEPT**-2.0
    across = np.ascontiguousarray(x.T)

    def curve(beta: Floats) -> tuple[Floats, Floats]:
        p = portable.expit(portable.dot(x, beta))
        slope = portable.dot(across, y - p) - precision * beta
        return slope, portable.dot(across * (p * (1.0 - p)), x) + np.diag(precision)

    beta = np.zeros(len(precision))
    slope, curvature = curve(beta)
    for _ in range(_STEPS):
        step = portable.solve(curvature, slope)
        length = float(np.sqrt((step**2).sum()))
        if length < _NEAR:
            break
        beta = beta + step * min(1.0, _LONGEST / length)
        slope, curvature = curve(beta)
    signed = np.where(y > 0.5, 1.0, -1.0) * portable.dot(x, beta)
    fitted = float(portable.log_expit(signed).sum() - 0.5 * (precision * beta**2).sum())
    root = np.diag(portable.cholesky(curvature))
    volume = float(0.5 * portable.log(precision).sum() - portable.log(root).sum())
    return fitted + volume, beta
