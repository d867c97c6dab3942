"""The success rate on a whole battery, from choices of known probability, at any time.

The estimand is the share of successes if every instance of the battery were played once. What was
played is known, so only the number of successes among the rest is in question. Each hypothetical
number is tested by betting (Waudby-Smith and Ramdas 2020, Confidence sequences for sampling without
replacement; 2024, Estimating means of bounded random variables by betting). When an instance is
drawn, something is staked against every number, and those are rejected for good against which the
stakes have grown tenfold. Under the true number no betting wins in the long run, so it is ever
rejected with a probability of at most 0.1 (Ville's inequality). So the intervals of all episodes
hold *together*, however instances are chosen and whenever one looks or stops.

Draws are weighted by their propensities, and the layout's predictions serve as control variate
(Shekhar, Xu, Lipton, Liang and Ramdas 2023, Risk-limiting financial audits via weighted sampling
without replacement). Let p be the predictions and q the propensities of the instances that are
left, and r the hypothetical number of successes among them. The best fair bet on outcome y wins

    p(y) / p*(y),    with p* the probabilities nearest to p that sum to r,

where nearness is the Kullback-Leibler divergence weighted by q (a reverse information projection;
Grunwald, de Heide and Koolen 2024, Safe testing). It is fair whichever r instances succeed, since
q (win on success - win on failure) is the same for every instance. Good predictions make the bets
nearly the best possible. Bad ones make them win less, and they stay fair. Predictions are mixed
with constant rates, by how well each has predicted so far, so that a wrong layout costs little.

An instance that could not be drawn may have any outcome, and bets count with the worst. That is one
that is being played or was set aside, or whose propensity was 0. Where nothing was observed, either
outcome may be true, and the bet counts as that which wins less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

SHARE: Final = 0.9
"""Probability with which the interval holds at all episodes together."""
MOST_TOTALS: Final = 101
"""Numbers of successes that are tested; of a larger battery, evenly spaced ones."""

_EDGE: Final = 0.01
"""Predictions are kept this far from 0 and 1."""
_RATES: Final = np.linspace(-3.0, 3.0, 9)
"""Constant rates that predict beside the layout, in logits."""
_MOVES: Final = (-0.8, 0.0, 0.8)
_TRUSTS: Final = (0.5, 1.0)
"""The layout's logits predict multiplied by these and moved by those."""
_LEAST: Final = -50.0
"""Logarithm of the least factor of a stake."""
_DIGITS: Final = 1e4
"""Logarithms of factors are rounded down to multiples of 1 / _DIGITS."""
_NOTHING: Final = "nothing was played"
_NO_DRAW: Final = "none of the arenas played was drawn at random"
_TILTS: Final = np.concatenate([[0.0], np.geomspace(1e-4, 1e6, 41)])
"""Sizes of bets that are tried first, in units of the mean propensity."""


class Wager(NamedTuple):
    """What is staked on an episode against each number of successes, before it is played.

    Attributes:
        before: How many instances of the battery had been begun before.
        failure: Logarithm of the stake's factor if it fails, for each of `totals`.
        success: The same if it succeeds.
    """

    before: int
    failure: tuple[float, ...]
    success: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BatteryRate:
    """The success rate on a whole battery.

    Attributes:
        instances: Instances of the battery that the layout covers.
        played: How many of them were played, with an outcome.
        passed: How many of those succeeded at the first play that had one.
        value: Mean of the shares that are left, each weighted by the inverse of the stakes against
            it (Grunwald 2023, The e-posterior); None if nothing can be told.
        low: Lower end of the interval; None if nothing can be told.
        high: Its upper end; None if nothing can be told.
        share: Probability with which the intervals of all episodes hold together.
        why: Why nothing can be told; empty if something can.
    """

    instances: int
    played: int
    passed: int
    value: float | None
    low: float | None
    high: float | None
    share: float = SHARE
    why: str = ""

    def to_dict(self, of: int) -> dict[str, Any]:
        """Convert to JSON values, with the same in words as `text`.

        Args:
            of: Instances of the battery, with those that the layout does not cover.
        """
        return {**asdict(self), "of": of, "text": self.words(of)}

    def words(self, of: int) -> str:
        """A sentence for people.

        Args:
            of: Instances of the battery, with those that the layout does not cover.
        """
        all_of_it = f"the whole battery of {of} arenas"
        covered = f"the {self.instances} arenas that the layout covers, of {of} in the battery"
        about = f"Success rate over {all_of_it if self.instances == of else covered}"
        if self.value is None or self.low is None or self.high is None:
            told = f", {self.passed} passed" if self.played else ""
            were = f"{self.played} were played"
            return f"{about}: cannot be told, since {self.why} ({were}{told})."
        value = f"{100 * self.value:.0f} %"
        if self.low == self.high:
            return f"{about}: {value} (all were played)."
        interval = f"{100 * self.share:g} %: {100 * self.low:.0f} to {100 * self.high:.0f} %"
        raw = self.passed / max(self.played, 1)
        differs = f"{100 * raw:.0f} %" != value
        why = (
            f" It is not the {100 * raw:.0f} % of those played: every rate was held equally likely "
            "at first, and each outcome weighs by how likely its arena was to be chosen."
            if differs and self.played
            else ""
        )
        return (
            f"{about}: {value} ({interval}), estimated from {self.passed} passed of {self.played} "
            f"played, whether or not the layout describes the agent.{why}"
        )


def totals(size: int) -> Ints:
    """Numbers of successes that are tested, ascending.

    Args:
        size: Number of instances.
    """
    return np.unique(np.linspace(0, size, min(size + 1, MOST_TOTALS)).round().astype(np.int64))


class RateBettor:
    """Stakes against every number of successes of a battery. For one thread at a time.

    It remembers how well the layout and constant rates have predicted, and mixes them accordingly.
    """

    def __init__(self, size: int) -> None:
        """Start before the first episode.

        Args:
            size: Number of instances.
        """
        self.size = size
        self.played = 0
        self.passed = 0
        layout = [(move, trust) for trust in _TRUSTS for move in _MOVES]
        rates = [(float(rate), 0.0) for rate in _RATES]
        self._moves, self._trusts = np.array([*layout, *rates]).T
        halves = [0.5 / len(part) for part in (layout, rates) for _ in part]
        self._weights = np.log(halves)

    def learn(self, predicted: float, success: bool) -> None:
        """Take in the outcome of an instance that was played for the first time.

        Args:
            predicted: Probability of success that the layout predicted.
            success: Whether it succeeded.
        """
        p = self._each(np.array([predicted]))[:, 0]
        self._weights += np.log(p if success else 1.0 - p)
        self.played += 1
        self.passed += success

    def mixed(self, predicted: Floats) -> Floats:
        """Mix the predictions of layout and constant rates by how well each did, (instances,)."""
        shares = np.exp(self._weights - self._weights.max())
        return np.asarray(shares / shares.sum() @ self._each(predicted))

    def wager(self, predicted: Floats, propensities: Floats, drawn: int, before: int) -> Wager:
        """Stake on an instance that was drawn.

        Args:
            predicted: Predictions for the instances that could be drawn, (instances,).
            propensities: Their probabilities, all above 0 and summing to 1, (instances,).
            drawn: Which one it was, as an index of both.
            before: How many instances of the battery had been begun.
        """
        # Equal instances are worked out once.
        pairs = np.column_stack([self.mixed(predicted), propensities])
        (p, q), place, count = _distinct(pairs)
        rest = (totals(self.size) - self.passed).astype(np.float64)
        unknown = self.size - self.played - int(count.sum())
        success, failure = _factors(p, q, count, int(place[drawn]), rest, unknown)
        return Wager(before, _rounded(failure), _rounded(success))

    def _each(self, predicted: Floats) -> Floats:
        """What each predictor says, (predictors, instances)."""
        # Imported here, since clients read wagers and have no SciPy.
        from scipy.special import expit, logit

        logits = logit(np.clip(predicted, _EDGE, 1.0 - _EDGE))
        p = expit(self._moves[:, np.newaxis] + self._trusts[:, np.newaxis] * logits)
        return np.clip(p, _EDGE, 1.0 - _EDGE)


def battery_rate(size: int, plays: Iterable[tuple[Wager | None, bool | None]]) -> BatteryRate:
    """Collect the wagers of a session.

    Args:
        size: Number of instances of the battery.
        plays: The first play of each instance, in the order in which they were chosen: its wager,
            and whether it succeeded; None if that was not observed. Without a wager a play says
            nothing of other instances: no other could be chosen, or outcomes that the wager
            rested on were taken back.
    """
    tested = totals(size)
    stakes = np.zeros(len(tested))
    best = np.full(len(tested), -np.inf)
    played = passed = wagers = 0
    for begun, (wager, success) in enumerate(plays):
        if wager is not None and wager.before == begun and len(wager.success) == len(tested):
            if success is None:
                stakes += np.minimum(wager.success, wager.failure)
            else:
                stakes += wager.success if success else wager.failure
            best = np.maximum(best, stakes)
            wagers += 1
        played += success is not None
        passed += bool(success)
    if played < size and not (played and wagers):
        why = _NO_DRAW if played else _NOTHING
        return BatteryRate(size, played, passed, None, None, None, why=why)
    low, high = passed, size - played + passed
    value = 0.5 * (low + high)
    left = (tested >= low) & (tested <= high) & (best < -np.log(1.0 - SHARE))
    if left.any():  # else the truth itself was rejected, or lies between two that were tested
        first, last = np.flatnonzero(left)[[0, -1]]
        # Stakes against a number in between are taken to lie between those of its neighbours.
        low = max(low, int(tested[first - 1]) + 1 if first else 0)
        high = min(high, int(tested[last + 1]) - 1 if last + 1 < len(tested) else size)
        value = float(np.average(tested[left], weights=np.exp(stakes[left].min() - stakes[left])))
    whole = max(size, 1)
    return BatteryRate(size, played, passed, value / whole, low / whole, high / whole)


def _factors(
    p: Floats, q: Floats, count: Floats, drawn: int, rest: Floats, shut: int
) -> tuple[Floats, Floats]:
    """Logarithms of the factors of stakes on success and on failure, each (totals,).

    Args:
        p: Predictions, (instances,).
        q: Propensities, (instances,).
        count: How many instances each of them stands for, (instances,).
        drawn: Index of the one that was drawn.
        rest: Successes among all that were not told, for each hypothetical total, (totals,).
        shut: How many of these could not be drawn.
    """
    size, expected = float(count.sum()), float(count @ p)
    least, most = np.maximum(rest - shut, 0.0), np.minimum(rest, size)
    betting = (rest >= 0.0) & (rest <= size + shut) & ((expected < least) | (expected > most))
    success, failure = np.zeros(len(rest)), np.zeros(len(rest))
    if not betting.any():
        return success, failure
    wanted = np.clip(expected, least, most)[betting]
    tilt = _tilts(p, q, count, wanted)
    # The fair price under the outcomes that win most, so tilts need not be exact.
    price = _sums_of_wins(1.0 - p, q, count * q, tilt) + tilt * wanted
    at = tilt / q[drawn]
    failure[betting] = np.log(_win(1.0 - p[drawn], at) / price)
    success[betting] = np.log(_win(p[drawn], -at) / price)
    return success, failure


def _tilts(p: Floats, q: Floats, count: Floats, wanted: Floats) -> Floats:
    """Sizes of bets under which the nearest probabilities have the sums that are wanted."""

    def sums_of(tilts: Floats) -> Floats:
        return _sums_of_wins(p, q, count * p, -tilts, inverse=True)

    sizes = _TILTS / count.sum()
    tilts = np.concatenate([-sizes[:0:-1], sizes])
    sums = sums_of(tilts)
    least = _interpolated(wanted, sums, tilts)
    tilts, sums = np.concatenate([tilts, least]), np.concatenate([sums, sums_of(least)])
    return _interpolated(wanted, sums, tilts)


def _interpolated(wanted: Floats, sums: Floats, tilts: Floats) -> Floats:
    order = np.argsort(sums)
    return np.interp(wanted, sums[order], tilts[order])


def _sums_of_wins(
    chance: Floats, q: Floats, weights: Floats, tilts: Floats, inverse: bool = False
) -> Floats:
    """Sums over instances of weights times `_win(chance, tilt / q)`, or its inverse, (tilts,)."""
    from animalcat.layouts.inference.kernels import sums_of_wins  # brings numba

    out = np.empty(len(tilts))
    sums_of_wins(chance, 1.0 / q, weights, tilts, inverse, out)
    return out


def _win(chance: Floats | float, tilt: Floats) -> Floats:
    """Win on an outcome of some chance: the positive root of w^2 + (tilt - 1) w = chance tilt."""
    b = 1.0 - tilt
    root = np.sqrt(b * b + 4.0 * chance * tilt)
    # Of two forms of the root, the one in which nothing cancels.
    other = 2.0 * chance * tilt / np.where(b < 0.0, root - b, 1.0)
    return np.asarray(np.where(b < 0.0, other, 0.5 * (b + root)))


def _distinct(pairs: Floats) -> tuple[Floats, Ints, Floats]:
    """Columns of the distinct rows, the place of every row among them, and how many there are."""
    rows, place, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    return rows.T, np.ravel(place), count.astype(np.float64)


def _rounded(logs: Floats) -> tuple[float, ...]:
    return tuple((np.floor(np.maximum(logs, _LEAST) * _DIGITS) / _DIGITS).tolist())
