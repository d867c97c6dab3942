"""The outcomes of a session, each with the weight that it has as evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.retest import UNKNOWN, DeterminismPrior, Retest

Floats: TypeAlias = npt.NDArray[np.float64]
Outcome: TypeAlias = float | tuple[float, ...]
"""The outcome of an episode: a number, or one number for each outcome of the layout."""
Instance = TypeVar("Instance", bound=Hashable)


class WeightedOutcomes(Generic[Instance]):
    """Outcomes in the order told, weighted by what repeats have shown of the agent's randomness.

    Every repeat improves that knowledge and so changes all weights, earlier ones included. In the
    end the repeats of a deterministic agent count for almost nothing, and those of a random agent
    count in full.
    """

    def __init__(self, prior: DeterminismPrior = UNKNOWN) -> None:
        """Begin with what is known of an agent's determinism."""
        self.retest = Retest(prior)
        self._prior = prior
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
        """(episodes,), or (episodes, outcomes) if the layout has several; NaN where missing."""
        return np.array(self._outcomes, np.float64)

    @property
    def weights(self) -> Floats:
        """(episodes,): how many outcomes each counts as; 0 where nothing was observed."""
        return self.retest.weights(self._before) * np.array(self._observed, np.float64)

    @property
    def fresh(self) -> list[int]:
        """Indices, in the order told, of the outcomes that were observed and are not repeats."""
        outcomes = enumerate(zip(self._before, self._observed, strict=True))
        return [i for i, (before, observed) in outcomes if observed and not before]

    def first(self, n: int) -> WeightedOutcomes[Instance]:
        """Copy the state as it was after the first n outcomes."""
        firsts: WeightedOutcomes[Instance] = WeightedOutcomes(self._prior)
        for i in range(min(n, len(self))):
            firsts.tell(self._instances[i], self._outcomes[i], self._chances[i], self._observed[i])
        return firsts

    def __len__(self) -> int:
        return len(self._instances)

    def __contains__(self, instance: Instance) -> bool:
        return instance in self._latest

    def tell(
        self, instance: Instance, outcome: Outcome, chance: float, observed: bool = True
    ) -> None:
        """Take in an outcome.

        Args:
            instance: The instance that was played.
            outcome: Its outcome; a tuple if the layout has several, NaN where one is missing.
            chance: Probability of that outcome, as predicted before it was known.
            observed: False if nothing was observed; `outcome` is then a placeholder.
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
