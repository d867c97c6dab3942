"""The demands of a battery's instances as one table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from animalcat.arena_configs.features import FEATURES
from animalcat.service.batteries.battery import Battery

Floats: TypeAlias = npt.NDArray[np.float64]

OWN: Final = "your own"
"""Group of the demands that come from a user's table."""
LOOK: Final = "look"
"""Group of what should not matter to an agent."""
MOST_HEADINGS: Final = 40
"""Paradigms up to which each has a heading of its own."""
_MOST_STEPS: Final = 12
"""A demand with more different values is no count."""


@dataclass(frozen=True, slots=True)
class Demand:
    """One demand of a battery.

    Attributes:
        name: Its name.
        unit: Its unit; empty for counts, codes and shares.
        about: What it means; empty where nobody said.
        group: What it is about.
        low: Least value by its definition.
        high: Greatest value by its definition; infinite where it has none.
    """

    name: str
    unit: str
    about: str
    group: str
    low: float
    high: float

    @property
    def is_share(self) -> bool:
        """Whether it is a share, so that 0 and 1 are the ends of a scale and no codes."""
        return self.about.startswith("share ")


@dataclass(frozen=True, eq=False)
class DemandTable:
    """The demands of all instances of a battery.

    Attributes:
        demands: The demands, measured ones in the order of the registry, then the user's own.
        values: (instances, demands), each in its unit; NaN where it is not measured.
        names: Names of the instances.
        paradigms: Their paradigms, each behind its suite if there is one, as in `suite: paradigm`.
        missing: For each instance, why demands are not measured, by demand.
    """

    demands: tuple[Demand, ...]
    values: Floats
    names: tuple[str, ...]
    paradigms: tuple[str, ...]
    missing: tuple[Mapping[str, str], ...]

    @classmethod
    def of(cls, battery: Battery) -> DemandTable:
        """Make the table of a battery."""
        known = [name for name in FEATURES if name in battery.units]
        own = sorted(set(battery.units).difference(known))
        demands = tuple(_demand(name, battery.units[name]) for name in (*known, *own))
        instances = battery.instances
        values = [
            [instance.features.get(d.name, math.nan) for d in demands] for instance in instances
        ]
        return cls(
            demands,
            np.array(values, np.float64).reshape(len(instances), len(demands)),
            tuple(instance.name for instance in instances),
            tuple(
                ": ".join(filter(None, (instance.suite, instance.paradigm)))
                for instance in instances
            ),
            tuple(instance.missing for instance in instances),
        )

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Column of every demand, by name."""
        return {demand.name: k for k, demand in enumerate(self.demands)}

    @cached_property
    def rows(self) -> Mapping[str, int]:
        """Row of every instance, by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def varying(self) -> tuple[str, ...]:
        """Names of the demands that have more than one value."""
        return tuple(d.name for d in self.demands if len(np.unique(self.known(d.name))) > 1)

    @cached_property
    def ranks(self) -> Floats:
        """(instances, demands): share of instances below each value, ties shared, in [0, 1].

        Where a demand is not measured it is 0.5, so that nothing stands out by it.
        """
        ranks = np.full(self.values.shape, 0.5)
        for k, column in enumerate(self.values.T):
            there = np.isfinite(column)
            if there.any():
                ranks[there, k] = (rankdata(column[there]) - 0.5) / there.sum()
        return ranks

    def column(self, name: str) -> Floats:
        """Values of one demand, (instances,), NaN where it is not measured."""
        return self.values[:, self.index[name]]

    def known(self, name: str) -> Floats:
        """The values of a demand where it is measured."""
        column = self.column(name)
        return column[np.isfinite(column)]

    def step(self, name: str) -> float | None:
        """Step of a demand whose values are counts or codes; None for a scale without steps."""
        demand, values = self.demands[self.index[name]], np.unique(self.known(name))
        if demand.unit or demand.is_share or not 1 <= len(values) <= _MOST_STEPS:
            return None
        return next(
            (s for s in (1.0, 0.5) if np.array_equal(values % s, np.zeros_like(values))), None
        )

    def reasons(self, name: str) -> dict[str, int]:
        """Why a demand is not measured, with the number of instances, most frequent first."""
        column = np.isnan(self.column(name))
        said = Counter(
            reasons.get(name, "no value given")
            for reasons, lacks in zip(self.missing, column, strict=True)
            if lacks
        )
        return dict(said.most_common())

    @cached_property
    def headings(self) -> tuple[str, ...]:
        """Heading of every instance: its paradigm.

        Of more than `MOST_HEADINGS` paradigms it is the suite, else what stands before the first
        hyphen.
        """
        if len(set(self.paradigms)) <= MOST_HEADINGS:
            return self.paradigms
        return tuple(
            suite if paradigm else suite.split("-")[0]
            for suite, _, paradigm in (place.partition(": ") for place in self.paradigms)
        )


def _demand(name: str, unit: str) -> Demand:
    feature = FEATURES.get(name)
    if feature is None:
        return Demand(name, unit, "", OWN, -math.inf, math.inf)
    return Demand(name, feature.unit, feature.description, feature.group, feature.low, feature.high)
