"""Predictive checks of a layout, and residuals by any grouping of instances.

A check compares a statistic of the outcomes with the same statistic of outcomes simulated from the
layout. Prior predictive p-values are exact: a p-value below 0.05 occurs for 5 % of agents drawn
from the prior. Posterior ones use the outcomes twice, to fit and to check, so they are
conservative: in the long run false alarms are never more frequent than claimed (Meng 1994).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.predict import as_shares, insist_on_one_outcome
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Binomial, Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Statistic: TypeAlias = Callable[[Floats], Floats]
"""A function of outcomes (instances, draws) with one number per draw. Numbers of successes are
given as shares of the trials."""

_REPLICATES: Final = 4000
"""Number of simulated sets of outcomes in a check: enough for p-values below 0.05 after correction
for 100 groups."""
_CELLS: Final = 10_000_000
"""Greatest number of simulated outcomes, 80 MB; with more than 2,500 instances there are fewer
sets."""
_TAIL: Final = 0.05
_FEW: Final = 8
"""A meta-feature with at most this many values has one group for each value."""
_BINS: Final = 5
"""Number of groups of about equal size into which other meta-features are cut."""


@dataclass(frozen=True, slots=True)
class Check:
    """One statistic, as observed and as the layout predicts it.

    Attributes:
        name: Name of the statistic.
        observed: Its observed value.
        expected: Its mean over simulated outcomes.
        low: Lower end of the interval that holds 90 % of the simulated values.
        high: Upper end of that interval.
        p_value: Two-sided p-value: how often a simulated value is at least as extreme.
    """

    name: str
    observed: float
    expected: float
    low: float
    high: float
    p_value: float


def _mean(outcomes: Floats) -> Floats:
    return outcomes.mean(axis=0)


def _spread(outcomes: Floats) -> Floats:
    return outcomes.std(axis=0)


def _stickiness(outcomes: Floats) -> Floats:
    """Mean product of neighbouring centred outcomes; streaks make it large."""
    if len(outcomes) < 2:
        return outcomes.mean(axis=0) * 0.0
    centred = outcomes - outcomes.mean(axis=0)
    return np.asarray(np.mean(centred[1:] * centred[:-1], axis=0))


STATISTICS: Final[Mapping[str, Statistic]] = {
    "mean outcome": _mean,
    "spread of outcomes": _spread,
    "likeness of neighbours": _stickiness,
}
"""The statistics that are checked by default. Neighbours are instances played one after the other.
"""


def prior_predictive(
    layout: Layout,
    features: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    seed: int,
) -> list[Check]:
    """Check outcomes against agents drawn from the prior.

    Args:
        layout: The layout.
        features: (instances, features).
        outcomes: (instances,).
        seed: Seed of the simulated outcomes.
    """
    z = rng(seed, "prior predictive", 0).standard_normal((_REPLICATES, len(layout.latents)))
    theta = layout.from_standard(z)
    return posterior_predictive(layout, theta, features, outcomes, seed)


def posterior_predictive(
    layout: Layout,
    draws: npt.ArrayLike,
    features: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    seed: int,
    statistics: Mapping[str, Statistic] = STATISTICS,
) -> list[Check]:
    """Check outcomes against what the fitted layout simulates for the same instances.

    Args:
        layout: The layout.
        draws: (draws, latents) of the posterior, equally weighted.
        features: (instances, features), in the order played.
        outcomes: (instances,).
        seed: Seed of the simulated outcomes.
        statistics: The statistics to check, by name.

    Raises:
        ValueError: Features or outcomes do not fit the layout, it has several outcomes, or there
            are none.
    """
    y, made_up = _replicates(layout, draws, features, outcomes, seed)[:2]
    return [
        _check(name, float(statistic(y[:, np.newaxis])[0]), statistic(made_up), rng(seed, name, 0))
        for name, statistic in statistics.items()
    ]


@dataclass(frozen=True, slots=True)
class Residual:
    """Outcomes of one group of instances beside what the layout expects there.

    Attributes:
        by: What instances are grouped by.
        group: Name of the group.
        count: Number of instances.
        observed: Mean outcome.
        expected: Mean that the layout expects.
        low: Lower end of the interval that holds 90 % of the simulated means.
        high: Upper end of that interval.
        p_value: Two-sided p-value: how often a simulated mean is at least as extreme.
        adjusted: The p-value corrected for the number of groups (Holm). If any is below 0.05, the
            layout is wrong somewhere, with at most 5 % false alarms over all groups together.
    """

    by: str
    group: str
    count: int
    observed: float
    expected: float
    low: float
    high: float
    p_value: float
    adjusted: float


def residuals(
    layout: Layout,
    draws: npt.ArrayLike,
    instances: Instances,
    outcomes: npt.ArrayLike,
    seed: int,
    by: Sequence[str] = (),
) -> list[Residual]:
    """Find where outcomes differ from what the layout expects.

    Args:
        layout: The layout.
        draws: (draws, latents) of the posterior, equally weighted.
        instances: The instances that were played.
        outcomes: (instances,).
        seed: Seed of the simulated outcomes.
        by: "paradigm" or names of meta-features, including those that the layout does not use; all
            of them if empty. A meta-feature with more than 8 values is cut into 5 groups of about
            equal size.

    Returns:
        The groups, the most surprising first.

    Raises:
        ValueError: Features or outcomes do not fit the layout, or there is no such column.
    """
    features = instances.features(layout)
    y, made_up, p = _replicates(layout, draws, features, outcomes, seed)
    names = tuple(by) or (("paradigm",) if instances.paradigms else ()) + instances.columns
    groups: list[tuple[str, Check, int]] = []
    for name in names:
        for group, mask in group_instances(instances, name).items():
            simulated = made_up[mask].mean(axis=0)
            check = _check(group, float(y[mask].mean()), simulated, rng(seed, f"{name}={group}", 0))
            groups.append((name, check, int(mask.sum())))
    adjusted: list[float] = holm([check.p_value for _, check, _ in groups]).tolist()
    rows = [
        Residual(
            name,
            check.name,
            count,
            check.observed,
            float(p[group_instances(instances, name)[check.name]].mean()),
            check.low,
            check.high,
            check.p_value,
            corrected,
        )
        for (name, check, count), corrected in zip(groups, adjusted, strict=True)
    ]
    return sorted(rows, key=lambda row: (row.adjusted, row.p_value))


def group_instances(instances: Instances, by: str) -> dict[str, npt.NDArray[np.bool_]]:
    """Group instances by paradigm or by a meta-feature, as an array of members by group.

    Raises:
        ValueError: There is no such column.
    """
    if by == "paradigm" and by not in instances:
        return {
            name: np.array([p == name for p in instances.paradigms])
            for name in dict.fromkeys(instances.paradigms)
        }
    column = instances.column(by)
    values = np.unique(column[np.isfinite(column)])
    groups: dict[str, npt.NDArray[np.bool_]] = {}
    if len(values) <= _FEW:
        groups = {f"{value:g}": column == value for value in values}
    else:
        edges = np.unique(np.nanquantile(column, np.linspace(0, 1, _BINS + 1)))
        for i, (low, high) in enumerate(pairwise(edges)):
            last = i == len(edges) - 2
            mask = (column >= low) & ((column <= high) if last else (column < high))
            groups[f"{low:.4g} to {high:.4g}"] = mask
    if np.isnan(column).any():
        groups["missing"] = np.isnan(column)
    return {name: mask for name, mask in groups.items() if mask.any()}


def _replicates(
    layout: Layout,
    draws: npt.ArrayLike,
    features: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    seed: int,
) -> tuple[Floats, Floats, Floats]:
    """Outcomes (instances,), simulated ones (instances, sets), expected ones (instances,)."""
    insist_on_one_outcome(layout)
    checked = layout.check_features(features)
    y = layout.check_outcomes(outcomes, checked)
    if not len(y):
        raise ValueError("no outcomes: there is nothing to check")
    theta = np.asarray(draws, dtype=np.float64)
    generator = rng(seed, "replicates", 0)
    evaluator = Evaluator(layout)
    columns = evaluator.columns(checked)
    sets = min(_REPLICATES, max(_CELLS // len(y), 100))
    picked = theta[generator.integers(len(theta), size=sets)]
    made_up = evaluator.simulate(picked, columns, generator)
    if isinstance(layout.outcome, Binomial):
        trials = checked[:, layout.feature_names.index(layout.outcome.trials)]
        y, made_up = as_shares(layout, y, checked), made_up / trials[:, np.newaxis]
    return y, made_up, made_up.mean(axis=1)


def _check(name: str, observed: float, simulated: Floats, generator: np.random.Generator) -> Check:
    """Compare one statistic; ties, which are common with few instances, are broken at random."""
    above = np.sum(simulated > observed) + 0.0
    ties = np.sum(simulated == observed) + 1.0  # the observed statistic counts as one of them
    share = (above + generator.uniform() * ties) / (len(simulated) + 1.0)
    low, high = np.quantile(simulated, [_TAIL, 1.0 - _TAIL])
    p_value = float(min(2.0 * min(share, 1.0 - share), 1.0))
    return Check(name, observed, float(simulated.mean()), float(low), float(high), p_value)


def holm(p_values: npt.ArrayLike) -> Floats:
    """P-values corrected for their number (Holm 1979).

    One of them is below 0.05 by chance in at most 5 % of cases, however many there are.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected
