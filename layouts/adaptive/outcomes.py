"""The outcomes of a session, each with the weight that it has as evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.retest import UNKNOWN, DeterminismPrior, Retest
from animalcat.layouts.model.growing import Growing

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Outcome: TypeAlias = float | tuple[float, ...]
"""The outcome of an episode: a number, or one number for each outcome of the layout."""
MANY: Final = 200
"""From more outcomes on, repeats change weights by group, which differs in the last digits."""
ALONE: Final = 256
"""Plays of one instance that are a group each; later ones share groups that grow with them."""
EDGES: Final = np.concatenate(
    [np.arange(ALONE), np.round(ALONE * 2.0 ** (np.arange(16 * 24) / 16)).astype(np.int64)]
)
"""How often an instance was observed before the first play of each group; 16 groups a doubling.

So the groups of n repeats are as many as the logarithm of n, and plays of one group differ by a
sixteenth in what they count as, where each counts for next to nothing.
"""
Instance = TypeVar("Instance", bound=Hashable)


class WeightedOutcomes(Generic[Instance]):
    """Outcomes in the order told, weighted by what repeats have shown of the agent's randomness.

    Every repeat improves that knowledge and so changes all weights, earlier ones included. In the
    end the repeats of a deterministic agent count for almost nothing, and those of a random agent
    count in full.
    """

    def __init__(self, prior: DeterminismPrior = UNKNOWN, outcomes: int = 1) -> None:
        """Begin with what is known of an agent's determinism.

        Args:
            prior: What is known.
            outcomes: How many outcomes the layout has.
        """
        self.retest = Retest(prior)
        self._prior, self._width = prior, outcomes
        self._instances: list[Instance] = []
        self._outcomes = Growing(np.float64, outcomes if outcomes > 1 else None)
        self._chances: list[float] = []
        self._before = Growing(np.int64)
        self._observed = Growing(np.bool_)
        self._fresh = Growing(np.int64)
        self._most = 0
        self._plays: Counter[Instance] = Counter()
        self._latest: dict[Instance, Outcome | Floats] = {}

    @property
    def instances(self) -> Sequence[Instance]:
        """The instance of each outcome; not to be changed."""
        return self._instances

    @property
    def outcomes(self) -> Floats:
        """(episodes,), or (episodes, outcomes) if the layout has several; NaN where missing."""
        return self._outcomes.rows

    @property
    def weights(self) -> Floats:
        """(episodes,): how many outcomes each counts as; 0 where nothing was observed."""
        return self.retest.weights(self._before.rows) * self._observed.rows

    @property
    def many(self) -> bool:
        """Whether there are so many that their weights are better changed by `group`."""
        return len(self) > MANY

    @property
    def group(self) -> int:
        """Group of the latest outcome, by how often its instance was observed; -1 if not now."""
        return _group(int(self._before.rows[-1])) if self._observed.rows[-1] else -1

    @property
    def groups(self) -> Floats:
        """How many outcomes each counts as in the mean, by group."""
        return self.retest.mean_weights(EDGES[: _group(self._most) + 2])

    @property
    def fresh(self) -> Ints:
        """Indices, in the order told, of the outcomes that were observed and are not repeats."""
        return self._fresh.rows

    def first(self, n: int) -> WeightedOutcomes[Instance]:
        """Copy the state as it was after the first n outcomes."""
        firsts: WeightedOutcomes[Instance] = WeightedOutcomes(self._prior, self._width)
        outcomes, observed = self._outcomes.rows, self._observed.rows.tolist()
        for i in range(min(n, len(self))):
            firsts.tell(self._instances[i], outcomes[i], self._chances[i], observed[i])
        return firsts

    def __len__(self) -> int:
        return len(self._instances)

    def __contains__(self, instance: Instance) -> bool:
        return instance in self._latest

    def tell(
        self, instance: Instance, outcome: Outcome | Floats, chance: float, observed: bool = True
    ) -> float | None:
        """Take in an outcome.

        Args:
            instance: The instance that was played.
            outcome: Its outcome; a tuple if the layout has several, NaN where one is missing.
            chance: Probability of that outcome, as predicted before it was known.
            observed: False if nothing was observed; `outcome` is then a placeholder.

        Returns:
            How many outcomes it counts as, if all others count as before; None for a repeat, which
            may change all weights.
        """
        if observed and instance in self._latest:
            same = np.array_equal(outcome, self._latest[instance], equal_nan=True)
            self.retest.update(same, chance)
        self._instances.append(instance)
        self._outcomes.append(outcome)
        self._chances.append(chance)
        before = self._plays[instance]
        self._before.append(before)
        self._most = max(self._most, before)
        self._observed.append(observed)
        if observed and not before:
            self._fresh.append(len(self) - 1)
        if observed:
            self._plays[instance] += 1
            self._latest[instance] = outcome
        return None if before else float(observed)


def _group(before: int) -> int:
    """The group of a play of an instance that was observed so often before."""
    return before if before < ALONE else int(np.searchsorted(EDGES, before, side="right")) - 1
