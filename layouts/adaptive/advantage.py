"""How much better a layout predicts an agent than a regression on the same demands does."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.regression import RunningRegression

Floats: TypeAlias = npt.NDArray[np.float64]

_EDGE: Final = 0.01
"""Forecasts are kept this far from 0 and 1, so that no single outcome decides."""


class Advantage:
    """The errors of one-step-ahead forecasts of a session, by the layout and by its rival.

    Bets find out what a layout has wrong if it is wrong in one of their strata. A rival finds out
    as well where it is wrong for other reasons, for example in the form of a slope.
    """

    def __init__(self, outcomes: int) -> None:
        """Start with no episode.

        Args:
            outcomes: How many outcomes an episode has.
        """
        self._rival = RunningRegression(outcomes)
        self._errors = np.zeros(2)
        self._number = 0

    def update(self, features: Floats, predicted: Floats, observed: Floats) -> None:
        """Take in one episode.

        Args:
            features: (features,), the demands; NaN where one is missing.
            predicted: (outcomes,), by the layout, before the outcome was known, as shares of the
                outcomes' maxima.
            observed: (outcomes,), in the same unit; NaN where one is missing.
        """
        both = np.array([predicted, self._rival.forecast(features)])
        errors = (np.clip(both, _EDGE, 1.0 - _EDGE) - observed) ** 2
        self._errors += np.nansum(errors, axis=1)
        self._number += int(np.isfinite(observed).sum())
        self._rival.learn(features, observed)

    @property
    def nats(self) -> float:
        """The logarithm of the likelihood ratio for the layout; 0 before the first outcome.

        Errors are taken as normal, each forecaster's with a spread of its own. So it does not
        matter how finely outcomes are measured.
        """
        if not self._number or not self._errors.all():
            return 0.0
        layout, rival = self._errors
        return 0.5 * self._number * float(np.log(rival / layout))

    @property
    def doubt(self) -> float:
        """How far the layout is in doubt, up to 1: its rival's likelihood as a share of its own."""
        return float(np.exp(min(-self.nats, 0.0)))
