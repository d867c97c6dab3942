"""Bounds of an episode's return, as far as the start of an arena tells."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from animalcat.arena_configs.catalogue import KINDS, canonical_name
from animalcat.arena_configs.model import STEPS_PER_UNIT
from animalcat.arena_configs.placement import AGENT_RADIUS, PlacedObject, Placement

_TOP_SPEED: Final = 40.0
"""m/s that agent and goal together never exceed: 26.7 of the agent, 10 of a bouncing goal."""
_STEP_SECONDS: Final = 0.02

CHANGING: Final = ("value", "size")
"""Reward rules of goals whose value changes with time."""
_TAKING: Final = ("bad", "death", "hot")
"""Reward rules of objects that take reward."""


def max_return(first: Placement, *following: Placement) -> float:
    """An upper bound of an episode's return; no play returns more, few return as much.

    It assumes that all goals that do not end the episode are taken, then the best one that ends it,
    as early as the nearest can be reached in a straight line. What spawners, buttons and data zones
    may give has no bound.

    Args:
        first: The placed arena that the episode starts in.
        following: Those that it merges with.
    """
    best = _greatest(first)
    before = _most_by_completing(first)
    for placement in following:
        # Time costs what it does in the first arena, and what ends it may be what is left of it.
        here = replace(placement, time_limit=first.time_limit)
        if before is None:
            break
        best = max(best, before + (_greatest(here) if _rewarding(here) else 0.0))
        gained = _most_by_completing(here)
        before = None if gained is None else before + gained
    return best


def _most_by_completing(placement: Placement) -> float | None:
    """The most that an arena returns to whoever completes it; None if nobody can."""
    if grants(placement) or _rewarding(placement):
        return _greatest(placement)
    goals = (thing for thing in placement.objects if thing.kind.goal)
    return max((best_value(thing) for thing in goals if ends_alone(thing)), default=None)


def _rewarding(placement: Placement) -> bool:
    """Whether there is anything to gain in an arena."""
    goals = (thing for thing in placement.objects if thing.kind.goal)
    return grants(placement) or any(best_value(thing) > 0.0 for thing in goals)


def _greatest(placement: Placement) -> float:
    if grants(placement):
        return math.inf
    goals = [thing for thing in placement.objects if thing.kind.goal]
    rewards = [(thing, best_value(thing)) for thing in goals]
    rewarding = [(thing, value) for thing, value in rewards if value > 0]
    if not rewarding:
        endings = [value for thing, value in rewards if not thing.kind.multi]
        return max([*endings, -1.0 if placement.time_limit > 0 else 0.0])
    kept = sum(value for thing, value in rewarding if _keeps_on(thing))
    last = max((value for thing, value in rewarding if not _keeps_on(thing)), default=0.0)
    return kept + last - min(_least_decay(placement, thing) for thing, _ in rewarding)


def min_return(first: Placement, *following: Placement) -> float:
    """A lower bound of an episode's return.

    Every loss of reward is a loss of health too. Health is never more than the return plus 1, and
    the episode ends when it is used up. So at most 1 is lost, plus the excess of the last loss.
    There is no bound where operations may take reward, or where buttons may spawn what takes it.

    Args:
        first: The placed arena that the episode starts in.
        following: Those that it merges with.
    """
    things = [thing for placement in (first, *following) for thing in placement.objects]
    if any(thing.item.operations or _spawns_losses(thing) for thing in things):
        return -math.inf
    losses = [-thing.reward for thing in things if thing.reward < 0.0]
    if losses:
        return -1.0 - max(losses)
    return -1.0 if first.time_limit > 0 else 0.0


def _spawns_losses(thing: PlacedObject) -> bool:
    """Whether it is a button that may spawn something that takes reward."""
    kinds = (KINDS.get(canonical_name(name) or "") for name in thing.item.reward_names)
    taking = any(kind is not None and kind.reward in _TAKING for kind in kinds)
    return thing.kind.reward == "button" and taking


def grants(placement: Placement) -> bool:
    """Whether anything may give rewards beyond the goals that are there at the start."""
    return any(
        thing.kind.reward in ("spawner", "button") or thing.item.operations
        for thing in placement.objects
    )


def best_value(thing: PlacedObject) -> float:
    """The greatest reward that a contact can give, now or later.

    Decay and Ripen goals only lose value, as builds ship them (reference section 2.1).
    """
    if thing.kind.reward == "size":
        limit = thing.kind.size_max.x
        return min(max(thing.item.initial_values[0], thing.item.final_values[0]), limit)
    return thing.reward


def ends_alone(thing: PlacedObject) -> bool:
    """Whether taking this goal ends the episode, whatever else is there."""
    changing = thing.kind.reward in CHANGING
    return thing.name.endswith("EpEnding") or not (thing.kind.multi or changing)


def _keeps_on(thing: PlacedObject) -> bool:
    """Whether the episode may continue after the goal is taken (uncertain for changing goals)."""
    return thing.kind.multi or thing.kind.reward in CHANGING


def _least_decay(placement: Placement, thing: PlacedObject) -> float:
    if placement.time_limit <= 0:
        return 0.0
    start = placement.agent.position
    way = math.hypot(thing.position.x - start.x, thing.position.z - start.z)
    seconds = max(0.0, way - AGENT_RADIUS - thing.kind.size_max.x) / _TOP_SPEED
    return seconds / _STEP_SECONDS / (STEPS_PER_UNIT * placement.time_limit)
