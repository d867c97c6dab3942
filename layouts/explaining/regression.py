"""A logistic regression on the demands, which learns one episode after another."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]

_RIDGE: Final = 1.0
"""Penalty of the coefficients of standardised features."""
_RIDGE_OF_RATE: Final = 0.1
"""Penalty of the intercept."""
_STEPS: Final = 4
"""Newton steps after each outcome; the regression starts where it was."""


class RunningRegression:
    """A penalised logistic regression of each outcome on features, by all that was learnt before.

    It knows nothing of a layout but its features, so a layout should predict better.
    """

    def __init__(self, outcomes: int = 1) -> None:
        """Start with nothing learnt: it forecasts a half.

        Args:
            outcomes: How many outcomes an episode has.
        """
        self._features: list[Floats] = []
        self._observed: list[Floats] = []
        self._betas: list[Floats] = [np.zeros(0)] * outcomes

    def forecast(self, features: Floats) -> Floats:
        """Forecast an episode, (outcomes,), as shares of the outcomes' maxima.

        Args:
            features: (features,); NaN where one is missing.
        """
        design = _design(np.array([*self._features, features], np.float64))
        observed = np.array(self._observed, np.float64).reshape(len(design) - 1, len(self._betas))
        penalty = np.full(design.shape[1], _RIDGE)
        penalty[0] = _RIDGE_OF_RATE
        for k, beta in enumerate(self._betas):
            there = np.flatnonzero(np.isfinite(observed[:, k]))
            y = observed[there, k]
            beta = beta if beta.size else np.zeros(len(penalty))
            for _ in range(_STEPS):
                beta = _newton_step(design[there], y, beta, penalty)
            self._betas[k] = beta
        return np.array([portable.expit(design[-1] @ beta) for beta in self._betas], np.float64)

    def learn(self, features: Floats, observed: Floats) -> None:
        """Take in an episode.

        Args:
            features: (features,); NaN where one is missing.
            observed: (outcomes,), as shares of the outcomes' maxima; NaN where one is missing.
        """
        self._features.append(features)
        self._observed.append(observed)


def _design(features: Floats) -> Floats:
    """A row for each episode, standardised by all but the last one, which is to be predicted.

    What is missing has the mean of the known ones, and what never varied tells nothing.
    """
    known = np.isfinite(features[:-1])
    number = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, features[:-1], 0.0).sum(axis=0) / number
    filled = np.where(np.isfinite(features), features, mean)
    spread = filled[:-1].std(axis=0) if len(features) > 1 else np.zeros(features.shape[1])
    varied = spread > 1e-9 * (1.0 + np.abs(mean))
    x = np.where(varied, (filled - mean) / np.where(varied, spread, 1.0), 0.0)
    return np.column_stack([np.ones(len(x)), x])


def _newton_step(x: Floats, y: Floats, beta: Floats, penalty: Floats) -> Floats:
    p = np.asarray(portable.expit(x @ beta), np.float64)
    gradient = x.T @ (y - p) - penalty * beta
    curvature = (x * (p * (1.0 - p))[:, np.newaxis]).T @ x + np.diag(penalty)
    return np.asarray(beta + np.linalg.solve(curvature, gradient), np.float64)
