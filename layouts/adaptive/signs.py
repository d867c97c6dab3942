"""Whether success goes with what is asked for the wrong way round, as where a failure is a 1."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.seen import parts_of
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.model.likelihood import as_shares
from animalcat.layouts.model.spec import Layout
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]

CHANCE: Final = 0.005
"""Probability, at most, that anything is said of an agent whose success no demand moves."""
_ALIKE: Final = 0.95
"""Rank correlation from which on two demands cannot be told apart."""
_OWN: Final = 1e-9
"""Share of a demand's variance that is its own, however alike others are."""
_LEAST: Final = 5.0
"""Least degrees of freedom with which a sign is judged."""


def wrong_way_round(
    layout: Layout, features: Floats, outcomes: Floats, weights: Floats | None = None
) -> str:
    """Which demands are met more often where more is asked for, in a sentence; empty for none.

    Of each demand, and of all together, it is the rank correlation with the outcomes over the
    instances, beside all other demands (partial), by a one-sided test. It has to be positive
    without the others too: demands that go against each other by design would mislead either alone.

    Args:
        layout: The layout.
        features: (instances, features), in the layout's order and units.
        outcomes: (instances,) or (instances, outcomes); NaN where there is none.
        weights: (instances,): how many outcomes each counts as; None for one each.
    """
    evaluator = Evaluator(layout)
    columns = evaluator.columns(features)
    shares = as_shares(layout, columns, outcomes)
    asked = np.nan_to_num(evaluator.demands(columns), nan=-np.inf)
    parts = parts_of(layout)[np.array(layout.capabilities, np.int64)]
    names = [layout.latent_names[k] for k in layout.capabilities]
    wrong: list[str] = []
    for own, y in zip(parts.T, shares.T, strict=True):
        there = np.isfinite(y) & (True if weights is None else weights > 0.0)
        w = np.ones(int(there.sum())) if weights is None else weights[there]
        if not len(w):
            continue
        demands = np.array([_standard(column, w) for column in asked[there][:, own].T]).T
        result = _standard(y[there], w)
        tests = {name: (demands, k) for k, name in enumerate(np.array(names)[own].tolist())}
        if len(tests) > 1:
            tests["all together"] = _standard(demands.sum(axis=1), w)[:, np.newaxis], 0
        for name, (ranks, k) in tests.items():
            p, r = _sign(ranks, result, w, k)
            if p < CHANCE / len(tests) / len(shares.T):
                wrong.append(f"{name} (rank correlation {r:+.2f} over {w.sum():.0f})")
    if not wrong:
        return ""
    return (
        f"What asks for more is passed more often, the wrong way round and more than by chance: "
        f"{', '.join(wrong)}. Is 1 a failure in these outcomes, or more on that scale easier? If "
        "neither, the layout does not describe this agent"
    )


def wrong_signs(layout: Layout, table: OutcomeTable) -> list[str]:
    """What `wrong_way_round` says of each agent of a table of which it says anything."""
    features = table.instances.features(layout)
    said = [wrong_way_round(layout, features, own) for own in table.outcomes]
    return [f"{who}: {words}" for who, words in zip(table.agents, said, strict=True) if words]


def _sign(demands: Floats, result: Floats, w: Floats, k: int) -> tuple[float, float]:
    """Probability of so high a partial rank correlation if there is none, and it; 1 if too few."""
    ranks = np.column_stack([demands, result])
    alike = portable.dot((ranks * (w / w.sum())[:, np.newaxis]).T, ranks)
    others = [i for i in range(len(demands.T)) if i != k and alike[i, i] > 0.0]
    if any(alike[k, i] < -_ALIKE for i in others) or not alike[k, -1] > 0.0:
        return 1.0, 0.0
    others = [i for i in others if alike[k, i] <= _ALIKE]
    free = float(w.sum()) - 2.0 - len(others)
    if free < _LEAST:
        return 1.0, 0.0
    pair = [k, -1]
    rest: Floats = alike[np.ix_(pair, pair)]
    if others:
        # Demands may follow from each other, so each is taken to have a little of its own.
        own = alike[np.ix_(others, others)] + _OWN * np.eye(len(others))
        both: Floats = alike[np.ix_(others, pair)]
        rest = rest - portable.dot(both.T, portable.solve(own, both))
    scale = float(np.sqrt(max(rest[0, 0] * rest[1, 1], 0.0)))
    r = float(rest[0, 1]) / scale if scale > _OWN else 0.0
    # Half of the two-sided probability of Student's t with so many degrees of freedom.
    beyond = float(portable.betainc(0.5 * free, 0.5, max(1.0 - r * r, 0.0)))
    return (0.5 * beyond if r > 0.0 else 1.0 - 0.5 * beyond), r


def _standard(values: Floats, weights: Floats) -> Floats:
    """Ranks with mean 0 and variance 1; all 0 where values are equal."""
    _, place, many = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(many) - 0.5 * many)[place]
    ranks -= float(portable.dot(weights, ranks)) / weights.sum()
    sd = float(np.sqrt(float(portable.dot(weights, ranks**2)) / weights.sum()))
    return ranks / sd if sd > 0.0 else ranks
