"""Meta-features of hiding: when, how long and by what a reward is out of sight.

They are measured by playing (`animalcat.envs.measure`), since goals roll, fall and bounce. They are
about the reward that is hidden longest from an agent that stands still; if none is hidden so, about
the goal, the nearest reward by way.
"""

from __future__ import annotations

import math
from typing import Final

from animalcat.arena_configs.features.definition import ALONG_WAY, FeatureDefinition


def _row(
    name: str,
    unit: str,
    description: str,
    low: float = 0.0,
    high: float = math.inf,
    version: int = 1,
) -> FeatureDefinition:
    return FeatureDefinition(name, unit, description, None, low, high, "hiding", version)


HIDING: Final = (
    _row(
        "occluderPresence",
        "",
        "1: a reward is seen and then hidden, by itself or because the agent moves",
        high=1.0,
        version=ALONG_WAY,
    ),
    _row(
        "timeUnderOcc",
        "s",
        "the longer of the times for which the goal is hidden from an agent that stands still and "
        "from one that moves along its way",
        version=ALONG_WAY,
    ),
    _row(
        "numPositions",
        "",
        "places besides its own where the hidden goal could be as well; 1 if there is none",
        low=1.0,
        version=ALONG_WAY,
    ),
    _row(
        "goalTravel",
        "m",
        "how far from its place the goal comes to rest while the agent stands still",
    ),
    _row(
        "hiddenStanding",
        "s",
        "how long the goal is hidden from an agent that stands still: from the last moment that a "
        "twentieth of its disc shows to the first that it shows again, or to the first at which "
        "an agent that goes and looks could see it; 0: never",
    ),
    _row(
        "hiddenFrom",
        "s",
        "when the goal is last seen before it is hidden from an agent that stands still",
    ),
    _row(
        "hiddenMoving",
        "s",
        "how long the goal, at rest, is out of sight on the agent's way after it was seen; 0: "
        "never",
        version=ALONG_WAY,
    ),
    _row(
        "hidingPlaces",
        "",
        "places where the hidden goal could be, its own among them, each out of sight from where "
        "the agent last saw it",
        low=1.0,
        version=ALONG_WAY,
    ),
    _row(
        "lastPlaceShows",
        "",
        "1: an agent that goes to where it last saw the goal, while it stood still, sees the goal "
        "there or on the way, and can still get to it; 0: the goal has moved on",
        high=1.0,
    ),
    _row(
        "decoysHidden",
        "",
        "goals that give nothing, seen and then hidden from an agent that stands still",
    ),
)
