"""The contents of the arena being played: bodies, goals, zones, and the rows that show them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from animalcat.envs.sim.builder import THINNEST, build_level, make
from animalcat.envs.sim.ground import FirmObjects
from animalcat.envs.sim.movement import THRUST, AgentBody
from animalcat.envs.sim.physics import AGENT_RADIUS, CONTACT_GAP, GRAVITY, Ball, Body, Physics
from animalcat.envs.sim.scene import Scene
from animalcat.envs.sim.tracking import Tracker
from animalcat.envs.sim.zones import Zone
from animalcat.envs.types import PHYSICS_STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from animalcat.arena_configs.placement import PlacedObject, Placement
    from animalcat.envs.sim.rules import Pickup
    from animalcat.envs.sim.scene import Primitive
    from animalcat.envs.sim.vector import Vector

_SLACK: Final = 0.6
"""Metres of margin for what may be touched soon: a ball may be hit by another meanwhile."""
_ROOM: Final = 3.0
"""Metres to look further than needed, so that the lookup is not repeated at every decision."""
_FASTEST_PUSH: Final = THRUST + GRAVITY * PHYSICS_STEP
"""m/s that the agent can gain in one physics step by itself."""
_BALL_MASS: Final = 1.0
_NOTHING: Final[tuple[tuple[Zone, ...], list[int]]] = ((), [])
_AROUND: Final = AGENT_RADIUS + CONTACT_GAP
"""Metres from a ball's surface within which the agent's centre is when they touch."""


class Mover(Protocol):
    """Something that changes by itself."""

    def step(self) -> None:
        """Act at the beginning of a physics step."""
        ...


class Trigger(Protocol):
    """Something that waits for the agent."""

    def feel(self, position: Vector) -> None:
        """Act at the end of a physics step that the agent began at this position."""
        ...


@dataclass(slots=True, eq=False)
class Prop:
    """An object of the stage, with everything that belongs to it.

    Attributes:
        thing: The placed object.
        bodies: Indices of its bodies.
        rows: Its rows of the scene.
        zone: Its zone, if it has one.
        movers: What it does by itself.
        triggers: What it does when the agent comes.
    """

    thing: PlacedObject
    bodies: list[int]
    rows: list[int]
    zone: Zone | None = None
    movers: list[Mover] = field(default_factory=list["Mover"])
    triggers: list[Trigger] = field(default_factory=list["Trigger"])


class Stage:
    """The contents of an arena while it is played.

    Attributes:
        physics: The bodies.
        agent: The agent.
        scene: What sensors see; replaced by a longer one when something is spawned.
        goals: Index of a goal's body -> what touching it does.
        goal_count: Number of goals that count toward the end, when the arena was built.
        props: Objects that act by themselves, when the arena was built.
        skipped: Name and reason of each object that is not simulated.
        movers: What changes by itself.
        triggers: What waits for the agent.
    """

    def __init__(
        self,
        placement: Placement,
        duration: float = PHYSICS_STEP,
        *,
        late: bool,
        landed: bool = False,
    ) -> None:
        """Set up an arena.

        Args:
            placement: Where everything stands.
            duration: Of a physics step, in seconds.
            late: As for `Physics`: whether a reset builds it, not what happens in an episode.
            landed: As for `AgentBody`.
        """
        level = build_level(placement)
        self.physics = Physics(placement.agent.position, level.bodies, duration, late=late)
        self.agent = AgentBody(self.physics, placement.agent.yaw, landed=landed)
        self.goals: dict[int, Pickup] = dict(level.goals)
        self.goal_count = level.goal_count
        self.scene = Scene.of(level.primitives)
        self.skipped = level.skipped
        self.movers: list[Mover] = []
        self.triggers: list[Trigger] = []
        self.props: list[Prop] = []
        for thing, body, row in level.active:
            rows = list(range(row, row + len(thing.kind.parts)))
            self.props.append(Prop(thing, [body] if body >= 0 else [], rows))
        self._zones = list(level.zones)
        self._owners, self._offsets = level.owners, level.offsets
        self._tracker = Tracker(self.physics, self.scene, self._owners, self._offsets)
        self._near: tuple[tuple[Zone, ...], list[int]] = ((), [])
        self._looked_from: Vector = placement.agent.position
        # Metres: what is near was looked up this far; bodies have moved so far since; and so far
        # all together can still move until anything is near.
        self._known = self._drift = self._free = 0.0
        self._goal_rows = {
            owner: row for row, owner in enumerate(level.owners) if owner in level.goals
        }
        self._touching = {
            goal: float(self.scene.half[row, 0]) + _AROUND for goal, row in self._goal_rows.items()
        }

    def refresh(self) -> None:
        """Update the scene to the positions of the bodies."""
        self._tracker.refresh()

    def pickups(self) -> Iterator[tuple[int, Pickup]]:
        """Row of the scene of each goal that is there, and what touching it does."""
        for body, pickup in self.goals.items():
            yield self._goal_rows[body], pickup

    def touches(self, goal: int, position: Vector) -> bool:
        """Whether PhysX finds the agent in contact with a goal in the step that begins now."""
        return math.dist(position, self.physics.position(goal)) < self._touching[goal]

    def take_out(self, body: int) -> None:
        """Remove a body and what is seen of it."""
        self.physics.remove(body)
        self.goals.pop(body, None)
        for row, owner in enumerate(self._owners):
            if owner == body:
                self.scene.active[row] = False
        row = self._goal_rows.pop(body, None)
        if row is not None:
            self.scene.active[row] = False

    def in_reach(self, steps: int) -> tuple[tuple[Zone, ...], list[int]]:
        """Zones and goals that the agent may touch within these steps.

        They are looked up with a margin, and again only when agent or goals may have used it up.
        """
        time, way = steps * PHYSICS_STEP, self._way(steps)
        drift = time * (self._tracker.fastest + time * GRAVITY)
        self._drift += drift
        self._free -= way + drift
        if self._free > 0.0:
            return _NOTHING
        position, reach = self.agent.position, way + _SLACK
        self._free = self._known - (math.dist(position, self._looked_from) + self._drift + reach)
        if self._free < 0.0:
            self._looked_from, self._drift, self._free = position, drift, _ROOM
            self._known = drift + reach + _ROOM
            zones = tuple(zone for zone in self._zones if zone.within(self._known, position))
            self._near = zones, self._goals_near(self._known)
        zones, goals = self._near
        if zones or goals:
            self._free = 0.0
        return tuple(zone for zone in zones if zone.within(reach, position)), goals

    def passes_by(self, steps: int, away: Callable[[float, float], float]) -> bool:
        """Whether the agent stays out of some places for so many steps, wherever it goes.

        Args:
            steps: How many.
            away: Metres from a position, x and z, to the nearest place.
        """
        x, _, z = self.agent.position
        return away(x, z) > self._way(steps) + _SLACK

    def _way(self, steps: int) -> float:
        """Metres that the agent can go by itself in so many steps."""
        vx, vy, vz = self.agent.velocity
        speed = math.sqrt(vx * vx + vy * vy + vz * vz)
        return steps * PHYSICS_STEP * (speed + steps * _FASTEST_PUSH)

    def everything(self) -> tuple[tuple[Zone, ...], list[int]]:
        """All zones and goals, for arenas in which they may come, go or grow."""
        return tuple(self._zones), list(self.goals)

    def spawn(self, thing: PlacedObject, *, hanging: bool = False) -> Prop:
        """Add an object while the arena is played.

        Args:
            thing: The placed object.
            hanging: Whether it stays in place although it has a mass.
        """
        origin, mass = FirmObjects((thing,)).settle(thing)
        built = make(thing, origin, 0.0 if hanging else mass)
        prop = Prop(thing, [], [], built.zone)
        body = -1
        if built.body is not None:
            body = self.physics.add(built.body)
            prop.bodies.append(body)
        owner = -1 if hanging or not mass else body
        prop.rows.extend(self._show(built.primitives, owner, built.offsets))
        if built.pickup is not None:
            self.goals[body] = built.pickup
            self._goal_rows[body] = prop.rows[0]
            self._touching[body] = float(self.scene.half[prop.rows[0], 0]) + _AROUND
        if built.zone is not None:
            self._zones.append(built.zone)
        self._known = self._free = 0.0
        return prop

    def add_part(self, prop: Prop, body: Body, seen: Primitive) -> int:
        """Give an object another body that stays where it is put; returns the index of the body."""
        index = self.physics.add(body)
        prop.bodies.append(index)
        prop.rows.extend(self._show((seen,), -1, ((0.0, 0.0, 0.0),)))
        return index

    def despawn(self, prop: Prop) -> None:
        """Remove an object, if it is still there, with all that it does."""
        for body in prop.bodies:
            if body in self.goals or not prop.thing.kind.goal:
                self.take_out(body)
        self.scene.active[prop.rows] = False
        if prop.zone is not None:
            self._zones.remove(prop.zone)
        self.movers = [mover for mover in self.movers if mover not in prop.movers]
        self.triggers = [trigger for trigger in self.triggers if trigger not in prop.triggers]
        self._known = self._free = 0.0

    def act(self, prop: Prop) -> None:
        """Let an object act from now on."""
        self.movers.extend(prop.movers)
        self.triggers.extend(prop.triggers)

    def resize(self, prop: Prop, diameter: float, *, hanging: bool = False) -> None:
        """Give a goal another size; its centre stays, and PhysX pushes it out of the ground.

        Args:
            prop: The goal.
            diameter: In metres.
            hanging: Whether nothing moves it.
        """
        (body,), (row,) = prop.bodies, prop.rows
        radius = max(diameter / 2, THINNEST)
        self.physics.reshape(body, (Ball(radius),), 0.0 if hanging else _BALL_MASS)
        self.scene.half[row] = radius
        self._touching[body] = radius + _AROUND

    def value(self, prop: Prop, reward: float) -> None:
        """Give a goal another reward."""
        (body,) = prop.bodies
        self.goals[body] = replace(self.goals[body], reward=reward)

    def release(self, prop: Prop) -> None:
        """Let a hanging goal fall."""
        (body,), (row,) = prop.bodies, prop.rows
        radius = float(self.scene.half[row, 0])
        self.physics.reshape(body, (Ball(radius),), _BALL_MASS)
        owners = list(self._owners)
        owners[row] = body
        self._owners = tuple(owners)
        self._tracker.follow(self.scene, self._owners, self._offsets)

    def _show(
        self, primitives: Sequence[Primitive], owner: int, offsets: Sequence[Vector]
    ) -> range:
        first = len(self.scene)
        self.scene = self.scene.extended(primitives)
        self._owners = (*self._owners, *[owner] * len(primitives))
        self._offsets = (*self._offsets, *offsets)
        self._tracker.follow(self.scene, self._owners, self._offsets)
        return range(first, len(self.scene))

    def _goals_near(self, reach: float) -> list[int]:
        position, goals = self.agent.position, list(self.goals)
        rows = [self._goal_rows[goal] for goal in goals]
        return [
            goal
            for goal, center in zip(goals, self.scene.center[rows].tolist(), strict=True)
            if math.dist(position, center) < reach + self._touching[goal]
        ]
