"""What was told in a session, and as how many outcomes each counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from animalcat.layouts.retest import Retest

Floats: TypeAlias = npt.NDArray[np.float64]
Instance = TypeVar("Instance", bound=Hashable)


class Evidence(Generic[Instance]):
    """Outcomes in the order told. A repeat counts by what is known of the agent's randomness.

    The live posterior weighs a repeat once, by what is known when it is told. What is known at the
    end weighs all of them anew: then the repeats of a deterministic agent count as hardly anything,
    and those of a random one in full, the first ones too.
    """

    def __init__(self) -> None:
        self.retest = Retest()
        self._instances: list[Instance] = []
        self._outcomes: list[float] = []
        self._weights: list[float] = []
        self._plays: Counter[Instance] = Counter()
        self._latest: dict[Instance, float] = {}

    @property
    def instances(self) -> Sequence[Instance]:
        """The instance of each outcome."""
        return tuple(self._instances)

    @property
    def outcomes(self) -> Floats:
        """(outcomes,)."""
        return np.array(self._outcomes, np.float64)

    @property
    def weights(self) -> Floats:
        """(outcomes,), as what was known when each was told has it."""
        return np.array(self._weights, np.float64)

    @property
    def final_weights(self) -> Floats:
        """(outcomes,), as what is known now has it."""
        before: Counter[Instance] = Counter()
        plays: list[int] = []
        for instance in self._instances:
            plays.append(before[instance])
            before[instance] += 1
        return self.retest.weights(plays)

    def __len__(self) -> int:
        return len(self._instances)

    def __contains__(self, instance: Instance) -> bool:
        return instance in self._plays

    def tell(self, instance: Instance, outcome: float, chance: float) -> float:
        """Take in an outcome.

        Args:
            instance: What was played.
            outcome: What became of it.
            chance: Predicted probability of that outcome, before it.

        Returns:
            As how many outcomes it counts.
        """
        weight = float(self.retest.weights(self._plays[instance]))
        if instance in self._latest:
            self.retest.update(outcome == self._latest[instance], chance)
        self._instances.append(instance)
        self._outcomes.append(outcome)
        self._weights.append(weight)
        self._plays[instance] += 1
        self._latest[instance] = outcome
        return weight
