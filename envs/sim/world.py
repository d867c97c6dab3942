"""One arena in play: the agent, the bodies, the rules and the scene, a physics step at a time."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from animalcat.envs.sim.builder import build
from animalcat.envs.sim.movement import THRUST, Agent
from animalcat.envs.sim.physics import AGENT_RADIUS, CONTACT_GAP, GRAVITY, Physics
from animalcat.envs.sim.rules import Episode, is_dark
from animalcat.envs.sim.scene import Scene
from animalcat.envs.sim.tracking import Tracker
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
        self._looked_from: Vector = placement.agent.position
        self._drift = self._known = 0.0
        self._blackouts = placement.blackouts
        self.agent = Agent(self._physics, placement.agent.yaw)
        self.episode = Episode(
            placement.time_limit, level.goal_count, placement.agent.frozen_seconds
        )
        self.scene = Scene.of(level.primitives)
        self._tracker = Tracker(self._physics, self.scene, level.owners, level.offsets)
        self.skipped = level.skipped
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
        self._tracker.refresh()

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
                pickup = self._goals.pop(goal)
                goals.remove(goal)
                episode.collect(pickup)
                if not pickup.ends:  # one that ends the episode is still there at its end
                    self._take_out(goal)
            if zones or self._inside:
                self._enter(zones, before)
            if episode.ended_by is not None:
                return

    def _take_out(self, body: int) -> None:
        self._physics.remove(body)
        self.scene.active[self._goal_rows[body]] = False

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

        Looked up with room to spare, and again only when agent or goals may have used it up.
        """
        position = self.agent.position
        time = steps * PHYSICS_STEP
        reach = time * (math.hypot(*self.agent.velocity) + steps * _FASTEST_PUSH) + _SLACK
        self._drift += time * (self._tracker.fastest + time * GRAVITY)
        if math.dist(position, self._looked_from) + self._drift + reach > self._known:
            self._looked_from = position
            self._drift = time * (self._tracker.fastest + time * GRAVITY)
            self._known = self._drift + reach + _ROOM
            self._near = self._zones.near(position, self._known), self._goals_near(self._known)
        return self._near

    def _goals_near(self, reach: float) -> list[int]:
        position, goals = self.agent.position, list(self._goals)
        rows = [self._goal_rows[goal] for goal in goals]
        return [
            goal
            for goal, center in zip(goals, self.scene.center[rows].tolist(), strict=True)
            if math.dist(position, center) < reach + self._touching[goal]
        ]
