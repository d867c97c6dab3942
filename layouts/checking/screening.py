"""Whether a profile predicts well enough to be read.

The rule is that of Tesic et al. 2025, section 3.3.2: a profile is not read if its layout predicts
held-out scores with an R2 below 0.25. Single successes and failures have a rule of their own, since
even true probabilities of them have a low R2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.predict import HeldOutPredictions
from animalcat.layouts.checking.scores import Estimate, bootstrap, r2
from animalcat.layouts.reporting.profile import NOT_READ, Profile

Floats: TypeAlias = npt.NDArray[np.float64]

LEAST_R2: Final = 0.25
"""Least R2 on held-out scores of a profile that is read (Tesic et al. 2025)."""
SOME_R2: Final = 0.05
"""R2 on held-out successes and failures that the interval has to reach: less is as good as none."""
SURPRISED: Final = 3.09
"""Standard deviations by which the Brier score may be above what predictions expect: of true
predictions 1 in 1,000 is further off."""
VARIED: Final = (0.1, 0.9)
"""Success rates beyond which there is so little to predict that a low R2 is no fault."""


@dataclass(frozen=True, slots=True)
class Power:
    """How well a layout predicts held-out outcomes.

    Attributes:
        r2: R2 on held-out outcomes, with its 90 % interval; NaN if they are all equal.
        least: The R2 that is required.
        brier: Brier score of successes and failures; None for scores.
        expected: The Brier score that the predictions themselves expect; None for scores.
        surprise: How far `brier` is above it, in standard deviations; None for scores.
        rate: Share of successes; None for scores.
    """

    r2: Estimate
    least: float
    brier: float | None = None
    expected: float | None = None
    surprise: float | None = None
    rate: float | None = None

    @property
    def contradicted(self) -> bool:
        """Whether successes and failures are further from the predictions than these expect."""
        return self.surprise is not None and self.surprise > SURPRISED

    @property
    def readable(self) -> bool:
        """Whether the profile may be read."""
        if self.rate is None:
            return self.r2.value >= self.least
        if self.contradicted:
            return False
        return not VARIED[0] <= self.rate <= VARIED[1] or not self.r2.high < self.least

    @property
    def reason(self) -> str:
        """Whether the profile may be read, in words."""
        value, low, high = self.r2.value, self.r2.low, self.r2.high
        if self.rate is None:
            if np.isnan(value):
                return "held-out outcomes are all equal: there is nothing to predict"
            side = "reaches" if self.readable else "is below"
            return f"held-out R2 {value:.2f} ({low:.2f} to {high:.2f}) {side} {self.least:g}"
        scores = f"Brier score {self.brier:.3f}, where the predictions expect {self.expected:.3f}"
        if self.contradicted:
            return f"held-out outcomes contradict the predictions ({scores})"
        if not self.readable:
            return (
                f"held-out R2 {value:.2f} ({low:.2f} to {high:.2f}) stays below {self.least:g}: it "
                "says no more than the success rate"
            )
        return f"held-out outcomes agree with the predictions ({scores})"


def predictive_power(held_out: HeldOutPredictions, seed: int = 0) -> Power:
    """Judge held-out predictions.

    Scores have to be predicted with an R2 of `LEAST_R2`. Successes and failures have a low R2 even
    where the predictions are the true probabilities. So two things speak against those: a
    Brier score that is higher than the predictions themselves expect (the test of Spiegelhalter
    1986), and an R2 that is sure to be below `SOME_R2` although successes and failures are mixed.

    Args:
        held_out: Predictions and outcomes. Outcomes that are all 0 or 1 are successes and failures.
        seed: Seed of the resampling for the interval.
    """
    p, y = held_out.predicted, held_out.outcomes
    r2_estimate = bootstrap(r2, p, y, seed, instances=held_out.rows)
    if not np.isin(y, (0.0, 1.0)).all():
        return Power(r2_estimate, LEAST_R2)
    # An outcome that is held out several times is one outcome.
    _, which, times = np.unique(held_out.rows, return_inverse=True, return_counts=True)
    once = np.bincount(which, p) / times
    passed = np.bincount(which, y) / times
    spread = float(np.sqrt(np.sum((1.0 - 2.0 * once) ** 2 * once * (1.0 - once))))
    excess = float(np.sum((passed - once) * (1.0 - 2.0 * once)))
    return Power(
        r2_estimate,
        SOME_R2,
        float(np.mean((once - passed) ** 2)),
        float(np.mean(once * (1.0 - once))),
        excess / spread if spread > 0.0 else 0.0,
        float(passed.mean()),
    )


def gate_profile(profile: Profile, power: Power) -> Profile:
    """Add predictive power to a profile; below the gate all capabilities get `NOT_READ`."""
    diagnostics = dict(profile.diagnostics) | {
        "predictive_power": {
            "r2": None if np.isnan(power.r2.value) else power.r2.value,
            "least": power.least,
            "readable": power.readable,
            "reason": power.reason,
        }
    }
    status = dict(profile.status)
    if not power.readable:
        capabilities = [n.name for n in profile.nodes if n.kind == "capability"]
        status |= dict.fromkeys(capabilities, NOT_READ)
    return replace(profile, diagnostics=diagnostics, status=status)
