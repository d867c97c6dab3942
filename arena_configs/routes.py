"""The agent's shortest ways to rewards: over the floor, ramps and platforms, around or into lava.

A way is found on the grid of `ground` and then drawn tight, so that its length is that of a string
and not one of a grid. It goes from the centre of the body at the start to the centre of the reward.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from animalcat.arena_configs.geometry import Solid, covers
from animalcat.arena_configs.ground import (
    CELL,
    FLOOR,
    SIDE,
    STEP,
    Array,
    Ground,
    Indices,
    Mask,
    MoveGraph,
    ShortestPathTree,
    TooMuchError,
    cell_at,
    local,
    rest_height,
    solid_things,
    spans_at,
)
from animalcat.arena_configs.model import ARENA_SIDE, Point
from animalcat.arena_configs.placement import AGENT_RADIUS, LIFT, PlacedObject, Placement
from animalcat.arena_configs.reach import RAMP_MASS
from animalcat.portable import scalars

TURN: Final = 45.0
"""Degrees above which a change of heading counts as a turn."""
ONE_TURN: Final = 2.0
"""Metres of way within which changes of heading belong to one turn, as around the end of a wall."""
WIDEST: Final = 5.0
"""Metres of clearance of lava beyond which more makes no difference."""
LEAST_REGION: Final = 1.0
"""Square metres from which a region counts as a place where a choice may lead."""

STEP_SECONDS: Final = 0.02
KEPT: Final = 0.968
"""Share of its speed that the agent keeps in a physics step, by drag (reference section 3.3)."""
THRUST: Final = 1.0
"""m/s that the agent gains in a physics step with full thrust."""
RUBBED: Final = 0.113953
"""m/s that friction takes in a physics step on the floor."""
TURN_SPEED: Final = 100.0
"""Degrees a second by which the agent turns."""

_SAMPLE: Final = 0.05
_EASE: Final = 2e-3
_LEVEL: Final = 0.02
_BUMP: Final = 0.04
"""Metres up or down that a way is simplified by."""
_ON_FLOOR: Final = 0.05


class Turn(NamedTuple):
    """A turn of a way.

    Attributes:
        at: Where it begins.
        degrees: By how much, clockwise.
    """

    at: Point
    degrees: float


class IrreversibleChoice(NamedTuple):
    """A place where the agent chooses among ways on, none of which leads back.

    Attributes:
        at: Where the way leaves it.
        metres: How far along the way that is.
        ways: In how many separate regions the agent may end up when it leaves.
        right: From how many of them it can still get to the reward.
    """

    at: Point
    metres: float
    ways: int
    right: int


@dataclass(frozen=True, slots=True)
class Route:
    """A way to a reward.

    Attributes:
        goal: The reward.
        end: Centre of the reward when it has come to rest.
        points: Centre of the body along the way: the start, each bend and the reward.
        places: Places of the grid on it; empty for a straight way over the floor.
        touch: Metres before the reward's centre at which the body touches it.
    """

    goal: PlacedObject
    end: Point
    points: tuple[Point, ...]
    places: tuple[int, ...]
    touch: float

    @property
    def legs(self) -> list[tuple[Point, Point]]:
        """The straight parts."""
        return list(itertools.pairwise(self.points))

    @property
    def length(self) -> float:
        """Metres of the way, along slopes; a fall counts by how far it leads."""
        return sum(leg_length(a, b) for a, b in self.legs)

    @property
    def manhattan(self) -> float:
        """Metres of the way along x and along z, seen from above."""
        return sum(abs(a.x - b.x) + abs(a.z - b.z) for a, b in self.legs)

    @property
    def straight(self) -> float:
        """Metres from the start to the reward as the crow flies, seen from above."""
        return _flat(self.points[0], self.points[-1])

    def turns(self) -> list[Turn]:
        """Its turns of more than `TURN` degrees."""
        return [turn for turn in _bends(self.points) if abs(turn.degrees) > TURN]

    def at(self, metres: float) -> Point:
        """Where the body is after some metres of the way."""
        for a, b in self.legs:
            length = leg_length(a, b)
            if metres <= length and length > 0.0:
                share = metres / length
                return Point(*(p + (q - p) * share for p, q in zip(a, b, strict=True)))
            metres -= length
        return self.points[-1]

    def seconds(self, yaw: float, metres: float = math.inf) -> float:
        """Time that an agent needs which turns on the spot and runs straight.

        It turns towards the first leg, and at each turn of more than `TURN` degrees, standing. It
        takes lesser bends as it runs, and slopes as if they were level.

        Args:
            yaw: Its heading at the start.
            metres: How far along the way; no farther than where it touches the reward.
        """
        left = min(metres, max(0.0, self.length - self.touch))
        if left <= 0.0 or len(self.points) < 2:
            return 0.0
        standing = {turn.at: abs(turn.degrees) for turn in self.turns()}
        first = heading(*self.legs[0])
        time, speed = abs(_wrap(first - yaw)) / TURN_SPEED, 0.0
        for a, b in self.legs:
            if a in standing:
                time, speed = time + standing[a] / TURN_SPEED, 0.0
            length = min(leg_length(a, b), left)
            took, speed = _run(length, speed)
            time, left = time + took, left - length
            if left <= 0.0:
                break
        return time


def heading(a: Point, b: Point) -> float:
    """Heading from one point to another, in degrees clockwise from +z."""
    return math.degrees(scalars.atan2(b.x - a.x, b.z - a.z))


def leg_length(a: Point, b: Point) -> float:
    """Metres of a straight part of a way; falling costs no metres."""
    flat, up = _flat(a, b), abs(b.y - a.y)
    return math.hypot(flat, up) if up <= 1.5 * flat else flat


def _flat(a: Point, b: Point) -> float:
    return math.hypot(b.x - a.x, b.z - a.z)


def _wrap(degrees: float) -> float:
    return (degrees + 180.0) % 360.0 - 180.0


def _bends(points: Sequence[Point]) -> list[Turn]:
    """Changes of heading; those to one side, each within `ONE_TURN` of the last, are one."""
    turns: list[Turn] = []
    last = -math.inf
    gone = 0.0
    legs = [(a, b) for a, b in itertools.pairwise(points) if _flat(a, b) > 1e-6]
    for (a, b), (_, c) in itertools.pairwise(legs):
        gone += _flat(a, b)
        change = _wrap(heading(b, c) - heading(a, b))
        if turns and gone - last <= ONE_TURN and change * turns[-1].degrees > 0.0:
            turns[-1] = turns[-1]._replace(degrees=turns[-1].degrees + change)
        elif abs(change) > 1e-6:
            turns.append(Turn(b, change))
        last = gone
    return turns


def run_seconds(metres: float) -> float:
    """Seconds for a straight run on the floor, from standing, at full thrust."""
    return _run(metres, 0.0)[0]


def _run(metres: float, speed: float) -> tuple[float, float]:
    """Seconds for a straight run at full thrust on the floor, and the speed at its end.

    The law of reference section 3.3, step by step.
    """
    steps, left = 0, metres
    while left > 1e-9:
        faster = KEPT * (speed + THRUST) - RUBBED
        moved = faster * STEP_SECONDS
        if moved >= left:
            return (steps + left / moved) * STEP_SECONDS, faster
        left, speed, steps = left - moved, faster, steps + 1
    return steps * STEP_SECONDS, speed


def positive_goals(placement: Placement) -> list[PlacedObject]:
    """Goals that give a reward at the start."""
    return [thing for thing in placement.objects if thing.kind.goal and thing.reward > 0.0]


def is_movable(thing: PlacedObject) -> bool:
    """Whether a solid object is there to be pushed."""
    return not thing.kind.goal and not thing.kind.zone and 0.0 < thing.kind.mass < RAMP_MASS


def is_lava(thing: PlacedObject) -> bool:
    """Whether it is a zone that kills."""
    return thing.kind.reward == "death"


def ends_badly(thing: PlacedObject) -> bool:
    """Whether touching a goal takes reward, or ends the episode with nothing."""
    rule = thing.kind.reward
    return thing.kind.goal and (rule == "bad" or (rule == "decoy" and not thing.kind.multi))


class Terrain:
    """An arena as the agent's body meets it, and the ways through it."""

    def __init__(self, placement: Placement, *, blocks: bool = True) -> None:
        """Begin; everything is worked out when it is asked for.

        Args:
            placement: The placed arena.
            blocks: Whether blocks that can be pushed stand in the way; without, they are not there.
        """
        self.placement = placement
        self.things = [t for t in solid_things(placement) if blocks or not is_movable(t)]
        self.goals = positive_goals(placement)

    @property
    def ground(self) -> Ground:
        """Where the body can be.

        Raises:
            TooMuchError: There are too many large objects.
        """
        if isinstance(self._ground, TooMuchError):
            raise self._ground
        return self._ground

    @cached_property
    def _ground(self) -> Ground | TooMuchError:
        try:
            return Ground.of(self.things)
        except TooMuchError as error:  # kept, so that it is found out but once
            return error

    @cached_property
    def start(self) -> int | None:
        """The place where the agent starts; None if it is inside something."""
        return self.ground.under(self.placement.agent.position)

    @cached_property
    def lava(self) -> Mask:
        """Places at which the body touches lava."""
        return self._mask_met(is_lava)

    @cached_property
    def hot(self) -> Mask:
        """Places at which the body touches a hot zone."""
        return self._mask_met(lambda thing: thing.kind.reward == "hot")

    @cached_property
    def foul(self) -> Mask:
        """Places at which a way should not lead: lava, and goals that end it badly."""
        return self.lava | self._mask_met(ends_badly)

    def _mask_met(self, which: Callable[[PlacedObject], bool]) -> Mask:
        met = np.zeros(len(self.ground), np.bool_)
        for thing in filter(which, self.placement.objects):
            for solid in thing.solids():
                met |= self.ground.inside(solid)
        return met

    @cached_property
    def rests(self) -> list[Point]:
        """Centre of each of `goals`, in their order, once it has fallen on what is below it."""
        return [
            goal.position._replace(y=rest_height(self.things, goal))
            if goal.position.y - goal.size.x / 2 > LIFT + _ON_FLOOR
            else goal.position
            for goal in self.goals
        ]

    def goal_moves(self, number: int) -> bool:
        """Whether a goal starts to move by itself: it bounces, falls, or lies on a slope."""
        goal, rest = self.goals[number], self.rests[number]
        falls = goal.position.y - rest.y > STEP
        slopes = (solid for solid in self._firm if solid.shape == "wedge")
        on_slope = any(covers(slope, goal.position) for slope in slopes)
        return goal.kind.bounce or falls or on_slope

    @cached_property
    def contacts(self) -> list[Indices]:
        """Places from which the body touches each of `goals`, in their order."""
        return [
            self.ground.touching(rest, goal.size.x / 2)
            for goal, rest in zip(self.goals, self.rests, strict=True)
        ]

    @cached_property
    def safe_moves(self) -> MoveGraph:
        """Moves that touch no lava and no goal that ends the episode badly."""
        return self.ground.graph(self.foul)

    @cached_property
    def safe(self) -> ShortestPathTree | None:
        """Shortest ways by safe moves; None if the agent starts inside something."""
        return None if self.start is None else self.safe_moves.shortest(self.start)

    @cached_property
    def route(self) -> Route | None:
        """The shortest safe way to a reward."""
        if straight := self._straight():
            return straight
        return None if self.safe is None else self._route(self.safe, self.safe_moves, safe=True)

    @cached_property
    def reckless(self) -> Route | None:
        """The shortest way to a reward if lava and bad goals did nothing."""
        if not any(is_lava(thing) or ends_badly(thing) for thing in self.placement.objects):
            return self.route
        if self.start is None:
            return None
        graph = self.ground.graph()
        return self._route(graph.shortest(self.start), graph, safe=False)

    def _straight(self) -> Route | None:
        """The way to the nearest reward if nothing is in it: quicker, and exact."""
        start = self.placement.agent.position
        if not self.goals or start.y > AGENT_RADIUS + LIFT + _ON_FLOOR:
            return None
        goal = min(self.goals, key=lambda thing: _flat(start, thing.position))
        end = goal.position
        if end.y - goal.size.x / 2 > LIFT + _ON_FLOOR:
            return None
        on_floor = start._replace(y=FLOOR + AGENT_RADIUS)
        touch = _touch(on_floor, end, goal)
        if self._in_tunnel(on_floor, end, touch) or not self.clear(on_floor, end, touch, safe=True):
            return None
        return Route(goal, end, (on_floor, end._replace(y=on_floor.y)), (), touch)

    def _in_tunnel(self, a: Point, b: Point, short: float) -> bool:
        """Whether a straight line leads through a tunnel."""
        shells = [solid for solid in self._firm if solid.shape == "shell"]
        if not shells:
            return False
        x, z = _line(a, b, short)
        inside = (local(solid, x, z) for solid in shells)
        return any(
            bool(((np.abs(u) < shell.half.x) & (np.abs(v) < shell.half.z)).any())
            for shell, (u, v) in zip(shells, inside, strict=True)
        )

    @cached_property
    def _firm(self) -> list[Solid]:
        return [solid for thing in self.things for solid in thing.solids()]

    @cached_property
    def _foul_solids(self) -> list[Solid]:
        foul = (t for t in self.placement.objects if is_lava(t) or ends_badly(t))
        return [solid for thing in foul for solid in thing.solids()]

    def clear(self, a: Point, b: Point, short: float = 0.0, *, safe: bool) -> bool:
        """Whether nothing is in the way of the body, straight on the level from a to b.

        Args:
            a: Where its centre is.
            b: Where it goes.
            short: Metres before b at which it stops.
            safe: Whether lava and bad goals are in the way too.
        """
        x, z = _line(a, b, short)
        solids = [*self._firm, *self._foul_solids] if safe else self._firm
        return not _meets(solids, a.y, x, z)

    def _route(self, tree: ShortestPathTree, graph: MoveGraph, *, safe: bool) -> Route | None:
        """The shortest way of a tree to a reward."""
        ground = self.ground
        best: tuple[float, int, int] | None = None
        for number, (end, touching) in enumerate(zip(self.rests, self.contacts, strict=True)):
            if not len(touching):
                continue
            apart = np.hypot(ground.x[touching] - end.x, ground.z[touching] - end.z)
            metres = tree.metres[touching] + apart
            nearest = int(np.argmin(metres))
            if np.isfinite(metres[nearest]) and (best is None or metres[nearest] < best[0]):
                best = float(metres[nearest]), number, int(touching[nearest])
        if best is None:
            return None
        _, number, place = best
        places = tree.path(place, ground.x, ground.z)
        return self.route_along(places, number, graph, safe=safe)

    def route_along(
        self, places: Sequence[int], number: int, graph: MoveGraph, *, safe: bool
    ) -> Route:
        """Draw a way tight.

        Args:
            places: Places of the grid from the start to one that touches a goal.
            number: Number of the goal in `goals`.
            graph: The moves that it may make.
            safe: Whether it may not touch lava or bad goals.
        """
        ground, goal, end = self.ground, self.goals[number], self.rests[number]
        start = self.placement.agent.position._replace(y=float(ground.height[places[0]]))
        points = [start, *(ground.position(place) for place in places[1:])]
        last = points[-1]
        touch = _touch(last, end, goal)
        points.append(Point(end.x, last.y, end.z))
        tight = _Pull(self, graph, points, [*places, -1], touch, safe).tight()
        return Route(goal, end, tuple(tight), tuple(self._places_on(tight, places[0])), touch)

    def _places_on(self, points: Sequence[Point], first: int) -> list[int]:
        """Places of the grid along a way, as far as there are any."""
        ground, places = self.ground, [first]
        for a, b in itertools.pairwise(points):
            x, z = _line(a, b, 0.0, CELL / 2)
            y = np.linspace(a.y, b.y, len(x))
            for cell, height in zip(map(cell_at, x.tolist(), z.tolist()), y.tolist(), strict=True):
                if (
                    ground.cell[places[-1]] == cell
                    and abs(ground.height[places[-1]] - height) < STEP
                ):
                    continue
                here = range(int(ground.first[cell]), int(ground.first[cell + 1]))
                place = min(here, key=lambda k: abs(ground.height[k] - height), default=None)
                if place is not None and abs(ground.height[place] - height) < STEP:
                    places.append(place)
        return places

    def distances(self) -> Array:
        """Metres by safe ways to where the body touches each goal; infinite where there is none.

        Returns:
            From the start in row 0, and from goal k in row k + 1, to each goal.
        """
        number = len(self.goals)
        distances = np.full((number + 1, number), np.inf)
        body = self.placement.agent.position
        froms = [(body, body.y <= AGENT_RADIUS + LIFT + _ON_FLOOR)]
        lying = [
            end.y - goal.size.x / 2 <= LIFT + _ON_FLOOR
            for goal, end in zip(self.goals, self.rests, strict=True)
        ]
        froms += list(zip(self.rests, lying, strict=True))
        for row, (at, low) in enumerate(froms):
            feet = Point(at.x, FLOOR + AGENT_RADIUS, at.z)
            tree: ShortestPathTree | None = None
            for column, (goal, end) in enumerate(zip(self.goals, self.rests, strict=True)):
                if row == column + 1:
                    continue
                touch = _touch(feet, end, goal)
                if low and lying[column] and self.clear(feet, end, touch, safe=True):
                    distances[row, column] = max(0.0, _flat(feet, end) - touch)
                    continue
                tree = tree or self._tree_from(row)
                if tree is None:
                    break
                metres = tree.metres[self.contacts[column]]
                distances[row, column] = metres.min() if len(metres) else np.inf
        return distances

    def _tree_from(self, row: int) -> ShortestPathTree | None:
        """Shortest safe ways from the start (row 0), or from where a goal is touched (row 1 on)."""
        if row == 0:
            return self.safe
        touching = self.contacts[row - 1]
        if not len(touching):
            return None
        end = self.rests[row - 1]
        apart = np.hypot(self.ground.x[touching] - end.x, self.ground.z[touching] - end.z)
        if self.safe is not None:
            # The side from which the agent can come.
            apart = np.where(np.isfinite(self.safe.metres[touching]), apart, np.inf)
        nearest = int(np.argmin(apart))
        return (
            self.safe_moves.shortest(int(touching[nearest])) if np.isfinite(apart).any() else None
        )

    @cached_property
    def region(self) -> Indices:
        """Number of the region of each place; within one the agent can go to and fro, safely."""
        return self.safe_moves.regions()

    @cached_property
    def _exits(self) -> tuple[dict[int, set[int]], set[int]]:
        """Regions that each region leads to directly, and the large ones."""
        label = self.region
        leads: dict[int, set[int]] = defaultdict(set)
        for one, other in self.safe_moves.between(label):
            leads[one].add(other)
        sizes = np.bincount(label) * CELL * CELL
        return leads, set(np.flatnonzero(sizes >= LEAST_REGION).tolist())

    @cached_property
    def sequence(self) -> list[int]:
        """Large regions on the way, in their order."""
        if self.route is None or not self.route.places:
            return []
        height = self.ground.height[list(self.route.places)]
        if height.max() - height[-1] < STEP:  # it falls from nothing
            return []
        _, large = self._exits
        labels = self.region[list(self.route.places)].tolist()
        return [k for k, _ in itertools.groupby(label for label in labels if label in large)]

    @cached_property
    def choice(self) -> IrreversibleChoice | None:
        """Where the agent first has to choose for good, on its way; None if it need not."""
        route = self.route
        if route is None or len(self.sequence) < 2:
            return None
        leads, large = self._exits
        into: dict[int, set[int]] = defaultdict(set)
        for one, others in leads.items():
            for other in others:
                into[other].add(one)
        number = next(n for n, goal in enumerate(self.goals) if goal is route.goal)
        touching = set(self.region[self.contacts[number]].tolist())
        good = _reach(touching, into)
        for label in self.sequence[:-1]:
            exits = _next_large(label, leads, large)
            if len(exits) > 1:
                places = route.places
                last = max(k for k, p in enumerate(places) if self.region[p] == label)
                at = self.ground.position(places[last])
                return IrreversibleChoice(at, _along(route, at), len(exits), len(exits & good))
        return None

    def reaches_goal(self, closed: Mask) -> bool:
        """Whether the agent can safely get to a reward without entering some places."""
        if self.start is None:
            return False
        reached = self.ground.graph(closed | self.foul).reached(self.start)
        return any(bool(reached[touching].any()) for touching in self.contacts)

    @cached_property
    def lava_margin(self) -> float | None:
        """Metres that the body can keep off lava all the way; None without lava or a safe way."""
        if self.route is None or not bool(self.lava.any()):
            return None
        from scipy import ndimage

        ground = self.ground
        top = ground.first[1:] - 1
        deadly = self.lava[top].reshape(SIDE, SIDE)
        away = ndimage.distance_transform_edt(~deadly).ravel()[ground.cell] * CELL
        levels = np.arange(CELL, WIDEST + CELL / 2, CELL)
        low, high = 0, len(levels)
        while low < high:  # the last level that leaves a way
            middle = (low + high) // 2
            if self.reaches_goal(away <= levels[middle]):
                low = middle + 1
            else:
                high = middle
        return 0.0 if low == 0 else float(levels[low - 1])

    def share_met(self, points: Sequence[Point], mask: Callable[[], Mask]) -> float:
        """Metres of a way on which the body is at places of some sort."""
        chosen = mask()
        total = 0.0
        for a, b in itertools.pairwise(points):
            x, z = _line(a, b, 0.0)
            y = np.linspace(a.y, b.y, len(x))
            met = [self._at(*where, chosen) for where in zip(x, y, z, strict=True)]
            total += leg_length(a, b) * sum(met) / len(met)
        return total

    def _at(self, x: float, y: float, z: float, chosen: Mask) -> bool:
        cell = cell_at(x, z)
        first, end = int(self.ground.first[cell]), int(self.ground.first[cell + 1])
        if first == end:
            return False
        place = min(range(first, end), key=lambda k: abs(self.ground.height[k] - y))
        return bool(chosen[place])

    def lava_straight(self, goal: PlacedObject) -> float:
        """Metres in lava if the agent made straight for a reward, over whatever it can walk on.

        Through what it cannot walk on it goes on as if nothing were there.
        """
        ground, start = self.ground, self.placement.agent.position
        x, z = _line(start, goal.position, _touch(start, goal.position, goal))
        height, met = start.y, 0
        for cell in map(cell_at, x.tolist(), z.tolist()):
            first, end = int(ground.first[cell]), int(ground.first[cell + 1])
            low = [k for k in range(first, end) if ground.height[k] <= height + CELL]
            place = low[-1] if low else None
            if place is None:
                continue
            height = float(ground.height[place])
            met += bool(self.lava[place])
        return met * _flat(start, goal.position) / len(x)


class _Pull:
    """Draws a way tight that leads from place to place."""

    def __init__(
        self,
        terrain: Terrain,
        graph: MoveGraph,
        points: list[Point],
        places: list[int],
        touch: float,
        safe: bool,
    ) -> None:
        self._terrain, self._graph = terrain, graph
        self._points, self._places = points, places
        self._touch, self._safe = touch, safe
        self._end = len(points) - 1

    def tight(self) -> list[Point]:
        kept = [0]
        while kept[-1] < self._end:
            kept.append(self._farthest(kept[-1]))
        changed = True
        while changed:
            changed = False
            for k in range(len(kept) - 2, 0, -1):
                if self._has_sight(kept[k - 1], kept[k + 1]):
                    del kept[k]
                    changed = True
        return self._add_heights(kept, self._ease_bends(kept))

    def _farthest(self, k: int) -> int:
        if self._has_sight(k, self._end):
            return self._end
        good, step = k + 1, 2
        while k + step < self._end and self._has_sight(k, k + step):
            good, step = k + step, 2 * step
        bad = min(k + step, self._end)
        while bad - good > 1:
            middle = (good + bad) // 2
            if self._has_sight(k, middle):
                good = middle
            else:
                bad = middle
        return good

    def _has_sight(self, i: int, j: int) -> bool:
        if j == i + 1:
            return True
        a, b = self._points[i], self._points[j]
        short = self._touch if j == self._end else 0.0
        if abs(a.y - b.y) < _LEVEL:
            if not self._terrain.clear(a, b, short, safe=self._safe):
                return False
            if a.y < FLOOR + AGENT_RADIUS + _LEVEL:
                return True
        return self._walks(self._places[i], a, b, short)

    def _walks(self, place: int, a: Point, b: Point, short: float) -> bool:
        """Whether the body gets from a place straight on to a point, up and down as it may be."""
        walked = self._walk(place, a, b, short)
        return walked is not None and (abs(walked[-1].y - b.y) < CELL or short > 0.0)

    def _walk(self, place: int, a: Point, b: Point, short: float) -> list[Point] | None:
        """Where the body's centre is on a straight line from a place; None if it cannot go on."""
        x, z = _line(a, b, short, CELL / 2)
        ground, graph = self._terrain.ground, self._graph
        heights: list[Point] = []
        for at_x, at_z in zip(x.tolist(), z.tolist(), strict=True):
            cell = cell_at(at_x, at_z)
            if ground.cell[place] != cell:
                onward = (to for to in graph.next(place) if ground.cell[to] == cell)
                if (to := next(onward, None)) is None:
                    return None
                place = to
            heights.append(Point(at_x, float(ground.height[place]), at_z))
        return heights

    def _add_heights(self, kept: list[int], points: list[Point]) -> list[Point]:
        """The way with points in between where it goes up or down."""
        bent = [points[0]]
        for k, (a, b) in zip(kept, itertools.pairwise(points), strict=False):
            last = b is points[-1]
            short = self._touch if last else 0.0
            if abs(a.y - b.y) >= _LEVEL and (walked := self._walk(self._places[k], a, b, short)):
                end = b._replace(y=walked[-1].y) if last else b
                bent += _points_of_bends([a, *walked[1:], end])[1:]
            else:
                bent.append(b)
        return bent

    def _ease_bends(self, kept: list[int]) -> list[Point]:
        """The way, with each bend on the level moved as far inwards as there is room."""
        points = [self._points[k] for k in kept]
        for _ in range(2):
            for k in range(1, len(points) - 1):
                a, b, c = points[k - 1 : k + 2]
                if max(abs(a.y - b.y), abs(c.y - b.y)) >= _LEVEL:
                    continue
                if b.y > FLOOR + AGENT_RADIUS + _LEVEL:
                    continue
                span = _flat(a, c)
                if span < 1e-6:
                    continue
                share = ((b.x - a.x) * (c.x - a.x) + (b.z - a.z) * (c.z - a.z)) / (span * span)
                share = min(max(share, 0.0), 1.0)
                foot = Point(a.x + share * (c.x - a.x), b.y, a.z + share * (c.z - a.z))
                short = self._touch if k == len(points) - 2 else 0.0
                off = _flat(b, foot)
                for inward in (0.2, 0.1, 0.05, 0.025):
                    if inward >= off:
                        continue
                    to = Point(
                        b.x + (foot.x - b.x) * inward / off,
                        b.y,
                        b.z + (foot.z - b.z) * inward / off,
                    )
                    clear = self._terrain.clear
                    if clear(a, to, safe=self._safe) and clear(to, c, short, safe=self._safe):
                        points[k] = to
                        break
        return points


def _points_of_bends(points: list[Point]) -> list[Point]:
    """The points of a straight way at which it changes its slope (Douglas and Peucker)."""
    a, b = points[0], points[-1]
    span = _flat(a, b)
    if len(points) < 3 or span < 1e-9:
        return [a, b]
    off = [abs(p.y - a.y - (b.y - a.y) * _flat(a, p) / span) for p in points]
    most = max(range(1, len(points) - 1), key=off.__getitem__)
    if off[most] < _BUMP:
        return [a, b]
    return _points_of_bends(points[: most + 1])[:-1] + _points_of_bends(points[most:])


def _line(a: Point, b: Point, short: float, step: float = _SAMPLE) -> tuple[Any, Any]:
    """Points of a straight line, from a to some metres before b."""
    length = _flat(a, b)
    to = max(0.0, 1.0 - short / length) if length > 0.0 else 0.0
    share = np.linspace(0.0, to, max(2, math.ceil(length * to / step) + 1))
    return a.x + share * (b.x - a.x), a.z + share * (b.z - a.z)


def _meets(solids: Iterable[Solid], height: float, x: Any, z: Any) -> bool:
    """Whether a body at some height meets solids, or the arena's walls, at one of some points."""
    edge = AGENT_RADIUS - _EASE
    # The first point is where the body is.
    if len(x) > 1 and (
        min(x[1:].min(), z[1:].min()) < min(edge, x[0], z[0])
        or max(x[1:].max(), z[1:].max()) > max(ARENA_SIDE - edge, x[0], z[0])
    ):
        return True
    low_x, high_x, low_z, high_z = x.min(), x.max(), z.min(), z.max()
    numbers = np.arange(len(x))
    for solid in solids:
        (cx, cy, cz), half = solid.center, solid.half
        if abs(height - cy) >= half.y + AGENT_RADIUS:
            continue
        reach = math.hypot(half.x, half.z) + AGENT_RADIUS
        if not (low_x - reach < cx < high_x + reach and low_z - reach < cz < high_z + reach):
            continue
        for span in spans_at(solid, numbers, x, z, AGENT_RADIUS - _EASE):
            if bool(((span.low < height - _EASE) & (height + _EASE < span.high)).any()):
                return True
    return False


def _touch(body: Point, end: Point, goal: PlacedObject) -> float:
    """Metres, seen from above, between the centres of body and goal when they touch."""
    span = scalars.square(AGENT_RADIUS + goal.size.x / 2) - scalars.square(body.y - end.y)
    return math.sqrt(max(span, 0.0))


def _reach(start: set[int], edges: dict[int, set[int]]) -> set[int]:
    reached, waiting = set(start), list(start)
    while waiting:
        for other in edges.get(waiting.pop(), ()):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached


def _next_large(label: int, leads: dict[int, set[int]], large: set[int]) -> set[int]:
    """Large regions that one comes to from a region, by small ones alone."""
    found: set[int] = set()
    seen, waiting = {label}, [label]
    while waiting:
        for other in leads.get(waiting.pop(), ()):
            if other in seen:
                continue
            seen.add(other)
            if other in large:
                found.add(other)
            else:
                waiting.append(other)
    return found


def _along(route: Route, at: Point) -> float:
    """How far along a way its nearest point to some point is, in metres."""
    best, gone = (math.inf, 0.0), 0.0
    for a, b in route.legs:
        length, span = leg_length(a, b), _flat(a, b)
        share = 0.0
        if span > 0.0:
            share = ((at.x - a.x) * (b.x - a.x) + (at.z - a.z) * (b.z - a.z)) / (span * span)
            share = min(max(share, 0.0), 1.0)
        near = math.hypot(a.x + share * (b.x - a.x) - at.x, a.z + share * (b.z - a.z) - at.z)
        best = min(best, (near, gone + share * length))
        gone += length
    return best[1]
