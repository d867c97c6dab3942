"""Selects of measured instances those among which demands do not go together.

Whole tasks are left out: an instance with its controls and variants. First go tasks with an
instance that the planner did not solve, then one by one the task without which demands go together
least.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

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
_AGENTS: Final = 128
"""Agents of the prior that say which end of a demand is easy."""
_LITTLE: Final = 1e-3
"""Difference in the chance of success below which a demand makes nothing harder."""
_POWER: Final = 4
"""Power of the correlations whose sum is made small: high, so that the largest count most."""
_DIGITS: Final = 9
"""Decimals to which sums are compared, so that processors that round differently choose alike."""


class DemandScale(NamedTuple):
    """A demand of a layout: where it is easy and where it is hard.

    Attributes:
        name: Its name.
        range: From the least to the greatest value by the layout.
        easy: The value at which agents succeed most.
        hard: The end at which they succeed least; both ends where the easy value is the middle.
        only_with: The gate: a demand without which this one plays no part; "" for none.
    """

    name: str
    range: float
    easy: float
    hard: tuple[float, ...]
    only_with: str = ""

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
        span = feature.high - feature.low
        yield DemandScale(feature.name, span, easy, hard, feature.only_with)


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
            tuple(map(_task_of, covered)),
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
            for scale in self.scales
            if scale.name not in self.gates
            and self.within.any()
            and np.ptp(self.column(scale.name)[self.within]) > 0.0
        )

    @cached_property
    def _at(self) -> Mapping[str, int]:
        return {scale.name: k for k, scale in enumerate(self.scales)}

    def column(self, name: str) -> Floats:
        """Values of a demand, (instances,)."""
        return self.values[:, self._at[name]]

    @cached_property
    def together(self) -> list[Together]:
        """Every two demands that vary within, those that go together most first."""
        from scipy.stats import rankdata  # a server that lists sessions need not load it

        pairs: list[Together] = []
        for i, demand in enumerate(self.varying):
            for other in self.varying[:i]:
                x, y = self.column(other)[self.within], self.column(demand)[self.within]
                ranks = _correlation(rankdata(x), rankdata(y))
                pairs.append(Together(other, demand, ranks, _correlation(x, y)))
        return sorted(pairs, key=lambda pair: (-pair.most, pair.one, pair.other))

    def at_ends(self) -> set[str]:
        """Names of the instances that are at an end of one demand while all others are easy."""
        easy = {scale.name: scale.is_easy(self.column(scale.name)) for scale in self.scales}
        found = np.zeros(len(self.names), np.bool_)
        for scale in self.scales:
            here = np.ones(len(self.names), np.bool_)
            for name in easy.keys() - {scale.name, *self.gates}:
                here &= easy[name]
            if scale.name not in self.gates:
                here &= self.within
            column = self.column(scale.name)
            ends = [easy[scale.name], *(scale.is_hard(column, end) for end in scale.hard)]
            found |= here & np.any(ends, axis=0)
        return {self.names[k] for k in np.flatnonzero(found)}


def select(
    layout: Layout, instances: Sequence[Instance], keep: int, unsolved: Collection[str] = ()
) -> set[str]:
    """Choose instances so that demands go together as little as possible.

    Tasks at the ends, in which all demands but one are easy, are not left out for the sake of
    correlations.

    Args:
        layout: The layout whose demands are meant.
        instances: Measured instances.
        keep: How many there are to be. Tasks are not torn apart, so a few more may remain.
        unsolved: Names of those that the planner did not solve.

    Returns:
        Names of the chosen instances.
    """
    tasks = {instance.name: _task_of(instance) for instance in instances}
    sizes = Counter(tasks.values())
    spare = len(instances) - keep
    dropped = set[str]()
    for task in dict.fromkeys(tasks[name] for name in sorted(unsolved)):
        if sizes[task] <= spare:
            dropped.add(task)
            spare -= sizes[task]
    left = [instance for instance in instances if tasks[instance.name] not in dropped]
    table = DemandRows.of(layout, left)
    ends = {tasks[name] for name in table.at_ends()}
    dropped |= _least_together(table, sizes, ends, spare)
    return {name for name, task in tasks.items() if task not in dropped}


def _least_together(
    table: DemandRows, sizes: Mapping[str, int], fixed: Collection[str], spare: int
) -> set[str]:
    """The tasks to leave out, at most so many instances, so that demands go together least."""
    inside = np.flatnonzero(table.within)
    columns = [table.column(name)[inside] for name in table.varying]
    if len(columns) < 2:
        return set()
    from scipy.stats import rankdata  # a server that lists sessions need not load it

    ranks = np.column_stack([rankdata(column) for column in columns])
    ranks = (ranks - ranks.mean(axis=0)) / ranks.std(axis=0)
    moments: dict[str, Floats] = {}
    width = len(columns) + 1
    for row, k in zip(ranks, inside, strict=True):
        whole = np.array([1.0, *row])
        task = table.tasks[k]
        moments[task] = moments.get(task, np.zeros((width, width))) + np.outer(whole, whole)
    free = [task for task in moments if task not in fixed]
    everything: Floats = np.sum(list(moments.values()), axis=0)
    dropped = set[str]()
    while True:
        fits = [task for task in free if sizes[task] <= spare and task not in dropped]
        if not fits:
            return dropped
        losses = _losses(everything - np.stack([moments[task] for task in fits]))
        best = fits[int(np.argmin(losses.round(_DIGITS)))]
        everything = everything - moments[best]
        dropped.add(best)
        spare -= sizes[best]


def _losses(moments: Floats) -> Floats:
    """Summed powers of all correlations.

    Args:
        moments: (choices, 1 + demands, 1 + demands): number, sums, and sums of products.
    """
    number = moments[:, 0, 0][:, np.newaxis, np.newaxis]
    means = moments[:, 0, 1:] / number[:, 0]
    spread = moments[:, 1:, 1:] / number - means[:, :, np.newaxis] * means[:, np.newaxis, :]
    sd = np.sqrt(np.maximum(np.diagonal(spread, axis1=1, axis2=2), 1e-12))
    rho = spread / (sd[:, :, np.newaxis] * sd[:, np.newaxis, :])
    upper = np.triu_indices(rho.shape[1], 1)
    losses: Floats = (np.abs(rho[:, upper[0], upper[1]]) ** _POWER).sum(axis=1)
    return losses


def _task_of(instance: Instance) -> str:
    return instance.origin.task if instance.origin else instance.name


def _correlation(x: Floats, y: Floats) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def _value(scale: DemandScale, features: Mapping[str, float]) -> float:
    """A demand of an instance; NaN where it does not apply."""
    if scale.only_with and not features.get(scale.only_with, 0.0):
        return math.nan
    return features[scale.name]
