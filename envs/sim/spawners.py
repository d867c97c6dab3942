"""The goal spawners: a tree that bears fruit, and housings that fill up and open a hatch.

What they do is fixed in builds since 4.0, which ignore an item's `spawnCounts`,
`timesBetweenSpawns`, `ripenTimes`, `initialValues`, `finalValues` and `spawnColors`; only
`timesBetweenDoorOpens` acts (inferred, reference/animal-ai.md section 2.1). Build 3.1.3 heeds these
fields, and where they are missing takes the fallbacks of section 1.4 (its sources; not tested on
the real build). Every goal that appears adds to the number of goals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from animalcat.arena_configs.catalogue import HATCH_HEIGHT, HOUSING_WALL, KINDS
from animalcat.arena_configs.geometry import rotate
from animalcat.arena_configs.model import Item, Point
from animalcat.arena_configs.placement import MAX_OBJECTS, PlacedObject, shade
from animalcat.envs.sim.physics import Body, Box
from animalcat.envs.sim.rules import LONGEST_WAIT
from animalcat.envs.sim.scene import Primitive, Shape, Style, tag_index
from animalcat.envs.types import PHYSICS_STEP
from animalcat.portable import scalars

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from animalcat.arena_configs.builds import Build
    from animalcat.envs.sim.stage import Prop, Stage

_GOAL: Final = KINDS["GoodGoalMulti"]
_OPENING: Final = round(1.0 / PHYSICS_STEP)
"""Physics steps in which a hatch opens or closes."""

_FIRST_GOAL: Final = 3
"""Physics steps until a housing has its first goal: none is in the first frame of the real build,
where it appears with the next rendered picture."""

_HATCH_COLOR: Final = (1.0, 1.0, 1.0, 1.0 - 0.75**2)
"""Glass as thick as two panes: frames show what is behind it paler than beside it."""

_CROWN: Final = Point(-0.1, 4.3, -0.1)
_CROWN_RADIUS: Final = 2.25
_LOWEST: Final = 3.0
"""Metres: no fruit below, where it would grow in the trunk (inferred)."""


@dataclass(frozen=True, slots=True)
class Supply:
    """What a spawner gives.

    Attributes:
        count: Number of goals; -1 for no end.
        first: Physics steps before the first one.
        every: Physics steps from one to the next.
        ripening: Physics steps in which a goal hangs and grows.
        start: Its diameter in metres when it appears.
        end: Its diameter when it falls.
        color: rgb, 0 to 1; None for the goal's own.
    """

    count: int
    first: int
    every: int
    ripening: int
    start: float
    end: float
    color: tuple[float, float, float] | None = None

    def due(self, steps: int) -> int:
        """How many goals have appeared after a number of physics steps."""
        if steps < self.first:
            return 0
        number = 1 + (steps - self.first) // self.every
        return number if self.count < 0 else min(number, self.count)

    def diameter(self, age: int) -> float:
        """Diameter of a goal that appeared so many physics steps ago."""
        if age >= self.ripening:
            return self.end
        return self.start + (self.end - self.start) * age / self.ripening


def _steps(seconds: float) -> int:
    return round(min(max(0.0, seconds), LONGEST_WAIT) / PHYSICS_STEP)


_SUPPLIES: Final = {
    "SpawnerTree": Supply(10, _steps(2.0), _steps(1.5), _steps(4.0), 0.2, 1.0),
    "SpawnerDispenserTall": Supply(10, _FIRST_GOAL, _steps(0.5), 0, 1.0, 1.0),
    "SpawnerContainerShort": Supply(1, _FIRST_GOAL, 1, 0, 1.0, 1.0),
}


def supply(thing: PlacedObject, build: Build) -> Supply:
    """What a spawner of a build gives.

    The first goal comes when the prefab says, also in build 3.1.3: a spawner begins to wait before
    it is told of its item's `delays`.
    """
    usual = _SUPPLIES[thing.name]
    if build != "3.1.3":
        return usual
    tree, item = thing.name == "SpawnerTree", thing.item
    start, end = (0.2, 1.0) if tree else (2.5, 0.5)
    most = 3.0 if tree else 1.0
    rgb = item.spawn_colors[0] if item.spawn_colors else None
    return Supply(
        max(-1, item.spawn_counts[0]) if item.spawn_counts else -1,
        usual.first,
        max(1, _steps(_first(item.times_between_spawns, 4.0 if tree else 1.5))),
        _steps(_first(item.ripen_times, 6.0)),
        min(max(_first(item.initial_values, start), 0.2), most),
        min(max(_first(item.final_values, end), 0.2), most),
        None if rgb is None or min(rgb.r, rgb.g, rgb.b) < 0 else shade(rgb),
    )


def _first(values: tuple[float, ...], fallback: float) -> float:
    return values[0] if values else fallback


def _goal_at(
    position: Point, size: float, color: tuple[float, float, float] | None
) -> PlacedObject:
    """Make a placed GoodGoalMulti of a diameter, with its centre at a position."""
    return PlacedObject(
        _GOAL,
        _GOAL.name,
        position,
        0.0,
        Point(size, size, size),
        color,
        size,
        Item(name=_GOAL.name),
        (-1, 0),
    )


class _HangingGoals:
    """Goals that grow where they hang, and then fall."""

    def __init__(self, stage: Stage, supply: Supply) -> None:
        self._stage, self._supply = stage, supply
        self._goals: list[tuple[Prop, int]] = []

    def add(self, prop: Prop, born: int) -> None:
        """Hang a goal that appeared in this physics step."""
        self._goals.append((prop, born))

    def step(self, steps: int) -> None:
        """Grow and drop, in this physics step."""
        supply = self._supply
        for prop, born in self._goals:
            if prop.bodies[0] in self._stage.goals:
                diameter = supply.diameter(steps - born)
                self._stage.resize(prop, diameter, hanging=True)
                self._stage.value(prop, diameter)
                if steps - born >= supply.ripening:
                    self._stage.release(prop)
        self._goals = [goal for goal in self._goals if steps - goal[1] < supply.ripening]


class FruitTree:
    """Bears GoodGoalMulti: ten, the first after 2 s, then one every 1.5 s.

    They hang on a sphere of 2.25 m round the crown, on its upper part, grow from 0.2 to 1 m in
    4 s, then fall. (Numbers of builds since 4.0.)
    """

    def __init__(
        self,
        stage: Stage,
        prop: Prop,
        spawn: Callable[[PlacedObject, bool], Prop],
        rng: np.random.Generator,
        supply: Supply,
    ) -> None:
        """Bear fruit from now on.

        Args:
            stage: Where the tree stands.
            prop: The tree.
            spawn: Puts a goal in; hanging if True.
            rng: Where on the crown. (Unity's tree draws from fixed seeds, its own ones.)
            supply: What it bears.
        """
        self._stage, self._thing, self._spawn, self._rng = stage, prop.thing, spawn, rng
        self._supply, self._hanging = supply, _HangingGoals(stage, supply)
        self._steps = self._borne = 0

    def step(self) -> None:
        """Grow the fruit that hangs, drop what is ripe, and bear the next."""
        self._steps += 1
        supply = self._supply
        self._hanging.step(self._steps)
        if self._borne < supply.due(self._steps) and len(self._stage.scene) < MAX_OBJECTS:
            self._borne += 1
            fruit = _goal_at(self._place(), supply.diameter(0), supply.color)
            prop = self._spawn(fruit, supply.ripening > 0)
            if supply.ripening:
                self._hanging.add(prop, self._steps)

    def _place(self) -> Point:
        """Draw a point of the sphere, uniform over its surface above `_LOWEST`."""
        low = _LOWEST - _CROWN.y
        y = float(self._rng.uniform(low, _CROWN_RADIUS))
        around = float(self._rng.uniform(0.0, 2 * math.pi))
        reach = math.sqrt(_CROWN_RADIUS * _CROWN_RADIUS - y * y)
        x, z = _CROWN.x + reach * scalars.sin(around), _CROWN.z + reach * scalars.cos(around)
        return _in_arena(self._thing, Point(x, _CROWN.y + y, z))


_HEIGHTS: Final = {"SpawnerDispenserTall": 3.65, "SpawnerContainerShort": 0.55}
"""Metres above a housing's foot at which goals appear in it."""
_OPENS: Final = {"SpawnerDispenserTall": 0, "SpawnerContainerShort": _steps(1.0)}
"""Physics steps before a hatch begins to open."""


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
        supply: Supply,
    ) -> None:
        """Begin with the hatch closed; arguments as for `FruitTree`."""
        self._stage, self._thing, self._spawn, self._rng = stage, prop.thing, spawn, rng
        self._supply, self._hanging = supply, _HangingGoals(stage, supply)
        self._height, self._opens = _HEIGHTS[prop.thing.name], _OPENS[prop.thing.name]
        again = prop.thing.item.times_between_door_opens
        self._pause = _steps(again[0]) if again and again[0] >= 0 else None
        self._steps = self._spawned = 0
        self._sunk = 0.0
        width = prop.thing.size.x
        # The hatch stands before the wall above it, and sinks into the floor.
        self._closed = _in_arena(
            prop.thing, Point(-(width + HOUSING_WALL) / 2, HATCH_HEIGHT / 2, 0.0)
        )
        half = Point(HOUSING_WALL / 2, HATCH_HEIGHT / 2, width / 2 - HOUSING_WALL)
        yaw = prop.thing.yaw
        sin, cos = scalars.sin(math.radians(yaw)), scalars.cos(math.radians(yaw))
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
        supply = self._supply
        self._hanging.step(self._steps)
        if self._spawned < supply.due(self._steps) and len(self._stage.scene) < MAX_OBJECTS:
            # A little off the middle, or they would balance on one another.
            x, z = self._rng.uniform(-0.02, 0.02, 2).tolist()
            position = _in_arena(self._thing, Point(x, self._height, z))
            if self._free(position):
                born = supply.first + self._spawned * supply.every
                age = self._steps - born  # it has ripened while it waited for room
                self._spawned += 1
                goal = _goal_at(position, supply.diameter(age), supply.color)
                prop = self._spawn(goal, age < supply.ripening)
                if age < supply.ripening:
                    self._hanging.add(prop, born)
        self._steps += 1
        sunk = self._hatch_opening(self._steps - self._opens) * HATCH_HEIGHT
        if sunk != self._sunk:
            self._sunk = sunk
            x, y, z = self._closed
            self._stage.physics.move(self._hatch, (x, y - sunk, z))
            self._stage.scene.center[self._row, 1] = y - sunk

    def _hatch_opening(self, steps: int) -> float:
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
