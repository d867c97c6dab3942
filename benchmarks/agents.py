"""Agents that behave exactly as a layout says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.likelihood import draw_outcomes, trials_of
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LayoutAgent:
    """An agent that behaves exactly as a layout says.

    Attributes:
        layout: The layout.
        theta: (latents,), in the layout's order and units.
    """

    layout: Layout
    theta: Floats

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.layout)

    def probability(self, instances: Instances) -> Floats:
        """Probability of success, or expected score, (instances,)."""
        features = instances.features(self.layout)
        return self._evaluator.probability(self.theta[np.newaxis], features)[0]

    def outcomes(self, instances: Instances, generator: np.random.Generator) -> Floats:
        """Draw values of the layout's outcome, (instances,)."""
        features = instances.features(self.layout)
        columns = self._evaluator.columns(features)
        size = self._evaluator.sample_sizes(self.theta[np.newaxis], columns)
        likelihood = self.layout.outcome
        trials = trials_of(self.layout, likelihood, features)
        p = self.probability(instances)[:, np.newaxis]
        return draw_outcomes(likelihood, p, size, trials, generator)[:, 0]


def prior_agents(layout: Layout, count: int, generator: np.random.Generator) -> list[LayoutAgent]:
    """Draw agents from a layout's prior."""
    z = generator.standard_normal((count, len(layout.latents)))
    return [LayoutAgent(layout, row) for row in layout.from_standard(z)]
