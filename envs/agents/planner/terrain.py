"""Where the body can go in an arena, and how far from everywhere it is to somewhere."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.arena_configs.geometry import Solid
from animalcat.arena_configs.ground import CELL, SIDE, STEP, Ground, spans_at
from animalcat.arena_configs.model import Point
from animalcat.arena_configs.placement import AGENT_RADIUS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from animalcat.envs.agents.planner.view import Ball

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SHY: Final = 2.0
"""Metres from lava within which a way costs more."""
_DEAR: Final = 5.0
"""By how much a metre right beside lava costs more."""
_BRINK: Final = 0.75
"""Metres from an edge that one may fall from within which a way costs more."""
_BURNING: Final = 6.0
"""What a metre in a hot zone costs: ten times the time that it takes, in part."""
_DROP: Final = 0.3
"""Metres of a fall that cannot be undone."""
_KEPT_BALLS: Final = 32
_WARY: Final = 1.0
"""Metres from a fall to where there is no way within which a way costs more."""


class Land(NamedTuple):
    """The ground as plain arrays, for compiled code; a place is a row, as in `Ground`.

    Attributes:
        first: The lowest place of each point of the grid, and one more number.
        height: Height of the body's centre.
        ceiling: Height to which it can be raised.
        grade: Rise for each metre of the slope that it stands on; 0 on the level.
        slope_x: Rise for each metre along x.
        slope_z: Rise for each metre along z.
        away: Metres of way to the nearest lava; infinite beyond `SHY`.
        cell: Point of the grid of each place.
        near: (n, 8) where the body comes from each place towards +x, +z, -x, -z, and the diagonals
            between: (1, 1), (-1, 1), (-1, -1), (1, -1); -1 where something bars it.
    """

    first: Numbers
    height: Floats
    ceiling: Floats
    grade: Floats
    slope_x: Floats
    slope_z: Floats
    away: Floats
    cell: Numbers
    near: Numbers


class PlannerTerrain:
    """The ground among some solids, with its lava.

    Attributes:
        ground: Where the body can be.
    """

    def __init__(
        self,
        solids: Sequence[Solid],
        lava: Sequence[Solid],
        hot: Sequence[Solid],
        *,
        climbs: bool = True,
        platforms: bool = True,
    ) -> None:
        """Work out the ground.

        Args:
            solids: What the body cannot pass.
            lava: Zones that kill.
            hot: Zones that burn.
            climbs: Whether ways may lead onto slopes.
            platforms: Whether ways may lead onto raised level ground.

        Raises:
            TooMuchError: There are too many large solids.
        """
        self.ground = Ground.among(solids)
        self._lava, self._hot = lava, hot
        targets, metres = self.ground.moves
        self._targets = targets = self._daring_moves(targets, climbs, platforms)
        self._ends, self._origins, self._metres = _reverse_moves(targets, metres)
        height = np.append(self.ground.height, np.nan)
        fall = self.ground.height[:, None] - height[targets]
        self._brink: Mask = np.asarray((fall > _DROP).any(axis=1))
        self._tight: Mask = (targets >= 0).sum(axis=1) < 8
        self._last: tuple[Floats, Land] | None = None
        self._touching: dict[tuple[Point, float], Numbers] = {}

    def _daring_moves(self, targets: Numbers, climbs: bool, platforms: bool) -> Numbers:
        """The moves that lead onto no ground that it keeps off.

        Where it starts on a slope, it may go on; where it starts on a platform, it stays there.
        """
        slope = self.ground.slope
        raised = ~slope & (self.ground.height > AGENT_RADIUS + _DROP)
        barred = np.zeros(targets.shape, np.bool_)
        if not climbs:
            barred |= slope[targets] & ~slope[:, None]
        if not platforms:
            barred |= raised[targets] | raised[:, None]
        return np.where(barred, -1, targets)

    def point(self, place: int) -> Point:
        """Where the body's centre is at a place."""
        ground = self.ground
        return Point(float(ground.x[place]), float(ground.height[place]), float(ground.z[place]))

    def reached(self, start: int, closed: Mask) -> Mask:
        """Places to which there is a way from a place that enters no closed one."""
        met = np.zeros(len(self.ground), np.bool_)
        met[start] = True
        front = np.array([start])
        while len(front):
            near = np.unique(self._targets[front])
            near = near[near >= 0]
            front = near[~met[near] & ~closed[near]]
            met[front] = True
        return met

    @cached_property
    def fatal(self) -> Mask:
        """Places at which the body touches lava."""
        return self._inside(self._lava)

    def _inside(self, solids: Iterable[Solid]) -> Mask:
        met = np.zeros(len(self.ground), np.bool_)
        for solid in solids:
            met |= self.ground.inside(solid)
        return met

    @cached_property
    def from_lava(self) -> Floats:
        """Metres of way from each place to the nearest lava, as far as `SHY`."""
        if not self.fatal.any():
            return np.full(len(self.ground), np.inf)
        return self._spread(np.flatnonzero(self.fatal), self._even, self._open, SHY)

    @cached_property
    def _even(self) -> Floats:
        return np.ones(len(self.ground))

    @cached_property
    def _open(self) -> Mask:
        return np.zeros(len(self.ground), np.bool_)

    @cached_property
    def weight(self) -> Floats:
        """What a metre costs at each place: more near lava, on the brink and in hot zones."""
        weight = np.ones(len(self.ground))
        weight[self.ground.slope] += 0.2
        weight[self._tight] += 0.4
        if self._brink.any():
            edges = np.flatnonzero(self._brink)
            away = self._spread(edges, self._even, self._open, _BRINK)
            weight += 2.0 * np.maximum(0.0, 1.0 - away / _BRINK)
        weight += _DEAR * np.maximum(0.0, 1.0 - self.from_lava / SHY) ** 2
        weight[self._inside(self._hot)] *= _BURNING
        return weight

    @cached_property
    def land(self) -> Land:
        """The ground for compiled code."""
        ground = self.ground
        slope_x, slope_z = _slopes(ground.first, ground.height, ground.grade)
        targets = self._targets
        layers = int(np.diff(ground.first).max())
        near = targets[:, : 8 * layers].reshape(-1, 8, layers).max(axis=2)
        return Land(
            ground.first,
            ground.height,
            ground.ceiling,
            ground.grade,
            slope_x,
            slope_z,
            self.from_lava,
            ground.cell,
            np.ascontiguousarray(near),
        )

    def touching(self, ball: Ball) -> Numbers:
        """Places from which the body touches a ball where it will lie."""
        key = ball.center, ball.radius
        if key not in self._touching:
            if len(self._touching) > _KEPT_BALLS:  # they move
                self._touching.clear()
            self._touching[key] = self.ground.touching(self.settled(ball), ball.radius)
        return self._touching[key]

    def settled(self, ball: Ball) -> Point:
        """Where a ball lies once it has fallen onto what is right below it."""
        x, z = np.array([ball.center.x]), np.array([ball.center.z])
        best = ball.radius - 0.01
        for solid in self.ground.solids:
            reach = max(solid.half) + ball.radius
            if max(abs(solid.center.x - x[0]), abs(solid.center.z - z[0])) > 1.5 * reach:
                continue
            for span in spans_at(solid, np.zeros(1, np.int64), x, z, ball.radius):
                if len(span.high) and span.low[0] <= ball.center.y and not span.hole[0]:
                    best = max(best, float(span.high[0]))
        return ball.center._replace(y=min(best, ball.center.y))

    def shut(self, balls: Iterable[Ball], margin: float = 0.1) -> Mask:
        """Places that a way to somewhere else must not enter: in lava, or touching some balls."""
        closed = self.fatal.copy()
        for ball in balls:
            closed[self.ground.touching(self.settled(ball), ball.radius + margin)] = True
        return closed

    def field(self, goal: Numbers, closed: Mask) -> Floats:
        """Cost, in metres, of the best way from each place to one of some places.

        Args:
            goal: The places.
            closed: Places that may be left, but not entered.
        """
        cost = self._spread(goal, self.weight, closed, np.inf)
        away = self._from_traps(cost)
        if away is None:
            return cost
        weight = self.weight + _DEAR * np.maximum(0.0, 1.0 - away / _WARY) ** 2
        return self._spread(goal, weight, closed, np.inf)

    def land_to(self, field: Floats) -> Land:
        """The ground for the way to a goal: where a fall leads to no way, it is like lava."""
        if self._last is None or self._last[0] is not field:
            away = self._from_traps(field)
            land = self.land
            if away is not None:
                land = land._replace(away=np.minimum(land.away, away))
            self._last = field, land
        return self._last[1]

    def _from_traps(self, field: Floats) -> Floats | None:
        """Metres of way to where one can fall to and has no way from; None if that is nowhere."""
        lost = np.append(np.isinf(field), False)[self._targets]
        falls = lost & np.isfinite(field)[:, None]
        if not falls.any():
            return None
        return self._spread(np.unique(self._targets[falls]), self._even, self._open, _WARY)

    def _spread(self, goal: Numbers, weight: Floats, closed: Mask, most: float) -> Floats:
        return spread(self._ends, self._origins, self._metres, goal, weight, closed, most)


@njit(cache=True, no_cfunc_wrapper=True)
def _reverse_moves(targets: Numbers, metres: Floats) -> tuple[Numbers, Numbers, Floats]:
    """Moves into each place: where those of each begin, from where they come, and their metres."""
    number, most = targets.shape
    ends = np.zeros(number + 1, np.int64)
    for a in range(number):
        for k in range(most):
            if targets[a, k] >= 0:
                ends[targets[a, k] + 1] += 1
    ends = np.cumsum(ends)
    free = ends[:-1].copy()
    origins = np.empty(ends[-1], np.int64)
    length = np.empty(ends[-1], np.float64)
    for a in range(number):
        for k in range(most):
            b = targets[a, k]
            if b >= 0:
                origins[free[b]] = a
                length[free[b]] = metres[a, k]
                free[b] += 1
    return ends, origins, length


@njit(cache=True, no_cfunc_wrapper=True)
def spread(
    ends: Numbers,
    origins: Numbers,
    metres: Floats,
    goal: Numbers,
    weight: Floats,
    closed: Mask,
    most: float,
) -> Floats:
    """Dijkstra's algorithm backwards, from a goal to all places, with a binary heap.

    Args:
        ends: As of `_reverse_moves`.
        origins: As of `_reverse_moves`.
        metres: As of `_reverse_moves`.
        goal: Places that cost nothing.
        weight: What a metre costs at each place.
        closed: Places through which there is no way.
        most: Cost beyond which places are left at infinity.
    """
    cost = np.full(len(weight), np.inf)
    keys = np.empty(len(origins) + len(goal) + 1, np.float64)
    items = np.empty(len(keys), np.int64)
    size = 0
    for place in goal:
        if cost[place] > 0.0:
            cost[place] = 0.0
            keys[size], items[size] = 0.0, place
            size += 1
    while size > 0:
        key, here = keys[0], items[0]
        size -= 1
        last_key, last = keys[size], items[size]
        at = 0
        while True:
            child = 2 * at + 1
            if child >= size:
                break
            if child + 1 < size and keys[child + 1] < keys[child]:
                child += 1
            if keys[child] >= last_key:
                break
            keys[at], items[at] = keys[child], items[child]
            at = child
        keys[at], items[at] = last_key, last
        if key > cost[here] or (closed[here] and key > 0.0):
            continue
        for k in range(ends[here], ends[here + 1]):
            other = origins[k]
            further = key + metres[k] * 0.5 * (weight[here] + weight[other])
            if further < cost[other] and further <= most:
                cost[other] = further
                at = size
                size += 1
                while at > 0:
                    above = (at - 1) // 2
                    if keys[above] <= further:
                        break
                    keys[at], items[at] = keys[above], items[above]
                    at = above
                keys[at], items[at] = further, other
    return cost


@njit(cache=True, no_cfunc_wrapper=True)
def _slopes(first: Numbers, height: Floats, grade: Floats) -> tuple[Floats, Floats]:
    """Rise of each sloping place for each metre along x and along z, from its neighbours."""
    along = np.zeros((2, len(height)))
    for cell in range(SIDE * SIDE):
        for place in range(first[cell], first[cell + 1]):
            if grade[place] == 0.0:
                continue
            for axis in range(2):
                jump = SIDE if axis == 0 else 1
                index = cell // SIDE if axis == 0 else cell % SIDE
                total, count = 0.0, 0
                for sign in (-1, 1):
                    if not 0 <= index + sign < SIDE:
                        continue
                    other = cell + sign * jump
                    for near in range(first[other], first[other + 1]):
                        rise = height[near] - height[place]
                        if grade[near] > 0.0 and abs(rise) <= 1.2 * CELL * grade[place] + 0.02:
                            total += sign * rise
                            count += 1
                if count:
                    along[axis, place] = total / (count * CELL)
    return along[0], along[1]


assert STEP < _DROP
