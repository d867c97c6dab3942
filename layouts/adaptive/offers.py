"""Instances that could be made: demands that a source offers, to be chosen among like a battery's.

A layout knows no arenas. Whoever can make instances for given demands says which demands those are;
the offers stand behind the battery's instances in the bank, and are chosen where no instance of the
battery would tell enough (`Policy.generate`). What is chosen is then made by whoever offered it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Offers:
    """Demands that instances can be made for.

    Attributes:
        names: The name of each; no instance of the battery may have it.
        features: (offers, features), in the layout's order and units.
        paradigms: The kind of task of each. Balance over paradigms does not count them.
        seconds: (offers,), how long an episode is expected to take, in the battery's measure; None:
            all 1.
    """

    names: Sequence[str]
    features: Floats
    paradigms: Sequence[str]
    seconds: Floats | None = None

    def __len__(self) -> int:
        return len(self.names)

    def without(self, names: Collection[str]) -> Offers:
        """The others."""
        kept = [k for k, name in enumerate(self.names) if name not in names]
        return Offers(
            [self.names[k] for k in kept],
            self.features[kept],
            [self.paradigms[k] for k in kept],
            None if self.seconds is None else self.seconds[kept],
        )


class Source(Protocol):
    """Whoever can make instances."""

    def offers(self, layout: Layout) -> Offers:
        """What it can make, always the same for a layout.

        Raises:
            ValueError: It can make nothing that the layout covers.
        """
        ...


@dataclass(frozen=True, slots=True)
class VectorSource:
    """A source for studies, in which an instance is its demands.

    Features that the examples have as 0 or 1 alone are that; those that are whole numbers in them
    are whole; the others lie anywhere in their range.

    Attributes:
        examples: (instances, features): the battery.
        count: How many it offers.
        seed: Seed of the drawing.
    """

    examples: Floats
    count: int
    seed: int = 0

    def offers(self, layout: Layout) -> Offers:
        """Vectors drawn evenly over the ranges."""
        generator = rng(self.seed, "generated", 0)
        columns: list[Floats] = []
        for k, feature in enumerate(layout.features):
            known = np.unique(self.examples[:, k])
            if np.isin(known, (0.0, 1.0)).all():
                column = generator.integers(2, size=self.count)
            elif np.array_equal(known, known.round()):
                low, high = math.ceil(feature.low), math.floor(feature.high)
                column = generator.integers(low, high + 1, self.count)
            else:
                column = generator.uniform(feature.low, feature.high, self.count)
            columns.append(column.astype(np.float64))
        names = [f"vector {k}" for k in range(self.count)]
        return Offers(names, np.column_stack(columns), ["vector"] * self.count)
