"""Screening: which demands to build a layout on, and whether a profile predicts well enough.

The rules are those of Tesic et al. 2025, sections 3.2 and 3.3.2: of demands that always occur
together one is kept; outcomes must fall where a demand rises, otherwise it is not a demand; and a
profile is not read if its layout predicts held-out scores with an R2 below 0.25. Single successes
and failures have a rule of their own, since even true probabilities of them have a low R2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.predict import HeldOutPredictions
from animalcat.layouts.checking.scores import INTERVAL_SHARE, Estimate, bootstrap, r2
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.reporting.profile import NOT_READ, Profile

Floats: TypeAlias = npt.NDArray[np.float64]
ColumnVerdict: TypeAlias = Literal["kept", "constant", "duplicate", "no demand"]

LEAST_R2: Final = 0.25
"""Least R2 on held-out scores of a profile that is read (Tesic et al. 2025)."""
SOME_R2: Final = 0.05
"""R2 on held-out successes and failures that the interval has to reach: less is as good as none."""
SURPRISED: Final = 3.09
"""Standard deviations by which the Brier score may be above what predictions expect: of true
predictions 1 in 1,000 is further off."""
VARIED: Final = (0.1, 0.9)
"""Success rates beyond which there is so little to predict that a low R2 is no fault."""
_EQUAL: Final = 1e-9
"""Demands whose correlation is within this of 1 or -1 are duplicates."""


@dataclass(frozen=True, slots=True)
class ScreenedDemand:
    """What screening says about one demand.

    Attributes:
        name: The meta-feature.
        verdict: Kept; constant over the instances; the duplicate of another; or not a demand,
            because outcomes do not fall where it rises.
        of: The demand that it duplicates.
        correlation: Its correlation with the outcomes of all agents together, with a 90 % interval
            (instances resampled); None if it is constant.
        reason: The verdict in words.
    """

    name: str
    verdict: ColumnVerdict
    of: str
    correlation: Estimate | None
    reason: str


@dataclass(frozen=True, slots=True)
class Screening:
    """What screening says about all demands, in the order given."""

    demands: tuple[ScreenedDemand, ...]

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the demands to build on."""
        return tuple(d.name for d in self.demands if d.verdict == "kept")


def screen_demands(
    instances: Instances,
    outcomes: npt.ArrayLike,
    demands: Sequence[str] = (),
    prefer: Sequence[str] = (),
    seed: int = 0,
    repeats: int = 1000,
) -> Screening:
    """Find demands that duplicate others, and meta-features that are not demands.

    Args:
        instances: The instances that were played.
        outcomes: (agents, instances) or (instances,): successes or scores, NaN where not played.
        demands: The meta-features to screen; all if empty.
        prefer: Which ones to keep of duplicates; otherwise the first.
        seed: Seed of the resampling.
        repeats: Number of resamples of the instances.

    Raises:
        ValueError: Shapes differ, a demand is missing somewhere, or there are no outcomes.
    """
    names = tuple(demands) or instances.columns
    values = instances.select(names)
    y = np.atleast_2d(np.asarray(outcomes, dtype=np.float64))
    if y.shape[1] != len(instances):
        raise ValueError(f"outcomes of shape {y.shape} for {len(instances)} instances")
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(f"demand {names[column]} of row {row} is missing; screening needs it")
    played = np.isfinite(y)
    if played.sum() < 2 or np.ptp(y[played]) == 0:
        raise ValueError("screening needs outcomes that differ")
    count, total = played.sum(axis=0), np.where(played, y, 0.0).sum(axis=0)
    square = np.where(played, y, 0.0) ** 2
    sums = np.stack([count, total, square.sum(axis=0)], axis=1).astype(np.float64)
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(len(values), np.full(len(values), 1 / len(values)), repeats)
    preferred = set(prefer)
    ranked = sorted(range(len(names)), key=lambda i: (names[i] not in preferred, i))
    twins = {i: _first_twin(values, ranked, i) for i in ranked}
    screened = [
        _judge(names, values, i, twins[i], sums, drawn.astype(np.float64))
        for i in range(len(names))
    ]
    return Screening(tuple(screened))


def _first_twin(values: Floats, ranked: Sequence[int], i: int) -> int | None:
    """The demand that this one duplicates: the first in rank that rises and falls with it."""
    for j in ranked:
        if j == i:
            return None
        spread = float(values[:, i].std() * values[:, j].std())
        if spread > 0 and abs(_covariance(values, i, j)) > spread * (1.0 - _EQUAL):
            return j
    return None


def _covariance(values: Floats, i: int, j: int) -> float:
    a, b = values[:, i], values[:, j]
    return float((a - a.mean()) @ (b - b.mean())) / len(a)


def _judge(
    names: Sequence[str], values: Floats, i: int, twin: int | None, sums: Floats, drawn: Floats
) -> ScreenedDemand:
    x = values[:, i]
    if np.ptp(x) == 0:
        return ScreenedDemand(
            names[i], "constant", "", None, f"always {x[0]:g}: it explains nothing"
        )
    value = float(_correlations(x, sums, np.ones((1, len(x))))[0])
    tail = (1.0 - INTERVAL_SHARE) / 2.0
    low, high = np.nanquantile(_correlations(x, sums, drawn), [tail, 1.0 - tail])
    correlation = Estimate(value, float(low), float(high))
    if twin is not None:
        other = names[twin]
        turned = "against" if _covariance(values, i, twin) < 0 else "with"
        reason = f"rises and falls {turned} {other}: one capability cannot be told from the other"
        return ScreenedDemand(names[i], "duplicate", other, correlation, reason)
    if value >= 0.0:
        reason = "outcomes do not fall where it rises: no demand, or one that is turned round"
        return ScreenedDemand(names[i], "no demand", "", correlation, reason)
    sure = "" if high < 0.0 else "; its interval reaches 0, so this is not sure"
    return ScreenedDemand(names[i], "kept", "", correlation, f"outcomes fall where it rises{sure}")


def _correlations(x: Floats, sums: Floats, weights: Floats) -> Floats:
    """Correlations of a demand with all outcomes, one for each row of weights of instances.

    Args:
        x: (instances,).
        sums: (instances, 3): number, sum and sum of squares of the outcomes.
        weights: (repeats, instances).
    """
    n, y, yy = (weights @ sums).T
    nx, nxx, xy = (
        weights @ np.stack([x * sums[:, 0], x * x * sums[:, 0], x * sums[:, 1]], axis=1)
    ).T
    covariance = xy / n - nx * y / n**2
    variances = (nxx / n - (nx / n) ** 2) * (yy / n - (y / n) ** 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(variances > 0, covariance / np.sqrt(np.maximum(variances, 0.0)), np.nan)


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


def predictive_power(
    held_out: HeldOutPredictions, least: float | None = None, seed: int = 0
) -> Power:
    """Judge held-out predictions.

    Scores have to be predicted with an R2 of `least`. Single successes and failures have a low R2
    even where the predictions are the true probabilities. So two things speak against those: a
    Brier score that is higher than the predictions themselves expect (the test of Spiegelhalter
    1986), and an R2 that is sure to be below `least` although successes and failures are mixed.

    Args:
        held_out: Predictions and outcomes. Outcomes that are all 0 or 1 are successes and failures.
        least: Least R2; by default `LEAST_R2` for scores and `SOME_R2` for successes and failures.
        seed: Seed of the resampling for the interval.
    """
    p, y = held_out.predicted, held_out.outcomes
    r2_estimate = bootstrap(r2, p, y, seed, instances=held_out.rows)
    if not np.isin(y, (0.0, 1.0)).all():
        return Power(r2_estimate, LEAST_R2 if least is None else least)
    # An outcome that is held out several times is one outcome.
    _, which, times = np.unique(held_out.rows, return_inverse=True, return_counts=True)
    once = np.bincount(which, p) / times
    passed = np.bincount(which, y) / times
    spread = float(np.sqrt(np.sum((1.0 - 2.0 * once) ** 2 * once * (1.0 - once))))
    excess = float(np.sum((passed - once) * (1.0 - 2.0 * once)))
    return Power(
        r2_estimate,
        SOME_R2 if least is None else least,
        float(np.mean((once - passed) ** 2)),
        float(np.mean(once * (1.0 - once))),
        excess / spread if spread > 0.0 else 0.0,
        float(passed.mean()),
    )


def gated(profile: Profile, power: Power) -> Profile:
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
