"""The papers' chance level where noise decides: 1 - the average of the outcomes at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.predict import Assessor, FittedAssessor
from animalcat.layouts.model.instances import Instances

Floats: TypeAlias = npt.NDArray[np.float64]

CHANCE: Final = "chance"
"""The column that layouts as printed read nu from."""


def with_chance(instances: Instances, chance: float) -> Instances:
    """Set the column `chance`, replacing it if it exists."""
    kept = [column for column in instances.columns if column != CHANCE]
    values = np.column_stack([instances.select(kept), np.full(len(instances), chance)])
    return Instances((*kept, CHANCE), values, instances.paradigms, instances.names)


def average_chance(outcomes: Floats) -> float:
    """1 - the average outcome."""
    return 1.0 - float(np.mean(outcomes))


@dataclass(frozen=True, eq=False)
class AverageChance:
    """An assessor whose chance level is 1 - the average of the outcomes that it learns from."""

    assessor: Assessor

    @property
    def name(self) -> str:
        """Name of the assessor."""
        return self.assessor.name

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAssessor:
        """Learn from outcomes."""
        chance = average_chance(outcomes)
        return _FittedWithChance(
            self.assessor.fit(with_chance(instances, chance), outcomes), chance
        )


@dataclass(frozen=True, eq=False)
class _FittedWithChance:
    fitted: FittedAssessor
    chance: float

    def predict(self, instances: Instances) -> Floats:
        """Probability of success, (instances,)."""
        return self.fitted.predict(with_chance(instances, self.chance))
