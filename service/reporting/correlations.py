"""Which demands of a battery go together: Spearman's correlation of every two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from scipy.stats import rankdata

from animalcat.layouts.model.spec import Layout
from animalcat.service.reporting.demands import LOOK, DemandTable, Floats
from animalcat.service.reporting.kinship import kinship

CLOSE: Final = 0.7
"""Least absolute correlation of two demands that are said to go together."""
LEAST: Final = 10
"""Least number of instances that have both demands."""
LEAST_SHARE: Final = 0.05
"""Least share of a battery's instances that have both demands."""
SAME: Final = 0.9
"""Least absolute correlation at which one demand stands for another in the picture."""
SHOWN: Final = 24
"""Most demands in the picture."""


class Pair(NamedTuple):
    """Two demands that go together.

    Attributes:
        one: The first demand.
        other: The second demand.
        rho: Spearman's correlation.
        instances: Number of instances that have both.
        kinship: What both depend on by definition; empty if nothing is known.
    """

    one: str
    other: str
    rho: float
    instances: int
    kinship: str


@dataclass(frozen=True, eq=False)
class Correlations:
    """Correlations between the demands that have more than one value.

    Attributes:
        names: The demands, in the table's order.
        rho: (demands, demands): Spearman's correlations; NaN where too few instances have both, or
            one does not vary among them.
        counts: (demands, demands): number of instances that have both.
        least: Number of instances that must have both: `LEAST`, or `LEAST_SHARE` of the battery.
    """

    names: tuple[str, ...]
    rho: Floats
    counts: Floats
    least: int

    def pairs(self, least: float = CLOSE) -> list[Pair]:
        """Pairs of demands that correlate by at least so much, the closest first."""
        pairs = [
            Pair(
                name, earlier, float(self.rho[i, j]), int(self.counts[i, j]), kinship(name, earlier)
            )
            for i, name in enumerate(self.names)
            for j, earlier in enumerate(self.names[:i])
            if abs(self.rho[i, j]) >= least
        ]
        return sorted(pairs, key=lambda pair: (-abs(pair.rho), pair.one, pair.other))


class Picture(NamedTuple):
    """The demands that a picture of correlations shows.

    Attributes:
        names: Their names, those that go together side by side.
        stands_for: For each of them, the demands that say the same in this battery.
        left_out: Demands for which there was no room.
    """

    names: tuple[str, ...]
    stands_for: dict[str, tuple[str, ...]]
    left_out: tuple[str, ...]


def correlations(table: DemandTable) -> Correlations:
    """Correlate every two demands over the instances that have both."""
    names = table.varying
    values = table.values[:, [table.index[name] for name in names]]
    there = np.isfinite(values)
    counts = there.T.astype(np.float64) @ there.astype(np.float64)
    rho = np.full((len(names), len(names)), np.nan)
    np.fill_diagonal(rho, 1.0)
    whole = np.flatnonzero(there.all(axis=0))
    least = max(LEAST, math.ceil(LEAST_SHARE * len(values)))
    if len(whole) and len(values) >= least:
        ranks = np.apply_along_axis(rankdata, 0, values[:, whole])
        rho[np.ix_(whole, whole)] = np.atleast_2d(np.corrcoef(ranks, rowvar=False))
    complete = set(whole.tolist())
    for i in range(len(names)):
        for j in range(i):
            if {i, j} <= complete or counts[i, j] < least:
                continue
            both = there[:, i] & there[:, j]
            rho[i, j] = rho[j, i] = _spearman(values[both, i], values[both, j])
    return Correlations(names, rho, counts, least)


def picture(table: DemandTable, related: Correlations, layout: Layout | None = None) -> Picture:
    """Choose what a picture of the correlations shows.

    The layout's demands come first. The others follow by the number of instances that do not have
    the most common value, what should not matter to an agent last. A demand that is correlated by
    `SAME` with one that is shown is shown by it. Of more than `SHOWN` the first are taken.
    """
    first = set(layout.feature_names) if layout is not None else set[str]()
    groups = {demand.name: demand.group for demand in table.demands}
    enough = [name for name in related.names if len(table.known(name)) >= related.least]
    ordered = sorted(
        enough, key=lambda n: (n not in first, groups[n] == LOOK, -_uncommon(table.known(n)))
    )
    at = {name: i for i, name in enumerate(related.names)}
    stands_for: dict[str, tuple[str, ...]] = {}
    left_out: list[str] = []
    for name in ordered:
        same = [s for s in stands_for if abs(related.rho[at[name], at[s]]) >= SAME]
        if same and name not in first:
            stands_for[same[0]] += (name,)
        elif len(stands_for) < SHOWN:
            stands_for[name] = ()
        else:
            left_out.append(name)
    names = _side_by_side(related.rho, [at[name] for name in stands_for])
    return Picture(tuple(related.names[k] for k in names), stands_for, tuple(left_out))


def _uncommon(values: Floats) -> int:
    """Number of values that are not the most common one."""
    return len(values) - int(np.unique(values, return_counts=True)[1].max())


def _spearman(x: Floats, y: Floats) -> float:
    """Spearman's correlation; NaN if one does not vary."""
    if np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return float("nan")
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def _side_by_side(rho: Floats, chosen: list[int]) -> list[int]:
    """Order demands so that those which go together are neighbours: always the closest one next."""
    close = np.abs(np.nan_to_num(rho))
    left = list(chosen)
    ordered: list[int] = []
    while left:
        if ordered:
            following = max(left, key=lambda k: float(close[ordered[-1], k]))
        else:
            following = max(left, key=lambda k: float(close[k, left].sum()))
        ordered.append(following)
        left.remove(following)
    return ordered
