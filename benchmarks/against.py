"""How often equal agents are told apart, and how many episodes it takes to tell others apart.

Two agents play the same arenas, which differ in how hard they are. With a fixed number of pairs, an
exact test looks once, at the end. A session looks after every pair and ends as soon as the e-value
decides, at the latest after the same number of pairs.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from scipy.stats import binomtest

from animalcat.layouts.adaptive.paired import DECISIVE, ERROR, Floats, e_value

PAIRS: Final = (50, 100, 200)
"""Numbers of pairs that a fixed plan would play."""
RUNS: Final = 2000
POWER: Final = 0.8
"""With which the fixed plan finds the effect that it is made for."""
LARGER: Final = 1.5
"""The other effect, in units of that one."""
MOST_EQUAL: Final = 83
"""Most of 2,000 equal pairs of agents that may be called different."""
SEED: Final = 20


class Runs(NamedTuple):
    """What many comparisons came to.

    Attributes:
        apart: (runs,), whether the agents were told apart.
        pairs: (runs,), pairs played until then, or all.
    """

    apart: Floats
    pairs: Floats


def differences(effect: float, pairs: int, runs: int, seed: int) -> Floats:
    """Draw differences of outcomes, (runs, pairs).

    The first agent passes arena i with probability p_i, logistic of a normal with SD 2; the second
    one with the logit less a constant that makes the mean probability `effect` lower.
    """
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.5, 2.0, (runs, pairs))
    first = 1.0 / (1.0 + np.exp(-logits))

    def other(shift: float) -> Floats:
        return 1.0 / (1.0 + np.exp(shift - logits))

    low, high = 0.0, 20.0
    for _ in range(50):
        shift = (low + high) / 2
        low, high = (shift, high) if (first - other(shift)).mean() < effect else (low, shift)
    second = other((low + high) / 2)
    drawn = rng.random((2, runs, pairs))
    return (drawn[0] < first).astype(float) - (drawn[1] < second)


def fixed_power(found: Floats) -> float:
    """Share of runs in which an exact test of all pairs, at 5 %, tells the agents apart."""
    ahead, behind = (found > 0).sum(axis=1), (found < 0).sum(axis=1)
    kinds, index = np.unique(np.stack([ahead, behind]), axis=1, return_inverse=True)
    apart = [
        bool(n) and binomtest(int(a), int(n)).pvalue <= ERROR
        for a, n in zip(kinds[0], kinds.sum(axis=0), strict=True)
    ]
    return float(np.array(apart)[index].mean())


def sequential(found: Floats) -> Runs:
    """Look after every pair."""
    runs, most = found.shape
    apart, pairs = np.zeros(runs), np.full(runs, float(most))
    known: dict[tuple[int, int], bool] = {}
    for run, row in enumerate(found):
        ahead, behind = np.cumsum(row > 0), np.cumsum(row < 0)
        for n in np.flatnonzero(row):
            counts = int(ahead[n]), int(behind[n])
            if counts not in known:
                known[counts] = e_value(np.repeat([1.0, -1.0], counts)) >= DECISIVE
            if known[counts]:
                apart[run], pairs[run] = 1.0, n + 1.0
                break
    return Runs(apart, pairs)


def effect_of(pairs: int, runs: int, power: float = POWER) -> float:
    """The difference of success rates that the fixed plan finds with this power."""
    low, high = 0.0, 0.6
    for _ in range(12):
        effect = (low + high) / 2
        found = fixed_power(differences(effect, pairs, runs, SEED))
        low, high = (effect, high) if found < power else (low, effect)
    return (low + high) / 2


def run(quick: bool) -> list[dict[str, Any]]:
    """Compare equal and unequal agents; with `quick` a tenth of the runs."""
    runs = RUNS // 10 if quick else RUNS
    rows: list[dict[str, Any]] = []
    for pairs in PAIRS:
        equal = sequential(differences(0.0, pairs, runs, SEED + 1))
        called = int(equal.apart.sum())
        rows.append(
            {
                "name": f"equal agents called different, {pairs} pairs",
                "value": called / runs,
                "target": MOST_EQUAL / 2000,
                "aim": "at most",
                "met": called / runs <= MOST_EQUAL / 2000,
                "note": f"{called} of {runs}",
            }
        )
        effect = effect_of(pairs, runs)
        for times, target in ((1.0, 1.0), (LARGER, 0.7)):
            found = sequential(differences(times * effect, pairs, runs, SEED + 2))
            share = found.pairs / pairs
            error = 1.645 * share.std() / np.sqrt(runs)
            rows.append(
                {
                    "name": f"share of {pairs} pairs, {times:g} x effect",
                    "value": float(share.mean()),
                    "low": float(share.mean() - error),
                    "high": float(share.mean() + error),
                    "target": target,
                    "aim": "at most",
                    "met": bool(share.mean() + error <= target),
                    "note": f"rates differ by {times * effect:.3f}; "
                    f"told apart in {found.apart.mean():.0%}",
                }
            )
    return rows
