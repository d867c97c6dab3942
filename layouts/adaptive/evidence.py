"""What was told in a session, and as how many outcomes each counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.retest import Retest

Floats: TypeAlias = npt.NDArray[np.float64]
Outcome: TypeAlias = float | tuple[float, ...]
"""What became of an episode: a number, or one for each outcome of the layout."""
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
        self._outcomes: list[Outcome] = []
        self._chances: list[float] = []
        self._before: list[int] = []
        self._observed: list[bool] = []
        self._plays: Counter[Instance] = Counter()
        self._latest: dict[Instance, Outcome] = {}

    @property
    def instances(self) -> Sequence[Instance]:
        """The instance of each outcome."""
        return tuple(self._instances)

    @property
    def outcomes(self) -> Floats:
        """(outcomes,), or (outcomes, kinds) where layouts have several; NaN: missing."""
        return np.array(self._outcomes, np.float64)

    @property
    def weights(self) -> Floats:
        """(outcomes,), as how many each counts by what is known now; 0 where nothing was seen."""
        return self.retest.weights(self._before) * np.array(self._observed, np.float64)

    @property
    def fresh(self) -> list[int]:
        """Which outcomes were seen and are no repeats, by their place in the order told."""
        told = enumerate(zip(self._before, self._observed, strict=True))
        return [i for i, (before, observed) in told if observed and not before]

    def first(self, n: int) -> Evidence[Instance]:
        """What was known after the first n outcomes."""
        made: Evidence[Instance] = Evidence()
        for i in range(min(n, len(self))):
            made.tell(self._instances[i], self._outcomes[i], self._chances[i], self._observed[i])
        return made

    def __len__(self) -> int:
        return len(self._instances)

    def __contains__(self, instance: Instance) -> bool:
        return instance in self._latest

    def tell(
        self, instance: Instance, outcome: Outcome, chance: float, observed: bool = True
    ) -> None:
        """Take in an outcome.

        Args:
            instance: What was played.
            outcome: What became of it; several where layouts have several, NaN: missing.
            chance: Predicted probability of that outcome, before it.
            observed: False: nothing was seen, and the outcome stands for nothing.
        """
        if observed and instance in self._latest:
            same = np.array_equal(outcome, self._latest[instance], equal_nan=True)
            self.retest.update(same, chance)
        self._instances.append(instance)
        self._outcomes.append(outcome)
        self._chances.append(chance)
        self._before.append(self._plays[instance])
        self._observed.append(observed)
        if observed:
            self._plays[instance] += 1
            self._latest[instance] = outcome
