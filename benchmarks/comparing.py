"""Whether two agents, or several, are told apart or called alike as often as they may and could.

Outcomes are drawn from known probabilities: arenas' logits are normal, those of an agent are moved
by what gives its rate. The rule looks after every arena. Its power stands beside that of an oracle,
who bets what is best on the true probabilities, on either side, and needs twentyfold. The seed is
that of numpy's generator, `SEED` and the row's number; intervals are exact ones of 90 %.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from animalcat.layouts.adaptive.campaign import common_instances
from animalcat.layouts.adaptive.paired import (
    ERROR,
    MARGIN,
    Outcomes,
    chance_of_growth,
    compare_all,
    log_alike,
    log_capital,
)
from benchmarks.curves import Estimate, row, share
from benchmarks.rounds import Rows

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

SEED: Final = 66
RUNS: Final = (4000, 400)
"""Pairs of agents a row, and with --quick."""
FAMILIES: Final = (600, 60)
SPREADS: Final = (0.0, 1.0, 2.0)
EQUAL: Final = ((0.5, 100), (0.5, 300), (0.8, 300), (0.95, 300), (0.7, 1000))
"""Rates of both agents, and common arenas."""
OPPOSITE: Final = (("one half of the arenas each", 0.5), ("one tenth", 0.1), ("one of 50", 0.02))
"""What each of two agents alone passes, always; of the rest both pass or fail the same."""
UNEQUAL: Final = ((0.7, 0.5, 100), (0.9, 0.75, 100), (0.8, 0.5, 40), (0.6, 0.5, 300))
ALIKE: Final = ((0.5, 0.25), (0.8, 0.5), (0.9, 0.5), (0.95, 0.5))
"""Rates of both, and how many are to be found alike."""
MARGINAL: Final = ((0.55, 0.45), (0.85, 0.75), (1.0, 0.9))


def run(quick: bool) -> Rows:
    """Measure all of it.

    Args:
        quick: Fewer agents.
    """
    runs, families = RUNS[quick], FAMILIES[quick]
    rows: Rows = []

    def add(
        name: str,
        hits: Mask,
        least: float | None = None,
        most: float | None = None,
        by: float = 1.0,
    ) -> None:
        found = share(hits.tolist())
        one = Estimate(found.value / by, found.low / by, found.high / by)
        note = "" if least is None else "at least so much; elsewhere at most"
        rows.append(row(name, one, at_least=least, at_most=most, note=note))

    def new(number: int = 0) -> np.random.Generator:
        return np.random.default_rng([SEED, len(rows), number])

    for rate, arenas in EQUAL:
        for spread in SPREADS:
            drawn = _pairs(new(), rate, rate, spread, arenas, runs)
            add(f"equal at {rate:g}, spread {spread:g}, {arenas}: apart", _apart(drawn), most=ERROR)
    for words, part in OPPOSITE:
        for arenas, played in ((100, 100), (450, 300)):
            for balanced in (False, True):
                drawn = _opposite(new(), arenas, played, part, balanced, runs)
                order = "by paradigm" if balanced else "any order"
                name = f"opposite, {words}, {played} of {arenas}, {order}: apart"
                add(name, _apart(drawn), most=ERROR)
    for agents in (3, 5):
        drawn = [_family(new(k), agents, 100, k) for k in range(families)]
        add(f"{agents} equal agents: any two apart", np.array(drawn), most=ERROR)
    for one, other, arenas in UNEQUAL:
        for spread in SPREADS:
            drawn = _pairs(new(), one, other, spread, arenas, runs)
            best = float(_oracle(drawn, *_logits(one, other, spread)).mean())
            name = f"{one:g} against {other:g}, spread {spread:g}, {arenas}: power by {best:.2f}"
            add(name, _apart(drawn), least=0.9, by=best)
    for rate, least in ALIKE:
        for spread in SPREADS[:2]:
            drawn = _pairs(new(), rate, rate, spread, 300, runs)
            add(f"equal at {rate:g}, spread {spread:g}, 300: alike", _alike(drawn), least=least)
    for one, other in MARGINAL:
        drawn = _pairs(new(), one, other, 0.0, 300, runs)
        add(f"{one:g} against {other:g}, 300: alike", _alike(drawn), most=ERROR)
    return rows


def _logits(one: float, other: float, spread: float) -> tuple[float, float]:
    """What arenas' logits are moved by for agents of these rates."""
    points, weights = np.polynomial.hermite_e.hermegauss(60)
    grid = np.linspace(-12.0, 12.0, 4801)
    rates = expit(grid[:, None] + spread * points) @ (weights / weights.sum())
    return float(np.interp(one, rates, grid)), float(np.interp(other, rates, grid))


def _pairs(
    generator: np.random.Generator, one: float, other: float, spread: float, arenas: int, runs: int
) -> Floats:
    """Differences of two agents' outcomes, (runs, arenas)."""
    z = spread * generator.standard_normal((runs, arenas))
    first, second = (
        generator.random((runs, arenas)) < expit(z + move) for move in _logits(one, other, spread)
    )
    return first.astype(np.float64) - second


def _opposite(
    generator: np.random.Generator, arenas: int, played: int, part: float, balanced: bool, runs: int
) -> Floats:
    """Differences of agents with equal rates that pass the arenas of different paradigms."""
    each = round(part * arenas)
    signs = np.zeros(arenas)
    signs[:each], signs[each : 2 * each] = 1.0, -1.0
    if not balanced:
        return generator.permuted(np.tile(signs, (runs, 1)), axis=1)[:, :played]
    kinds = [str(sign) for sign in signs]
    few = min(runs, 1000)
    return np.array([signs[common_instances(kinds, played, generator)] for _ in range(few)])


def _family(generator: np.random.Generator, agents: int, arenas: int, number: int) -> bool:
    """Whether any two of equal agents are told apart, ever, since p-values remember."""
    z = SPREADS[number % 3] * generator.standard_normal(arenas)
    passed: list[list[bool]] = (generator.random((agents, arenas)) < expit(z)).tolist()
    shown: dict[str, Outcomes] = {str(k): each for k, each in enumerate(passed)}
    return any(found.apart for found in compare_all(shown).values())


def _apart(differences: Floats) -> Mask:
    arenas = differences.shape[1]
    signs = (1.0, -1.0)
    ahead, behind = ((sign * differences > 0).astype(np.int64).cumsum(axis=1) for sign in signs)
    return log_capital(ahead, behind, arenas).max(axis=1) >= _needed(arenas)


@lru_cache
def _needed(arenas: int) -> float:
    """Logarithm of the capital that tells agents apart."""
    low, high = 0.0, float(-np.log(ERROR))
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if chance_of_growth(arenas, middle) <= ERROR else (middle, high)
    return high


def _alike(differences: Floats) -> Mask:
    both = [log_alike(sign * differences, MARGIN).max(axis=1) for sign in (1.0, -1.0)]
    return np.minimum(*both) >= -np.log(ERROR)


def _oracle(differences: Floats, one: float, other: float) -> Mask:
    """Whether who knows the odds of either agent's passing alone tells them apart."""
    bet = np.tanh(0.5 * (one - other))
    growth = [np.cumsum(np.log1p(sign * bet * differences), axis=1) for sign in (1.0, -1.0)]
    return np.logaddexp(*growth).max(axis=1) >= np.log(2.0 / ERROR)
