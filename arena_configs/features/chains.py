"""How the demands of arenas that merge into one episode add up to those of the episode."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from animalcat.arena_configs.features.definition import InChain, MeasuredFeatures, Reading
from animalcat.arena_configs.placement import Placement
from animalcat.arena_configs.returns import max_return, min_return

IN_CHAIN: Final[Mapping[InChain, str]] = {
    # How the episode starts; and the time limit, which a build keeps from there on.
    "first": "XPos wayBearing goalBearing goalSide rightLeftPosition timeLimit",
    # What is there, and what it takes in all.
    "sum": "rewards endingRewards rewardSum raisedRewards bouncingRewards changingRewards badGoals "
    "decoys obstacles transparentWalls movables ramps tunnels lava hotZones spawners operated "
    "frozenTime timeNeeded badSum gainByWaiting lossByWaiting occluders patterns",
    # What an agent must be able to do, wherever it is hardest: who has done it in one arena can do
    # it again in the next.
    "greatest": "rewardDistance rewardBehind wallsInWay lavaInWay agentHeight wayLength "
    "wayManhattan detour wayTurns goalBehind rampNeeded platformNeeded tunnelNeeded wayClimb drops "
    "lavaStraight lavaShortest lavaDetour lavaToAvoid hotOnWay mustPush couldPush largestReward "
    "goalDistance lavaPresence platformPresence rampPresence transparentPresence occluderPresence "
    "timeUnderOcc numPositions goalTravel hiddenStanding hiddenMoving hidingPlaces decoysHidden",
    "least": "rewardSize goalSize lavaMargin goalAngle goalSeen goalInView goalSeenOnWay "
    "smallestReward lastPlaceShows",
    "whole": "leastReturn greatestReturn",
}
"""The demands of which it is said how parts add up."""
_TIMED: Final = (
    "goalInView",
    "occluderPresence",
    "timeUnderOcc",
    "numPositions",
    "goalTravel",
    "hiddenStanding",
    "hiddenMoving",
    "hidingPlaces",
    "lastPlaceShows",
    "decoysHidden",
)
"""Demands that depend on when the light is out."""

_WHOLE: Final[Mapping[str, Callable[..., float]]] = {
    "leastReturn": min_return,
    "greatestReturn": max_return,
}
_ADD: Final[Mapping[InChain, Callable[[Sequence[float]], float]]] = {
    "first": lambda values: values[0],
    "sum": sum,
    "greatest": max,
    "least": min,
}


def in_chain(name: str) -> InChain:
    """How the parts of a demand add up."""
    for how, names in IN_CHAIN.items():
        if name in names.split():
            return how
    return ""


def chain_features(
    parts: Sequence[MeasuredFeatures], placements: Sequence[Placement]
) -> MeasuredFeatures:
    """The demands of an episode, from those of its arenas.

    Args:
        parts: The demands of each arena in the order of play.
        placements: The arenas as they were placed.
    """
    if len(parts) == 1:
        return parts[0]
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name in (*parts[0].values, *parts[0].missing):
        reading = _read(name, parts, placements)
        if isinstance(reading, str):
            missing[name] = reading
        else:
            values[name] = reading
    return MeasuredFeatures(values, missing)


def _read(name: str, parts: Sequence[MeasuredFeatures], placements: Sequence[Placement]) -> Reading:
    how = in_chain(name)
    if not how:
        return f"{len(parts)} arenas merge, and this is not defined for several together"
    if name in _TIMED and any(placement.blackouts for placement in placements[1:]):
        return "a later arena has blackouts, whose times count from the start of the episode"
    if how == "whole":
        bound = float(round(_WHOLE[name](*placements), 6)) + 0.0
        unbounded = (part.missing[name] for part in parts if name in part.missing)
        return bound if math.isfinite(bound) else next(unbounded)
    for number, part in enumerate(parts[:1] if how == "first" else parts):
        if name not in part.values:
            return f"in arena {number} of the {len(parts)} that merge: {part.missing[name]}"
    return float(_ADD[how]([part.values[name] for part in parts if name in part.values]))
