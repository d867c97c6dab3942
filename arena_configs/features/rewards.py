"""Meta-features of rewards: sizes, values over time, and which order gives most."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from animalcat.arena_configs.features.definition import FeatureDefinition, Reading
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.placement import PlacedObject
from animalcat.arena_configs.returns import CHANGING, best_value
from animalcat.arena_configs.rewarding import MOST_REWARDS, RewardOrder
from animalcat.arena_configs.routes import STEP_SECONDS


def _values(survey: Survey) -> list[float]:
    things = survey.placement.objects
    return [best_value(thing) for thing in things if thing.kind.goal and best_value(thing) > 0.0]


def _of_values(
    reading: Callable[[Iterable[float]], float],
) -> Callable[[Survey], Reading]:
    def read(survey: Survey) -> Reading:
        values = _values(survey)
        return reading(values) if values else "no reward"

    return read


def _bad(survey: Survey) -> float:
    return sum((-t.reward for t in survey.placement.objects if t.kind.reward == "bad"), 0.0)


def _changing(survey: Survey) -> list[PlacedObject]:
    return [thing for thing in survey.placement.objects if thing.kind.reward in CHANGING]


def _final(thing: PlacedObject) -> float:
    """A changing goal's value at the end; one with a timer only loses value, as builds ship it."""
    final = min(max(thing.item.final_values[0], 0.0), thing.kind.size_max.x)
    return final if thing.kind.reward == "size" else min(final, thing.reward)


def _per_second(thing: PlacedObject) -> float:
    """Change of value for each second while it changes; 0 if it begins at its last value."""
    if math.isclose(_final(thing), thing.reward):
        return 0.0
    return math.copysign(
        abs(thing.item.change_rates[0]) / STEP_SECONDS, _final(thing) - thing.reward
    )


def _gain(survey: Survey) -> float:
    return sum((max(0.0, _final(t) - t.reward) for t in _changing(survey)), 0.0)


def _loss(survey: Survey) -> float:
    return sum((max(0.0, t.reward - _final(t)) for t in _changing(survey)), 0.0)


def _rate(survey: Survey) -> float:
    return max((_per_second(thing) for thing in _changing(survey)), key=abs, default=0.0)


def _of_order(reading: Callable[[RewardOrder], float]) -> Callable[[Survey], Reading]:
    def read(survey: Survey) -> Reading:
        order = survey.order
        return order if isinstance(order, str) else reading(order)

    return read


def _row(
    name: str,
    unit: str,
    description: str,
    measure: Callable[[Survey], Reading],
    low: float = 0.0,
) -> FeatureDefinition:
    return FeatureDefinition(name, unit, description, measure, low, math.inf, "rewards")


REWARDS: Final = (
    _row("largestReward", "", "the most that one reward gives, now or later", _of_values(max)),
    _row("smallestReward", "", "the least that any reward gives at its best", _of_values(min)),
    _row("badSum", "", "what the bad goals take together", _bad),
    _row(
        "gainByWaiting",
        "",
        "what changing rewards gain together if the agent waits until they stop to grow",
        _gain,
    ),
    _row(
        "lossByWaiting",
        "",
        "what changing rewards lose together if the agent waits until they stop to shrink",
        _loss,
    ),
    _row(
        "valueRate",
        "1/s",
        "change of a reward's value for each second, of the one that changes fastest; below 0 if "
        "it loses",
        _rate,
        low=-math.inf,
    ),
    _row(
        "bestReturn",
        "",
        f"return of the best order of rewards, every order of up to {MOST_REWARDS} tried, along "
        "safe ways run at full thrust; turning takes no time in it",
        _of_order(lambda order: order.best_return),
        low=-math.inf,
    ),
    _row(
        "orderGain",
        "",
        "by how much that is more than always taking the nearest reward that is left",
        _of_order(lambda order: max(0.0, order.best_return - order.near_return)),
    ),
    _row(
        "rewardsInBestOrder",
        "",
        "rewards that the best order takes",
        _of_order(lambda order: float(len(order.best))),
    ),
)
