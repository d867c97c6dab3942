"""How far a battery covers each demand: its distribution, its gaps, and what it separates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from animalcat.layouts.model.spec import Layout
from animalcat.service.reporting.demands import Demand, DemandTable, Floats

RangeSource: TypeAlias = Literal["layout", "definition", "measured"]
"""Whose range it is: the layout's, that of the demand's definition, or what was measured."""

GAP: Final = 0.1
"""Least share of a demand's range that is a gap if no instance lies in it."""
BINS: Final = 12
"""Number of bins of a histogram."""
_SAME: Final = 1e-9
"""Share of a range by which numbers may differ and still be the same."""


class Gap(NamedTuple):
    """A part of a demand's range that has no instance; of counts and codes both ends lack one."""

    low: float
    high: float


class Bin(NamedTuple):
    """A bar of a histogram: instances from `low` to `high`, or at one value if these are equal."""

    low: float
    high: float
    instances: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How far a battery covers one demand.

    Attributes:
        demand: The demand.
        measured: Number of instances for which it is measured.
        missing: Why it is not measured for the others, with numbers.
        quantiles: Least, quarter, middle, three quarters and greatest value; empty without any.
        distinct: Number of different values.
        low: Lower end of the range.
        high: Upper end of the range.
        source: Whose range that is.
        bins: The histogram, over range and values.
        gaps: Parts of the range without an instance.
        outside: Number of instances beyond the range.
        separates: Share of the variance of ranks that lies between headings, 0 to 1; None if it has
            fewer than two values, or there is one heading or as many as instances.
        stepped: Whether its values are counts or codes.
    """

    demand: Demand
    measured: int
    missing: Mapping[str, int]
    quantiles: tuple[float, ...]
    distinct: int
    low: float
    high: float
    source: RangeSource
    bins: tuple[Bin, ...]
    gaps: tuple[Gap, ...]
    outside: int
    separates: float | None
    stepped: bool

    @property
    def constant(self) -> bool:
        """Whether every instance that has it has the same value."""
        return self.distinct == 1

    def share(self, gap: Gap) -> float:
        """Length of a gap as a share of the range."""
        return (gap.high - gap.low) / (self.high - self.low) if self.high > self.low else 0.0


def spreads(table: DemandTable, layout: Layout | None = None) -> list[Spread]:
    """Describe how far each demand is covered.

    Args:
        table: The demands.
        layout: A layout, whose ranges go before those of the definitions.
    """
    return [_spread(table, demand, layout) for demand in table.demands]


def _spread(table: DemandTable, demand: Demand, layout: Layout | None) -> Spread:
    values = np.sort(table.known(demand.name))
    low, high, source = _range(demand, values, layout)
    step = table.step(demand.name)
    quantiles: list[float] = []
    if len(values):
        quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    inside = values[(values >= low) & (values <= high)]
    return Spread(
        demand=demand,
        measured=len(values),
        missing=table.reasons(demand.name),
        quantiles=tuple(quantiles),
        distinct=len(np.unique(values)),
        low=low,
        high=high,
        source=source,
        bins=_bins(values, low, high, step),
        gaps=tuple(_gaps(np.unique(inside), low, high, step)),
        outside=len(values) - len(inside),
        separates=_between(table, demand.name),
        stepped=step is not None,
    )


def _range(
    demand: Demand, values: Floats, layout: Layout | None
) -> tuple[float, float, RangeSource]:
    for feature in layout.features if layout is not None else ():
        if feature.name == demand.name:
            return feature.low, feature.high, "layout"
    if math.isfinite(demand.low) and math.isfinite(demand.high):
        return demand.low, demand.high, "definition"
    if not len(values):
        return 0.0, 0.0, "measured"
    return float(values[0]), float(values[-1]), "measured"


def _bins(values: Floats, low: float, high: float, step: float | None) -> tuple[Bin, ...]:
    if not len(values):
        return ()
    if step is not None:
        at, counts = np.unique(values, return_counts=True)
        return tuple(Bin(v, v, n) for v, n in zip(at.tolist(), counts.tolist(), strict=True))
    low, high = min(low, float(values[0])), max(high, float(values[-1]))
    if high - low <= _SAME * max(1.0, abs(high)):
        return (Bin(low, low, len(values)),)
    counts, edges = np.histogram(values, BINS, (low, high))
    ends = pairwise(edges.tolist())
    return tuple(Bin(a, b, n) for (a, b), n in zip(ends, counts.tolist(), strict=True))


def _gaps(at: Floats, low: float, high: float, step: float | None) -> list[Gap]:
    """Parts of a range without an instance.

    Of counts and codes these are runs of values that no instance has. Of a scale they are intervals
    between neighbouring values, or between an end of the range and the nearest value, of a tenth of
    the range or more.

    Args:
        at: Different values within the range, in order.
        low: Lower end of the range.
        high: Upper end of the range.
        step: Step of counts and codes; None for a scale.
    """
    if high <= low or not len(at):
        return []
    if step is None:
        ends = pairwise([low, *at.tolist(), high])
        return [Gap(a, b) for a, b in ends if b - a >= GAP * (high - low) * (1.0 - _SAME)]
    held = set(at.tolist())
    grid = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
    runs: list[Gap] = []
    for value in grid.tolist():
        if value in held:
            continue
        if runs and math.isclose(runs[-1].high, value - step):
            runs[-1] = Gap(runs[-1].low, value)
        else:
            runs.append(Gap(value, value))
    return runs


def _between(table: DemandTable, name: str) -> float | None:
    """Share of the variance of a demand's ranks that lies between headings.

    It is eta squared, adjusted for the number of headings as R squared is for that of predictors.
    """
    there = np.isfinite(table.column(name))
    ranks = table.ranks[there, table.index[name]]
    known, groups = np.unique(np.array(table.headings)[there], return_inverse=True)
    if not 1 < len(known) < len(ranks) or np.ptp(ranks) == 0.0:
        return None
    means = np.bincount(groups, ranks) / np.bincount(groups)
    within = float(((ranks - means[groups]) ** 2).sum()) / (len(ranks) - len(known))
    return max(0.0, 1.0 - within / float(ranks.var(ddof=1)))
