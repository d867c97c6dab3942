"""What a posterior says of instances that were not played: which are passed, and which would tell.

The most informative instances are chosen one after another, each allowing for those before it,
by the best guess of the capabilities that is linear in the outcomes (as in
`layouts.adaptive.information`). Outcomes are independent given the agent, so that the covariance
of two is the covariance of their expectations over the draws. Counts and scores are taken as
successes with the probability of their mean share, which is a little less than they tell.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.predict import Prediction, predict
from animalcat.layouts.checking.scores import INTERVAL_SHARE, Estimate
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]

DRAWS: Final = 1000
"""Draws from which totals and gains are computed."""
CANDIDATES: Final = 400
"""How many instances are compared for what they would tell together: the best alone."""
_ROWS: Final = 5000
"""Instances that are predicted at a time, so that arrays stay small."""
_LEAST: Final = 1e-9


@dataclass(frozen=True)
class InformativeInstance:
    """An instance that would tell much about a capability if it was played.

    Attributes:
        row: Its row among the instances.
        node: The capability whose variance it would lower most, as a share of its range.
        before: Expected standard deviation of that capability before it is played, after those
            chosen before it.
        after: Expected standard deviation after it.
    """

    row: int
    node: str
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class BatteryForecast:
    """What a posterior predicts of the instances of a battery.

    Attributes:
        each: Predictions for every instance.
        passed: Expected number of instances passed, with the interval of the number itself.
        groups: The same by group.
        telling: The few instances that together are most informative, in the order to play them.
    """

    each: Prediction
    passed: Estimate
    groups: Mapping[str, Estimate]
    telling: Sequence[InformativeInstance]


def forecast(
    layout: Layout,
    draws: Floats,
    features: Floats,
    groups: Sequence[str],
    *,
    most: int = 5,
    without: Collection[int] = (),
) -> BatteryForecast:
    """Predict instances, and choose those that would be most informative.

    Args:
        layout: The layout.
        draws: (draws, latents) of the posterior, which weigh the same.
        features: (instances, features), in the layout's order and units; one at least.
        groups: The group of each instance, for example its paradigm.
        most: How many instances to choose.
        without: Rows that are not chosen, because they were played.
    """
    theta = draws[:: max(1, len(draws) // DRAWS)]
    theta.flags.writeable = False  # so that what depends on it alone is computed once
    evaluator = Evaluator(layout)
    blocks = partial(_blocks, evaluator, theta, features)
    kinds = {name: k for k, name in enumerate(dict.fromkeys(groups))}
    kind = np.array([kinds[name] for name in groups])
    sums = np.zeros((2, len(kinds) + 1, len(theta)))  # expected numbers, and variances by luck
    for part, p in blocks():
        luck = p * (1.0 - p)
        for k in range(len(kinds) + 1):
            rows = slice(None) if not k else kind[part] == k - 1
            sums[0, k] += p[rows].sum(axis=0)
            sums[1, k] += luck[rows].sum(axis=0)
    counts = [len(kind), *np.bincount(kind, minlength=len(kinds)).tolist()]
    passed = [_estimate_passes(sums[0, k], sums[1, k], count, k) for k, count in enumerate(counts)]
    return BatteryForecast(
        predict(layout, draws, features),
        passed[0],
        dict(zip(kinds, passed[1:], strict=True)),
        _most_telling(layout, theta, blocks, most, without),
    )


def _blocks(
    evaluator: Evaluator, theta: Floats, features: Floats
) -> Generator[tuple[slice, Floats]]:
    """Probabilities of success, (instances of a block, draws), and which instances they are."""
    for start in range(0, len(features), _ROWS):
        part = slice(start, start + _ROWS)
        yield part, evaluator.by_instance(theta, evaluator.columns(features[part]), np.float64)


def _estimate_passes(expected: Floats, variance: Floats, of: int, key: int) -> Estimate:
    """How many of some instances are passed: both the agent and its luck are uncertain.

    Args:
        expected: (draws,): how many are expected.
        variance: (draws,): of their number, by luck.
        of: How many there are.
        key: Keys the randomness.
    """
    spread: Floats = np.sqrt(variance)
    luck: Floats = rng(0, "forecast", key).standard_normal((8, len(expected)))
    counts: Floats = expected + spread * luck
    drawn: Floats = np.clip(counts.round(), 0.0, float(of)) + 0.0  # no negative zero
    tail = (1.0 - INTERVAL_SHARE) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail], method="nearest")
    return Estimate(float(expected.mean()), float(low), float(high))


def _most_telling(
    layout: Layout,
    theta: Floats,
    blocks: Callable[[], Iterable[tuple[slice, Floats]]],
    most: int,
    without: Collection[int],
) -> list[InformativeInstance]:
    measured = layout.capabilities or tuple(range(len(layout.latents)))
    nodes = [layout.latents[i] for i in measured]
    span = np.array([node.prior.span for node in nodes])
    ability = theta[:, list(measured)] - theta[:, list(measured)].mean(axis=0)
    variance = (ability**2).mean(axis=0)
    # Of each block, those that are most informative alone, and then the best of all blocks.
    left_out = set(without)
    found: list[tuple[npt.NDArray[np.int64], Floats, Floats, Floats, Floats]] = []
    for part, p in blocks():
        last = part.start + len(p)
        rows = np.array([row for row in range(part.start, last) if row not in left_out], np.int64)
        p = p[rows - part.start]
        apart = p - p.mean(axis=1)[:, np.newaxis]
        noise = (p * (1.0 - p)).mean(axis=1)
        shared = apart @ ability / len(theta)
        total = np.maximum(noise + (apart**2).mean(axis=1), _LEAST)
        alone = (shared**2 / total[:, None]) @ span**-2.0
        kept = np.sort(np.argsort(-alone, kind="stable")[:CANDIDATES])
        found.append((rows[kept], alone[kept], noise[kept], shared[kept], apart[kept]))
    rows, alone, noise, shared, apart = (np.concatenate(each) for each in zip(*found, strict=True))
    if not len(rows):
        return []
    kept = np.sort(np.argsort(-alone, kind="stable")[:CANDIDATES])
    rows, noise, shared, apart = rows[kept], noise[kept], shared[kept], apart[kept]
    together = apart @ apart.T / len(theta)
    chosen: list[InformativeInstance] = []
    free = np.ones(len(rows), np.bool_)
    while free.any() and len(chosen) < most:
        total = np.maximum(np.diagonal(together) + noise, _LEAST)
        drops = shared**2 / total[:, np.newaxis]
        gain = np.where(free, drops @ span**-2.0, -np.inf)
        best = int(np.argmax(gain))
        if gain[best] <= 0.0:
            break
        k = int(np.argmax(drops[best] * span**-2.0))
        left = np.maximum(variance - drops[best], 0.0)
        before, after = float(variance[k] ** 0.5), float(left[k] ** 0.5)
        chosen.append(InformativeInstance(int(rows[best]), nodes[k].name, before, after))
        variance = left
        told = together[best] / total[best]
        shared = shared - np.outer(told, shared[best])
        together = together - np.outer(told, together[best])
        free[best] = False
    return chosen
