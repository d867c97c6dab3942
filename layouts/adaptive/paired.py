"""Compares agents by what they did on the same arenas, by one rule that holds whenever one looks.

What is asked is the difference of the agents' success rates over a battery. The arenas that they
have in common are drawn at random without replacement, in an order that no outcome has a say in. Of
equal rates, each arena that only one of two agents passes is then as likely the one's as the
other's. A bettor stakes on who passes the next one, and the capital is a martingale of fair coins
(Waudby-Smith and Ramdas 2020, Confidence sequences for sampling without replacement; 2024,
Estimating means of bounded random variables by betting). The number of arenas is known before, so
the bets are made for it, and the law of the largest capital is worked out exactly rather than
bounded by Ville's inequality. The p-value is the chance that equal agents ever come so far. So it
may be looked at after every arena. Without replacement coins come back to an even number, which
makes p-values too large rather than too small (`python -m benchmarks comparing`).

Two agents are *alike* within a margin if bets on a difference below it have won against both a
difference of the margin and one of minus the margin, twentyfold at some time each.

Of several agents a pair is told apart if every hypothesis is rejected under which the two are
equal (closed testing, Marcus, Peritz and Gabriel 1976): that the agents fall into groups of equal
ones, each tested by its smallest p-value times the number of its pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import sqrt
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays as portable
from animalcat.portable import scalars

Floats: TypeAlias = npt.NDArray[np.float64]
Counts: TypeAlias = npt.NDArray[np.int64]
Outcomes: TypeAlias = Sequence[bool | None]
"""Whether one agent passed each of the arenas that several have in common, in their order; None
where that is not known."""

ERROR: Final = 0.05
"""Share of comparisons that may ever be wrong: of equal agents that are told apart, and of agents
that differ by the margin and are called alike."""
MARGIN: Final = 0.1
"""Largest difference of agents that are called alike, unless another is named."""
FAMILY: Final = 5
"""Most agents of which every pair is compared."""

_NAMED: Final = 5
"""Instances that are named in a sentence, at most."""
_NODES: Final = 64
_ANGLES: Final = (2 * np.arange(_NODES) + 1) * np.pi / (2 * _NODES)
_SHARES: Final[Floats] = np.array([(1.0 + scalars.cos(angle)) / 2.0 for angle in _ANGLES.tolist()])
"""Equal weights at these points integrate over Beta(1/2, 1/2) (Gauss-Chebyshev)."""
_MEANS: Final[Floats] = np.linspace(-0.999, 0.999, 1999)
"""Mean differences that an interval is made of."""
_BETS: Final = (0.6, 1.0, 1.7)
"""Shares of the capital that are bet, in units of what the number of arenas can just tell."""
_JUST: Final = 4.3
"""The unit is this by the square root of that number."""
_BOLDEST: Final = (0.8, 0.9)
"""The largest unit, and the largest share."""
_ALIKE: Final = 2.2
"""Share of the capital that is bet on agents being alike, in units of the margin."""


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """What two agents did on common arenas says of the difference of their rates.

    Attributes:
        pairs: Arenas that both played.
        planned: How many they have in common, played or not.
        ahead: Pairs of which the first agent alone passed.
        behind: Pairs of which the second agent alone passed.
        difference: Share of pairs that the first agent passed less that of the second.
        low: Lower end of the difference's interval, which holds at all times together with
            probability 1 - `ERROR`.
        high: Its upper end.
        p_value: Chance that equal agents ever look as different; of several agents, after closed
            testing of them all.
        margin: Largest difference that counts as alike.
        alike: Whether the agents are alike within the margin.
    """

    pairs: int
    planned: int
    ahead: int
    behind: int
    difference: float
    low: float
    high: float
    p_value: float
    margin: float
    alike: bool

    @property
    def apart(self) -> bool:
        """Whether the agents are told apart."""
        return self.p_value <= ERROR

    @property
    def verdict(self) -> str:
        """What is told of the agents, in a few words."""
        alike = f"alike within {100 * self.margin:g} points"
        if self.apart:
            return f"told apart, and {alike}" if self.alike else "told apart"
        return alike if self.alike else "neither told apart nor alike"

    @property
    def words(self) -> str:
        """The difference and what it rests on, as a clause."""
        low, mean, high = (round(100 * end) for end in (self.low, self.difference, self.high))
        return (
            f"{self.verdict} after {self.pairs} of {self.planned} common arenas: the difference "
            f"is {mean:+d} points (95 %, whenever one looks: {low:+d} to {high:+d}; p "
            f"{self.p_value:.2g})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {**asdict(self), "apart": self.apart, "words": self.words}


@dataclass(frozen=True, slots=True)
class CommonInstances:
    """Who passed what, of the instances that two agents played.

    Attributes:
        both_passed: Instances that both passed.
        both_failed: Instances that neither passed.
        only_first: Instances that the first agent alone passed.
        only_second: Instances that the second agent alone passed.
    """

    both_passed: tuple[str, ...]
    both_failed: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def pairs(self) -> int:
        """How many instances both played."""
        alike = len(self.both_passed) + len(self.both_failed)
        return alike + len(self.only_first) + len(self.only_second)

    def words(self, first: str, second: str) -> str:
        """What is the same and what differs, as a clause.

        Args:
            first: What the first agent is called.
            second: What the second agent is called.
        """
        passed, failed, pairs = len(self.both_passed), len(self.both_failed), self.pairs
        if not pairs:
            return "they played no arena in common"
        if pairs in (passed, failed):
            how = "passed" if passed else "failed"
            return f"both {how} all {pairs} arenas that both played"
        of = f"of the {pairs} arenas that both played"
        if pairs == passed + failed:
            return f"{of}, both passed the same {passed} and failed the same {failed}"
        apart = "; ".join(
            f"only {who} passed {len(names)}{_few(names)}"
            for who, names in ((first, self.only_first), (second, self.only_second))
        )
        return f"{of}, both passed {passed} and both failed {failed}; {apart}"


def common_instances(first: Mapping[str, bool], second: Mapping[str, bool]) -> CommonInstances:
    """Look at who passed what, of the instances that two agents played.

    Args:
        first: By instance, whether the first agent passed it.
        second: The same of the second agent.
    """
    kinds: dict[tuple[bool, bool], list[str]] = {}
    for name, passed in first.items():
        if name in second:
            kinds.setdefault((passed, second[name]), []).append(name)
    order = ((True, True), (False, False), (True, False), (False, True))
    return CommonInstances(*(tuple(kinds.get(kind, ())) for kind in order))


def _few(names: Sequence[str]) -> str:
    """Some names in brackets; empty without any."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f" ({', '.join(names[:_NAMED])}{more})" if names else ""


def compare(
    differences: Sequence[float], planned: int = 0, margin: float = MARGIN, error: float = ERROR
) -> PairedComparison:
    """Compare two agents by their outcomes on common arenas.

    Args:
        differences: (pairs,), 1 where the first agent alone passed, -1 where the second alone did,
            and else 0, in the order of the arenas.
        planned: How many arenas they have in common; at least as many as pairs.
        margin: Largest difference that counts as alike.
        error: Share of pairs that may wrongly be called alike.

    Raises:
        ValueError: The margin is not between 0 and 1.
    """
    if not 0.0 < margin < 1.0:
        raise ValueError(f"margin: above 0 and below 1, not {margin:g}")
    values = np.asarray(differences, np.float64)
    pairs = len(values)
    planned = max(planned, pairs)
    p, alike = p_value(differences, planned), False
    if pairs:
        bets = [log_alike(sign * values, margin).max() for sign in (1.0, -1.0)]
        alike = min(bets) >= -scalars.log(error)
    low, high = mean_interval(differences, ERROR)
    mean = float(values.sum()) / pairs if pairs else 0.0
    if p <= ERROR:
        low, high = (max(low, 0.0), high) if mean > 0.0 else (low, min(high, 0.0))
    counts = int((values > 0).sum()), int((values < 0).sum())
    return PairedComparison(pairs, planned, *counts, mean, low, high, p, margin, bool(alike))


def p_value(differences: Sequence[float], planned: int = 0) -> float:
    """The `PairedComparison.p_value` of `compare`, which says more.

    Args:
        differences: As for `compare`.
        planned: As for `compare`.
    """
    values = np.asarray(differences, np.float64)
    if not values.size:
        return 1.0
    planned = max(planned, values.size)
    ahead, behind = ((sign * values > 0).astype(np.int64).cumsum() for sign in (1.0, -1.0))
    most = log_capital(ahead, behind, planned).max()
    return chance_of_growth(planned, round(float(most), 9))


def compare_all(
    outcomes: Mapping[str, Outcomes], margin: float = MARGIN
) -> dict[tuple[str, str], PairedComparison]:
    """Compare every two of some agents, so that `ERROR` holds of all of them together.

    Args:
        outcomes: Of at most `FAMILY` agents, by name, on their common arenas.
        margin: Largest difference that counts as alike.
    """
    pairs = list(combinations(outcomes, 2))
    found = {
        (one, other): compare(
            [float(a) - float(b) for a, b in both if a is not None and b is not None],
            len(both),
            margin,
            ERROR / len(pairs),
        )
        for one, other in pairs
        for both in [list(zip(outcomes[one], outcomes[other], strict=True))]
    }
    worst = dict.fromkeys(pairs, 0.0)
    for groups in _partitions(list(outcomes)):
        equal = [pair for pair in pairs if any(set(pair) <= set(group) for group in groups)]
        p = len(equal) * min((found[pair].p_value for pair in equal), default=0.0)
        for pair in equal:
            worst[pair] = max(worst[pair], p)
    return {pair: replace(one, p_value=min(worst[pair], 1.0)) for pair, one in found.items()}


def _partitions(agents: list[str]) -> Iterator[list[list[str]]]:
    """All ways to put agents into groups."""
    if not agents:
        yield []
        return
    for groups in _partitions(agents[1:]):
        yield [agents[:1], *groups]
        for k, group in enumerate(groups):
            yield [*groups[:k], [agents[0], *group], *groups[k + 1 :]]


def log_capital(ahead: Floats | Counts, behind: Floats | Counts, planned: int) -> Floats:
    """Logarithm of what a bettor against equal agents has, who began with 1.

    Args:
        ahead: Pairs of which the first agent alone passed, of any shape.
        behind: Pairs of which the second alone passed, likewise.
        planned: For how many arenas the bets are made.
    """
    unit = min(_BOLDEST[0], _JUST / sqrt(planned))
    bets = np.array([min(_BOLDEST[1], unit * size) for size in _BETS])
    win, lose = portable.log(1.0 + bets), portable.log(1.0 - bets)
    a, b = (np.asarray(count, np.float64)[..., np.newaxis] for count in (ahead, behind))
    logs = np.concatenate([a * win + b * lose, a * lose + b * win], axis=-1)
    return portable.logsumexp(logs, axis=-1) - portable.log(2.0 * len(bets))


@lru_cache(maxsize=256)
def chance_of_growth(planned: int, most: float) -> float:
    """Chance that the capital of a bettor against equal agents ever grows so much.

    Args:
        planned: Number of arenas; as many may tell.
        most: Logarithm of the capital.
    """
    # The capital depends on how many pairs have told, and by how many one agent leads.
    told, needed = np.arange(1, planned + 1), np.ones(planned, np.int64)
    while True:
        capital = log_capital((told + needed) / 2, (told - needed) / 2, planned)
        less = (needed <= told) & (capital < most - 1e-8)
        if not less.any():
            break
        needed[less] += 1
    chances = np.zeros(int(needed.max()) + 2)
    chances[0], reached = 1.0, 0.0
    for lead in needed.tolist():
        moved = np.zeros_like(chances)
        moved[1:] = 0.5 * chances[:-1]
        moved[1] += 0.5 * chances[0]  # who leads does not matter
        moved[:-1] += 0.5 * chances[1:]
        reached += float(moved[lead:].sum())
        moved[lead:] = 0.0
        chances = moved
    return min(reached, 1.0)


def log_alike(differences: Floats, margin: float) -> Floats:
    """Logarithm of what a bettor has after each pair who stakes on a difference below a margin.

    Args:
        differences: (..., pairs), as for `compare`.
        margin: The least mean difference under the hypothesis that is bet against.
    """
    bet = min(_ALIKE * margin, _BOLDEST[1])
    return np.cumsum(portable.log(1.0 + bet * (margin - differences)), axis=-1)


def mean_interval(differences: Sequence[float], error: float) -> tuple[float, float]:
    """An interval of a mean difference that holds at all times together.

    The stake is spread over all constant bets by Jeffreys's prior, Beta(1/2, 1/2) on the share
    that is bet on "more than the mean".

    Args:
        differences: (n,), each between -1 and 1.
        error: Share of intervals that may ever miss the truth.

    Raises:
        ValueError: A difference is not between -1 and 1.
    """
    given = np.asarray(differences, np.float64)
    if not np.all(np.abs(given) <= 1.0):
        raise ValueError("differences of outcomes between 0 and 1 lie between -1 and 1")
    values, counts = np.unique(given, return_counts=True)
    outcome = (1.0 + values) / 2.0
    mean = ((1.0 + _MEANS) / 2.0)[:, np.newaxis, np.newaxis]
    share = _SHARES[:, np.newaxis]
    gain = outcome * share / mean + (1.0 - outcome) * (1.0 - share) / (1.0 - mean)
    logs = portable.dot(portable.log(gain), counts.astype(np.float64))
    capital = portable.logsumexp(logs, axis=-1) - portable.log(_NODES)
    kept = _MEANS[capital < portable.log(1.0 / error)]
    low, high = (kept[0], kept[-1]) if kept.size else (given.mean(), given.mean())
    return (
        float(low) if low > _MEANS[0] else -1.0,
        float(high) if high < _MEANS[-1] else 1.0,
    )
