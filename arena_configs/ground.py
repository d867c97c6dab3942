"""Where the agent's body can be in an arena, and from where to where it can move.

The floor is a grid. At each of its points the body's centre is kept out of what solids, widened by
the body's radius, take up: what is left is one or several gaps, one above the other, and at the
bottom of each the body stands. So a point has a place on the floor, another one on the platform
above it, and none where a wall is too high to stand on, or a roof too low to pass under.

Places are joined where the body can go from one to the next: on the level, up a slope or a low
step, or down any height. The last cannot be undone. Everything stands as it is placed; nothing is
simulated.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.geometry import SHELL_INNER, Solid, covers
from animalcat.arena_configs.model import ARENA_SIDE, Point
from animalcat.arena_configs.placement import AGENT_RADIUS, LIFT
from animalcat.portable import scalars

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from animalcat.arena_configs.placement import PlacedObject, Placement

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

CELL: Final = 0.25
"""Metres between the points of the grid."""
SIDE: Final = round((ARENA_SIDE - 2 * AGENT_RADIUS) / CELL) + 1
"""Points along a side of the grid, which reaches from where the body touches one of the arena's
walls to where it touches the opposite one."""
FLOOR: Final = -LIFT
"""Height of the floor in metres."""
STEP: Final = 0.25
"""Metres of a step that the agent climbs without a run-up (tried in the simulator: 0.25 and not
0.3; with a run of 15 m it is 0.4)."""
STEEPEST: Final = 1.108
"""Rise for each metre of the steepest slope that the agent climbs.

Thrust a = 50 m/s², gravity g and friction mu = 0.6 balance at (a - mu g) / (g + mu a), which is 48
degrees; in the simulator it climbs 45 degrees and not 50."""
MOST_SPANS: Final = 3_000_000
"""Points times solids above them that are worked out; arenas with more are not measured."""

_STEEP: Final = scalars.sin(scalars.atan2(STEEPEST, 1.0))
_OVER: Final = 0.1
"""Share of its radius by which the body's centre is beyond an edge before it may slip off."""
_LEVEL: Final = 0.02
_LEAST_GAP: Final = 1e-3
_TIE: Final = 1e-6
"""Metres by which ways may differ that count as equally long."""
_BOTTOM: Final = -1e3
_AXES: Final = ((1, 0), (0, 1), (-1, 0), (0, -1))
_DIAGONALS: Final = ((1, 1), (-1, 1), (-1, -1), (1, -1))


class TooMuchError(ValueError):
    """So much stands in an arena that its ground is not worked out."""


class Span(NamedTuple):
    """Heights of the body's centre at which it would be in a solid.

    Attributes:
        cells: Points of the grid.
        low: Least height at each.
        high: Greatest height at each, at which the body lies on the solid.
        lean: Sine of the angle between the vertical and the line from there to the centre.
        hole: Whether the body may pass below, through a tunnel, at each.
    """

    cells: Indices
    low: Array
    high: Array
    lean: Array
    hole: Mask


def _middles() -> tuple[Array, Array]:
    line: Array = AGENT_RADIUS + CELL * np.arange(SIDE, dtype=np.float64)
    return np.repeat(line, SIDE), np.tile(line, SIDE)


GRID_X, GRID_Z = _middles()


def cell_at(x: float, z: float) -> int:
    """The point of the grid that is nearest to a position."""
    column, row = (round((v - AGENT_RADIUS) / CELL) for v in (x, z))
    return min(max(column, 0), SIDE - 1) * SIDE + min(max(row, 0), SIDE - 1)


def local(solid: Solid, x: Array, z: Array) -> tuple[Array, Array]:
    """Positions in a solid's own directions, from its middle."""
    dx, dz = x - solid.center.x, z - solid.center.z
    sin, cos = scalars.sin(math.radians(solid.yaw)), scalars.cos(math.radians(solid.yaw))
    return dx * cos - dz * sin, dx * sin + dz * cos


def spans(solid: Solid, radius: float = AGENT_RADIUS) -> Iterable[Span]:
    """Where a ball's centre would be too near to a solid, over the grid.

    Args:
        solid: The solid.
        radius: The ball's radius in metres.
    """
    cells = _around(solid, radius)
    return spans_at(solid, cells, GRID_X[cells], GRID_Z[cells], radius)


def spans_at(
    solid: Solid, cells: Indices, x: Array, z: Array, radius: float = AGENT_RADIUS
) -> Iterable[Span]:
    """As `spans`, at any positions; `cells` are their numbers."""
    u, v = local(solid, x, z)
    middle, half = solid.center.y, solid.half
    du, dv = np.maximum(np.abs(u) - half.x, 0.0), np.maximum(np.abs(v) - half.z, 0.0)
    if solid.shape == "sphere":
        reach = radius + half.x
        away = np.hypot(u, v)
        near = away < reach
        rise = np.sqrt(np.maximum(reach * reach - away * away, 0.0))
        yield _span(near, cells, middle - rise, middle + rise, away / reach)
    elif solid.shape == "shell":
        yield from _shell_spans(solid, cells, u, radius * radius - dv * dv)
    else:
        beside = du * du + dv * dv
        near = beside < radius * radius
        under = np.sqrt(np.maximum(radius * radius - beside, 0.0))
        low = middle - half.y - under
        if solid.shape == "box":
            lean = np.sqrt(beside) / radius
            yield _span(near, cells, low, middle + half.y + under, lean)
        else:
            yield _span(near, cells, low, *_on_wedge(solid, du, v, radius))


def _span(near: Mask, cells: Indices, low: Array, high: Array, lean: Array) -> Span:
    return Span(cells[near], low[near], high[near], lean[near], np.zeros(near.sum(), np.bool_))


def _on_wedge(solid: Solid, du: Array, v: Array, radius: float) -> tuple[Array, Array]:
    """Height at which a ball lies on a wedge, and its lean; exact, also at the edges."""
    half = solid.half
    slope = half.y / max(half.z, 1e-9)
    reach = np.sqrt(np.maximum(radius * radius - du * du, 0.0))
    # The point that it lies on, along the slope: where the ball's own slope is that of the wedge.
    touch = np.clip(v + reach * slope / math.hypot(1.0, slope), -half.z, half.z)
    off = touch - v
    top = solid.center.y + slope * touch
    high = top + np.sqrt(np.maximum(reach * reach - off * off, 0.0))
    return high, np.minimum(np.hypot(du, off) / radius, 1.0)


def _shell_spans(solid: Solid, cells: Indices, u: Array, room: Array) -> Iterable[Span]:
    """Of a tunnel: an arch with a hole in it. Its lower half is under the floor."""
    reach = np.sqrt(np.maximum(room, 0.0))
    wide = solid.half.x
    tall = solid.half.y / max(wide, 1e-9)
    outer, inner = wide + reach, np.maximum(wide * SHELL_INNER - reach, 0.0)
    high = solid.center.y + tall * np.sqrt(np.maximum(outer * outer - u * u, 0.0))
    hole = solid.center.y + tall * np.sqrt(np.maximum(inner * inner - u * u, 0.0))
    near = (room > 0.0) & (np.abs(u) < outer)
    passes = np.abs(u) < inner
    low = np.where(passes, hole, _BOTTOM)
    lean = np.minimum(np.abs(u) / outer, 1.0)
    yield Span(cells[near], low[near], high[near], lean[near], passes[near])


def _around(solid: Solid, margin: float) -> Indices:
    """Points of the grid in the box around a solid."""
    sin, cos = abs(scalars.sin(math.radians(solid.yaw))), abs(scalars.cos(math.radians(solid.yaw)))
    half = solid.half
    wide = half.x * cos + half.z * sin + margin
    deep = half.x * sin + half.z * cos + margin
    columns, rows = (
        np.arange(
            max(0, math.ceil((middle - reach - AGENT_RADIUS) / CELL)),
            min(SIDE - 1, math.floor((middle + reach - AGENT_RADIUS) / CELL)) + 1,
        )
        for middle, reach in ((solid.center.x, wide), (solid.center.z, deep))
    )
    return (columns[:, None] * SIDE + rows[None, :]).ravel().astype(np.int64)


def solid_things(placement: Placement) -> list[PlacedObject]:
    """Objects that the body cannot pass through."""
    return [t for t in placement.objects if not t.kind.goal and not t.kind.zone]


@dataclass(frozen=True, eq=False)
class Ground:
    """Places where the body can stand, in order of their points of the grid.

    Attributes:
        cell: Point of the grid of each place.
        height: Height of the body's centre there.
        contact: Height of what it stands on.
        ceiling: Height to which the body's centre can be raised there.
        support: Index in `solids` of what it stands on; -1 for the floor.
        lean: Sine of the angle by which it leans over an edge, or on a slope.
        tunnel: Whether a tunnel is above it.
        solids: What stands in the arena.
    """

    cell: Indices
    height: Array
    contact: Array
    ceiling: Array
    support: Indices
    lean: Array
    tunnel: Mask
    solids: Sequence[Solid]

    @classmethod
    def of(cls, things: Iterable[PlacedObject]) -> Ground:
        """Work out where the body can stand among some objects.

        Raises:
            TooMuchError: There are too many large objects.
        """
        return cls.among([solid for thing in things for solid in thing.solids()])

    @classmethod
    def among(cls, solids: Sequence[Solid]) -> Ground:
        """Work out where the body can stand among some solids.

        Raises:
            TooMuchError: There are too many large solids.
        """
        taken: list[tuple[int, Span]] = []
        total = 0
        for number, solid in enumerate(solids):
            for span in spans(solid):
                taken.append((number, span))
                total += len(span.cells)
                if total > MOST_SPANS:
                    raise TooMuchError(
                        "too much stands in it: its objects, one above the other, cover more than "
                        f"{MOST_SPANS * CELL * CELL:.0f} square metres"
                    )
        every = np.arange(SIDE * SIDE)
        flat = np.zeros(SIDE * SIDE)
        cell = np.concatenate([every, *(span.cells for _, span in taken)])
        low = np.concatenate([flat + _BOTTOM, *(span.low for _, span in taken)])
        high = np.concatenate([flat + FLOOR + AGENT_RADIUS, *(span.high for _, span in taken)])
        lean = np.concatenate([flat, *(span.lean for _, span in taken)])
        hole = np.concatenate([flat > 0.0, *(span.hole for _, span in taken)])
        owner = np.concatenate(
            [np.full(SIDE * SIDE, -1), *(np.full(len(s.cells), n) for n, s in taken)]
        )
        order = np.lexsort((low, cell))
        cell, low, high = cell[order], low[order], high[order]
        # Within a point the spans come from below; a gap is where the next begins above all before.
        key = high + cell * 1e4
        running = np.maximum.accumulate(key)
        place = np.maximum.accumulate(np.where(key >= running, np.arange(len(key)), 0))
        reached: Array = np.asarray(running - cell * 1e4, np.float64)
        same = np.append(cell[1:] == cell[:-1], False)
        ceiling = np.where(same, np.append(low[1:], np.inf), np.inf)
        gaps = np.flatnonzero(ceiling > reached + _LEAST_GAP)
        on = order[place[gaps]]
        height = reached[gaps]
        above = np.where(same, np.append(order[1:], 0), 0)[gaps]
        return cls(
            cell[gaps],
            height,
            height - AGENT_RADIUS * np.sqrt(np.maximum(1.0 - np.square(lean[on]), 0.0)),
            ceiling[gaps],
            owner[on],
            lean[on],
            hole[above] & np.isfinite(ceiling[gaps]),
            solids,
        )

    def __len__(self) -> int:
        return len(self.cell)

    @cached_property
    def x(self) -> Array:
        """X of each place."""
        return GRID_X[self.cell]

    @cached_property
    def z(self) -> Array:
        """Z of each place."""
        return GRID_Z[self.cell]

    @cached_property
    def first(self) -> Indices:
        """The lowest place of each point of the grid, and one more number at the end."""
        return np.searchsorted(self.cell, np.arange(SIDE * SIDE + 1))

    @cached_property
    def slope(self) -> Mask:
        """Whether the body stands on a ramp, a tunnel's back or a tree."""
        sloping = np.array([s.shape != "box" for s in self.solids] + [False])
        return sloping[self.support]

    @cached_property
    def grade(self) -> Array:
        """Rise for each metre of the slope that the body stands on; 0 on the level."""
        grades = [
            0.0
            if solid.shape == "box"
            else min(STEEPEST, solid.half.y / max(solid.half.z, 1e-9))
            if solid.shape == "wedge"
            else STEEPEST
            for solid in self.solids
        ]
        return np.array([*grades, 0.0])[self.support]

    @cached_property
    def edge(self) -> Mask:
        """Whether the body leans over an edge.

        It comes over the edge, up a low step or down, but it cannot go along there: with its centre
        beyond the edge it slips off as it steers (tried in the simulator, at half its radius).
        """
        sine = self.grade / np.sqrt(1.0 + self.grade * self.grade)
        round_ = np.array([s.shape in ("shell", "sphere") for s in self.solids] + [False])
        return (self.lean * self.lean - sine * sine > _OVER * _OVER) & ~round_[self.support]

    @cached_property
    def ramp(self) -> Mask:
        """Whether the body stands on a ramp."""
        ramps = np.array([s.shape == "wedge" for s in self.solids] + [False])
        return ramps[self.support]

    @cached_property
    def platform(self) -> Mask:
        """Whether the body stands on something flat that is higher than a step."""
        return (self.support >= 0) & ~self.slope & (self.contact > STEP)

    def position(self, place: int) -> Point:
        """Where the body's centre is at a place."""
        return Point(float(self.x[place]), float(self.height[place]), float(self.z[place]))

    def may_go(self, a: Indices, b: Indices, apart: Array | float) -> Mask:
        """Whether the body can go from places to neighbouring ones.

        Args:
            a: Where it is.
            b: Where it goes.
            apart: Metres between them, seen from above.
        """
        up = self.height[b] - self.height[a]
        room = np.minimum(self.ceiling[a], self.ceiling[b])
        free = room >= np.maximum(self.height[a], self.height[b]) - 1e-6
        slope, steep = self.slope, self.lean > _STEEP
        slides = slope[b] & steep[b]
        # A slope is gone up as it rises; from its side it is a step like any other.
        rise = np.maximum(self.grade[a], self.grade[b]) * apart
        higher = self.contact[b] - self.contact[a]
        climbs = (higher <= STEP + np.where(slope[b], 0.0, self.grade[a] * apart)) & ~slides
        climbs |= (slope[a] | slope[b]) & ~steep[b] & (up <= rise + _LEVEL)
        edge = self.edge[a] & self.edge[b] & (self.support[a] == self.support[b])
        climbs &= ~edge
        return free & np.where(up > -_LEVEL, climbs, True)

    @cached_property
    def moves(self) -> tuple[Indices, Array]:
        """Where the body can go from each place in one move, and how many metres that is.

        Returns:
            Two tables with a row for each place; -1 stands for no move.
        """
        places = np.arange(len(self))
        column, row = np.divmod(self.cell, SIDE)
        most = int(np.diff(self.first).max())
        targets: list[Indices] = []
        metres: list[Array] = []
        level: dict[tuple[int, int], Indices] = {}
        for dx, dz in (*_AXES, *_DIAGONALS):
            apart = CELL * math.hypot(dx, dz)
            inside = (column + dx >= 0) & (column + dx < SIDE) & (row + dz >= 0) & (row + dz < SIDE)
            next_cell = np.where(inside, self.cell + dx * SIDE + dz, 0)
            low, high = self.first[next_cell], self.first[next_cell + 1]
            # One more, so that -1, no place, has no neighbour either.
            flat = np.full(len(self) + 1, -1)
            for layer in range(most):
                there = inside & (low + layer < high)
                to = np.where(there, low + layer, 0)
                go = there & self.may_go(places, to, apart)
                up = self.height[to] - self.height
                walked = np.abs(up) <= 1.5 * STEEPEST * apart
                targets.append(np.where(go, to, -1))
                metres.append(np.where(walked, np.hypot(apart, up), apart))
                even = go & (np.abs(up) < _LEVEL)
                flat[:-1][even] = to[even]
            level[dx, dz] = flat
        for axis, diagonal in itertools.product(_AXES, _DIAGONALS):
            if axis[0] * diagonal[0] + axis[1] * diagonal[1] > 0:
                targets.append(_knight(level[axis], level[diagonal]))
                metres.append(np.full(len(self), CELL * math.sqrt(5.0)))
        return np.stack(targets, axis=1), np.stack(metres, axis=1)

    def graph(self, closed: Mask | None = None) -> MoveGraph:
        """The moves as a graph.

        Args:
            closed: Places that may not be entered; who starts in one may leave it.
        """
        targets, metres = self.moves
        valid = targets >= 0
        if closed is not None and closed.any():
            valid &= ~closed[targets]
        return MoveGraph(_ends(valid.sum(axis=1)), targets[valid], metres[valid])

    def under(self, position: Point) -> int | None:
        """The place where a body that is let go comes to stand; None if it is in a solid."""
        column = round((position.x - AGENT_RADIUS) / CELL)
        row = round((position.z - AGENT_RADIUS) / CELL)
        best: tuple[float, int] | None = None
        for dx in (-1, 0, 1):
            for dz in (-1, 0, 1):
                if not (0 <= column + dx < SIDE and 0 <= row + dz < SIDE):
                    continue
                cell = (column + dx) * SIDE + row + dz
                for place in range(self.first[cell], self.first[cell + 1]):
                    if not self.height[place] - STEP <= position.y <= self.ceiling[place]:
                        continue
                    fall = max(0.0, position.y - float(self.height[place]) - 2 * LIFT)
                    apart = math.hypot(self.x[place] - position.x, self.z[place] - position.z)
                    rank = apart + (0.0 if (dx, dz) == (0, 0) else 0.2 + min(fall, 0.5))
                    if best is None or rank < best[0]:
                        best = rank, place
        return None if best is None else best[1]

    def inside(self, solid: Solid) -> Mask:
        """Places at which the body touches a zone or a ball."""
        met = np.zeros(len(self), np.bool_)
        for span in spans(solid):
            for layer in range(int(np.diff(self.first).max())):
                place = self.first[span.cells] + layer
                there = place < self.first[span.cells + 1]
                place = place[there]
                height = self.height[place]
                met[place] |= (height < span.high[there]) & (height > span.low[there])
        return met

    def touching(self, center: Point, radius: float) -> Indices:
        """Places at which the body touches a ball."""
        dx, dz, dy = self.x - center.x, self.z - center.z, self.height - center.y
        reach = AGENT_RADIUS + radius + 0.02
        return np.flatnonzero(dx * dx + dz * dz + dy * dy <= reach * reach)


def _knight(axis: Indices, diagonal: Indices) -> Indices:
    """Places two points along an axis and one aside, if all that lies between is level."""
    one, other = diagonal[axis[:-1]], axis[diagonal[:-1]]
    return np.where(one == other, one, -1)


@dataclass(frozen=True, eq=False)
class MoveGraph:
    """Moves from place to place.

    Attributes:
        ends: Where the moves of each place begin in the other two, and where those of the last end.
        targets: Where each move leads.
        metres: How far it is.
    """

    ends: Indices
    targets: Indices
    metres: Array

    def next(self, place: int) -> list[int]:
        """Places to which the body can go from one."""
        places: list[int] = self.targets[self.ends[place] : self.ends[place + 1]].tolist()
        return places

    def shortest(self, start: int) -> ShortestPathTree:
        """Find the shortest ways from a place."""
        from scipy.sparse.csgraph import dijkstra

        return ShortestPathTree(
            self, start, dijkstra(self._sparse, indices=start, return_predecessors=False)
        )

    def reached(self, start: int) -> Mask:
        """The places to which there is a way from one."""
        from scipy.sparse.csgraph import breadth_first_order

        mask = np.zeros(len(self.ends) - 1, np.bool_)
        mask[breadth_first_order(self._sparse, start, return_predecessors=False)] = True
        return mask

    def regions(self) -> Indices:
        """Number the regions: sets of places between which the body can go to and fro."""
        from scipy.sparse.csgraph import connected_components

        _, labels = connected_components(self._sparse, directed=True, connection="strong")
        return labels.astype(np.int64)

    def between(self, label: Indices) -> set[tuple[int, int]]:
        """Pairs of regions such that a move leads from the first to the second."""
        one, other = np.repeat(label, np.diff(self.ends)), label[self.targets]
        apart = one != other
        return set(zip(one[apart].tolist(), other[apart].tolist(), strict=True))

    @cached_property
    def _sparse(self) -> csr_array:
        from scipy.sparse import csr_array

        number = len(self.ends) - 1
        return csr_array((self.metres, self.targets, self.ends), shape=(number, number))

    @cached_property
    def reversed(self) -> MoveGraph:
        """The moves the other way round: from where each leads to where it begins."""
        order = np.argsort(self.targets, kind="stable")
        places = np.arange(len(self.ends) - 1)
        sources = np.repeat(places, np.diff(self.ends))[order]
        ends = np.searchsorted(self.targets[order], np.append(places, len(places)))
        return MoveGraph(ends, sources, self.metres[order])


@dataclass(frozen=True, eq=False)
class ShortestPathTree:
    """Shortest ways from one place to all others.

    Attributes:
        graph: The moves that they are made of.
        start: Where they begin.
        metres: Length of the way to each place; infinite where there is none.
    """

    graph: MoveGraph
    start: int
    metres: Array

    def path(self, place: int, x: Array, z: Array) -> list[int]:
        """Places on the way to one, from the start.

        Many ways over the grid are equally long. Gone back from its end, this is the one that
        always heads for the start as straight as it can. So it is the same in an arena that is
        mirrored or turned.

        Args:
            place: Where the way ends; there is one.
            x: X of each place, in metres.
            z: Z of each place, in metres.
        """
        back, path = self.graph.reversed, [place]
        while place != self.start:
            some = slice(back.ends[place], back.ends[place + 1])
            before, metres = back.targets[some], back.metres[some]
            tied = before[self.metres[before] + metres <= self.metres[place] + _TIE]
            dx, dz = x[tied] - x[place], z[tied] - z[place]
            ahead = dx * (x[self.start] - x[place]) + dz * (z[self.start] - z[place])
            place = int(tied[np.argmax(ahead / np.hypot(dx, dz))])
            path.append(place)
        return path[::-1]


def _ends(numbers: npt.NDArray[Any]) -> Indices:
    return np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64)


def rest_height(things: Iterable[PlacedObject], goal: PlacedObject) -> float:
    """Height of a goal's centre when it has fallen onto what is right below it.

    A goal that extends beyond what it lies on may roll off; it is taken to stay.
    """
    radius = goal.size.x / 2
    x, z = np.array([goal.position.x]), np.array([goal.position.z])
    best = FLOOR + radius
    for thing in things:
        for solid in thing.solids():
            if not covers(solid, goal.position):
                continue  # it would roll off
            for span in spans_at(solid, np.zeros(1, np.int64), x, z, radius):
                if len(span.high) and span.low[0] <= goal.position.y:
                    best = max(best, float(span.high[0]))
    return min(best, goal.position.y)
