"""The success rate on a whole battery, from choices of known probability.

The estimand is the share of successes if every instance of the battery were played once. What was
played is known, so only the number of successes among the rest is in question. The number that
leads is the expected one: successes so far, and for the rest what layout and constant rates
predict, mixed by how well each has predicted so far, but never outside the interval.

One interval is what the layout predicts: of its posterior, with the chance of each instance that is
left. It holds if the layout does. Beside it stands one that needs no layout. Where draws were even
and the number of episodes was set beforehand, the successes are hypergeometric, and the interval is
the exact one: of the numbers under which neither so few nor so many have a probability below 0.05
(Clopper and Pearson 1934; for finite populations Wright 1991, Exact confidence bounds when sampling
from small finite universes).

Draws for the rate (the policy "rate") are in proportion to the standard deviation of the outcome
that is predicted, with a floor. Every draw alone then estimates the successes that were left: the
sum of the predictions, and the error of the one prediction over its propensity (Zrnic and Candes
2024, Active statistical inference; Angelopoulos and others 2023, Prediction-powered inference).
Their mean, weighted by the inverse of the variance that is predicted for each, has an interval by
the normal theory of martingales. Its variance is the greater of what was seen and what was
predicted. So it is approximate, and for a number of episodes that was set beforehand.

Everywhere else the interval is one that is valid at any time. For that each hypothetical number is
tested by betting (Waudby-Smith and Ramdas 2020, Confidence sequences for sampling without
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

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays as portable
from animalcat.portable import scalars

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

SHARE: Final = 0.9
"""Probability with which an exact interval holds, and the others at all episodes together."""
MOST_TOTALS: Final = 101
"""Numbers of successes that are tested; of a larger battery, evenly spaced ones."""

_EDGE: Final = 0.01
"""Predictions are kept this far from 0 and 1."""
_RATES: Final = np.linspace(-3.0, 3.0, 9)
"""Constant rates that predict beside the layout, in logits."""
_MOVES: Final = (-0.8, 0.0, 0.8)
_TRUSTS: Final = (0.5, 1.0)
"""The layout's logits predict multiplied by these and moved by those."""
_TRUST: Final = 0.9
"""Share of the layout's own predictions at first, where draws follow them."""
_LEAST: Final = -50.0
"""Logarithm of the least factor of a stake."""
_DIGITS: Final = 1e4
"""Logarithms of factors are rounded down to multiples of 1 / _DIGITS."""
_NORMAL: Final = np.array([NormalDist().inv_cdf((k + 0.5) / 9.0) for k in range(9)])
"""Equally likely deviations of a sum of chances, in units of its standard deviation."""
_NOTHING: Final = "nothing was played"
_EVENLY: Final = 1e-9
"""By how much propensities of even draws may differ, as a share of each."""
_NO_DRAW: Final = "none of the arenas played was drawn at random"
_FEWEST: Final = 20
"""Fewest draws for which the normal theory is taken to hold."""
_TILTS: Final = np.array([0.0, *(scalars.power(10.0, k / 4.0) for k in range(-16, 25))])
"""Sizes of bets that are tried first, in units of the mean propensity."""


class Wager(NamedTuple):
    """What is staked on an episode against each number of successes, before it is played.

    Attributes:
        before: How many instances of the battery had been begun before.
        failure: Logarithm of the stake's factor if it fails, for each of `totals`.
        success: The same if it succeeds.
        even: Whether all instances of the battery that had not been begun were equally likely.
        planned: How many episodes were set beforehand; 0 if their number depends on outcomes.
        weighed: Where it was drawn for the rate, what the draw alone says of the number of
            successes among all that had not been begun: if it fails, if it succeeds, and the
            variance of that; else empty.
    """

    before: int
    failure: tuple[float, ...]
    success: tuple[float, ...]
    even: bool = False
    planned: int = 0
    weighed: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class BatteryRate:
    """The success rate on a whole battery.

    Attributes:
        instances: Instances of the battery that the layout covers.
        played: How many of them were played, with an outcome.
        passed: How many of those succeeded at the first play that had one.
        value: Expected share of successes, within the interval; None if nothing can be told.
        low: Lower end of the interval; None if nothing can be told.
        high: Its upper end; None if nothing can be told.
        predicted: The interval that the layout predicts; None where it does not describe the agent,
            or nothing was played.
        share: Probability with which an exact interval holds, and with which those of all episodes
            hold together if they are valid at any time.
        exact: Whether the interval is exact.
        approximate: Whether it is by normal theory; else, if not exact, it is valid at any time.
        since: Why it is of that kind, in words; empty if nothing can be told or all were played.
        why: Why nothing can be told; empty if something can.
    """

    instances: int
    played: int
    passed: int
    value: float | None
    low: float | None
    high: float | None
    predicted: tuple[float, float] | None = None
    share: float = SHARE
    exact: bool = False
    approximate: bool = False
    since: str = ""
    why: str = ""

    def to_dict(self, of: int) -> dict[str, Any]:
        """Convert to JSON values, with the same in words as `text`.

        Args:
            of: Instances of the battery, with those that the layout does not cover.
        """
        return {**asdict(self), "of": of, "text": self.words(of)}

    def words(self, of: int) -> str:
        """Sentences for people.

        Args:
            of: Instances of the battery, with those that the layout does not cover.
        """
        all_of_it = f"the whole battery of {of} arenas"
        covered = f"the {self.instances} arenas that the layout covers, of {of} in the battery"
        about = f"Success rate over {all_of_it if self.instances == of else covered}"
        sure = f"{100 * self.share:g} %"
        if self.value is None or self.low is None or self.high is None:
            told = f", {self.passed} passed" if self.played else ""
            were = f"{self.played} were played"
            cannot = (
                f"{about}: cannot be estimated without the layout, since {self.why} ({were}{told})."
            )
            if self.predicted is None:
                return cannot
            return f"{cannot} It is {_percent(*self.predicted)} ({sure}) if the layout holds."
        value = f"{100 * self.value:.0f} %"
        if self.played == self.instances:
            return f"{about}: {value} (all were played)."
        whole = _percent(self.low, self.high)
        interval = f"{_percent(*self.predicted)} if the layout holds; " if self.predicted else ""
        rest = (self.value * self.instances - self.passed) / (self.instances - self.played)
        approximate = "approximate" if self.approximate else "valid at any time"
        kind = "exact" if self.exact else approximate
        return (
            f"{about}: {value} ({sure}: {interval}without the layout, {whole}). It passed "
            f"{self.passed} of {self.played} played, and is expected to pass {100 * rest:.0f} % of "
            f"the rest. The {'second ' if interval else ''}interval is {kind}, since {self.since}."
        )


def _percent(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {100 * high:.0f} %"


def predict_rate(
    each: Floats, count: Floats, weights: Floats, passed: int, size: int
) -> tuple[float, float]:
    """The interval of the success rate on a whole battery that a posterior predicts.

    Args:
        each: Probability of success of each distinct instance by each particle, (distinct,
            particles).
        count: How many instances without an outcome each of them stands for, (distinct,).
        weights: Of the particles, (particles,).
        passed: Successes among the instances with an outcome.
        size: Number of instances.
    """
    means = passed + portable.dot(each.T, count)
    sds = np.sqrt(portable.dot((each * (1.0 - each)).T, count))
    numbers = np.clip((means + sds * _NORMAL[:, np.newaxis]).ravel(), passed, size)
    order = np.argsort(numbers, kind="stable")
    sums = np.cumsum(np.tile(weights / weights.sum(), len(_NORMAL))[order]) / len(_NORMAL)
    ends = [0.5 * (1.0 - SHARE), 0.5 * (1.0 + SHARE)]
    places = np.searchsorted(sums, ends).clip(max=len(order) - 1)
    low, high = (numbers[order[places]] / size).tolist()
    return low, high


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

    def __init__(self, size: int, planned: int = 0, *, weighing: bool = False) -> None:
        """Start before the first episode.

        Args:
            size: Number of instances.
            planned: Number of episodes, if that is set beforehand; else 0.
            weighing: Whether instances are drawn for the rate, by what the layout predicts; then it
                is trusted more, and every draw estimates the rate.
        """
        self.size = size
        self.planned = planned
        self.played = 0
        self.passed = 0
        self._weighing = weighing
        layout = [(move, trust) for trust in _TRUSTS for move in _MOVES]
        if weighing:
            layout = [(0.0, 1.0)]
        rates = [(float(rate), 0.0) for rate in _RATES]
        self._moves, self._trusts = np.array([*layout, *rates]).T
        trust = _TRUST if weighing else 0.5
        shares = [trust / len(layout)] * len(layout) + [(1.0 - trust) / len(rates)] * len(rates)
        self._weights = portable.log(shares)

    def learn(self, predicted: float, success: bool) -> None:
        """Take in the outcome of an instance that was played for the first time.

        Args:
            predicted: Probability of success that the layout predicted.
            success: Whether it succeeded.
        """
        p = self._each(np.array([predicted]))[:, 0]
        self._weights += portable.log(p if success else 1.0 - p)
        self.played += 1
        self.passed += success

    def mixed(self, predicted: Floats) -> Floats:
        """Mix the predictions of layout and constant rates by how well each did, (instances,)."""
        shares = portable.exp(self._weights - self._weights.max())
        return np.asarray(portable.dot(shares / shares.sum(), self._each(predicted)))

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
        every = int(count.sum()) == self.size - before
        even = every and bool(np.ptp(q) <= _EVENLY * q.max())
        weighed = _weigh(p, q, count, int(place[drawn])) if self._weighing and every else ()
        return Wager(before, _round_all(failure), _round_all(success), even, self.planned, weighed)

    def _each(self, predicted: Floats) -> Floats:
        """What each predictor says, (predictors, instances)."""
        logits = portable.logit(np.clip(predicted, _EDGE, 1.0 - _EDGE))
        p = portable.expit(self._moves[:, np.newaxis] + self._trusts[:, np.newaxis] * logits)
        return np.clip(p, _EDGE, 1.0 - _EDGE)


def battery_rate(
    size: int,
    plays: Iterable[tuple[Wager | None, bool | None]],
    expected: float,
    predicted: tuple[float, float] | None = None,
) -> BatteryRate:
    """Collect the wagers of a session.

    Args:
        size: Number of instances of the battery.
        plays: The first play of each instance, in the order in which they were chosen: its wager,
            and whether it succeeded; None if that was not observed. Without a wager a play says
            nothing of other instances: no other could be chosen, or outcomes that the wager
            rested on were taken back.
        expected: How many of the instances without an outcome are expected to succeed.
        predicted: What `predict_rate` returns; None where the layout predicts nothing.
    """
    known = list(plays)
    passed = sum(success is True for _, success in known)
    played = sum(success is not None for _, success in known)
    counting = [
        (wager, success)
        for begun, (wager, success) in enumerate(known)
        if wager is not None and wager.before == begun and len(wager.success) == len(totals(size))
    ]
    if played < size and not (played and counting):
        why = _NO_DRAW if played else _NOTHING
        return BatteryRate(size, played, passed, None, None, None, predicted, why=why)
    since, exact, approximate, low, high = "", False, False, float(passed), float(passed)
    if played < size:
        wagers = [wager for wager, _ in counting]
        since = _not_planned(wagers, played, len(known))
        if not since and all(wager.even for wager in wagers):
            exact, (low, high) = True, _exactly(size, played, passed)
            since = f"arenas were drawn evenly and their number, {played}, was set beforehand"
        elif not since and played >= _FEWEST and all(wager.weighed for wager in wagers):
            approximate, (low, high) = True, _by_weight(counting, size - played)
            since = f"arenas were drawn for the rate and their number, {played}, was set beforehand"
        else:
            since = since or f"fewer than {_FEWEST} were drawn"
            low, high = _at_any_time(size, counting, passed, size - played)
    value = min(max(passed + expected, low), high)
    whole = max(size, 1)
    ends = value / whole, low / whole, high / whole
    return BatteryRate(
        size, played, passed, *ends, predicted, exact=exact, approximate=approximate, since=since
    )


def _not_planned(wagers: Sequence[Wager], played: int, begun: int) -> str:
    """Why there is no interval for a number that was set beforehand; empty if there may be."""
    if len(wagers) < begun or not all(wager.even or wager.weighed for wager in wagers):
        return "arenas were not drawn evenly"
    planned = {wager.planned for wager in wagers}
    if planned == {begun}:
        return "" if played == begun else "not every outcome was observed"
    if len(planned) == 1 and min(planned) > begun:
        return f"the {min(planned)} episodes that were set beforehand are not all played"
    return "the number of episodes was not set beforehand"


def _by_weight(plays: Sequence[tuple[Wager, bool | None]], unknown: int) -> tuple[float, float]:
    """Fewest and most successes among all, by the estimates of the draws, approximately normal.

    Args:
        plays: All draws, with their outcomes.
        unknown: How many instances were not played.
    """
    outcomes: Floats = np.array([success is True for _, success in plays], np.float64)
    weighed: Floats = np.array([wager.weighed for wager, _ in plays], np.float64)
    passed: Floats = np.cumsum(outcomes)
    estimates: Floats = (
        passed - outcomes + weighed[:, 0] + outcomes * (weighed[:, 1] - weighed[:, 0])
    )
    weights: Floats = 1.0 / weighed[:, 2]
    n, expected = len(plays), 1.0 / float(weights.sum())
    mean = expected * float(portable.dot(weights, estimates))
    errors: Floats = expected * weights * (estimates - mean)
    seen = float(portable.dot(errors, errors)) * n / (n - 1)
    half = _student(n - 1) * math.sqrt(max(seen, expected))
    low, high = np.clip([mean - half, mean + half], passed[-1], passed[-1] + unknown).tolist()
    return low, high


def _weigh(p: Floats, q: Floats, count: Floats, drawn: int) -> tuple[float, ...]:
    """What one draw says of the successes that are left: `Wager.weighed`; p and so on as there."""
    expected = float(portable.dot(count, p))
    failure = expected - p[drawn] / q[drawn]
    variance = portable.dot(count, p * (1.0 - p) * (1.0 / q - 1.0))
    return float(failure), float(failure + 1.0 / q[drawn]), float(variance)


def _student(freedom: int) -> float:
    """Quantile of Student's t at the upper end of an interval (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(0.5 * (1.0 + SHARE))
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    return z + (z**3 + z) / 4.0 / freedom + second / freedom**2


def _exactly(size: int, played: int, passed: int) -> tuple[int, int]:
    """Fewest and most successes among all that even draws do not reject."""
    fewest, most = passed, size - played + passed
    least = 0.5 * (1.0 - SHARE)
    # The more succeed among all, the likelier are so many among those played.
    low = bisect_left(
        range(most), True, fewest, key=lambda n: _chance(size, n, played, passed, played) > least
    )
    high = bisect_left(
        range(most + 1), True, low, key=lambda n: _chance(size, n, played, 0, passed) <= least
    )
    return low, high - 1


def _chance(size: int, number: int, played: int, first: int, last: int) -> float:
    """Probability that first to last of those played are among a number of successes of all."""
    k = np.arange(max(first, played - size + number), min(last, number) + 1)
    logs = _ways(number, k) + _ways(size - number, played - k) - _ways(size, played)
    return float(portable.exp(logs).sum())


def _ways(of: int, some: Ints | int) -> Floats:
    """Logarithm of how many ways there are to choose some of so many."""
    return portable.gammaln(of + 1.0) - (
        portable.gammaln(np.asarray(some) + 1.0) + portable.gammaln(of - np.asarray(some) + 1.0)
    )


def _at_any_time(
    size: int, plays: Sequence[tuple[Wager, bool | None]], passed: int, unknown: int
) -> tuple[int, int]:
    """Fewest and most successes among all against which no stake has ever grown tenfold."""
    tested = totals(size)
    stakes = np.zeros(len(tested))
    best = np.full(len(tested), -np.inf)
    for wager, success in plays:
        if success is None:
            stakes += np.minimum(wager.success, wager.failure)
        else:
            stakes += wager.success if success else wager.failure
        best = np.maximum(best, stakes)
    low, high = passed, passed + unknown
    left = (tested >= low) & (tested <= high) & (best < -portable.log(1.0 - SHARE))
    if left.any():  # else the truth itself was rejected, or lies between two that were tested
        first, last = np.flatnonzero(left)[[0, -1]]
        # Stakes against a number in between are taken to lie between those of its neighbours.
        low = max(low, int(tested[first - 1]) + 1 if first else 0)
        high = min(high, int(tested[last + 1]) - 1 if last + 1 < len(tested) else size)
    return low, high


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
    size, expected = float(count.sum()), float(portable.dot(count, p))
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
    failure[betting] = portable.log(_win(1.0 - p[drawn], at) / price)
    success[betting] = portable.log(_win(p[drawn], -at) / price)
    return success, failure


def _tilts(p: Floats, q: Floats, count: Floats, wanted: Floats) -> Floats:
    """Sizes of bets under which the nearest probabilities have the sums that are wanted."""

    def sums_of(tilts: Floats) -> Floats:
        return _sums_of_wins(p, q, count * p, -tilts, inverse=True)

    sizes = _TILTS / count.sum()
    tilts = np.concatenate([-sizes[:0:-1], sizes])
    sums = sums_of(tilts)
    least = _interpolate(wanted, sums, tilts)
    tilts, sums = np.concatenate([tilts, least]), np.concatenate([sums, sums_of(least)])
    return _interpolate(wanted, sums, tilts)


def _interpolate(wanted: Floats, sums: Floats, tilts: Floats) -> Floats:
    order = np.argsort(sums, kind="stable")
    return np.interp(wanted, sums[order], tilts[order])


def _sums_of_wins(
    chance: Floats, q: Floats, weights: Floats, tilts: Floats, inverse: bool = False
) -> Floats:
    """Sums over instances of weights times `_win(chance, tilt / q)`, or its inverse, (tilts,)."""
    from animalcat.layouts.inference.kernels import sums_of_wins  # brings numba

    out = np.empty(len(tilts))
    wins = np.empty(len(chance))
    sums_of_wins(chance, 1.0 / q, weights, tilts, inverse, wins, out)
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
    # As complex numbers, which are sorted by both parts too, in a third of the time.
    both = np.ascontiguousarray(pairs).view(np.complex128)[:, 0]
    rows, place, count = np.unique(both, return_inverse=True, return_counts=True)
    return np.stack([rows.real, rows.imag]), np.ravel(place), count.astype(np.float64)


def _round_all(logs: Floats) -> tuple[float, ...]:
    return tuple((np.floor(np.maximum(logs, _LEAST) * _DIGITS) / _DIGITS).tolist())
