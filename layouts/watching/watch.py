"""The six questions that a learner asks of what watches its layout, and the shipped answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.watching.alarm import Alarm, Suspect, log_factors
from animalcat.layouts.watching.beyond import abler, predict_instance
from animalcat.layouts.watching.hindsight import Belief
from animalcat.layouts.watching.rivals import Examination, examine
from animalcat.layouts.watching.settled import ScoredPrediction
from animalcat.layouts.watching.strata import Stratification

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

DOUBT: Final = 0.5
"""How far a layout is in doubt, from 0 to 1, where nothing is known that says so. With this doubt
choices are as their policy says."""


class Play(NamedTuple):
    """An episode of a new instance, with what was known before its outcome.

    Attributes:
        posterior: The posterior, which does not know the outcome yet.
        columns: (1, columns): the instance, as `Evaluator.columns` returned it.
        row: Row of the instance in the bank.
        outcome: Its outcome; for a layout with several all of them, NaN where one is missing.
        predicted: Expected value of each outcome, as a share of its maximum.
        observed: What was observed, the same way; NaN where one is missing.
        episode: Number of the episode; it keys the randomness.
        number: How many episodes there have been with this one, repeats and all.
    """

    posterior: LivePosterior
    columns: Floats
    row: int
    outcome: float | Sequence[float]
    predicted: Sequence[float]
    observed: Sequence[float]
    episode: int
    number: int


class Played(NamedTuple):
    """All that was played so far, and what could be played next.

    Attributes:
        columns: (episodes, columns): the instances played, as `Evaluator.columns` returned them.
        outcomes: (episodes,) or (episodes, outcomes), in the order played, without repeats; NaN
            where one is missing.
        rows: (episodes,): rows of the instances in the bank.
        features: (instances, features) of the bank; NaN where one is missing.
        expected: (instances,): success that is expected of each instance of the bank; NaN where it
            is not known.
        playable: (instances,): whether each may be played next.
        seed: Seed of the test; it keys the randomness.
    """

    columns: Floats
    outcomes: Floats
    rows: Ints
    features: Floats
    expected: Floats
    playable: Mask
    seed: int


class LayoutWatch(Protocol):
    """Watches whether a layout describes the agent. A learner makes a new one for each test.

    Subclass it to have the usual doubt.
    """

    def update(self, play: Play) -> None:
        """Take in an episode. Those that show nothing or repeat an instance are left out."""
        ...

    @property
    def raised_at(self) -> int | None:
        """Number of episodes after which it gave alarm, for good; None if it did not."""
        ...

    @property
    def standing(self) -> bool | None:
        """Whether the layout is contradicted; None where `fails` has to tell."""
        ...

    def fails(self, belief: Belief, columns: Floats, outcomes: Floats, rows: Ints) -> bool:
        """Whether the layout fails in hindsight, after some of the updates.

        Args:
            belief: What was known after them.
            columns: (episodes, columns): the instances of these updates, in their order.
            outcomes: (episodes,) or (episodes, outcomes); NaN where one is missing.
            rows: (episodes,): rows of the instances in the bank.
        """
        ...

    def suspects(self) -> list[Suspect]:
        """Where predictions fail, most evidence first."""
        ...

    def examine(self, played: Played) -> Examination | None:
        """Compare the layout with its rivals, before a session says that all is precise.

        Args:
            played: What was played. It is asked for again with every episode until it may end.

        Returns:
            How they fare; None if there are no rivals, and nothing is asked before the last word.
        """
        return None

    @property
    def doubt(self) -> float:
        """How far the layout is in doubt, from 0 to 1."""
        return DOUBT


class BettingWatch(LayoutWatch):
    """The watch that is shipped: an alarm by bets, which has to stand in hindsight."""

    def __init__(self, evaluator: Evaluator, ways: Sequence[Stratification]) -> None:
        """Start before the first episode.

        Args:
            evaluator: Evaluator of the layout.
            ways: How the instances of the bank are divided into strata.
        """
        self._evaluator = evaluator
        self._alarm = Alarm(ways)
        self._abler: tuple[Floats, list[Floats]] | None = None

    def update(self, play: Play) -> None:
        """Lay the bets on an episode, and settle them."""
        posterior, columns = play.posterior, play.columns
        bets = log_factors(posterior, self._evaluator, columns, play.outcome, play.episode)
        there = np.isfinite(play.observed)
        if self._abler is None or self._abler[0] is not posterior.particles:
            layout = self._evaluator.layout
            self._abler = posterior.particles, abler(layout, posterior.particles)
        others = [
            predict_instance(theta, posterior.weights, self._evaluator, columns, capped=True)
            for theta in self._abler[1]
        ]
        predicted, observed, *beyond = (
            float(np.mean(np.array(v)[there])) for v in (play.predicted, play.observed, *others)
        )
        scored = ScoredPrediction(predicted, observed, (predicted, *beyond))
        self._alarm.update(play.row, bets, scored, play.number)

    @property
    def raised_at(self) -> int | None:
        """Number of episodes after which the mean stake first was too high."""
        return self._alarm.raised_at

    @property
    def standing(self) -> bool | None:
        """Whether the alarm stands by bets alone; see `Alarm.standing`."""
        return self._alarm.standing

    def fails(self, belief: Belief, columns: Floats, outcomes: Floats, rows: Ints) -> bool:
        """Whether no able agent would explain the alarm; see `Alarm.fails`."""
        return self._alarm.fails(belief, self._evaluator, columns, outcomes, rows)

    def suspects(self) -> list[Suspect]:
        """Strata in which bets have won, those with the most evidence first."""
        return self._alarm.suspects()

    def examine(self, played: Played) -> Examination | None:
        """How rivals fare that do worse in one stratum each; see `rivals`."""
        return examine(
            *(self._evaluator, played.columns, played.outcomes, played.rows, played.features),
            *(self._alarm.stratifications, played.expected, played.playable, played.seed),
        )
