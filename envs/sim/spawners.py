"""The goal spawners: a tree that bears fruit, and housings that fill up and open a hatch.

What they do is fixed: build 4.3.1 ignores an item's `delays`, `spawnCounts`, `timesBetweenSpawns`,
`ripenTimes`, `initialValues`, `finalValues` and `spawnColors`; only `timesBetweenDoorOpens` acts
(inferred, reference/animal-ai.md section 2.1). Every goal that appears adds to the number of goals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animalcat.arena_configs.catalogue import HATCH_HEIGHT, HOUSING_WALL, KINDS
from animalcat.arena_configs.geometry import rotate
from animalcat.arena_configs.model import Item, Point
from animalcat.arena_configs.placement import PlacedObject
from animalcat.envs.sim.physics import Body, Box
from animalcat.envs.sim.rules import LONGEST_WAIT
from animalcat.envs.sim.scene import Primitive, Shape, Style, tag_index
from animalcat.envs.types import PHYSICS_STEP

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from animalcat.envs.sim.stage import Prop, Stage

_GOAL: Final = KINDS["GoodGoalMulti"]
_OPENING: Final = round(1.0 / PHYSICS_STEP)
"""Physics steps in which a hatch opens or closes."""

_FIRST_GOAL: Final = 3
"""Physics steps until a housing has its first goal: none is in the first frame of the real build,
where it appears with the next rendered picture."""

_HATCH_COLOR: Final = (1.0, 1.0, 1.0, 1.0 - 0.75**2)
"""Glass as thick as two panes: frames show what is behind it paler than beside it."""

_FRUIT: Final = 10
_FIRST_FRUIT: Final = round(2.0 / PHYSICS_STEP)
_NEXT_FRUIT: Final = round(1.5 / PHYSICS_STEP)
_RIPE: Final = round(4.0 / PHYSICS_STEP)
_BUD: Final = 0.2
_CROWN: Final = Point(-0.1, 4.3, -0.1)
_CROWN_RADIUS: Final = 2.25
_LOWEST: Final = 3.0
"""Metres: no fruit below, where it would grow in the trunk (inferred)."""


def _goal_at(position: Point, size: float) -> PlacedObject:
    """Make a placed GoodGoalMulti of a diameter, with its centre at a position."""
    return PlacedObject(
        _GOAL,
        _GOAL.name,
        position,
        0.0,
        Point(size, size, size),
        None,
        size,
        Item(name=_GOAL.name),
        (-1, 0),
    )


class Tree:
    """Bears ten GoodGoalMulti, the first after 2 s, then one every 1.5 s.

    They hang on a sphere of 2.25 m round the crown, on its upper part, grow from 0.2 to 1 m in
    4 s, then fall.
    """

    def __init__(
        self,
        stage: Stage,
        prop: Prop,
        spawn: Callable[[PlacedObject, bool], Prop],
        rng: np.random.Generator,
    ) -> None:
        """Bear fruit from now on.

        Args:
            stage: Where the tree stands.
            prop: The tree.
            spawn: Puts a goal in; hanging if True.
            rng: Where on the crown. (Unity's tree draws from fixed seeds, its own ones.)
        """
        self._stage, self._thing, self._spawn, self._rng = stage, prop.thing, spawn, rng
        self._steps = self._borne = 0
        self._hanging: list[tuple[Prop, int]] = []

    def step(self) -> None:
        """Grow the fruit that hangs, drop what is ripe, and bear the next."""
        self._steps += 1
        for prop, born in self._hanging:
            if prop.bodies[0] not in self._stage.goals:
                continue
            age = min((self._steps - born) / _RIPE, 1.0)
            self._stage.resize(prop, _BUD + (1.0 - _BUD) * age, hanging=True)
            if age == 1.0:
                self._stage.release(prop)
        self._hanging = [(p, born) for p, born in self._hanging if self._steps - born < _RIPE]
        due = _FIRST_FRUIT + self._borne * _NEXT_FRUIT
        if self._borne < _FRUIT and self._steps == due:
            self._borne += 1
            self._hanging.append((self._spawn(_goal_at(self._place(), _BUD), True), self._steps))

    def _place(self) -> Point:
        """Draw a point of the sphere, uniform over its surface above `_LOWEST`."""
        low = _LOWEST - _CROWN.y
        y = float(self._rng.uniform(low, _CROWN_RADIUS))
        around = float(self._rng.uniform(0.0, 2 * math.pi))
        reach = math.sqrt(_CROWN_RADIUS**2 - y * y)
        x, z = _CROWN.x + reach * math.sin(around), _CROWN.z + reach * math.cos(around)
        return _in_arena(self._thing, Point(x, _CROWN.y + y, z))


@dataclass(frozen=True, slots=True)
class _Stock:
    """What a housing holds: how many goals, how often one appears, where, and when it opens."""

    count: int
    every: int
    height: float
    opens: int


_STOCKS: Final = {
    "SpawnerDispenserTall": _Stock(10, round(0.5 / PHYSICS_STEP), 3.65, 0),
    "SpawnerContainerShort": _Stock(1, 1, 0.55, round(1.0 / PHYSICS_STEP)),
}


class Stockpiler:
    """A housing: goals of 1 m appear inside, and a hatch in front sinks into the floor in a second.

    In the real build it shrinks downward.
    A goal that would appear within another waits for room. With `timesBetweenDoorOpens` t >= 0
    the hatch closes once it is open and opens again after t seconds (inferred: only that a
    negative value leaves it open is sure).
    """

    def __init__(
        self,
        stage: Stage,
        prop: Prop,
        spawn: Callable[[PlacedObject, bool], Prop],
        rng: np.random.Generator,
    ) -> None:
        """Begin with the hatch closed; arguments as for `Tree`."""
        self._stage, self._thing, self._spawn, self._rng = stage, prop.thing, spawn, rng
        self._stock = _STOCKS[prop.thing.name]
        again = prop.thing.item.times_between_door_opens
        self._pause = (
            round(min(again[0], LONGEST_WAIT) / PHYSICS_STEP) if again and again[0] >= 0 else None
        )
        self._steps = self._spawned = 0
        self._sunk = 0.0
        width = prop.thing.size.x
        # The hatch stands before the wall above it, and sinks into the floor.
        self._closed = _in_arena(
            prop.thing, Point(-(width + HOUSING_WALL) / 2, HATCH_HEIGHT / 2, 0.0)
        )
        half = Point(HOUSING_WALL / 2, HATCH_HEIGHT / 2, width / 2 - HOUSING_WALL)
        yaw = prop.thing.yaw
        sin, cos = math.sin(math.radians(yaw)), math.cos(math.radians(yaw))
        seen = Primitive(
            Shape.BOX,
            self._closed,
            half,
            _HATCH_COLOR,
            ((cos, 0.0, sin), (0.0, 1.0, 0.0), (-sin, 0.0, cos)),
            tag_index(prop.thing.kind.tag),
            Style.TRANSPARENT,
        )
        self._row = len(stage.scene)
        self._hatch = stage.add_part(prop, Body((Box(half),), self._closed, yaw), seen)

    def step(self) -> None:
        """Fill up, and move the hatch."""
        due = min(self._stock.count, 1 + (self._steps - _FIRST_GOAL) // self._stock.every)
        self._steps += 1
        if self._spawned < due:
            # A little off the middle, or they would balance on one another.
            x, z = self._rng.uniform(-0.02, 0.02, 2).tolist()
            position = _in_arena(self._thing, Point(x, self._stock.height, z))
            if self._free(position):
                self._spawned += 1
                self._spawn(_goal_at(position, 1.0), False)
        sunk = self._opened(self._steps - self._stock.opens) * HATCH_HEIGHT
        if sunk != self._sunk:
            self._sunk = sunk
            x, y, z = self._closed
            self._stage.physics.move(self._hatch, (x, y - sunk, z))
            self._stage.scene.center[self._row, 1] = y - sunk

    def _opened(self, steps: int) -> float:
        """How far the hatch is open, 0 to 1, a number of steps after it first began to open."""
        if steps <= 0:
            return 0.0
        if self._pause is None:
            return min(steps / _OPENING, 1.0)
        phase = steps % (2 * _OPENING + self._pause)
        return max(0.0, 1.0 - abs(phase - _OPENING) / _OPENING)

    def _free(self, position: Point) -> bool:
        """Whether a goal of 1 m has room among the goals."""
        physics = self._stage.physics
        return all(math.dist(position, physics.position(goal)) > 1.0 for goal in self._stage.goals)


def _in_arena(thing: PlacedObject, local: Point) -> Point:
    """Transform a point from an object's coordinate frame to the arena's."""
    x, z = rotate(local.x, local.z, thing.yaw)
    return Point(thing.position.x + x, thing.position.y + local.y, thing.position.z + z)
