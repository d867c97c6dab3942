"""One arena in play: the agent, the bodies, the rules and the scene, a physics step at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.envs.sim.builder import build
from animalcat.envs.sim.movement import THRUST, Agent
from animalcat.envs.sim.physics import AGENT_RADIUS, CONTACT_GAP, GRAVITY, Physics
from animalcat.envs.sim.rules import Episode, is_dark
from animalcat.envs.sim.scene import Scene, Shape
from animalcat.envs.sim.zones import Zone, Zones
from animalcat.envs.types import PHYSICS_STEP

if TYPE_CHECKING:
    from animalcat.arena_configs.placement import Placement
    from animalcat.envs.sim.physics import Vector

_SLACK: Final = 0.6
"""Metres added when asking what may be touched soon: a ball may be hit by another meanwhile."""
_ROOM: Final = 3.0
"""Metres to look further than needed, so as not to look again at every decision."""
_FASTEST_PUSH: Final = THRUST + GRAVITY * PHYSICS_STEP
"""m/s that the agent can gain in one physics step by itself."""

_HALF_TURN: Final = np.array([-1.0, 1.0, -1.0], np.float32)


class World:
    """An arena being played.

    Attributes:
        agent: Where the agent is and how it moves.
        episode: Health, reward and the end.
        scene: What sensors see; written in place by `play`.
        skipped: Name and reason of what is not simulated.
    """

    def __init__(self, placement: Placement) -> None:
        level = build(placement)
        self._physics = Physics(placement.agent.position, level.bodies)
        self._goals = dict(level.goals)
        self._zones = Zones(level.zones)
        self._inside: set[Zone] = set()
        self._near: tuple[tuple[Zone, ...], list[int]] = ((), [])
        self._looked: tuple[Vector, float, bytes] = (placement.agent.position, 0.0, b"")
        self._blackouts = placement.blackouts
        self.agent = Agent(self._physics, placement.agent.yaw)
        self.episode = Episode(
            placement.time_limit, level.goal_count, placement.agent.frozen_seconds
        )
        self.scene = Scene.of(level.primitives)
        self.skipped = level.skipped
        self._owners = np.array(level.owners, np.intp)
        self._offsets = np.array(level.offsets, np.float32).reshape(-1, 3)
        # A scene's wedge is high at local -z, a body's at +z: half a turn about y.
        self._flip = np.where(self.scene.kind[:, None] == Shape.WEDGE, _HALF_TURN, np.float32(1.0))[
            :, None
        ]
        self._moving = np.flatnonzero(self._owners >= 0)
        self._seen = self._physics.state()
        self._goal_rows = {
            owner: row for row, owner in enumerate(level.owners) if owner in level.goals
        }
        self._touching = {
            goal: float(self.scene.half[row, 0]) + AGENT_RADIUS + CONTACT_GAP
            for goal, row in self._goal_rows.items()
        }

    @property
    def dark(self) -> bool:
        """Whether the lights are off."""
        return is_dark(self._blackouts, self.episode.steps)

    def play(self, move: int, turn: int, steps: int) -> None:
        """Hold an action for some physics steps, or until the episode ends.

        Args:
            move: 0 none, 1 forward, 2 backward.
            turn: 0 none, 1 right, 2 left.
            steps: How many.
        """
        self._run(move, turn, steps)
        self._refresh()

    def _run(self, move: int, turn: int, steps: int) -> None:
        agent, episode = self.agent, self.episode
        zones, goals = self._in_reach(steps)
        for _ in range(steps):
            episode.tick()
            if episode.ended_by is not None:
                return
            before = agent.position
            touched = [goal for goal in goals if self._touches(goal, before)] if goals else ()
            agent.step(move, turn, coast=episode.frozen)
            for goal in touched:
                episode.collect(self._goals.pop(goal))
                self._take_out(goal)
                goals.remove(goal)
            if zones or self._inside:
                self._enter(zones, before)
            if episode.ended_by is not None:
                return

    def _refresh(self) -> None:
        """Write where the bodies are now into the scene."""
        state = self._physics.state()
        if state == self._seen:
            return
        self._seen = state
        bodies, origins, rotations = self._physics.poses(state)
        rows = self._moving
        which = np.searchsorted(bodies, self._owners[rows])
        turn = rotations[which]
        self.scene.rotation[rows] = turn * self._flip[rows]
        self.scene.center[rows] = origins[which] + np.einsum(
            "nij,nj->ni", turn, self._offsets[rows]
        )

    def _take_out(self, body: int) -> None:
        self._physics.remove(body)
        self.scene.active[self._goal_rows[body]] = False
        # A scene's wedge is high at local -z, a body's at +z: half a turn about y.
        self._flip = np.where(self.scene.kind[:, None] == Shape.WEDGE, _HALF_TURN, np.float32(1.0))[
            :, None
        ]
        self._moving = self._moving[self._owners[self._moving] != body]

    def _enter(self, zones: tuple[Zone, ...], position: Vector) -> None:
        """Zones act on where the agent stood when the step began, as PhysX's triggers do."""
        inside = {zone for zone in zones if zone.holds(position)}
        for zone in zones:
            if zone not in inside:
                continue
            if not zone.deadly:
                self.episode.burn()
            elif zone not in self._inside:
                self.episode.die()
        self._inside = inside

    def _touches(self, goal: int, position: Vector) -> bool:
        """Whether PhysX finds the agent in contact with a goal in the step that begins now."""
        return math.dist(position, self._physics.position(goal)) < self._touching[goal]

    def _in_reach(self, steps: int) -> tuple[tuple[Zone, ...], list[int]]:
        """Zones and goals that the agent may touch within these steps.

        The answer holds for longer than asked: it is kept until the agent leaves the middle of
        what was looked at, or something else moves.
        """
        position = self.agent.position
        speed = math.hypot(*self.agent.velocity)
        reach = steps * PHYSICS_STEP * (speed + steps * _FASTEST_PUSH) + _SLACK
        center, known, state = self._looked
        if state is not self._seen or math.dist(position, center) + reach > known:
            known = reach + _ROOM
            self._looked = position, known, self._seen
            self._near = self._zones.near(position, known), self._goals_near(known, steps)
        return self._near

    def _goals_near(self, reach: float, steps: int) -> list[int]:
        goals = list(self._goals)
        if not goals:
            return []
        rows = [self._goal_rows[goal] for goal in goals]
        position = np.asarray(self.agent.position, np.float32)
        gaps = np.linalg.norm(self.scene.center[rows] - position, axis=1)
        reach += steps * PHYSICS_STEP * (self._physics.fastest() + steps * GRAVITY * PHYSICS_STEP)
        return [
            goal
            for goal, gap in zip(goals, gaps.tolist(), strict=True)
            if gap < reach + self._touching[goal]
        ]
