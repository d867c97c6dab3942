"""Bets against predictions that follow the agent's own recent successes: the settled bets.

An agent that is rare in the prior, such as one that can do nearly everything, is predicted badly
everywhere alike, until it is known. Settled bets are laid against predictions that were shifted to
what it did lately, so they win only where the layout errs here otherwise than there.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]

SHIFTS: Final = np.array([-2.0, -1.0, 1.0, 2.0])
"""Bets on success or failure: each assumes a logit that is this much above the predicted one."""
_CERTAIN: Final = 0.005
"""Predictions nearer to 0 or 1 than this are nearly certain."""
_SLOPE_SD: Final = 0.75
"""Prior standard deviation of a slope."""
_SLOPES: Final = (0.5, 4.0)
"""Least and greatest slope."""
_MEMORY: Final = 200
"""Most outcomes that a running shift remembers."""
_FADING: Final = 0.98
"""Fading of the shift to the agent's recent successes."""
_QUICK: Final = 0.7
"""Fading of the shift by which good and bad days are known."""


class ScoredPrediction(NamedTuple):
    """A prediction and what came of it, as shares of the outcome's maximum.

    Attributes:
        predicted: What was predicted.
        observed: What was observed.
        beyond: What would be predicted if the agent were abler than the ranges reach, for each of
            `beyond.LIFTS`; empty if that is not known.
    """

    predicted: float
    observed: float
    beyond: tuple[float, ...] = ()


class RunningShifts:
    """How an agent's recent successes lie to several predictions of them: shifts and slopes.

    A shift of all logits says that it succeeds more often than predicted, a slope above 1 that its
    successes and failures are sharper apart. Both are the mode of the posterior, with normal
    priors; older outcomes count less.

    Attributes:
        values: (predictions,), the shift of each.
        slopes: (predictions,); 1 if they are not looked for.
    """

    def __init__(self, count: int, fading: float, *, sloped: bool = False) -> None:
        """Start without a shift.

        Args:
            count: How many predictions of each outcome there are.
            fading: Weight of an outcome, as a share of that of the next one.
            sloped: Whether a slope is looked for too.
        """
        self._weights = portable.power(fading, np.arange(_MEMORY - 1, -1, -1))
        self._sloped = sloped
        # Twice as wide as the memory, so that what is remembered is moved only now and then.
        self._logits = np.empty((count, 2 * _MEMORY))
        self._observed = np.empty(2 * _MEMORY)
        self._end = 0
        self.values: Floats = np.zeros(count)
        self.slopes: Floats = np.ones(count)

    def applied(self, logits: Floats) -> Floats:
        """The predictions with shift and slope, as they are known so far.

        Args:
            logits: (predictions,), as `_logits` makes them.
        """
        return np.asarray(portable.expit(self.slopes * logits + self.values))

    def update(self, logits: Floats, observed: float) -> None:
        """Take in predictions of one outcome, as `_logits` makes them, and what came of it."""
        if self._end == 2 * _MEMORY:
            self._logits[:, :_MEMORY] = self._logits[:, _MEMORY:]
            self._observed[:_MEMORY] = self._observed[_MEMORY:]
            self._end = _MEMORY
        self._logits[:, self._end] = logits
        self._observed[self._end] = observed
        self._end += 1
        first = max(self._end - _MEMORY, 0)
        known = np.ascontiguousarray(self._logits[:, first : self._end])
        passed = self._observed[first : self._end]
        weights = self._weights[-len(passed) :]
        squares = known**2
        for _ in range(3):
            p = portable.expit(self.slopes[:, np.newaxis] * known + self.values[:, np.newaxis])
            apart, spread = weights * (passed - p), weights * p * (1.0 - p)
            step = (apart.sum(axis=1) - self.values) / (spread.sum(axis=1) + 1.0)
            self.values = self.values + np.clip(step, -1.0, 1.0)
            if self._sloped:
                precision = 1.0 / (_SLOPE_SD * _SLOPE_SD)
                up = _products(apart, known) - (self.slopes - 1.0) * precision
                step = up / (_products(spread, squares) + precision)
                self.slopes = np.clip(self.slopes + step, *_SLOPES)


class BetFactors(NamedTuple):
    """What was laid on an outcome, as it came.

    Attributes:
        factors: (lifts, bets), logarithms of the factors of the bets against shifted predictions.
        days: (lifts,), that of the bet that it is a good or bad day, against them.
        streak: The same bet against the prediction itself.
        bad: Whether it was to be a bad day.
    """

    factors: Floats
    days: Floats
    streak: float
    bad: bool


class SettledBets:
    """The stakes of settled bets, for each way in which the agent may be beyond the ranges.

    Attributes:
        cells: (lifts, cells, bets), logarithms of the stakes of each stratum that decide.
        single: The same of strata of one known feature, with the bets that do not decide.
        restarts: (lifts, restarts, bets), those on all instances after so many episodes.
        streak: (lifts,), logarithm of the stake on good and bad days.
        log: (lifts,), logarithm of the mean stake.
    """

    def __init__(self, lifts: int, cells: int, restarts: int) -> None:
        """Start with every stake at 1."""
        self.cells = np.zeros((lifts, cells, len(SHIFTS)))
        self.single = np.zeros((lifts, cells, len(SHIFTS)))
        self.restarts = np.zeros((lifts, restarts, len(SHIFTS)))
        self.streak = np.zeros(lifts)
        self.log = np.zeros(lifts)
        self._shift = RunningShifts(lifts, _FADING, sloped=True)
        self._days = RunningShifts(lifts, _QUICK)

    def lay(self, predicted: Floats, observed: float) -> BetFactors:
        """Lay bets on an outcome, and learn from it how far the agent is from predictions.

        Args:
            predicted: (lifts,), what is predicted of it.
            observed: What came.
        """
        logits = portable.logit(np.minimum(np.maximum(predicted, _CERTAIN), 1.0 - _CERTAIN))
        slow, quick = (offset.applied(logits) for offset in (self._shift, self._days))
        bets = BetFactors(
            share_factors(slow[:, np.newaxis], observed),
            np.array([*map(_log_ratio, quick, slow, [observed] * len(slow))]),
            _log_ratio(quick[0], predicted[0], observed),
            bool(quick[0] < predicted[0]),
        )
        self._shift.update(logits, observed)
        self._days.update(logits, observed)
        return bets


def _log_ratio(better: float, predicted: float, observed: float) -> float:
    """Logarithm of the factor for the bet that another prediction is right, on a share.

    Nothing is bet where the prediction is nearly certain: the other one is not known so exactly.
    """
    p = predicted
    if not _CERTAIN <= p <= 1.0 - _CERTAIN:
        return 0.0
    return float(
        portable.log(observed * better / p + (1.0 - observed) * (1.0 - better) / (1.0 - p))
    )


def _products(a: Floats, b: Floats) -> Floats:
    """Inner products of equal rows, (rows,)."""
    return np.array([portable.dot(x, y) for x, y in zip(a, b, strict=True)])


def share_factors(predicted: Floats, observed: float) -> Floats:
    """Logarithms of the factors for bets on a share in [0, 1], (..., bets)."""
    shifted = portable.expit(portable.logit(predicted) + SHIFTS)
    return portable.log(
        observed * shifted / predicted + (1.0 - observed) * (1.0 - shifted) / (1.0 - predicted)
    )
