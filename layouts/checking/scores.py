"""Scores of predictions: Brier with Murphy's decomposition, AUC and R2.

Predictions are probabilities of success, or expected scores in [0, 1]; outcomes are 0 and 1, or
scores in [0, 1]. Lower is better for `brier`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]
Metric: TypeAlias = Callable[[Floats, Floats], float]

INTERVAL_SHARE: Final = 0.9
"""Probability of the intervals here, equal to that of a profile's."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 90 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Murphy:
    """The Brier score as a sum (Murphy 1973), over groups of predictions.

    brier = reliability - resolution + uncertainty + within, always exactly. Groups of equal
    predictions have no `within`; bins have the part due to their spread (Stephenson et al. 2008).

    Attributes:
        brier: The Brier score.
        reliability: Mean squared distance of a group's mean prediction from its success rate; the
            "calibration" of Burden et al.
        resolution: Mean squared distance of a group's success rate from the overall one.
        uncertainty: Variance of the outcomes, which is the Brier score of the aggregate.
        within: The part due to different predictions within a group; may be negative.
        groups: Number of groups with a prediction.
    """

    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float
    groups: int

    @property
    def calibration(self) -> float:
        """The reliability, by the name that Burden et al. use."""
        return self.reliability

    @property
    def refinement(self) -> float:
        """Brier - calibration; with groups of equal predictions, uncertainty - resolution."""
        return self.brier - self.reliability


def murphy(predicted: npt.ArrayLike, outcomes: npt.ArrayLike, bins: int | None = 10) -> Murphy:
    """Decompose the Brier score.

    Args:
        predicted: (instances,).
        outcomes: (instances,).
        bins: Number of bins of equal width in [0, 1]. None groups equal predictions, which is exact
            but says little if nearly every prediction is different.
    """
    p, y = _check_pair(predicted, outcomes)
    rows, counts = _groups(p, bins)
    mean_p = np.bincount(rows, p) / counts
    mean_y = np.bincount(rows, y) / counts
    share = counts / len(p)
    reliability = float(share @ (mean_p - mean_y) ** 2)
    resolution = float(share @ (mean_y - y.mean()) ** 2)
    apart = p - mean_p[rows]
    within = float(np.mean(apart**2) - 2.0 * np.mean(apart * (y - mean_y[rows])))
    return Murphy(brier(p, y), reliability, resolution, float(y.var()), within, len(counts))


@dataclass(frozen=True, slots=True)
class ReliabilityPoint:
    """One group of a reliability curve.

    Attributes:
        predicted: Mean prediction.
        observed: Success rate, or mean score.
        count: Number of instances.
        low: Lower end of the 90 % interval of the success rate (Jeffreys).
        high: Upper end of that interval.
    """

    predicted: float
    observed: float
    count: int
    low: float
    high: float


def reliability_curve(
    predicted: npt.ArrayLike, outcomes: npt.ArrayLike, bins: int | None = 10
) -> list[ReliabilityPoint]:
    """Success rate against prediction, group by group, with groups as in `murphy`.

    The interval treats outcomes as trials; for scores between 0 and 1 it is too wide.
    """
    p, y = _check_pair(predicted, outcomes)
    rows, counts = _groups(p, bins)
    sums = np.bincount(rows, y)
    tail = (1.0 - INTERVAL_SHARE) / 2.0
    alpha, beta = sums + 0.5, counts - sums + 0.5
    # By convention a bound that the data touch is 0 or 1 (Brown, Cai and DasGupta 2001).
    low = np.where(sums == 0, 0.0, portable.betaincinv(alpha, beta, tail))
    high = np.where(sums == counts, 1.0, portable.betaincinv(alpha, beta, 1.0 - tail))
    mean_p = np.bincount(rows, p) / counts
    return [
        ReliabilityPoint(float(a), float(s / n), int(n), float(lo), float(hi))
        for a, s, n, lo, hi in zip(mean_p, sums, counts, low, high, strict=True)
    ]


def brier(predicted: npt.ArrayLike, outcomes: npt.ArrayLike) -> float:
    """Mean squared error of predictions of success or score."""
    p, y = _check_pair(predicted, outcomes)
    return float(np.mean((p - y) ** 2))


def auc(predicted: npt.ArrayLike, outcomes: npt.ArrayLike) -> float:
    """Probability that a success was predicted higher than a failure; a tie counts half.

    Returns:
        NaN if there are no successes or no failures.

    Raises:
        ValueError: An outcome is neither 0 nor 1.
    """
    p, y = _check_pair(predicted, outcomes)
    if not np.isin(y, (0.0, 1.0)).all():
        raise ValueError("AUC takes outcomes 0 and 1; for scores take `r2`")
    wins = int(y.sum())
    losses = len(y) - wins
    if not wins or not losses:
        return float("nan")
    from scipy.stats import rankdata  # seconds of CPU, which a server that lists does without

    ranks = rankdata(p)[y == 1.0].sum()
    return float((ranks - wins * (wins + 1) / 2.0) / (wins * losses))


def r2(predicted: npt.ArrayLike, outcomes: npt.ArrayLike) -> float:
    """Share of the outcomes' variance that is predicted; below 0 if their mean predicts better.

    Returns:
        NaN if all outcomes are equal.
    """
    p, y = _check_pair(predicted, outcomes)
    return 1.0 - brier(p, y) / float(y.var()) if np.ptp(y) > 0 else float("nan")


def bootstrap(
    metric: Metric,
    predicted: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    seed: int,
    repeats: int = 2000,
    instances: npt.ArrayLike | None = None,
) -> Estimate:
    """A metric with its 90 % percentile bootstrap interval, by resampling instances.

    Resamples in which the metric is NaN are left out.

    Args:
        metric: Function of predictions and outcomes.
        predicted: (predictions,).
        outcomes: (predictions,).
        seed: Seed of the resampling.
        repeats: Number of resamples.
        instances: (predictions,), the instance of each prediction if some are predicted several
            times; instances are then resampled with all their predictions.
    """
    p, y = _check_pair(predicted, outcomes)
    generator = np.random.default_rng(seed)
    keys = np.arange(len(y)) if instances is None else np.asarray(instances)
    order = np.argsort(keys, kind="stable")
    starts = np.append(np.unique(keys[order], return_index=True)[1], len(y))
    drawn = np.empty(repeats)
    for i in range(repeats):
        picked = generator.integers(len(starts) - 1, size=len(starts) - 1)
        rows = order[_ranges(starts[picked], starts[picked + 1])]
        drawn[i] = metric(p[rows], y[rows])
    return _interval(metric(p, y), drawn)


def _ranges(starts: Rows, stops: Rows) -> Rows:
    """start, start + 1, ..., stop - 1 of each range, one range after another."""
    lengths = stops - starts
    ends: Rows = np.cumsum(lengths)
    shifts: Rows = np.repeat(stops - ends, lengths)
    return np.arange(len(shifts)) + shifts


def _interval(value: float, drawn: Floats) -> Estimate:
    tail = (1.0 - INTERVAL_SHARE) / 2.0
    kept = drawn[~np.isnan(drawn)]
    if not len(kept):
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.quantile(kept, [tail, 1.0 - tail])
    return Estimate(value, float(low), float(high))


def _check_pair(predicted: npt.ArrayLike, outcomes: npt.ArrayLike) -> tuple[Floats, Floats]:
    p = np.asarray(predicted, dtype=np.float64)
    y = np.asarray(outcomes, dtype=np.float64)
    if p.ndim != 1 or p.shape != y.shape or not len(p):
        raise ValueError(f"predictions {p.shape} and outcomes {y.shape}: equal lists are expected")
    for what, values in (("prediction", p), ("outcome", y)):
        bad = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
        if len(bad):
            raise ValueError(f"{what} {bad[0]} is {values[bad[0]]}; expected 0 to 1")
    return p, y


def _groups(p: Floats, bins: int | None) -> tuple[Rows, Rows]:
    """The group of each prediction, and the size of each group; empty groups are left out."""
    if bins is not None and bins < 1:
        raise ValueError(f"{bins} bins; 1 at least, or None for groups of equal predictions")
    keys = p if bins is None else np.minimum(np.floor(p * bins), bins - 1)
    _, rows, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return rows, counts
