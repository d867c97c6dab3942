"""In which order to take an arena's rewards, and what that gives."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from animalcat.arena_configs.ground import Array
from animalcat.arena_configs.model import STEPS_PER_UNIT
from animalcat.arena_configs.placement import PlacedObject
from animalcat.arena_configs.returns import CHANGING, ends_alone, grants
from animalcat.arena_configs.routes import STEP_SECONDS, Terrain, run_seconds

MOST_REWARDS: Final = 8
"""Rewards up to which every order is tried."""


@dataclass(frozen=True, slots=True)
class RewardOrder:
    """Orders in which rewards may be taken.

    Attributes:
        best: The order that returns most; it need not have all of them.
        best_return: What it returns.
        near_return: What it returns to go to the nearest reward that is left, again and again.
    """

    best: tuple[PlacedObject, ...]
    best_return: float
    near_return: float


def best_order(terrain: Terrain) -> RewardOrder | str:
    """Find the order of rewards that returns most, or say why it is not known.

    Ways lead from reward to reward, none of them in the way of another; each is run from standing
    at full thrust. The time that is lost by turning is left out, so that a return is seldom
    reached, and by little.

    Args:
        terrain: The arena.

    Raises:
        TooMuchError: There are too many large objects.
    """
    placement = terrain.placement
    if grants(placement):
        return "a spawner, a button or a zone may give any reward"
    goals = terrain.goals
    if not goals:
        return "no reward"
    if any(goal.kind.reward in CHANGING for goal in goals):
        return "rewards change with time"
    if any(goal.kind.bounce for goal in goals):
        return "rewards move from the start on"
    if len(goals) > MOST_REWARDS:
        return f"there are {len(goals)} rewards; every order of up to {MOST_REWARDS} is tried"
    limit = placement.time_limit * STEPS_PER_UNIT * STEP_SECONDS
    seconds = _seconds(terrain)
    if not np.isfinite(seconds[0]).any():
        return "the agent finds no safe way to any reward"
    search = _Search(goals, seconds, limit)
    return RewardOrder(tuple(goals[k] for k in search.order), search.best, search.greedy())


def _seconds(terrain: Terrain) -> Array:
    """Seconds from the start (row 0) and from each reward (rows 1 on) to each reward."""
    number = len(terrain.goals)
    metres = terrain.distances()
    times = np.full((number + 1, number), np.inf)
    for row, column in itertools.product(range(number + 1), range(number)):
        if row != column + 1 and math.isfinite(metres[row, column]):
            times[row, column] = run_seconds(float(metres[row, column]))
    return times


class _Search:
    """Tries every order, and leaves out those that are worse than another from there on.

    Health decays by its whole in the time limit, and a reward gives it back (reference section 4).
    """

    def __init__(self, goals: list[PlacedObject], seconds: Array, limit: float) -> None:
        self._goals, self._seconds, self._limit = goals, seconds.tolist(), limit
        self.best, self.order = self._wait(0.0, 1.0), tuple[int, ...]()
        self._seen: dict[tuple[frozenset[int], int], tuple[float, float]] = {}
        self._go(0, frozenset(), (), 0.0, 1.0)

    def _wait(self, value: float, health: float) -> float:
        """The return of waiting until the end."""
        return value - health if self._limit > 0.0 else value

    def _take(self, at: int, k: int, value: float, health: float) -> tuple[float, float] | None:
        """Return and health right after a reward is taken; None if it is not to be had in time."""
        seconds = self._seconds[at][k]
        if not math.isfinite(seconds):
            return None
        decay = seconds / self._limit if self._limit > 0.0 else 0.0
        if decay >= health:
            return None
        reward = self._goals[k].reward
        return value - decay + reward, min(1.0, health - decay + reward)

    def _ends(self, k: int, taken: frozenset[int]) -> bool:
        return ends_alone(self._goals[k]) or len(taken) == len(self._goals)

    def _go(
        self, at: int, taken: frozenset[int], order: tuple[int, ...], value: float, health: float
    ) -> None:
        for k in range(len(self._goals)):
            if k in taken or (got := self._take(at, k, value, health)) is None:
                continue
            now, left = got
            both, then = taken | {k}, (*order, k)
            ended = self._ends(k, both)
            returned = now if ended else self._wait(now, left)
            if returned > self.best + 1e-9:
                self.best, self.order = returned, then
            if ended:
                continue
            before = self._seen.get((both, k))
            if before is not None and before[0] >= now and before[1] >= left:
                continue
            self._seen[both, k] = now, left
            self._go(k + 1, both, then, now, left)

    def greedy(self) -> float:
        """The return of always taking the nearest reward that is left."""
        at, value, health = 0, 0.0, 1.0
        taken: frozenset[int] = frozenset()
        while left := [k for k in range(len(self._goals)) if k not in taken]:
            near = min(left, key=lambda k: self._seconds[at][k])
            if (got := self._take(at, near, value, health)) is None:
                break
            (value, health), taken, at = got, taken | {near}, near + 1
            if self._ends(near, taken):
                return value
        return self._wait(value, health)
