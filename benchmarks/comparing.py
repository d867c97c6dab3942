"""Whether two agents, or several, are told apart or called alike as often as they may and could.

Outcomes are drawn from known probabilities: arenas' logits are normal, those of an agent are moved
by what gives its rate. The rule looks after every arena. Its power stands beside that of an oracle,
who bets what is best on the true probabilities, on either side, and needs twentyfold. The seed is
that of numpy's generator, `SEED` and the row's number; intervals are exact ones of 90 %.

Then the success rate: intervals of draws for it (the policy "rate") stand beside those of a plain
random subset of the same kind. An arena's logit is the sum of three levels. A logistic regression
on them stands for the layout and is learnt in the run; agents' mean logits are normal with SD 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from animalcat.layouts.adaptive.battery_rate import BatteryRate, RateBettor, Wager, battery_rate
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
from animalcat.portable import arrays as portable
from benchmarks.curves import Estimate, bootstrap, row, share
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
RATED: Final = (2188, 100)
"""Arenas of a battery whose success rate is wanted, and how many of them are drawn."""
RATE_RUNS: Final = (150, 2)
LEVELS: Final = (
    ("2 logits", 2.0, 0.0, 1.0, 0.9),
    ("1 logit", 1.0, 0.0, 1.0, 0.95),
    ("1 logit and noise of 1", 1.0, 1.0, 1.0, 1.1),
    ("1 logit, another annotator", 1.0, 0.0, 0.7, 1.1),
)
"""By how much arenas differ by their levels, and besides; how the levels that are known correlate
with the true ones; and how wide an interval may be, beside a plain subset's."""


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
    return rows + [one for levels in LEVELS for one in _rate_rows(*levels, RATE_RUNS[quick])]


def _rate_rows(
    words: str, spread: float, noise: float, likeness: float, most: float, runs: int
) -> Rows:
    """Widths of intervals beside those of a plain subset, and how many contain the rate."""
    found: list[list[tuple[float, bool]]] = []
    for run in range(runs):
        generator = np.random.default_rng([SEED, *words.encode(), run])
        levels, others = generator.standard_normal((2, RATED[0], 3))
        ease = generator.standard_normal() + noise * generator.standard_normal(RATED[0])
        passed = generator.random(RATED[0]) < expit(ease + spread / 3**0.5 * levels.sum(axis=1))
        known = likeness * levels + (1.0 - likeness**2) ** 0.5 * others
        rates = [*_rates(generator, passed, known), *_rates(generator, passed, None)]
        ends = [(rate.low or 0.0, rate.high or 0.0) for rate in rates]
        held = [low - 1e-9 <= passed.mean() <= high + 1e-9 for low, high in ends]
        found.append([(high - low, h) for (low, high), h in zip(ends, held, strict=True)])
    widths, held = np.moveaxis(np.array(found), 2, 0)
    made: Rows = []
    for k, kind in enumerate(("fixed number", "any time")):
        name = f"rate, {RATED[1]} of {RATED[0]:,}, {words}, {kind}"
        ratio = bootstrap(runs, lambda i, k=k: float(widths[i, k].mean() / widths[i, 2 + k].mean()))
        note = f"{runs} runs; a plain subset's is {widths[:, 2 + k].mean():.3f} wide"
        made.append(row(f"{name}: width", ratio, at_most=most, note=note))
        covers = share((held[:, k] > 0.0).tolist())
        made.append(row(f"{name}: covers", covers, at_least=0.88, lower=True, note=f"{runs} runs"))
    return made


def _rates(
    generator: np.random.Generator, passed: Mask, levels: Floats | None
) -> list[BatteryRate]:
    """What draws say of the rate at a number set beforehand, and at any time; even ones: None."""
    size, draws = RATED
    bettor, left = RateBettor(size, draws, weighing=levels is not None), np.arange(size)
    plays: list[tuple[Wager, bool]] = []
    told, p = list[int](), np.full(size, 0.5)
    for before in range(draws):
        odds = np.sqrt(p[left] * (1.0 - p[left]))
        odds = 0.7 * odds / odds.sum() + 0.3 / len(left)
        at = int(generator.choice(len(left), p=odds))
        told.append(int(left[at]))
        plays.append((bettor.wager(p[left], odds, at, before), bool(passed[told[-1]])))
        bettor.learn(float(p[told[-1]]), plays[-1][1])
        left = np.delete(left, at)
        p = p if levels is None else _regress(levels, told, passed[told])
    by = [[(wager._replace(planned=n), won) for wager, won in plays] for n in (draws, 0)]
    return [battery_rate(size, each, 0.0) for each in by]


def _regress(levels: Floats, told: list[int], passed: Mask) -> Floats:
    """Chances by a logistic regression with standard normal priors, (arenas,)."""
    x: Floats = np.column_stack([np.ones(len(levels)), levels])
    seen = x[told]
    weights: Floats = np.zeros(4)
    inverse: Floats = np.eye(4)
    for _ in range(6):
        p = portable.expit(seen @ weights)
        precision = np.eye(4) + (seen.T * (p * (1.0 - p))) @ seen
        inverse = np.asarray(np.linalg.inv(precision), np.float64)
        weights += inverse @ (seen.T @ (passed - p) - weights)
    doubt = np.einsum("ij,jk,ik->i", x, inverse, x)
    return portable.expit(x @ weights / np.sqrt(1.0 + np.pi / 8.0 * doubt))


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
