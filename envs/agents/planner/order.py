"""Which rewards to take, in which order, and when: the plan that returns most."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from animalcat.envs.agents.planner.motion import DT, PACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.envs.agents.planner.view import Ball

MOST: Final = 7
"""Rewards up to which every order is tried; of more, the nearest is taken first."""
_START: Final = 0.7
"""Seconds that each leg costs for turning and gathering speed."""


class Plan(NamedTuple):
    """What to do about the rewards.

    Attributes:
        order: Indices of the rewards to take, in their order.
        value: What that returns from now on.
        wait: Seconds to wait before the first is taken, because it is worth more then.
    """

    order: tuple[int, ...]
    value: float
    wait: float = 0.0


def later(ball: Ball, seconds: float) -> float:
    """What a reward will be worth in some seconds."""
    steps = max(0.0, seconds / DT - ball.wait)
    changed = ball.reward + ball.rate * steps
    if ball.rate > 0.0:
        return min(changed, max(ball.final, ball.reward))
    if ball.rate < 0.0:
        return max(changed, min(ball.final, ball.reward))
    return ball.reward


def ripe(ball: Ball) -> float:
    """Seconds until a reward has stopped growing; 0 for one that does not grow."""
    if ball.rate <= 0.0 or ball.final <= ball.reward + 1e-6:
        return 0.0
    return (ball.wait + (ball.final - ball.reward) / ball.rate) * DT


def seconds(cost: float) -> float:
    """Seconds that a way of some cost takes, about."""
    return cost / PACE + _START


class _Search:
    """Tries orders, and leaves out those that are worse than another from there on."""

    def __init__(self, balls: Sequence[Ball], legs: Sequence[Sequence[float]], limit: float):
        self._balls, self._legs, self._limit = balls, legs, limit
        self._seen: dict[tuple[frozenset[int], int], tuple[float, float]] = {}
        self.best = Plan((), -math.inf)

    def go(self, at: int, taken: frozenset[int], plan: Plan, time: float, health: float) -> None:
        """Extend a plan by each reward that is left.

        Args:
            at: Row of `legs` where the agent is.
            taken: What the plan has.
            plan: The plan so far.
            time: Seconds from now at its end.
            health: Share of the health that is left then.
        """
        for k, ball in enumerate(self._balls):
            if k in taken or math.isinf(self._legs[at][k]):
                continue
            leg = seconds(self._legs[at][k])
            for wait in {0.0, max(0.0, ripe(ball) - time - leg)}:
                needed = leg + wait
                decay = needed / self._limit if self._limit > 0.0 else 0.0
                if decay >= health - 0.02:
                    continue
                reward = later(ball, time + needed)
                both = taken | {k}
                ends = ball.ends or len(both) == len(self._balls)
                value = plan.value + reward - decay
                then = Plan((*plan.order, k), value, plan.wait if plan.order else wait)
                left = min(1.0, health - decay + reward)
                # What does not end the episode leaves its time to run out.
                returned = value if ends else value - (left if self._limit > 0.0 else 0.0)
                if returned > self.best.value + 1e-9:
                    self.best = then._replace(value=returned)
                if ends:
                    continue
                before = self._seen.get((both, k))
                if before is not None and before[0] >= value and before[1] >= left:
                    continue
                self._seen[both, k] = value, left
                self.go(k + 1, both, then, time + needed, left)


def best_plan(
    balls: Sequence[Ball], legs: Sequence[Sequence[float]], limit: float, health: float
) -> Plan:
    """The order of rewards that returns most.

    Args:
        balls: The rewards.
        legs: Cost of the way from where the agent is (row 0), and from each reward (row k + 1), to
            each reward.
        limit: Seconds in which all of the health decays; 0: it does not.
        health: Share of it that is left.
    """
    if len(balls) > MOST:
        return Plan((_most_beyond(balls, legs),), 0.0)
    search = _Search(balls, legs, limit)
    search.go(0, frozenset(), Plan((), 0.0), 0.0, health)
    return search.best


def _most_beyond(balls: Sequence[Ball], legs: Sequence[Sequence[float]]) -> int:
    """The nearest of the rewards from which most others can still be had, for many rewards."""

    def beyond(k: int) -> float:
        if balls[k].ends:
            return balls[k].reward
        return balls[k].reward + sum(
            max(ball.reward, ball.final)
            for j, ball in enumerate(balls)
            if j != k and math.isfinite(legs[k + 1][j])
        )

    there = [k for k in range(len(balls)) if math.isfinite(legs[0][k])]
    return min(there, key=lambda k: (-round(beyond(k), 3), legs[0][k]))
