"""What rays call what they meet: the tags of Animal-AI, and the objects that have each of them.

It imports nothing, because agents use it on the base install.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

RAY_TAGS: Final = (
    "arena",
    "Immovable",
    "Movable",
    "goodGoal",
    "goodGoalMulti",
    "badGoal",
    "GoalSpawner",
    "DeathZone",
    "HotZone",
    "Ramp",
    "PillarButton",
    "SignPoster",
    "DecoyGoal",
    "DecoyGoalBounce",
    "HollowObj",
    "badGoalMulti",
    "DataZone",
    "agent",
)
"""Tags in the order of the ray observation: the first 12 in builds to 4.3, all 18 from 4.4."""

LOGGED_TAGS: Final = (*RAY_TAGS, "GrowGoal", "ShrinkGoal")
"""Tags that the observation logs name: those of the ray observation, then others."""

UNLISTED: Final = -1
"""Stands for the index of a tag that is not in the list."""

MISSED: Final = -2
"""Stands for the index of a tag where a ray met nothing."""

OBJECTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "arena": (),
        "Immovable": ("Wall", "WallTransparent", "CylinderTunnel", "CylinderTunnelTransparent"),
        "Movable": ("LightBlock", "HeavyBlock", "UBlock", "LBlock", "JBlock"),
        "goodGoal": ("GoodGoal", "GoodGoalBounce"),
        "goodGoalMulti": (
            "GoodGoalMulti",
            "GoodGoalMultiBounce",
            "DecayGoal",
            "RipenGoal",
            "DecayGoalEpEnding",
            "RipenGoalEpEnding",
        ),
        "badGoal": ("BadGoal", "BadGoalBounce"),
        "GoalSpawner": ("SpawnerTree", "SpawnerDispenserTall", "SpawnerContainerShort"),
        "DeathZone": ("DeathZone",),
        "HotZone": ("HotZone",),
        "Ramp": ("Ramp",),
        "PillarButton": ("SpawnerButton",),
        "SignPoster": ("SignBoard",),
        "DecoyGoal": ("DecoyGoal", "DecoyGoalMulti"),
        "DecoyGoalBounce": ("DecoyGoalBounce",),
        "HollowObj": ("HollowBox",),
        "badGoalMulti": ("BadGoalMulti",),
        "DataZone": ("DataZone",),
        "agent": ("Agent",),
        "GrowGoal": ("GrowGoal",),
        "ShrinkGoal": ("ShrinkGoal",),
    }
)
"""Tag -> names of the objects that have it. Ramps have a tag of their own in build 4.1 alone; in
the others they have that of walls."""

TAG_OF: Final[Mapping[str, str]] = MappingProxyType(
    {name: tag for tag, names in OBJECTS.items() for name in names}
)
"""Name of an object -> its tag."""
