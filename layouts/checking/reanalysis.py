"""Success on the whole battery, and calibration, estimated from an adaptive session.

An adaptive session plays what it finds informative, so its success rate is not that on the battery,
and if its layout is wrong, its predictions do not correct for that. But every choice was drawn with
a known probability. At each step, conditional on the paradigm, the outcome of the drawn instance,
divided by its probability, stands for all instances that were left of the paradigm:

    played so far + predicted for what is left + (outcome - predicted) / probability

The expected value of this is the paradigm's total, however good the predictions are; they only
reduce its variance (the estimator is doubly robust; Robins, Rotnitzky and Zhao 1994; for active
testing see Farquhar, Gal and Rainforth 2021 and Kossen et al. 2021). Steps are weighted by how
little was left to estimate, which is known before the draw. A step at which some of the instances
left could not have been drawn says nothing of the rest: its outcome counts as played and no more.

The estimand is the share of successes if every instance had been played once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.peers import Peers
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]

SHARE: Final = 0.9
"""Probability of the intervals."""
BINS: Final = (0.2, 0.4, 0.6, 0.8)
"""Predicted probabilities at which the bins of the calibration are divided."""


@dataclass(frozen=True, slots=True)
class DrawnEpisode:
    """An episode of a session, with the probabilities by which its instance was chosen.

    Attributes:
        paradigm: Paradigm of its instance.
        outcome: 1 for success, 0 for failure.
        predicted: Probability of success, as predicted before the episode.
        propensity: Probability with which the instance was chosen.
        peers: The other instances of its paradigm that could have been chosen. None for a repeat or
            an instance made on demand, which says nothing about the battery.
    """

    paradigm: str
    outcome: float
    predicted: float
    propensity: float
    peers: Peers | None

    @property
    def chance(self) -> float:
        """Probability of the instance given its paradigm; 0 if unknown.

        It is also 0 if some of the instances left could not have been drawn.
        """
        if self.peers is None or not self.peers.open or self.peers.propensity <= 0.0:
            return 0.0
        return min(self.propensity / self.peers.propensity, 1.0)


@dataclass(frozen=True, slots=True)
class WeightedEstimate:
    """A number estimated from weighted draws, with its 90 % interval.

    Attributes:
        value: The number; None if nothing is known.
        sd: Its standard error; None if there are too few draws.
        low: Lower end of the interval; None if there are too few draws.
        high: Upper end of the interval; None if there are too few draws.
        draws: Number of draws that it rests on.
    """

    value: float | None
    sd: float | None
    low: float | None
    high: float | None
    draws: int


@dataclass(frozen=True, slots=True)
class ParadigmResult:
    """Results of one paradigm, or of all paradigms that have an interval.

    Attributes:
        name: Name of the paradigm; empty for all.
        instances: Number of its instances in the battery.
        played: How many of them were played.
        rate: Share of successes among those played, which is not that of the battery.
        success: Share of successes if every instance had been played once.
        residual: By how much it exceeds what was predicted for the instances left.
    """

    name: str
    instances: int
    played: int
    rate: float | None
    success: WeightedEstimate
    residual: WeightedEstimate


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """A bin of similar predictions, weighted to represent the instances left of the battery.

    Attributes:
        low: Least predicted probability of success.
        high: Greatest predicted probability of success.
        predicted: Weighted mean prediction.
        observed: Weighted share of successes.
        draws: Number of draws.
    """

    low: float
    high: float
    predicted: float
    observed: WeightedEstimate
    draws: int


@dataclass(frozen=True, slots=True)
class Reanalysis:
    """What a session says about the battery, weighted by propensities.

    Attributes:
        paradigms: The paradigms, by name.
        battery: All paradigms that have an interval; the notes name the others.
        calibration: Bins with at least one draw.
        brier: Weighted Brier score of the predictions; None without draws.
        notes: Caveats.
    """

    paradigms: tuple[ParadigmResult, ...]
    battery: ParadigmResult
    calibration: tuple[CalibrationBin, ...]
    brier: float | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {"version": 1, "interval_share": SHARE, **asdict(self)}


def reanalyse(draws: Sequence[DrawnEpisode], instances: Mapping[str, int]) -> Reanalysis:
    """Estimate success on a battery, and check predictions, by the recorded propensities.

    Args:
        draws: The episodes that counted, in the order in which their instances were chosen.
        instances: Number of instances of each paradigm that the battery has and the layout covers.
    """
    paradigms = tuple(
        _paradigm(name, [d for d in draws if d.paradigm == name and d.peers is not None], count)
        for name, count in sorted(instances.items())
    )
    usable = [d for d in draws if d.chance > 0.0]
    notes: list[str] = []
    if repeats := sum(d.peers is None for d in draws):
        notes.append(
            f"{repeats} episodes are left out: repeats, instances made on demand, or decisions "
            "kept without what else could have been begun"
        )
    known = [p for p in paradigms if p.success.sd is not None]
    if len(known) < len(paradigms):
        few = ", ".join(p.name for p in paradigms if p.success.sd is None)
        notes.append(f"too few random draws, so that the whole is without them: {few}")
    return Reanalysis(paradigms, _whole(known), _calibration(usable), _brier(usable), tuple(notes))


def _paradigm(name: str, draws: Sequence[DrawnEpisode], count: int) -> ParadigmResult:
    """Combine the steps of one paradigm."""
    known = done = 0.0
    totals: list[float] = []
    residuals: list[float] = []
    weights: list[float] = []
    for draw in draws:
        peers = draw.peers
        assert peers is not None  # the caller left the others out
        if draw.chance > 0.0:
            surprise = (draw.outcome - draw.predicted) / draw.chance
            # Instances that were set aside do not count, so this is not the battery's count.
            size = done + peers.left
            totals.append((known + peers.left * peers.predicted + surprise) / size)
            residuals.append(surprise / peers.left)
            weights.append(1.0 / (peers.left * max(peers.left - 1.0, 1e-9)))
        known += draw.outcome
        done += 1.0
    rate = known / len(draws) if draws else None
    # Whether all that can be played was; the rest was set aside, and does not count.
    last = draws[-1].peers if draws and draws[-1].chance > 0.0 else None
    if len(draws) == count or (last is not None and last.left == 1):  # nothing is left to estimate
        success = WeightedEstimate(rate, 0.0, rate, rate, len(totals))
    else:
        success = _mean(np.array(totals), np.array(weights), 0.0, 1.0)
    even = np.ones(len(residuals))
    return ParadigmResult(
        name, count, len(draws), rate, success, _mean(np.array(residuals), even, -1.0, 1.0)
    )


def _whole(paradigms: Sequence[ParadigmResult]) -> ParadigmResult:
    """Combine paradigms in proportion to their shares of the battery."""
    count = sum(p.instances for p in paradigms)
    played = sum(p.played for p in paradigms)
    rate = sum((p.rate or 0.0) * p.played for p in paradigms) / played if played else None
    shares = [p.instances / max(count, 1) for p in paradigms]
    return ParadigmResult(
        "",
        count,
        played,
        rate,
        _sum([p.success for p in paradigms], shares, 0.0, 1.0),
        _sum([p.residual for p in paradigms], shares, -1.0, 1.0),
    )


def _mean(values: Floats, weights: Floats, least: float, most: float) -> WeightedEstimate:
    """Weighted mean of martingale differences, and its interval by Student's t."""
    n = len(values)
    if not n:
        return WeightedEstimate(None, None, None, None, 0)
    shares = weights / weights.sum()
    mean = float(shares @ values)
    effective = 1.0 / float(np.sum(shares**2))
    if effective < 2.0:
        return WeightedEstimate(_clip(mean, least, most), None, None, None, n)
    variance = float(np.sum(shares**2 * (values - mean) ** 2)) * effective / (effective - 1.0)
    return _interval(mean, math.sqrt(variance), effective - 1.0, least, most, n)


def _sum(
    parts: Sequence[WeightedEstimate], shares: Sequence[float], least: float, most: float
) -> WeightedEstimate:
    draws = sum(p.draws for p in parts)
    values = [p.value for p in parts if p.value is not None]
    if not parts or len(values) < len(parts):
        return WeightedEstimate(None, None, None, None, draws)
    mean = float(np.dot(shares, values))
    errors = [p.sd for p in parts if p.sd is not None]
    if len(errors) < len(parts):
        return WeightedEstimate(_clip(mean, least, most), None, None, None, draws)
    # As many degrees of freedom as the parts have together: their errors are independent.
    sd = math.sqrt(sum((share * error) ** 2 for share, error in zip(shares, errors, strict=True)))
    return _interval(mean, sd, max(draws - len(parts), 1.0), least, most, draws)


def _interval(
    mean: float, sd: float, freedom: float, least: float, most: float, draws: int
) -> WeightedEstimate:
    half = _student(freedom) * sd
    value, low, high = (_clip(x, least, most) for x in (mean, mean - half, mean + half))
    return WeightedEstimate(value, sd, low, high, draws)


def _student(freedom: float) -> float:
    """Upper end of the central interval of Student's t distribution."""
    x = float(portable.betaincinv(0.5 * freedom, 0.5, 1.0 - SHARE))
    return math.sqrt(freedom * (1.0 / x - 1.0))


def _clip(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)


def _calibration(draws: Sequence[DrawnEpisode]) -> tuple[CalibrationBin, ...]:
    predicted = np.array([d.predicted for d in draws])
    outcomes = np.array([d.outcome for d in draws])
    weights = _weights(draws)
    which = np.digitize(predicted, BINS)
    edges = (0.0, *BINS, 1.0)
    bins: list[CalibrationBin] = []
    for k in range(len(edges) - 1):
        rows = which == k
        if rows.any():
            mean = float(np.average(predicted[rows], weights=weights[rows]))
            observed = _mean(outcomes[rows], weights[rows], 0.0, 1.0)
            bins.append(CalibrationBin(edges[k], edges[k + 1], mean, observed, int(rows.sum())))
    return tuple(bins)


def _brier(draws: Sequence[DrawnEpisode]) -> float | None:
    if not draws:
        return None
    errors = np.array([(d.outcome - d.predicted) ** 2 for d in draws])
    return float(np.average(errors, weights=_weights(draws)))


def _weights(draws: Sequence[DrawnEpisode]) -> Floats:
    """Weight of each draw relative to a uniform draw from the instances left."""
    return np.array([1.0 / (d.chance * d.peers.left) if d.peers else 0.0 for d in draws])
