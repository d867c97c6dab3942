"""A linear regression with a random intercept for each group, fitted by REML.

Source: Patterson and Thompson (1971). With one variance of intercepts the criterion has one
unknown, the ratio of the two variances, and sums over groups say all that it needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_RATIOS: Final = (-18.0, 18.0)
"""Logarithm of the ratio of the variances, within which it is looked for."""
_TAIL: Final = 1.959964
"""Standard normal value with 2.5 % above it."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A row of the table of fixed effects.

    Attributes:
        estimate: The estimate.
        error: Its standard error.
        z: The estimate over its standard error.
        p: Two-sided p-value of z.
        low: Lower end of the 95 % interval.
        high: Upper end of it.
    """

    estimate: float
    error: float
    z: float
    p: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MixedRegression:
    """The fitted regression.

    Attributes:
        observations: Number of observations.
        groups: Number of groups.
        intercept: The fixed intercept.
        slope: The fixed slope.
        variance: Variance of the intercepts between groups.
        variance_error: Its standard error, by the curvature of the criterion.
        residual: Variance within a group.
    """

    observations: int
    groups: int
    intercept: Coefficient
    slope: Coefficient
    variance: float
    variance_error: float
    residual: float


def mixed_regression(x: npt.ArrayLike, y: npt.ArrayLike, groups: npt.ArrayLike) -> MixedRegression:
    """Regress y on x, with a random intercept for each group.

    Args:
        x: (observations,).
        y: (observations,).
        groups: (observations,): the group of each.

    Raises:
        ValueError: Lengths differ, there are fewer than three groups or x is constant.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    names, of = np.unique(np.asarray(groups), return_inverse=True)
    if not len(xs) == len(ys) == len(of):
        raise ValueError(f"{len(xs)} x, {len(ys)} y and {len(of)} groups: equal lists are wanted")
    if len(names) < 3 or np.ptp(xs) == 0.0:
        raise ValueError("a mixed regression takes three groups and an x that varies")
    sums = _Sums.of(xs, ys, of)
    ratio = math.exp(_least(lambda log: sums.deviance(math.exp(log)), *_RATIOS))
    beta, inverse, residual = sums.solve(ratio)
    errors = np.sqrt(residual * np.diag(inverse))
    intercept, slope = (_coefficient(float(b), float(e)) for b, e in zip(beta, errors, strict=True))
    return MixedRegression(
        len(ys),
        len(names),
        intercept,
        slope,
        ratio * residual,
        sums.variance_error(ratio * residual, residual),
        residual,
    )


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one minimum has it, by the golden section."""
    share = (math.sqrt(5.0) - 1.0) / 2.0
    a, b = high - share * (high - low), low + share * (high - low)
    at_a, at_b = function(a), function(b)
    while high - low > 1e-9:
        if at_a < at_b:
            high, b, at_b = b, a, at_a
            a = high - share * (high - low)
            at_a = function(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + share * (high - low)
            at_b = function(b)
    return (low + high) / 2.0


def _coefficient(estimate: float, error: float) -> Coefficient:
    z = estimate / error
    half = _TAIL * error
    p = 2.0 * float(ndtr(-abs(z)))
    return Coefficient(estimate, error, z, p, estimate - half, estimate + half)


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over the observations: all that the criterion needs.

    Attributes:
        count: (groups,), observations of each.
        design: (groups, 2), sums of 1 and x.
        outcome: (groups,), sums of y.
        crossed: (2, 2), sums of products of 1 and x.
        with_outcome: (2,), sums of products with y.
        squared: Sum of the squares of y.
    """

    count: Floats
    design: Floats
    outcome: Floats
    crossed: Floats
    with_outcome: Floats
    squared: float

    @classmethod
    def of(cls, x: Floats, y: Floats, groups: Ints) -> _Sums:
        design = np.stack([np.ones_like(x), x], axis=1)
        sums = [np.bincount(groups, column).astype(np.float64) for column in (*design.T, y)]
        return cls(
            sums[0],
            np.stack(sums[:2], axis=1),
            sums[2],
            design.T @ design,
            design.T @ y,
            float(y @ y),
        )

    def _products(self, ratio: float) -> tuple[Floats, Floats, float]:
        """X' V^-1 X, X' V^-1 y and y' V^-1 y, with V in units of the residual variance."""
        weight = ratio / (1.0 + ratio * self.count)
        weighted = self.design * weight[:, np.newaxis]
        return (
            self.crossed - weighted.T @ self.design,
            self.with_outcome - weighted.T @ self.outcome,
            self.squared - float(weight @ self.outcome**2),
        )

    def solve(self, ratio: float) -> tuple[Floats, Floats, float]:
        """Coefficients, inverse of X' V^-1 X, and the residual variance."""
        crossed, with_outcome, squared = self._products(ratio)
        inverse: Floats = np.linalg.inv(crossed).astype(np.float64)
        beta = inverse @ with_outcome
        free = self.count.sum() - len(beta)
        return beta, inverse, float((squared - with_outcome @ beta) / free)

    def deviance(self, ratio: float, residual: float | None = None) -> float:
        """-2 x the restricted log-likelihood; with the best residual variance if none is given."""
        crossed, with_outcome, squared = self._products(ratio)
        beta = np.linalg.solve(crossed, with_outcome)
        left = squared - float(with_outcome @ beta)
        free = float(self.count.sum()) - len(beta)
        variance = left / free if residual is None else residual
        return (
            free * math.log(variance)
            + left / variance
            + float(np.log1p(ratio * self.count).sum())
            + float(np.linalg.slogdet(crossed)[1])
        )

    def variance_error(self, between: float, within: float) -> float:
        """Standard error of the variance between groups, by the curvature of the criterion."""
        steps = np.array([1e-3 * max(between, 1e-12), 1e-3 * within])

        def at(i: float, j: float) -> float:
            b, w = between + i * steps[0], within + j * steps[1]
            return self.deviance(b / w, w)

        curve = np.array(
            [
                [at(1, 0) - 2 * at(0, 0) + at(-1, 0), 0.0],
                [0.0, at(0, 1) - 2 * at(0, 0) + at(0, -1)],
            ]
        )
        curve[0, 1] = curve[1, 0] = (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4.0
        information = curve / np.outer(steps, steps) / 2.0
        variance = float(np.linalg.inv(information)[0, 0])
        return math.sqrt(variance) if variance > 0.0 else math.nan
