"""The embedded simulator as an environment, within this process."""

from __future__ import annotations

import warnings
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from animalcat.arena_configs.builds import NEWEST, Build, build_named
from animalcat.arena_configs.draws import OWN, UNITY, UnityDraws
from animalcat.arena_configs.model import ArenaWarning
from animalcat.arena_configs.outcome import PlaceWatch
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import episode_arenas
from animalcat.envs.sim.builds import refuse
from animalcat.envs.sim.movement import to_local
from animalcat.envs.sim.state import state_of
from animalcat.envs.sim.world import World
from animalcat.envs.snapshot import Snapshot
from animalcat.envs.types import ACTIONS, CameraSpec, Observation, ObservationSpec, Phase, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from animalcat.arena_configs.draws import Draws
    from animalcat.arena_configs.model import Arena
    from animalcat.arena_configs.outcome import MarkedPlace
    from animalcat.arena_configs.placement import Placement
    from animalcat.envs.sim.journal import Journal
    from animalcat.envs.sim.rays import RaySensor
    from animalcat.envs.sim.scene import Scene

Rng = Literal["animalcat", "unity"]
"""Names of the sources of chance: a generator of our own, seeded by every episode, or Unity's."""

_IN_PLAY: Final = 1 << 32
"""Separates the seed of randomness during play from those that place the arenas."""


class SimEnvironment:
    """Animal-AI in process: PhysX for bodies, numba for what is seen.

    The FIRST step is the state of a process's very first reset in Unity: health 100, the agent
    at its spawn pose 0.51 m above what it stands on, nothing simulated yet, reward 0. (After a
    later RESET command Unity shows the state one physics step on, row 0 of recorded traces:
    `load` with `idle=1`.)

    The same arena, seed and actions give bitwise the same steps on the same platform. With
    `rng="unity"` the environment stands for a process of Unity: one stream of random numbers,
    begun by a seed, goes on from episode to episode in the build's own order of draws, and the
    seeds of `load` have no part in it.
    Not safe to share between threads.
    """

    def __init__(
        self,
        spec: ObservationSpec,
        build: str = NEWEST,
        rng: Rng = OWN,
        process_seed: int = 0,
        journal: Journal | None = None,
        *,
        tell: bool = True,
    ) -> None:
        """Prepare the sensors of the specification.

        Args:
            spec: Specification of the observations.
            build: Which build of Animal-AI to simulate: 4.x, 3.1.3 or another that `build_named`
                knows.
            rng: "animalcat" draws what an arena leaves to chance from the seed of its episode;
                "unity" draws it as the build does.
            process_seed: With `rng="unity"`, the seed of the process; its lowest 32 bits count.
            journal: Is told what happens in every episode.
            tell: Whether objects of an arena that are not simulated are warned of, as an
                `ArenaWarning`; False where whoever read the arena has said so.

        Raises:
            ValueError: There is no such build or rng.
        """
        self._build: Build = build_named(build)
        if rng not in (OWN, UNITY):
            raise ValueError(f"there is no rng {rng!r}; there are: {OWN}, {UNITY}")
        self._spec = spec
        self._unity = UnityDraws(process_seed, self._build) if rng == UNITY else None
        self._journal = journal
        self._tell = tell
        self._world: World | None = None
        self._start: Snapshot | None = None
        self._actions = bytearray()
        self._sensor: RaySensor | None = None
        if spec.rays is not None:
            from animalcat.envs.sim.rays import RaySensor

            self._sensor = RaySensor(spec.rays)
        if spec.camera is not None:
            from animalcat.envs.sim.camera import render

            self._render = render

    @property
    def spec(self) -> ObservationSpec:
        """Specification of the observations."""
        return self._spec

    @property
    def build(self) -> Build:
        """The build that is simulated."""
        return self._build

    @property
    def unity_draws(self) -> UnityDraws | None:
        """The stream of random numbers of a process of Unity; None with another `rng`."""
        return self._unity

    @property
    def scene(self) -> Scene:
        """What the sensors see now.

        Raises:
            RuntimeError: No arena is loaded.
        """
        return self._loaded().scene

    @property
    def world(self) -> World:
        """The episode as the simulator plays it, which no agent is told.

        Raises:
            RuntimeError: No arena is loaded.
        """
        return self._loaded()

    @property
    def skipped(self) -> tuple[tuple[str, str], ...]:
        """Name and reason of every object of the arena that is not simulated.

        Raises:
            RuntimeError: No arena is loaded.
        """
        return self._loaded().skipped

    @property
    def physics_steps(self) -> int:
        """Number of physics steps in the episode so far.

        Raises:
            RuntimeError: No arena is loaded.
        """
        return self._loaded().episode.steps

    @property
    def episode_return(self) -> float:
        """Reward of the episode so far, including what was carried into it.

        Raises:
            RuntimeError: No arena is loaded.
        """
        return float(self._loaded().episode.total)

    @property
    def landed(self) -> bool:
        """Whether an episode is loaded in which the agent stands on the ground."""
        return self._world is not None and self._world.agent.grounded

    def load(
        self,
        arena: Arena,
        seed: int,
        idle: int = 0,
        carried: float = 0.0,
        *,
        landed: bool = False,
    ) -> Step:
        """Build an arena and start an episode; the phase of the step is FIRST.

        Args:
            arena: The arena, or an `ArenaSequence`: one that merges with those that follow it. What
                it leaves to chance is drawn from `seed`.
            seed: Seed of all randomness in the episode. With `rng="unity"` it only seeds what Unity
                draws elsewhere: fruit and the goals of spawners.
            idle: Number of physics steps without action before the first observation. The step then
                has their rewards, and is LAST if the episode is already over.
            carried: Reward that counts toward pass marks as if this episode had earned it. A RESET
                command in Unity does not clear the reward of the episode that it interrupts.
            landed: Whether the agent stood on the ground before, in the process's last episode. It
                can then push off one physics step sooner.

        Raises:
            ArenaError: The arena cannot be built, or the build refuses it.
        """
        stream = None if self._unity is None else self._unity.random.state
        placements: list[Placement] = []
        for number, part in enumerate(episode_arenas(arena)):
            refuse(part, self._build)
            placements.append(place(part, self._placing(seed, number)))
        chance = np.random.default_rng([seed, _IN_PLAY])
        self.close()  # so that its memory can be reused for the next arena
        world = World(placements, chance, self._build, self._unity, self._journal, landed=landed)
        world.episode.total = np.float32(carried)
        if idle:
            world.play(0, 0, idle)
        if self._tell:
            _tell_skipped(placements)
        self._world, self._start = world, Snapshot(arena, seed, b"", idle, carried, stream, landed)
        self._actions.clear()
        return self._step(Phase.FIRST, world)

    def step(self, action: int) -> Step:
        """Take one decision.

        Args:
            action: 3 x move + turn, 0 to 8.

        Raises:
            ValueError: The action is out of range.
            RuntimeError: No episode is open.
        """
        return self._step(Phase.MID, self._play(action))

    def watch(self, places: Sequence[MarkedPlace]) -> None:
        """Look at every physics step from now on which of some places the agent is in first.

        Raises:
            RuntimeError: No arena is loaded.
        """
        self._loaded().watch = PlaceWatch(places)
        assert self._start is not None
        self._start = replace(self._start, places=tuple(places))

    def snapshot(self) -> Snapshot:
        """Take a snapshot of this point of the episode.

        Raises:
            RuntimeError: No arena is loaded.
        """
        self._loaded()
        assert self._start is not None
        return replace(self._start, actions=bytes(self._actions))

    def restore(self, snapshot: Snapshot) -> Step:
        """Play an episode again up to a point, without sensors in between.

        Returns:
            The step that led to that point, as it was.

        Raises:
            ArenaError: The arena cannot be built.
            ValueError: An action is out of range.
            RuntimeError: The episode is over before the actions are.
        """
        if self._unity is not None and snapshot.stream is not None:
            self._unity.random.state = snapshot.stream
        first = self.load(
            snapshot.arena,
            snapshot.seed,
            snapshot.idle,
            snapshot.carried,
            landed=snapshot.landed,
        )
        self.watch(snapshot.places)
        if not snapshot.actions:
            return first
        for action in snapshot.actions[:-1]:
            self._play(action).episode.take_reward()
        return self.step(snapshot.actions[-1])

    def glance(self, side: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
        """Return what is seen now, for people who watch; it changes nothing, and no agent is told.

        Args:
            side: Side of the picture in pixels.

        Returns:
            The picture of a camera on the agent's head, uint8 (side, side, 3), and the true state
            as `envs.state` names it.

        Raises:
            RuntimeError: No arena is loaded.
        """
        from animalcat.envs.sim.camera import render

        world = self._loaded()
        agent, spec = world.agent, CameraSpec(side)
        picture = render(world.scene, agent.position, agent.yaw, spec, world.dark)
        return picture, state_of(world)

    def close(self) -> None:
        """Release the arena; it may be called twice."""
        self._world = self._start = None

    def _placing(self, seed: int, number: int) -> Draws:
        """What draws for the arena of this number in an episode."""
        if self._unity is not None:
            return self._unity
        return np.random.default_rng([seed, number] if number else seed)

    def _loaded(self) -> World:
        if self._world is None:
            raise RuntimeError("no arena is loaded: call load(arena, seed) first")
        return self._world

    def _play(self, action: int) -> World:
        world = self._loaded()
        if world.episode.ended_by is not None:
            raise RuntimeError("the episode is over: call load(arena, seed) to start another")
        if isinstance(action, bool) or not 0 <= index(action) < ACTIONS:
            raise ValueError(f"action {action} is not in 0..{ACTIONS - 1}")
        move, turn = divmod(index(action), 3)
        world.play(move, turn, self._spec.decision_period)
        self._actions.append(action)
        return world

    def _step(self, phase: Phase, world: World) -> Step:
        episode, agent, sensor, camera = world.episode, world.agent, self._sensor, self._spec.camera
        position, velocity, yaw = agent.position, agent.velocity, agent.yaw
        rays = frame = None
        if sensor is not None:
            rays, local, place = sensor.observe(world.scene, position, yaw, velocity)
        else:
            local = np.array(to_local(velocity, yaw), np.float32)
            place = np.array(position, np.float32)
        if camera is not None:
            frame = self._render(world.scene, position, yaw, camera, world.dark)
        state = state_of(world) if self._spec.privileged else None
        observation = Observation(float(episode.health), local, place, rays, frame, state)
        ended_by = episode.ended_by
        if ended_by is not None:
            phase = Phase.LAST
        return Step(phase, episode.take_reward(), ended_by, observation, world.watch.reached)


def _tell_skipped(placements: Iterable[Placement]) -> None:
    """Warn of objects that are not simulated."""
    skipped = [
        f"{skipped_object.name} ({skipped_object.reason})"
        for placed in placements
        for skipped_object in placed.skipped
    ]
    if skipped:
        more = f" and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        warnings.warn(
            f"the arena is not played as it is written: {', '.join(skipped[:5])}{more}; `animalcat "
            "arena check` says where this stands in its file",
            ArenaWarning,
            stacklevel=1,  # so once for each arena, whoever loads it
        )
