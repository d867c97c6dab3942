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
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.likelihood import trials_of
from animalcat.layouts.model.nodes import Binomial, Feature, OutcomeNode
from animalcat.layouts.model.spec import Layout
from animalcat.service.reporting.correlations import Correlations
from animalcat.service.reporting.demands import LOOK, OWN, DemandTable, Floats
from animalcat.service.reporting.kinship import kinship
from animalcat.service.reporting.precision import AgentPosterior, Precision
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
        before: For precision: the node's expected standard deviation without them.
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
    table: DemandTable, covered: Sequence[Spread], related: Correlations, known: Precision | None
) -> list[Addition]:
    """List instances to add: first for precision, then for gaps, then against correlations.

    Args:
        table: The battery's demands.
        covered: How far each is covered.
        related: The correlations.
        known: What a layout could know; None without a layout.
    """
    proposed: list[Addition] = []
    if known is not None:
        proposed += for_precision(table, known)
    wanted = None if known is None else known.layout.feature_names
    proposed += for_gaps(table, covered, wanted)
    proposed += against_correlations(table, related, wanted)
    return proposed


def for_precision(table: DemandTable, known: Precision) -> list[Addition]:
    """Find demands that most help the worst-known capability, round by round.

    The worst-known capability keeps the greatest share of its prior's variance, on average over the
    agents. Of `CANDIDATES` demand vectors, which fill the layout's ranges evenly, the one is taken
    of which `ADDED` instances most lower that variance, and not again. A capability that none of
    them helps by `WORTH` is left for the next.

    What outcomes would tell is their mean, and what it is expected to lower is found by the best
    linear guess (`layouts.adaptive.information`). Where an instance gives several outcomes, it is
    the one that tells most.
    """
    layout = known.layout
    vectors = candidates(layout, table)
    beliefs = [_Belief.of(known, vectors, posterior) for posterior in known.posteriors]
    priors = np.array([layout.latents[k].prior.sd ** 2 for k in layout.capabilities])
    hopeless = set[int]()
    taken = set[int]()
    steps: list[Addition] = []
    while len(steps) < ROUNDS and len(hopeless) < len(priors):
        variance = np.mean([belief.variance for belief in beliefs], axis=0)
        worst = max(
            set(range(len(priors))) - hopeless, key=lambda k: float(variance[k] / priors[k])
        )
        drops = np.mean([belief.drops(worst) for belief in beliefs], axis=0)
        chosen = max(set(range(len(drops))) - taken, key=lambda c: float(drops[c]))
        before = math.sqrt(variance[worst])
        after = math.sqrt(max(variance[worst] - drops[chosen], 0.0))
        if after > (1.0 - WORTH) * before:
            hopeless.add(worst)
            continue
        for belief in beliefs:
            belief.learn(chosen)
        taken.add(chosen % len(vectors))
        demands = _wanted(layout, vectors[chosen % len(vectors)])
        steps.append(
            Addition(
                "precision",
                demands,
                ADDED,
                like=_most_like(table, demands),
                node=layout.latents[layout.capabilities[worst]].name,
                before=before,
                after=after,
            )
        )
    return steps


class _Belief:
    """What is believed of one agent, and of the outcomes of candidates, as a linear model.

    Attributes:
        variance: (capabilities,): variances, in the units squared.
    """

    def __init__(self, abilities: Floats, means: Floats, noise: Floats) -> None:
        """Begin with what is known.

        Args:
            abilities: (capabilities, particles): centred, times the root of the weights.
            means: (candidates, particles): expected outcomes, the same way.
            noise: (candidates,): variance of the mean of `ADDED` outcomes about the expected one.
        """
        self._means, self._noise = means, noise
        self._cross = abilities @ means.T
        self._spread = np.sum(means**2, axis=1)
        self.variance = np.sum(abilities**2, axis=1)
        self._learnt: list[Floats] = []

    @classmethod
    def of(cls, known: Precision, vectors: Floats, posterior: AgentPosterior) -> _Belief:
        """Begin with a posterior; the candidates are the vectors, for one outcome after another."""
        layout, evaluator = known.layout, known.bank.evaluator
        columns, weights = evaluator.columns(vectors), posterior.weights
        roots = np.sqrt(weights)

        def centred(values: Floats) -> Floats:
            return (values - (values @ weights)[:, np.newaxis]) * roots

        means: list[Floats] = []
        noise: list[Floats] = []
        for k, outcome in enumerate(layout.outcomes):
            p = evaluator.by_instance(posterior.particles, columns, np.float64, k)
            size = evaluator.sample_sizes(posterior.particles, columns, k)
            per = size + 1.0 if size is not None else _trials(layout, outcome, columns)
            means.append(centred(p))
            noise.append((p * (1.0 - p) / per) @ weights / ADDED)
        abilities = posterior.particles[:, list(layout.capabilities)].T
        return cls(centred(abilities), np.concatenate(means), np.concatenate(noise))

    def drops(self, capability: int) -> Floats:
        """By how much each candidate is expected to lower a capability's variance."""
        spread = np.maximum(self._spread + self._noise, 1e-12)
        return self._cross[capability] ** 2 / spread

    def learn(self, candidate: int) -> None:
        """Take a candidate's outcomes as known."""
        column = self._means @ self._means[candidate]
        for earlier in self._learnt:
            column -= earlier * earlier[candidate]
        spread = max(float(self._spread[candidate] + self._noise[candidate]), 1e-12)
        shared = self._cross[:, candidate].copy()
        self.variance = np.maximum(self.variance - shared**2 / spread, 0.0)
        self._cross -= np.outer(shared, column) / spread
        self._spread = np.maximum(self._spread - column**2 / spread, 0.0)
        self._learnt.append(column / math.sqrt(spread))


def _trials(layout: Layout, outcome: OutcomeNode, columns: Floats) -> Floats:
    """How many attempts one outcome stands for, (candidates, 1)."""
    return trials_of(layout, outcome.likelihood, columns)[:, np.newaxis]


def candidates(layout: Layout, table: DemandTable) -> Floats:
    """Demand vectors that fill a layout's ranges evenly, (candidates, features).

    Counts and codes have whole steps. A range whose ends are both above 0 and ten times apart is
    filled by logarithms. A number of trials is the battery's median.
    """
    generator = rng(0, "candidates", 0)
    middles = (np.arange(CANDIDATES) + 0.5) / CANDIDATES
    columns = [_column(layout, table, f, generator.permutation(middles)) for f in layout.features]
    vectors = layout.count_on(np.stack(columns, axis=1), 0)
    for k, feature in enumerate(layout.features):
        if feature.only_with:
            shut = vectors[:, layout.feature_names.index(feature.only_with)] == 0.0
            vectors[shut, k] = feature.low
    return np.unique(layout.check_features(vectors), axis=0)


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
    fillings: list[Addition] = []
    for share, spread, gap in sorted(gaps, key=lambda item: (-item[0], item[1].demand.name)):
        name = spread.demand.name
        if share < GAP or len(fillings) == GAPS:
            break
        if any(kinship(name, n) or n == name for filling in fillings for n in filling.demands):
            continue
        column = table.column(name)
        beside = np.where(np.isfinite(column), column, np.inf)
        nearest = int(np.argmin(np.minimum(abs(beside - gap.low), abs(beside - gap.high))))
        fillings.append(
            Addition(
                "gap",
                {name: _short((gap.low + gap.high) / 2)},
                like=table.names[nearest],
                share=share,
            )
        )
    return fillings


def against_correlations(
    table: DemandTable, related: Correlations, wanted: Sequence[str] | None
) -> list[Addition]:
    """Break the closest correlations of demands that are not nested by definition.

    What rises with another is wanted high (at its 90 % quantile) where the other is low (at its
    10 % quantile); what falls with another is wanted high where the other is high.

    Args:
        table: The battery's demands.
        related: The correlations.
        wanted: The demands to look at; None for all that are no looks.
    """
    groups = {demand.name: demand.group for demand in table.demands}
    splits: list[Addition] = []
    for pair in related.pairs():
        names = (pair.one, pair.other)
        own = any(groups[name] == OWN for name in names)
        apart = (own or not pair.kinship) and all(
            n in wanted if wanted is not None else groups[n] != LOOK for n in names
        )
        named = {name for split in splits for name in split.demands}
        if not apart or named & set(names):
            continue
        high = float(np.quantile(table.known(pair.one), 0.9))
        low = float(np.quantile(table.known(pair.other), 0.1 if pair.rho > 0 else 0.9))
        demands = {pair.one: _short(high), pair.other: _short(low)}
        splits.append(
            Addition(
                "correlation",
                demands,
                like=_most_like(table, demands),
                correlation=pair.rho,
            )
        )
        if len(splits) == SPLITS:
            break
    return splits


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


def _wanted(layout: Layout, vector: Floats) -> dict[str, float]:
    """The demands of a vector by name, without those that play no part in it."""
    values = dict(zip(layout.feature_names, vector.tolist(), strict=True))
    return {
        feature.name: values[feature.name]
        for feature in layout.features
        if not feature.counts and (not feature.only_with or values[feature.only_with] != 0.0)
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
