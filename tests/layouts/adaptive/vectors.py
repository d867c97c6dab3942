"""Offers of simulation studies: an instance is just its vector of demands."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from animalcat.layouts.adaptive.offers import Floats, Offers
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.spec import Layout


@dataclass(frozen=True, slots=True)
class DemandVectorGenerator:
    """A generator for simulation studies, in which an instance is just its vector of demands.

    A feature that is only 0 or 1 in the examples is drawn from {0, 1}; one with only whole numbers
    is drawn from the whole numbers of its range; any other is drawn uniformly from its range.

    Attributes:
        examples: (instances, features): the battery.
        count: Number of offers.
        seed: Seed of the draws.
    """

    examples: Floats
    count: int
    seed: int = 0

    def offers(self, layout: Layout) -> Offers:
        """Draw vectors uniformly over the ranges of the features."""
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
