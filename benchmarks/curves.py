"""Curves of simulated sessions, where they cross a level, and intervals by bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

from benchmarks.sessions import Trajectory

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

RESAMPLES: Final = 1000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with the 90 % interval of resampling sessions."""

    value: float
    low: float
    high: float


def bootstrap(
    size: int, statistic: Callable[[Ints], float], resamples: int = RESAMPLES
) -> Estimate:
    """A statistic of sessions with its interval; infinite values count as such.

    Args:
        size: How many sessions, or groups of them, there are.
        statistic: Takes the numbers of some, with repeats.
        resamples: How often they are drawn anew.

    Returns:
        NaN for the ends where there is but one session.
    """
    if size < 2:
        return Estimate(statistic(np.arange(size)), float("nan"), float("nan"))
    generator = np.random.default_rng(0)
    drawn = [statistic(generator.integers(size, size=size)) for _ in range(resamples)]
    low, high = np.quantile(drawn, [0.05, 0.95], method="nearest")
    return Estimate(statistic(np.arange(size)), float(low), float(high))


def share(hits: Sequence[bool]) -> Estimate:
    """A share with its exact 90 % interval (Clopper and Pearson)."""
    found = binomtest(sum(hits), len(hits)).proportion_ci(0.9, method="exact")
    return Estimate(sum(hits) / len(hits), float(found.low), float(found.high))


def crossing(episodes: npt.ArrayLike, values: npt.ArrayLike, level: float) -> float:
    """After how many episodes a curve has come down to a level; infinite: never.

    Between checkpoints the curve is a straight line.
    """
    n, v = np.asarray(episodes, np.float64), np.asarray(values, np.float64)
    below = np.flatnonzero(v <= level)
    if not below.size:
        return float("inf")
    i = int(below[0])
    if i == 0:
        return float(n[0])
    return float(n[i - 1] + (n[i] - n[i - 1]) * (v[i - 1] - level) / (v[i - 1] - v[i]))


def sd_curves(trajectories: Sequence[Trajectory]) -> Floats:
    """Standard deviations in shares of the ranges: (sessions, checkpoints, capabilities)."""
    shortest = min(len(t.points) for t in trajectories)
    return np.array([[p.sd for p in t.points[:shortest]] for t in trajectories])


def checkpoints(trajectories: Sequence[Trajectory]) -> list[int]:
    """The checkpoints that all of them reached."""
    shortest = min((t.points for t in trajectories), key=len)
    return [p.episodes for p in shortest]


def row(
    name: str,
    estimate: Estimate,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    aim: float | None = None,
    upper: bool = False,
    lower: bool = False,
    note: str = "",
) -> dict[str, Any]:
    """A row of the table.

    Args:
        name: What was measured.
        estimate: Its value.
        at_most: It must be no more.
        at_least: It must be no less.
        aim: What would be better still.
        upper: Whether the upper bound is what must be, not the value.
        lower: The same of the lower bound.
        note: How it was measured.
    """
    judged = estimate.high if upper and np.isfinite(estimate.high) else estimate.value
    judged = estimate.low if lower and np.isfinite(estimate.low) else judged
    must = at_most if at_most is not None else at_least
    made: dict[str, Any] = {
        "name": name,
        "value": _finite(estimate.value),
        "low": _finite(estimate.low),
        "high": _finite(estimate.high),
    }
    if must is not None:
        met = judged <= must if at_most is not None else judged >= must
        made |= {"target": must, "met": "yes" if met else "no"}
    if aim is not None:
        made["aim"] = aim
    return {**made, "note": note} if note else made


def _finite(value: float) -> float | str | None:
    """JSON knows no infinity."""
    if np.isnan(value):
        return None
    return value if np.isfinite(value) else "never"
