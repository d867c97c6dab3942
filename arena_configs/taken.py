"""What a control takes away, in words, by the meta-feature that it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TAKEN: Final[Mapping[str, tuple[str, str]]] = {
    "hiddenStanding": ("hiding", "how long food is hidden"),
    "occluderPresence": ("hiding", "how long food is hidden"),
    "timeUnderOcc": ("hiding", "how long food is hidden"),
    "darkLongest": ("the dark", "how long it is dark"),
    "mustPush": ("that something has to be pushed", "how much has to be pushed"),
    "endingRewards": ("food that ends the episode", "how much food ends the episode"),
    "gainByWaiting": ("that waiting pays", "how much waiting pays"),
    "wallsInWay": ("a wall in the way", "how many walls are in the way"),
    "ramps": ("a slope", "how many slopes there are"),
    "rewards": ("other food", "how much other food there is"),
    "obstacles": ("what stands there", "how much stands there"),
    "smallestReward": ("food of another size", "food of another size"),
    "goalTravel": ("that the food moves on", "how far the food moves"),
    "lava": ("lava", "how much lava there is"),
    "wayLength": ("the way", "how long the way is"),
}
"""By meta-feature, what is gone where it is 0 or does not apply, and what is less where it is less.

The first that a control changes says what it takes away.
"""
