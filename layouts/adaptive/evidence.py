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

    That is known better with every repeat, and weighs all of them anew: in the end the repeats of a
    deterministic agent count as hardly anything, and those of a random one in full, the first ones
    too.
    """

    def __init__(self) -> None:
        self.retest = Retest()
        self._instances: list[Instance] = []
        self._outcomes: list[float] = []
        self._chances: list[float] = []
        self._before: list[int] = []
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
        """(outcomes,), as how many each counts by what is known now."""
        return self.retest.weights(self._before)

    @property
    def fresh(self) -> list[int]:
        """Which outcomes are no repeats, by their place in the order told."""
        return [i for i, before in enumerate(self._before) if not before]

    def first(self, n: int) -> Evidence[Instance]:
        """What was known after the first n outcomes."""
        made: Evidence[Instance] = Evidence()
        tells = zip(self._instances[:n], self._outcomes, self._chances, strict=False)
        for instance, outcome, chance in tells:
            made.tell(instance, outcome, chance)
        return made

    def __len__(self) -> int:
        return len(self._instances)

    def __contains__(self, instance: Instance) -> bool:
        return instance in self._plays

    def tell(self, instance: Instance, outcome: float, chance: float) -> None:
        """Take in an outcome.

        Args:
            instance: What was played.
            outcome: What became of it.
            chance: Predicted probability of that outcome, before it.
        """
        if instance in self._latest:
            self.retest.update(outcome == self._latest[instance], chance)
        self._instances.append(instance)
        self._outcomes.append(outcome)
        self._chances.append(chance)
        self._before.append(self._plays[instance])
        self._plays[instance] += 1
        self._latest[instance] = outcome
