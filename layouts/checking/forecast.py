"""What a posterior says of instances that were not played: which are passed, and which would tell.

The instances that would tell most are chosen one after another, each allowing for those before it,
by the best guess of the capabilities that is linear in the outcomes (as in
`layouts.adaptive.information`). Outcomes are independent given the agent, so that the covariance
of two is the covariance of their expectations over the draws. Counts and scores are taken as
successes with the probability of their mean share, which is a little less than they tell.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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
"""Instances that are compared for what they would tell together: those that tell most alone."""
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
        telling: The few instances that together would tell most, in the order to play them.
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
    """Predict instances, and choose those that would tell most.

    Args:
        layout: The layout.
        draws: (draws, latents) of the posterior, which weigh the same.
        features: (instances, features), in the layout's order and units; one at least.
        groups: The group of each instance, for example its paradigm.
        most: How many instances to choose.
        without: Rows that are not chosen, because they were played.
    """
    theta = draws[:: max(1, len(draws) // DRAWS)]
    evaluator = Evaluator(layout)
    p = evaluator.by_instance(theta, evaluator.columns(features), np.float64)
    by_group = {
        name: np.array([name == group for group in groups]) for name in dict.fromkeys(groups)
    }
    return BatteryForecast(
        predict(layout, draws, features),
        _passed(p, 0),
        {name: _passed(p[rows], k + 1) for k, (name, rows) in enumerate(by_group.items())},
        _most_telling(layout, theta, p, most, without),
    )


def _passed(p: Floats, key: int) -> Estimate:
    """How many of some instances are passed: both the agent and its luck are uncertain."""
    expected = p.sum(axis=0)
    spread: Floats = np.sqrt((p * (1.0 - p)).sum(axis=0))
    luck: Floats = rng(0, "forecast", key).standard_normal((8, len(expected)))
    counts: Floats = expected + spread * luck
    drawn: Floats = np.clip(counts.round(), 0.0, float(len(p))) + 0.0  # no negative zero
    tail = (1.0 - INTERVAL_SHARE) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail], method="nearest")
    return Estimate(float(expected.mean()), float(low), float(high))


def _most_telling(
    layout: Layout, theta: Floats, p: Floats, most: int, without: Collection[int]
) -> list[InformativeInstance]:
    measured = layout.capabilities or tuple(range(len(layout.latents)))
    nodes = [layout.latents[i] for i in measured]
    span = np.array([node.prior.span for node in nodes])
    ability = theta[:, list(measured)] - theta[:, list(measured)].mean(axis=0)
    variance = (ability**2).mean(axis=0)
    mean = p.mean(axis=1)
    rows = np.array([row for row in range(len(p)) if row not in set(without)], np.int64)
    if not len(rows):
        return []
    apart = p[rows] - mean[rows, np.newaxis]
    noise = (p[rows] * (1.0 - p[rows])).mean(axis=1)
    shared = apart @ ability / len(theta)
    alone = (shared**2 / np.maximum(noise + (apart**2).mean(axis=1), _LEAST)[:, None]) @ span**-2.0
    kept = np.sort(np.argsort(-alone, kind="stable")[:CANDIDATES])
    rows, shared = rows[kept], shared[kept]
    together = apart[kept] @ apart[kept].T / len(theta)
    noise = noise[kept]
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
