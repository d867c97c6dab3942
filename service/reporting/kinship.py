"""Which demands are nested by definition: one is computed from another, bounds it or contains it.

Such demands go together in any battery, so no choice of instances can take them apart. Families are
sets of demands that all depend on one quantity.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FAMILIES: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        what: frozenset(names)
        for what, names in {
            "how far the goal is": (
                *("rewardDistance", "goalDistance", "wayLength", "wayManhattan"),
                *("timeNeeded", "timeShare"),
            ),
            "how large the goal is": (
                *("rewardSize", "goalSize", "largestReward", "smallestReward", "rewardSum"),
                *("bestReturn", "greatestReturn"),
            ),
            "how far the goal is and how large it looks": (
                *("goalAngle", "rewardDistance", "goalDistance", "wayLength", "wayManhattan"),
            ),
            "how large the goal is and how large it looks": ("goalAngle", "rewardSize", "goalSize"),
            "length over distance": ("detour", "wayLength", "wayManhattan", "lavaDetour"),
            "on which side the goal is": (
                *("XPos", "rightLeftPosition", "goalSide", "goalBearing", "wayBearing"),
            ),
            "whether the goal is behind": (
                *("rewardBehind", "goalBehind", "goalBearing", "wayBearing", "goalInView"),
            ),
            "when the episode ends": ("timeLimit", "timeAllowed", "timeShare"),
            "what the rewards are worth": (
                *("rewards", "endingRewards", "raisedRewards", "bouncingRewards"),
                *("changingRewards", "rewardSum", "rewardsInBestOrder", "bestReturn"),
                *("orderGain", "greatestReturn", "largestReward", "smallestReward"),
            ),
            "how rewards change": (
                *("changingRewards", "gainByWaiting", "lossByWaiting", "valueRate"),
            ),
            "what the bad goals take": ("badGoals", "badSum", "leastReturn"),
            "how much reward hot zones can take": ("leastReturn", "hotZones", "hotOnWay"),
            "how much reward time can take": ("leastReturn", "timeLimit"),
            "decoys": ("decoys", "decoysHidden"),
            "what stands about": (
                *("obstacles", "transparentWalls", "movables", "ramps", "tunnels"),
                *("wallsInWay", "occluders", "wallColours"),
            ),
            "lava": (
                *("lava", "lavaPresence", "lavaInWay", "lavaStraight", "lavaShortest"),
                *("lavaDetour", "lavaToAvoid", "lavaMargin", "leastReturn"),
            ),
            "hot zones": ("hotZones", "hotOnWay"),
            "ramps": ("ramps", "rampPresence", "rampNeeded", "wayClimb"),
            "platforms": ("platformPresence", "platformNeeded", "wayClimb"),
            "tunnels": ("tunnels", "tunnelNeeded"),
            "what can be seen through": (
                *("transparentWalls", "transparentPresence", "glassInSight"),
            ),
            "what can be pushed": ("movables", "mustPush", "couldPush"),
            "choices for good": (*("drops", "choiceWays", "choiceRight", "choiceDistance"),),
            "what hides the goal": (
                *("goalSeen", "goalInView", "goalSeenAtChoice", "goalSeenOnWay", "occluders"),
                *("wallsInWay", "hiddenMoving", "occluderPresence", "lastPlaceShows"),
            ),
            "light": ("darkness", "darkFrom", "darkLongest", "darkAtChoice", "goalInView"),
            "how long the goal is hidden": (
                *("occluderPresence", "timeUnderOcc", "hiddenStanding", "hiddenFrom"),
                "hiddenMoving",
            ),
            "where the hidden goal could be": (
                *("occluderPresence", "numPositions", "hidingPlaces"),
            ),
            "colours": (
                *("wallRed", "wallGreen", "wallBlue", "wallColours"),
                *("occluderRed", "occluderGreen", "occluderBlue"),
            ),
        }.items()
    }
)
"""What the demands of a family depend on -> their names."""


def kinship(one: str, other: str) -> str:
    """What two demands both depend on by definition, in words; empty if they are not nested."""
    return next((what for what, names in FAMILIES.items() if {one, other} <= names), "")
