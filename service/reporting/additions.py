"""Which instances to add to a battery: for what is worst known, in gaps, against correlations.

Demands are wanted here, not arenas: whether an arena can be made that has them is not checked,
beyond the distances that an arena of 40 m allows and the sizes of goals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np

from animalcat.arena_configs.catalogue import KINDS
from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.layouts.adaptive.bound import in_units, information_of_each
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.nodes import Binomial, Feature
from animalcat.layouts.model.spec import Layout
from animalcat.service.reporting.correlations import Correlations
from animalcat.service.reporting.demands import LOOK, OWN, DemandTable, Floats
from animalcat.service.reporting.kinship import kinship
from animalcat.service.reporting.precision import Precision
from animalcat.service.reporting.spread import GAP, Gap, Spread

Rule: TypeAlias = Literal["precision", "gap", "correlation"]

CANDIDATES: Final = 512
"""Number of demand vectors that are compared, a Latin hypercube."""
ADDED: Final = 10
"""Number of instances with the same demands that an addition stands for."""
ROUNDS: Final = 5
"""Most additions for precision."""
WORTH: Final = 0.03
"""Least share by which an addition has to lower a standard deviation."""
GAPS: Final = 6
"""Most additions that fill gaps."""
SPLITS: Final = 4
"""Most additions against correlations."""
_MARGIN: Final = 1.0
"""Metres between the middle of an agent or a goal and the arena's wall, at least."""
_LARGEST: Final = KINDS["GoodGoal"].size_max.x
"""Metres: the greatest diameter of a goal that keeps its size."""
GREATEST: Final[Mapping[str, float]] = {
    "rewardDistance": math.sqrt(2.0) * (ARENA_SIDE - 2 * _MARGIN),
    "goalDistance": 2.0 * (ARENA_SIDE - 2 * _MARGIN),
    "rewardSize": _LARGEST,
    "goalSize": _LARGEST,
}
"""The greatest straight and Manhattan distances that an arena has room for, and sizes of goals."""
_WIDE: Final = 10.0
"""Ratio of the ends of a range from which on values are drawn by their logarithms."""


@dataclass(frozen=True, slots=True)
class Addition:
    """Instances that a battery lacks.

    Attributes:
        rule: Why: for precision, to fill a gap, or against a correlation.
        demands: The demands that they would have, in their units.
        count: How many of them.
        like: The instance of the battery that is most like them; empty if there is none.
        node: For precision: the node that they are for.
        before: For precision: the node's standard deviation without them, the median over agents.
        after: For precision: the same with them and all additions before.
        share: For a gap: its length as a share of the range.
        correlation: Against a correlation: Spearman's correlation now.
    """

    rule: Rule
    demands: Mapping[str, float]
    count: int = 1
    like: str = ""
    node: str = ""
    before: float | None = None
    after: float | None = None
    share: float | None = None
    correlation: float | None = None


def additions(
    table: DemandTable, covered: Sequence[Spread], found: Correlations, known: Precision | None
) -> list[Addition]:
    """List instances to add: first for precision, then for gaps, then against correlations.

    Args:
        table: The battery's demands.
        covered: How far each is covered.
        found: The correlations.
        known: What a layout could know; None without a layout.
    """
    made: list[Addition] = []
    if known is not None:
        made += for_precision(table, known)
    wanted = None if known is None else known.layout.feature_names
    made += for_gaps(table, covered, wanted)
    made += against_correlations(table, found, wanted)
    return made


def for_precision(table: DemandTable, known: Precision) -> list[Addition]:
    """Find demands that most help the worst-known capability, round by round.

    The worst-known capability has the greatest standard deviation in z-space, as a share of its
    prior's. Of `CANDIDATES` demand vectors, which fill the layout's ranges evenly, the one is taken
    of which `ADDED` instances most lower the mean variance over agents, and not again. A capability
    that none of them helps by `WORTH` is left for the next.
    """
    layout, information = known.layout, known.information.copy()
    vectors = candidates(layout, table)
    evaluator = Evaluator(layout)
    each = ADDED * information_of_each(evaluator, evaluator.columns(vectors), known.z)
    taken = np.zeros(len(vectors), np.bool_)
    hopeless = set[int]()
    made: list[Addition] = []
    while len(made) < ROUNDS and len(hopeless) < len(layout.capabilities):
        variance = _variances(information)
        left = [k for k in layout.capabilities if k not in hopeless]
        worst = max(left, key=lambda k: float(np.median(variance[:, k])))
        after = np.stack([_variances(information + more)[:, worst] for more in each])
        chosen = int(np.argmin(np.where(taken, np.inf, after.mean(axis=1))))
        sds = [_median_sd(known, worst, v) for v in (variance[:, worst], after[chosen])]
        if sds[1] > (1.0 - WORTH) * sds[0]:
            hopeless.add(worst)
            continue
        information += each[chosen]
        taken[chosen] = True
        demands = _wanted(layout, vectors[chosen])
        made.append(
            Addition(
                "precision",
                demands,
                ADDED,
                like=_most_like(table, demands),
                node=layout.latents[worst].name,
                before=sds[0],
                after=sds[1],
            )
        )
    return made


def candidates(layout: Layout, table: DemandTable) -> Floats:
    """Demand vectors that fill a layout's ranges evenly, (candidates, features).

    Counts and codes have whole steps. A range whose ends are both above 0 and ten times apart is
    filled by logarithms. A number of trials is the battery's median.
    """
    generator = rng(0, "candidates", 0)
    middles = (np.arange(CANDIDATES) + 0.5) / CANDIDATES
    columns = [_column(layout, table, f, generator.permutation(middles)) for f in layout.features]
    made = np.stack(columns, axis=1)
    for k, feature in enumerate(layout.features):
        if feature.only_with:
            shut = made[:, layout.feature_names.index(feature.only_with)] == 0.0
            made[shut, k] = feature.low
    return np.unique(layout.check_features(made), axis=0)


def for_gaps(
    table: DemandTable, covered: Sequence[Spread], wanted: Sequence[str] | None
) -> list[Addition]:
    """Fill the widest gaps of scales: the middle of the gap, else as the instance next to it.

    Args:
        table: The battery's demands.
        covered: How far each is covered.
        wanted: The demands to look at; None for all that are no looks.
    """
    gaps = [
        (spread.share(Gap(gap.low, high)), spread, Gap(gap.low, high))
        for spread in covered
        for gap in spread.gaps
        for high in [min(gap.high, GREATEST.get(spread.demand.name, math.inf))]
        if not spread.stepped
        and not spread.constant
        and (spread.demand.name in wanted if wanted is not None else spread.demand.group != LOOK)
    ]
    made: list[Addition] = []
    for share, spread, gap in sorted(gaps, key=lambda one: (-one[0], one[1].demand.name)):
        name = spread.demand.name
        if share < GAP or len(made) == GAPS:
            break
        if any(kinship(name, n) or n == name for one in made for n in one.demands):
            continue
        column = table.column(name)
        beside = np.where(np.isfinite(column), column, np.inf)
        nearest = int(np.argmin(np.minimum(abs(beside - gap.low), abs(beside - gap.high))))
        made.append(
            Addition(
                "gap",
                {name: _short((gap.low + gap.high) / 2)},
                like=table.names[nearest],
                share=share,
            )
        )
    return made


def against_correlations(
    table: DemandTable, found: Correlations, wanted: Sequence[str] | None
) -> list[Addition]:
    """Break the closest correlations of demands that are not nested by definition.

    What rises with another is wanted high (at its 90 % quantile) where the other is low (at its
    10 % quantile); what falls with another is wanted high where the other is high.

    Args:
        table: The battery's demands.
        found: The correlations.
        wanted: The demands to look at; None for all that are no looks.
    """
    groups = {demand.name: demand.group for demand in table.demands}
    made: list[Addition] = []
    for pair in found.pairs():
        names = (pair.one, pair.other)
        own = any(groups[name] == OWN for name in names)
        apart = (own or not pair.kinship) and all(
            n in wanted if wanted is not None else groups[n] != LOOK for n in names
        )
        told = {name for one in made for name in one.demands}
        if not apart or told & set(names):
            continue
        high = float(np.quantile(table.known(pair.one), 0.9))
        low = float(np.quantile(table.known(pair.other), 0.1 if pair.rho > 0 else 0.9))
        demands = {pair.one: _short(high), pair.other: _short(low)}
        made.append(
            Addition(
                "correlation",
                demands,
                like=_most_like(table, demands),
                correlation=pair.rho,
            )
        )
        if len(made) == SPLITS:
            break
    return made


def _column(layout: Layout, table: DemandTable, feature: Feature, shares: Floats) -> Floats:
    """Values of one feature for shares of its range, (candidates,)."""
    low, high = feature.low, min(feature.high, GREATEST.get(feature.name, math.inf))
    known = table.known(feature.name) if feature.name in table.index else np.empty(0)
    trials = {o.likelihood.trials for o in layout.outcomes if isinstance(o.likelihood, Binomial)}
    if feature.name in trials:
        usual = float(np.median(known)) if len(known) else max(low, 1.0)
        return np.full(len(shares), min(max(usual, low), high))
    step = 1.0 if feature.name in layout.gates else None
    if step is None and feature.name in table.index:
        step = table.step(feature.name)
    if step is not None:
        ends = math.ceil(low / step), math.floor(high / step) + 1
        grid = np.arange(*ends, dtype=np.float64) * step
        return grid[np.minimum((shares * len(grid)).astype(np.int64), len(grid) - 1)]
    if low > 0.0 and high / low >= _WIDE:
        values = low * (high / low) ** shares
    else:
        values = low + (high - low) * shares
    return np.clip([_short(v) for v in values.tolist()], low, high)


def _variances(information: Floats) -> Floats:
    """Posterior variances in z-space, (agents, nodes)."""
    covariance = np.asarray(np.linalg.inv(information), np.float64)
    return np.diagonal(covariance, axis1=-2, axis2=-1)


def _median_sd(known: Precision, node: int, variances: Floats) -> float:
    prior = known.layout.latents[node].prior
    return float(np.median(in_units(prior, known.z[:, node], np.sqrt(variances))))


def _wanted(layout: Layout, vector: Floats) -> dict[str, float]:
    """The demands of a vector by name, without those that play no part in it."""
    values = dict(zip(layout.feature_names, vector.tolist(), strict=True))
    return {
        feature.name: values[feature.name]
        for feature in layout.features
        if not feature.only_with or values[feature.only_with] != 0.0
    }


def _most_like(table: DemandTable, demands: Mapping[str, float]) -> str:
    """The instance with the nearest demands, each by its spread; empty if none has them all."""
    names = [name for name in demands if name in table.index]
    if not names:
        return ""
    columns = table.values[:, [table.index[name] for name in names]]
    there = np.isfinite(columns).all(axis=1)
    if not there.any():
        return ""
    spread = columns[there].std(axis=0)
    scale = np.where(spread > 0.0, spread, 1.0)
    apart = np.abs((columns - [demands[name] for name in names]) / scale).sum(axis=1)
    return table.names[int(np.nanargmin(np.where(there, apart, np.nan)))]


def _short(value: float) -> float:
    """A value with two significant digits: a wish, not a measurement."""
    return float(f"{value:.2g}")


def words(addition: Addition, units: Mapping[str, str]) -> Iterator[str]:
    """The demands of an addition in words, each with its unit."""
    for name, value in addition.demands.items():
        yield f"{name} {value:.4g} {units.get(name, '')}".rstrip()
