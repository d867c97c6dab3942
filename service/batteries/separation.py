"""Tells which demands a battery can take apart: by correlations, by ends and by minimal pairs.

Two demands are taken apart where they do not go together over the instances, where each is hard in
some instances in which all others are easy, and where instances differ in one of them alone. All of
it follows from the table of demands, so it can be asked of any battery and any layout.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.instance import Instance
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

MOST: Final = 0.15
"""Greatest absolute correlation of two demands that are told apart."""
END: Final = 0.2
"""Share of a demand's range in the layout that counts as its easy end, and as its hard end."""
TASKS: Final = 3
"""Tasks that each end of a demand should have while all other demands are easy."""
PAIRS: Final = 50
"""Pairs of instances that should differ in one demand alone."""
ALIKE: Final = 0.01
"""Share of a demand's range up to which two values count as the same."""
APART: Final = 0.1
"""Share of a demand's range from which on two values differ."""
LISTED: Final = 1000
"""Most pairs that are listed for one demand."""
_AGENTS: Final = 128
"""Agents of the prior that say which end of a demand is easy."""
_LITTLE: Final = 1e-3
"""Difference in the chance of success below which a demand makes nothing harder."""


class DemandScale(NamedTuple):
    """A demand of a layout: where it is easy and where it is hard.

    Attributes:
        name: Its name.
        unit: Its unit; "1" for none.
        low: Least value by the layout.
        high: Greatest value by the layout.
        easy: The value at which agents succeed most.
        hard: The end at which they succeed least; both ends where the easy value is the middle.
        only_with: The gate: a demand without which this one plays no part; "" for none.
    """

    name: str
    unit: str
    low: float
    high: float
    easy: float
    hard: tuple[float, ...]
    only_with: str = ""

    @property
    def range(self) -> float:
        """From the least to the greatest value."""
        return self.high - self.low

    def is_easy(self, values: Floats) -> Mask:
        """Which values are at the easy end; what does not apply is easy."""
        return np.isnan(values) | (np.abs(values - self.easy) <= END * self.range)

    def is_hard(self, values: Floats, end: float) -> Mask:
        """Which values are at one of the hard ends."""
        return np.abs(values - end) <= END * self.range


class Together(NamedTuple):
    """How far two demands go together.

    Attributes:
        one: The first demand.
        other: The second.
        ranks: Spearman's correlation.
        values: Pearson's correlation.
    """

    one: str
    other: str
    ranks: float
    values: float

    @property
    def most(self) -> float:
        """The greater of the two, without its sign."""
        return max(abs(self.ranks), abs(self.values))


class DemandEnd(NamedTuple):
    """Instances at one end of a demand, in all of which every other demand is easy.

    Attributes:
        demand: The demand.
        value: Its value at that end.
        easy: Whether it is the easy end.
        tasks: Number of different tasks.
        instances: Names of the instances.
    """

    demand: str
    value: float
    easy: bool
    tasks: int
    instances: tuple[str, ...]


class MinimalPair(NamedTuple):
    """Two instances that differ in one demand alone.

    Attributes:
        demand: That demand.
        one: Name of the instance in which it is easier.
        other: Name of the other.
        easier: Its value in the first.
        harder: Its value in the second.
    """

    demand: str
    one: str
    other: str
    easier: float
    harder: float


class Exempt(NamedTuple):
    """Two demands whose correlation says nothing, and why."""

    one: str
    other: str
    reason: str


@dataclass(frozen=True)
class Separation:
    """Which demands of a layout a battery can take apart.

    Attributes:
        layout: Name of the layout, with its variant.
        scales: The demands.
        gates: Demands without which others play no part; all correlations are within the instances
            that have these.
        instances: Number of instances within.
        together: Every two demands that vary within, those that go together most first.
        ends: The ends of every demand.
        pairs: Pairs that differ in one demand alone.
        exempt: Pairs of demands that are no part of `together`.
    """

    layout: str
    scales: tuple[DemandScale, ...]
    gates: tuple[str, ...]
    instances: int
    together: tuple[Together, ...]
    ends: tuple[DemandEnd, ...]
    pairs: tuple[MinimalPair, ...]
    exempt: tuple[Exempt, ...]

    @property
    def pair_counts(self) -> dict[str, int]:
        """Number of pairs by demand."""
        counts = Counter(pair.demand for pair in self.pairs)
        return {scale.name: counts[scale.name] for scale in self.scales}

    @property
    def failures(self) -> list[str]:
        """What is missing for all demands to be told apart, in sentences."""
        return list(self._failures())

    def _failures(self) -> Iterator[str]:
        for pair in self.together:
            if pair.most > MOST:
                yield (
                    f"{pair.one} and {pair.other} go together: ranks {pair.ranks:+.2f}, "
                    f"values {pair.values:+.2f}."
                )
        for end in self.ends:
            if end.tasks < TASKS:
                which = "easy" if end.easy else "hard"
                yield (
                    f"{end.demand} has {end.tasks} tasks at its {which} end, {end.value:g}, while "
                    f"the others are easy."
                )
        if len(self.pairs) < PAIRS:
            yield f"{len(self.pairs)} pairs differ in one demand alone; {PAIRS} should."

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {
            "layout": self.layout,
            "most_correlation": MOST,
            "end_share": END,
            "least_tasks": TASKS,
            "least_pairs": PAIRS,
            "within": list(self.gates),
            "instances": self.instances,
            "demands": [{**scale._asdict(), "hard": list(scale.hard)} for scale in self.scales],
            "correlations": [pair._asdict() for pair in self.together],
            "ends": [{**end._asdict(), "instances": list(end.instances)} for end in self.ends],
            "pair_counts": self.pair_counts,
            "pairs": [pair._asdict() for pair in self.pairs],
            "exceptions": [pair._asdict() for pair in self.exempt],
            "failures": self.failures,
        }


def scales_of(layout: Layout) -> tuple[DemandScale, ...]:
    """Where a layout's demands are easy and hard: by the success of agents of its prior.

    Of each demand, its two ends and its middle are compared while the others are easy; which are
    easy is first found with the others halfway between their ends. Roots of the chances of success
    are averaged: then a side to which some agents tend and others do not is easiest in the middle,
    although the agents of all tendencies together succeed as often elsewhere. Demands that make no
    difference are left out.
    """
    latents = layout.latents
    z = rng(0, "scales", 0).standard_normal((_AGENTS, len(latents)))
    z = np.vstack([z, -z])  # so that neither side is easier by chance
    agents = layout.from_standard(z)
    scales = dict[str, DemandScale]()
    usual = [(feature.low + feature.high) / 2 for feature in layout.features]
    for name in layout.gates:
        usual[layout.feature_names.index(name)] = 1.0
    for _ in range(2):
        scales |= {scale.name: scale for scale in _scales(layout, agents, usual)}
        for scale in scales.values():
            usual[layout.feature_names.index(scale.name)] = scale.easy
    return tuple(scales[name] for name in layout.feature_names if name in scales)


def _scales(layout: Layout, agents: Floats, usual: Sequence[float]) -> Iterator[DemandScale]:
    """The scale of each demand while the others have given values."""
    evaluator, names = Evaluator(layout), layout.feature_names
    for k, feature in enumerate(layout.features):
        middle = feature.low if feature.name in layout.gates else (feature.low + feature.high) / 2
        places = (feature.low, middle, feature.high)
        table = np.tile(np.array(usual), (len(places), 1))
        table[:, k] = places
        if feature.only_with:
            table[:, names.index(feature.only_with)] = 1.0
        chances = np.sqrt(evaluator.probability(agents, table)).mean(axis=0)
        low, between, high = (float(chance) for chance in chances)
        if max(low, between, high) - min(low, between, high) < _LITTLE:
            continue
        if between > max(low, high) + _LITTLE:
            easy, hard = middle, (feature.low, feature.high)
        else:
            easy, hard = feature.low, (feature.high,)
            if high > low:
                easy, hard = feature.high, (feature.low,)
        ends = (feature.low, feature.high, easy, hard)
        yield DemandScale(feature.name, feature.unit, *ends, feature.only_with)


def separation(layout: Layout, instances: Sequence[Instance]) -> Separation:
    """Tell which demands of a layout a battery can take apart.

    Args:
        layout: The layout.
        instances: The instances of the battery; those that it does not cover are left out.
    """
    table = DemandRows.of(layout, instances)
    return Separation(
        f"{layout.name} ({layout.variant or 'default'})",
        table.scales,
        table.gates,
        int(table.within.sum()),
        tuple(sorted(table.together(), key=lambda pair: (-pair.most, pair.one, pair.other))),
        tuple(table.ends()),
        tuple(table.pairs()),
        tuple(table.exempt()),
    )


@dataclass(frozen=True, eq=False)
class DemandRows:
    """The demands of the instances that a layout covers, and what can be asked of them.

    Attributes:
        scales: The demands.
        names: Names of the instances.
        tasks: The draw that each comes from, which its controls and variants share; its name where
            nothing is known of it.
        values: (instances, demands), NaN where a demand does not apply.
    """

    scales: tuple[DemandScale, ...]
    names: tuple[str, ...]
    tasks: tuple[str, ...]
    values: Floats

    @classmethod
    def of(cls, layout: Layout, instances: Sequence[Instance]) -> DemandRows:
        """Make the table of some instances; those that the layout does not cover are left out."""
        scales = scales_of(layout)
        covered = [
            instance
            for instance in instances
            if not layout.why_not(instance.features, instance.missing)
        ]
        usual = {
            feature.name: math.nan if feature.if_missing is None else feature.if_missing
            for feature in layout.features
        }
        values = [
            [_value(scale, usual | {**instance.features}) for scale in scales]
            for instance in covered
        ]
        return cls(
            scales,
            tuple(instance.name for instance in covered),
            tuple(
                instance.origin.task if instance.origin else instance.name for instance in covered
            ),
            np.array(values, np.float64).reshape(len(covered), len(scales)),
        )

    @cached_property
    def gates(self) -> tuple[str, ...]:
        """Demands without which others play no part."""
        return tuple(dict.fromkeys(scale.only_with for scale in self.scales if scale.only_with))

    @cached_property
    def within(self) -> Mask:
        """(instances,): which of them have all gates."""
        gates = [self.column(name) for name in self.gates if name in self._at]
        return np.all([np.ones(len(self.names)), *gates], axis=0)

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """Demands that differ between the instances within, gates left out."""
        return tuple(
            scale.name
            for scale in self._plain
            if self.within.any() and np.ptp(self.column(scale.name)[self.within]) > 0.0
        )

    @cached_property
    def _at(self) -> Mapping[str, int]:
        return {scale.name: k for k, scale in enumerate(self.scales)}

    @cached_property
    def _plain(self) -> list[DemandScale]:
        return [scale for scale in self.scales if scale.name not in self.gates]

    def column(self, name: str) -> Floats:
        """Values of a demand, (instances,)."""
        return self.values[:, self._at[name]]

    def together(self) -> Iterator[Together]:
        """Every two demands that vary within."""
        from scipy.stats import rankdata  # a server that lists sessions need not load it

        for i, demand in enumerate(self.varying):
            for other in self.varying[:i]:
                x, y = self.column(other)[self.within], self.column(demand)[self.within]
                yield Together(
                    other, demand, _correlation(rankdata(x), rankdata(y)), _correlation(x, y)
                )

    def exempt(self) -> Iterator[Exempt]:
        """Pairs of demands whose correlation says nothing."""
        for scale in self.scales:
            if scale.only_with:
                reason = (
                    f"nested by definition: {scale.name} applies only where {scale.only_with} is 1"
                )
                yield Exempt(scale.only_with, scale.name, reason)
        for gate in self.gates:
            others = [s for s in self._plain if s.only_with != gate]
            for scale in others:
                yield Exempt(gate, scale.name, f"{gate} is 1 in all of these instances")
        for scale in self._plain:
            if scale.name not in self.varying:
                yield Exempt(
                    scale.name, "all others", f"{scale.name} has one value in these instances"
                )

    def ends(self) -> Iterator[DemandEnd]:
        """Both ends of every demand, or three where both ends are hard."""
        easy = {scale.name: scale.is_easy(self.column(scale.name)) for scale in self.scales}
        for scale in self.scales:
            others = [
                s.name for s in self.scales if s.name != scale.name and s.name not in self.gates
            ]
            here = np.ones(len(self.names), np.bool_)
            for name in others:
                here &= easy[name]
            if scale.name not in self.gates:
                here &= self.within
            column = self.column(scale.name)
            yield self._end(scale.name, scale.easy, True, here & easy[scale.name])
            for end in scale.hard:
                yield self._end(scale.name, end, False, here & scale.is_hard(column, end))

    def _end(self, demand: str, value: float, easy: bool, rows: Mask) -> DemandEnd:
        chosen = np.flatnonzero(rows)
        tasks = {self.tasks[k] for k in chosen}
        return DemandEnd(demand, value, easy, len(tasks), tuple(self.names[k] for k in chosen))

    def pairs(self) -> Iterator[MinimalPair]:
        """Pairs of instances that differ in one demand alone, of one task where tasks are known.

        Instances of one task are alike in everything else too. Where every instance is a task of
        its own, all pairs count, and of each demand the first `LISTED` are listed.
        """
        inside = np.flatnonzero(self.within)
        for scale in self._plain:
            others = [s for s in self._plain if s is not scale]
            yield from islice(self._pairs(scale, inside, inside, others), LISTED)
        for name in self.gates:
            if name in self._at:
                gate = self.scales[self._at[name]]
                outside = np.flatnonzero(self.column(name) == 0.0)
                others = [s for s in self._plain if s.only_with != name]
                yield from islice(self._pairs(gate, outside, inside, others), LISTED)

    def _pairs(
        self,
        demand: DemandScale,
        first: npt.NDArray[np.intp],
        second: npt.NDArray[np.intp],
        others: Sequence[DemandScale],
    ) -> Iterator[MinimalPair]:
        """Pairs that differ in one demand, the easier instance first."""
        column = self.column(demand.name)
        hardness = np.abs(column - demand.easy)
        tasks = np.unique(self.tasks, return_inverse=True)[1]
        known = tasks.max(initial=0) + 1 < len(tasks)
        for i in first:
            apart = np.abs(column[second] - column[i]) >= APART * demand.range
            # Where both ends are hard, neither is harder: the order of names decides.
            apart &= (hardness[second] > hardness[i]) | (
                (hardness[second] == hardness[i]) & (second > i)
            )
            if known:
                apart &= tasks[second] == tasks[i]
            near = second[apart]
            for other in others:
                values = self.column(other.name)
                near = near[np.abs(values[near] - values[i]) <= ALIKE * other.range]
            for j in near:
                yield MinimalPair(
                    demand.name,
                    self.names[i],
                    self.names[j],
                    float(column[i]),
                    float(column[j]),
                )


def _correlation(x: Floats, y: Floats) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def _value(scale: DemandScale, features: Mapping[str, float]) -> float:
    """A demand of an instance; NaN where it does not apply."""
    if scale.only_with and not features.get(scale.only_with, 0.0):
        return math.nan
    return features[scale.name]
