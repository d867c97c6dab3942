"""Bets against predictions that follow the agent's own recent successes: the settled bets.

An agent that is rare in the prior, such as one that can do nearly everything, is predicted badly
everywhere alike, until it is known. Settled bets are laid against predictions that were shifted to
what it did lately, so they win only where the layout errs here otherwise than there.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

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


class RunningShift:
    """How the agent's recent successes lie to the predictions, all alike: a shift and a slope.

    A shift of all logits says that it succeeds more often than predicted, a slope above 1 that its
    successes and failures are sharper apart. Both are the mode of the posterior, with normal
    priors; older outcomes count less.

    Attributes:
        value: The shift.
        slope: The slope; 1 if it is not looked for.
    """

    def __init__(self, fading: float, *, sloped: bool = False) -> None:
        """Start without a shift.

        Args:
            fading: Weight of an outcome, as a share of that of the next one.
            sloped: Whether a slope is looked for too.
        """
        self._fading = fading
        self._sloped = sloped
        self._logits: deque[float] = deque(maxlen=_MEMORY)
        self._observed: deque[float] = deque(maxlen=_MEMORY)
        self.value = 0.0
        self.slope = 1.0

    def applied(self, predicted: float) -> float:
        """The prediction with shift and slope, as they are known so far."""
        return float(expit(self.slope * _logit(predicted) + self.value))

    def update(self, predicted: float, observed: float) -> None:
        """Take in a prediction and what came of it."""
        self._logits.append(_logit(predicted))
        self._observed.append(observed)
        logits, passed = np.array(self._logits), np.array(self._observed)
        weights = self._fading ** np.arange(len(logits) - 1, -1, -1)
        for _ in range(3):
            p = expit(self.slope * logits + self.value)
            apart, spread = weights * (passed - p), weights * p * (1.0 - p)
            step = (float(apart.sum()) - self.value) / (float(spread.sum()) + 1.0)
            self.value += float(np.clip(step, -1.0, 1.0))
            if self._sloped:
                precision = _SLOPE_SD**-2
                up = float(apart @ logits) - (self.slope - 1.0) * precision
                step = up / (float(spread @ logits**2) + precision)
                self.slope = float(np.clip(self.slope + step, *_SLOPES))


class BetFactors(NamedTuple):
    """What was laid on an outcome, as it came.

    Attributes:
        factors: (bets,), logarithms of the factors of the bets against the shifted prediction.
        days: Logarithm of the factor of the bet that it is a good or bad day, against it.
        streak: The same bet against the prediction itself.
        bad: Whether it was to be a bad day.
    """

    factors: Floats
    days: float
    streak: float
    bad: bool


class SettledBets:
    """The stakes of settled bets, if the agent is so far beyond the ranges.

    Attributes:
        cells: (cells, bets), logarithms of the stakes of each stratum that decide.
        single: The same of strata of one known feature, with the bets that do not decide.
        restarts: (restarts, bets), those on all instances after so many episodes.
        streak: Logarithm of the stake on good and bad days.
        log: Logarithm of the mean stake.
    """

    def __init__(self, cells: int, restarts: int) -> None:
        """Start with every stake at 1."""
        self.cells = np.zeros((cells, len(SHIFTS)))
        self.single = np.zeros((cells, len(SHIFTS)))
        self.restarts = np.zeros((restarts, len(SHIFTS)))
        self.streak = 0.0
        self.log = 0.0
        self._shift = RunningShift(_FADING, sloped=True)
        self._days = RunningShift(_QUICK)

    def lay(self, predicted: float, observed: float) -> BetFactors:
        """Lay bets on an outcome, and learn from it how far the agent is from predictions."""
        slow, quick = (offset.applied(predicted) for offset in (self._shift, self._days))
        bets = BetFactors(
            share_factors(slow, observed),
            _log_ratio(quick, slow, observed),
            _log_ratio(quick, predicted, observed),
            quick < predicted,
        )
        self._shift.update(predicted, observed)
        self._days.update(predicted, observed)
        return bets


def _log_ratio(better: float, predicted: float, observed: float) -> float:
    """Logarithm of the factor for the bet that another prediction is right, on a share.

    Nothing is bet where the prediction is nearly certain: the other one is not known so exactly.
    """
    p = predicted
    if not _CERTAIN <= p <= 1.0 - _CERTAIN:
        return 0.0
    return float(np.log(observed * better / p + (1.0 - observed) * (1.0 - better) / (1.0 - p)))


def _logit(p: float) -> float:
    return float(logit(min(max(p, _CERTAIN), 1.0 - _CERTAIN)))


def share_factors(predicted: float, observed: float) -> Floats:
    """Logarithms of the factors for bets on a share in [0, 1], (bets,)."""
    shifted = expit(logit(predicted) + SHIFTS)
    return np.log(
        observed * shifted / predicted + (1.0 - observed) * (1.0 - shifted) / (1.0 - predicted)
    )
