"""One episode in play: the agent, the rules, and the arenas that it leads through."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.geometry import Solid, overlaps
from animalcat.arena_configs.model import PER_COPY, Arena, Item, Point, Vector3
from animalcat.arena_configs.orders import OBJECT_TRIES
from animalcat.arena_configs.outcome import PlaceWatch
from animalcat.arena_configs.placement import MAX_OBJECTS, place
from animalcat.envs.sim.builder import counts
from animalcat.envs.sim.builds import in_build, step_seconds
from animalcat.envs.sim.changing import AgingGoal, GrowingGoal
from animalcat.envs.sim.journal import Journal
from animalcat.envs.sim.rules import EpisodeState, is_dark
from animalcat.envs.sim.scene import Shape
from animalcat.envs.sim.spawners import FruitTree, Stockpiler, supply
from animalcat.envs.sim.stage import Prop, Stage
from animalcat.envs.sim.triggers import Button, DataZone
from animalcat.portable import scalars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.arena_configs.builds import Build
    from animalcat.arena_configs.catalogue import PartShape
    from animalcat.arena_configs.draws import Draws
    from animalcat.arena_configs.placement import PlacedObject, Placement
    from animalcat.envs.sim.movement import AgentBody
    from animalcat.envs.sim.scene import Scene
    from animalcat.envs.sim.vector import Vector
    from animalcat.envs.sim.zones import Zone

_AGENT_AFAR: Final = Item(
    name="Agent", positions=(Vector3(x=1, y=1e6, z=1),), rotations=(0.0,), skins=("none",)
)
"""Keeps a placeholder agent out of the way of what is placed, while the real one is elsewhere.

It leaves nothing to chance, not even its skin.
"""
_SHAPES: Final[dict[Shape, PartShape]] = {
    Shape.BOX: "box",
    Shape.SPHERE: "sphere",
    Shape.WEDGE: "wedge",
    Shape.SHELL: "shell",
}


class World:
    """An episode being played, in one arena or through several that merge.

    Attributes:
        episode: Health, reward and the end.
        rng: Source of randomness during play, of what operations choose and spawn.
        journal: Is told what happens.
        watch: Notices which marked place the agent is in first.
    """

    def __init__(
        self,
        placements: Sequence[Placement],
        rng: np.random.Generator,
        build: Build = "4.x",
        draws: Draws | None = None,
        journal: Journal | None = None,
        *,
        landed: bool = False,
    ) -> None:
        """Begin at the start of the first arena.

        Args:
            placements: The arenas in the order of play; each but the last merges with the next.
            rng: Source of randomness during play.
            build: Which build of Animal-AI this is.
            draws: What operations draw from instead; only spawners then draw from `rng`.
            journal: Is told what happens.
            landed: Whether the agent stood on the ground before, as for `AgentBody`.
        """
        self._landed = landed
        self.watch = PlaceWatch()
        self._logged = journal is not None
        self.journal = journal or Journal()
        self.rng: Draws = rng if draws is None else draws
        self._spawning = rng
        self.episode = EpisodeState(placements[0].time_limit, 0)
        self._build: Build = build
        self._left = deque(placements)
        self._enter_next(late=True)

    @property
    def agent(self) -> AgentBody:
        """The agent's body."""
        return self._stage.agent

    @property
    def scene(self) -> Scene:
        """What sensors see; written in place by `play`, longer once something is spawned."""
        return self._stage.scene

    @property
    def stage(self) -> Stage:
        """What is in the present arena."""
        return self._stage

    @property
    def skipped(self) -> tuple[tuple[str, str], ...]:
        """Name and reason of each object of the present arena that is not simulated."""
        return self._stage.skipped

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
        while steps:
            steps = self._run(move, turn, steps)
            if self.episode.passed:
                self._enter_next(late=False)
        self._stage.refresh()

    def refresh(self) -> None:
        """Bring the scene up to date, between the physics steps of `play`."""
        self._stage.refresh()

    def spawn_item(self, item: Item) -> list[Prop]:
        """Spawn an item's copies while the arena is played; those without room are left out.

        Obstacles count where they are now; a body that has tipped over counts as if it stood
        upright.

        Args:
            item: The item.
        """
        props: list[Prop] = []
        self._stage.refresh()
        solids = list(self._solids())
        for copy in range(item.copies):
            lists = {key: getattr(item, key)[copy : copy + 1] for key in PER_COPY}
            thing = self._place_free(item.model_copy(update=lists), solids)
            if thing is not None and len(self.scene) < MAX_OBJECTS:
                prop = self._spawn(thing)
                props.append(prop)
                if not thing.kind.zone:
                    solids.extend(thing.solids())
        return props

    def despawn(self, prop: Prop) -> None:
        """Remove an object."""
        self._stage.despawn(prop)

    def halt(self) -> None:
        """Set the agent's speed to 0."""
        self.agent.velocity = (0.0, 0.0, 0.0)

    def _enter_next(self, *, late: bool) -> None:
        """Build the next arena, in which the agent starts at rest; the episode continues."""
        placement = self._left.popleft()
        if self._build != "4.x":
            things = tuple(in_build(thing, self._build) for thing in placement.objects)
            placement = replace(placement, objects=things)
        self._inside: set[Zone] = set()
        duration = step_seconds(self._build)
        self._stage = Stage(placement, duration, late=late, landed=self._landed)
        self._landed = False
        self._blackouts = placement.blackouts
        self.episode.enter(
            self._stage.goal_count,
            placement.agent.frozen_seconds,
            placement.pass_mark if self._left else None,
        )
        self.journal.enter(placement.objects)
        for prop in self._stage.props:
            self._animate(prop, late=late)

    def _run(self, move: int, turn: int, steps: int) -> int:
        """Take physics steps in one arena; returns how many are left for the next."""
        stage, episode = self._stage, self.episode
        agent = stage.agent
        lively = bool(stage.movers or stage.triggers)
        zones, goals = stage.everything() if lively else stage.in_reach(steps)
        watch = None if self.watch.over else self.watch
        if watch is not None and stage.passes_by(steps, watch.away):
            watch = None
        busy = lively or zones or goals or self._inside or self._logged or watch
        if not busy and episode.glide(steps):
            agent.step(move, turn, steps=steps)
            return 0
        for done in range(1, steps + 1):
            if self._logged:
                self.journal.step(self, move, turn)
            episode.tick()
            if episode.ended_by is not None:
                return 0
            before = agent.position
            if lively:
                for mover in tuple(stage.movers):
                    mover.step()
                zones, goals = stage.everything()
            touched = [goal for goal in goals if stage.touches(goal, before)] if goals else ()
            agent.step(move, turn, coast=episode.frozen)
            if watch is not None:
                x, _, z = agent.position
                watch.look(x, z)
            # Unity reports what is entered, then what is stayed in, then collisions. So the last
            # step of an episode that a goal ends still burns.
            if zones or self._inside:
                self._enter(zones, before)
            if lively:
                for trigger in tuple(stage.triggers):
                    trigger.feel(before)
            for goal in touched:
                if episode.ended_by is not None or goal not in stage.goals:
                    continue
                pickup = stage.goals.pop(goal)
                goals.remove(goal)
                self.journal.collect(pickup.kind, pickup.reward)
                episode.collect(pickup)
                if not pickup.ends:  # one that ends the episode is still there at its end
                    stage.take_out(goal)
            if episode.ended_by is not None:
                return 0
            if episode.passed:
                return steps - done
        return 0

    def _enter(self, zones: tuple[Zone, ...], position: Vector) -> None:
        """Apply zones at the agent's position at the start of the step, as PhysX's triggers do.

        A hot zone burns the agent when it enters, and in each step that it stays, which the step of
        entering is too.
        """
        inside = [zone for zone in zones if zone.holds(position)]
        for zone in inside:
            if zone not in self._inside:
                if zone.deadly:
                    self.journal.collect("DeathZone", -1.0)
                    self.episode.die()
                else:
                    self.episode.burn()
        for zone in inside:
            if not zone.deadly:
                self.episode.burn()
        self._inside = set(inside)

    def _spawn(self, thing: PlacedObject, hanging: bool = False) -> Prop:
        prop = self._stage.spawn(in_build(thing, self._build), hanging=hanging)
        if counts(thing.kind):
            self.episode.add_goals(1)
        self._animate(prop, late=False)
        return prop

    def _dispense(self, spawner: PlacedObject, thing: PlacedObject, hanging: bool) -> Prop:
        self.journal.dispense(spawner, thing)
        return self._spawn(thing, hanging)

    def _animate(self, prop: Prop, *, late: bool) -> None:
        """Give an object that acts by itself what it does; `late` as for `GrowingGoal`."""
        thing, stage = prop.thing, self._stage
        match thing.kind.reward:
            case "size":
                prop.movers.append(GrowingGoal(stage, prop, late=late))
            case "value":
                prop.movers.append(AgingGoal(stage, prop, late=late))
            case "spawner":
                spawner = FruitTree if thing.name == "SpawnerTree" else Stockpiler
                dispense, gives = partial(self._dispense, thing), supply(thing, self._build)
                prop.movers.append(spawner(stage, prop, dispense, self._spawning, gives))
            case "button":
                prop.triggers.append(Button(thing, self))
            case _:
                if thing.name == "DataZone":
                    prop.triggers.append(DataZone(thing, self))
        stage.act(prop)

    def _place_free(self, item: Item, solids: Sequence[Solid]) -> PlacedObject | None:
        """One copy in a place that is free now, or None."""
        arena = Arena(items=(_AGENT_AFAR, item))
        for _ in range(OBJECT_TRIES):
            [thing] = place(arena, self.rng).objects or [None]
            if thing is None or thing.cornered:
                return None
            first = thing.solids()[0]
            half = Point(*[first.half.x] * 3) if thing.kind.ball else first.half
            box = Solid("box", first.center, half, first.yaw)
            if thing.kind.zone or not any(overlaps(box, solid) for solid in solids):
                return thing
        return None

    def _solids(self) -> list[Solid]:
        """Everything in the arena that blocks what is spawned."""
        scene, agent = self.scene, self.agent
        solids = [Solid("sphere", Point(*agent.position), Point(0.5, 0.5, 0.5), 0.0)]
        for row in np.flatnonzero(scene.active & ~scene.overlap_ok).tolist():
            kind = Shape(int(scene.kind[row]))
            turn = scene.rotation[row]
            yaw = math.degrees(scalars.atan2(float(turn[0, 2]), float(turn[0, 0])))
            # A scene's wedge is high at local -z, a solid's at +z.
            yaw += 180.0 if kind is Shape.WEDGE else 0.0
            center, half = Point(*scene.center[row].tolist()), Point(*scene.half[row].tolist())
            solids.append(Solid(_SHAPES[kind], center, half, yaw))
        return solids
