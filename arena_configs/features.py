"""Meta-features of the AAIO layout (Burden et al. 2023, Table 2) from where things stand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.placement import PlacedObject, Placement

IN_FRONT: Final = 50.0
"""Degrees off the heading up to which the reward is in front: half the camera's view of 100."""
BEHIND: Final = 130.0
"""Degrees off the heading from which the reward is behind: as wide a sector as the one in front.

On the 69 instances of the layout every reward is within 34 degrees of the heading or beyond 135,
so the values do not hang on where the lines are drawn.
"""
CENTRED: Final = 5.0
"""Degrees off the line of the heading up to which the reward is neither left nor right.

On the 69 instances rewards are within 1 degree of that line or at least 14 degrees off it.
"""


class Feature(NamedTuple):
    """What a meta-feature means.

    Attributes:
        unit: Its unit; "" for a code.
        description: What it says.
    """

    unit: str
    description: str


FEATURES: Final[Mapping[str, Feature]] = MappingProxyType(
    {
        "rewardDistance": Feature(
            "m", "Euclidean distance from the centre of the agent at its start to the reward's"
        ),
        "rewardSize": Feature("m", "diameter of the reward, 0.5 to 5, before Unity's 0.1 % off"),
        "rewardBehind": Feature(
            "",
            "0: the reward is in front (within 50 degrees of the heading), 1: behind (beyond "
            "130 degrees), 0.5: to a side",
        ),
        "XPos": Feature(
            "",
            "-1: the reward is to the left of the line of the heading, 1: to the right, "
            "0: within 5 degrees of it",
        ),
    }
)
"""Name -> unit and description of everything that `aaio_features` gives."""


def aaio_features(placement: Placement) -> dict[str, float]:
    """Meta-features of an instance, as it was placed.

    The reward is the nearest object that gives a positive reward; further ones do not count.

    Args:
        placement: An arena with everything in its place.

    Raises:
        ArenaError: There is no such object, so the features have no meaning.
    """
    reward = nearest_reward(placement)
    if reward is None:
        raise ArenaError(
            "no reward in the arena: its features are about the nearest object that gives one"
        )
    angle = bearing(placement, reward)
    away = abs(angle)
    behind = 0.0 if away <= IN_FRONT else 1.0 if away >= BEHIND else 0.5
    side = 0.0 if min(away, 180.0 - away) <= CENTRED else math.copysign(1.0, angle)
    return {
        "rewardDistance": math.dist(placement.agent.position, reward.position),
        "rewardSize": asked_size(reward),
        "rewardBehind": behind,
        "XPos": side,
    }


def nearest_reward(placement: Placement) -> PlacedObject | None:
    """The nearest goal that gives a positive reward, or None."""
    rewards = [thing for thing in placement.objects if thing.kind.goal and thing.reward > 0]
    start = placement.agent.position
    return min(rewards, key=lambda thing: math.dist(start, thing.position), default=None)


def asked_size(thing: PlacedObject) -> float:
    """A ball's diameter in metres as its item asks for it, within the limits of its kind."""
    item, kind = thing.item, thing.kind
    asked = item.sizes[0].x if item.sizes else item.initial_values[0]
    return min(max(asked, kind.size_min.x), kind.size_max.x)


def bearing(placement: Placement, thing: PlacedObject) -> float:
    """Degrees from the agent's heading to an object, clockwise, in [-180, 180)."""
    start = placement.agent
    direction = math.atan2(thing.position.x - start.position.x, thing.position.z - start.position.z)
    return (math.degrees(direction) - start.yaw + 180.0) % 360.0 - 180.0
