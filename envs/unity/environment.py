"""A real Unity build as an environment."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.placement import fix
from animalcat.arena_configs.sequence import episode_arenas, of_parts
from animalcat.arena_configs.writer import to_yaml
from animalcat.envs.types import (
    ACTIONS,
    EndedBy,
    Observation,
    ObservationSpec,
    Phase,
    RaySpec,
    Step,
)
from animalcat.envs.unity.process import PlayerProcess, UnityFault
from animalcat.envs.unity.settings import UnityError, UnitySettings, executable
from animalcat.envs.unity.witness import STEPS_PER_UNIT, Mismatch, Witness

if TYPE_CHECKING:
    from animalcat.arena_configs.model import Arena
    from animalcat.envs.unity.player import BuildStep

TAGS: Final = 12
"""Number of ray tags that all builds share."""
_SEEDS: Final = 1 << 31
_FLOAT32: Final = 1e-4
# Share by which a sum of float32 rewards may be off.


class UnityEnvironment:
    """Plays arenas on a Unity build; every episode has its own build process unless one is kept.

    The first observation is the state of a process's very first reset, as in the simulator. The
    file that a build gets holds one arena (or one sequence that merges) with every value explicit,
    so the build draws nothing to place. Randomness during play comes from Unity's generator, seeded
    with the episode's seed modulo 2**31.

    Keeping one build for all episodes is faster. The first observation is then one physics step
    later, as after any reset but the first, and that step's reward is added to the next step's.

    If the build plays another arena than the one that was meant (unless the settings disable the
    check), or fails in any way, a `UnityFault` is raised; the next `load` starts anew.
    """

    def __init__(
        self, spec: ObservationSpec, build: Path, settings: UnitySettings | None = None
    ) -> None:
        """Start the interpreter that drives builds.

        Args:
            spec: Specification of the observations.
            build: Executable of Animal-AI, or of a stand-in.
            settings: Where things are; by default the settings of the environment and of `animalcat
                unity setup`.

        Raises:
            UnityError: Build or interpreter do not exist, or the build cannot provide these
                observations.
            UnityFault: The interpreter did not start.
        """
        if spec.rays is not None and spec.rays.max_degrees != int(spec.rays.max_degrees):
            raise UnityError(f"Unity takes whole degrees for rays, not {spec.rays.max_degrees}")
        self._spec = spec
        self._build = executable(build)
        self._settings = UnitySettings() if settings is None else settings
        # Also where the agent has no rays: heading and goals are judged by them.
        self._rays = spec.rays or RaySpec()
        self._kept = self._settings.builds == "kept"
        self._witness = Witness(self._rays, spec.decision_period, idle=int(self._kept))
        self._process: PlayerProcess | None = None
        self._open = False
        self._owed = 0.0
        self._decay = 0.0
        self._harmed = False
        self._player()

    @property
    def spec(self) -> ObservationSpec:
        """Specification of the observations."""
        return self._spec

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the client, and name and digest of the build."""
        return {
            **self._player().versions,
            "unity-build": identity(self._build),
            "unity-builds": self._settings.builds,
            "unity-time-scale": str(self._settings.time_scale),
            "unity-verified": str(self._settings.verify).lower(),
        }

    def load(self, arena: Arena, seed: int) -> Step:
        """Start a build with an arena; the phase of the step is FIRST.

        Args:
            arena: The arena, or an `ArenaSequence`. What it leaves to chance is drawn from `seed`.
            seed: Seed of all randomness in the episode.

        Raises:
            ArenaError: The arena cannot be built.
            UnityFault: The build failed, or loaded another arena.
        """
        self._witness.load(arena, seed)
        fixed = _fix_values(arena, seed)
        if self._kept and fixed.random_seed == 0:
            # Only the start of a process takes a seed; this one is set once all is placed.
            fixed = fixed.model_copy(update={"random_seed": seed % (_SEEDS - 1) + 1})
        limit = fixed.time_limit * STEPS_PER_UNIT
        self._decay = self._spec.decision_period / limit if limit > 0 else 0.0
        self._open = self._harmed = False
        seen = self._player().load(to_yaml(fixed, self._settings.grammar), seed % _SEEDS)
        observation = self._observation(seen)
        try:
            if seen.over:
                raise Mismatch("the episode is over before it began")
            if self._settings.verify:
                self._witness.check_first(observation)
        except Mismatch as mismatch:
            raise self._fault(mismatch) from mismatch
        self._open, self._owed = True, seen.reward
        return Step(Phase.FIRST, 0.0, None, self._observation_asked_for(observation))

    def step(self, action: int) -> Step:
        """Take one decision.

        Args:
            action: 3 x move + turn, 0 to 8.

        Raises:
            ValueError: The action is out of range.
            RuntimeError: No episode is open.
            UnityFault: The build failed, or its arena turns out to be another one.
        """
        if not self._open:
            raise RuntimeError("no episode is open: call load(arena, seed) first")
        if not 0 <= action < ACTIONS:
            raise ValueError(f"action {action} is not in 0..{ACTIONS - 1}")
        self._open = False
        seen = self._player().step(*divmod(int(action), 3))
        observation = self._observation(seen)
        reward, self._owed = seen.reward + self._owed, 0.0
        harmed_before, self._harmed = self._harmed, seen.reward < -self._decay * (1 + _FLOAT32)
        if seen.over:
            ended_by = _infer_end(observation.health, self._harmed or harmed_before)
            return Step(Phase.LAST, reward, ended_by, self._observation_asked_for(observation))
        if self._settings.verify:
            try:
                self._witness.check_step(action, seen.reward)
            except Mismatch as mismatch:
                raise self._fault(mismatch) from mismatch
        self._open = True
        return Step(Phase.MID, reward, None, self._observation_asked_for(observation))

    def close(self) -> None:
        """End the player and its builds; it may be called twice."""
        self._open = False
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _player(self) -> PlayerProcess:
        """The running player; a new one is started if there is none."""
        if self._process is None or self._process.ended:
            settings, camera = self._settings, self._spec.camera
            drawing = camera is not None if settings.graphics is None else settings.graphics
            options = {
                "build": str(self._build),
                "camera": camera.resolution if camera else 0,
                "grayscale": camera is not None and camera.grayscale,
                "rays": self._rays.per_side,
                "ray_degrees": int(self._rays.max_degrees),
                "decision_period": self._spec.decision_period,
                "graphics": drawing,
                "time_scale": settings.time_scale,
                "arguments": settings.arguments,
                "start_seconds": settings.start_seconds,
                "step_seconds": settings.step_seconds,
                "builds": settings.builds,
            }
            self._process = PlayerProcess(settings.interpreter(), options, settings.log_folder)
        return self._process

    def _fault(self, mismatch: Mismatch) -> UnityFault:
        """Make the error for a build that plays another arena, and end the player."""
        process, self._process = self._process, None
        logs = process.logs if process is not None else "gone"
        if process is not None:
            process.kill()
        return UnityFault(f"{self._build.name}: {mismatch}; logs: {logs}")

    def _observation(self, seen: BuildStep) -> Observation:
        """Convert what the build sent, with rays of the specified tags."""
        number = 2 * self._rays.per_side + 1
        tags = seen.rays.size // number - 2
        if seen.rays.size % number or tags < self._rays.tags:
            raise self._fault(
                Mismatch(
                    f"the build has {tags} ray tags and the session asks for {self._rays.tags}; "
                    f"create the session with {TAGS}"
                )
            )
        # Tags from 12 on are those of 4.4: without them a hit is of no listed tag.
        blocks = seen.rays.reshape(number, tags + 2)
        rays = np.delete(blocks, np.s_[self._rays.tags : tags], axis=1).ravel()
        return Observation(
            health=float(seen.vector[0]),
            velocity=seen.vector[1:4],
            position=seen.vector[4:7],
            rays=rays,
            camera=seen.camera,
        )

    def _observation_asked_for(self, observation: Observation) -> Observation:
        return observation if self._spec.rays else observation._replace(rays=None)


def identity(build: Path) -> str:
    """Name of a build, and a digest of the files that distinguish builds.

    Unity's executable is nearly the same for all builds; the code is in its data folder.
    """
    digest = hashlib.sha256()
    data = build.parent / f"{build.stem}_Data"
    for path in (build, data / "globalgamemanagers", data / "Managed" / "Assembly-CSharp.dll"):
        if path.is_file():
            digest.update(path.read_bytes())
    return f"{build.name} sha256:{digest.hexdigest()[:16]}"


def _infer_end(health: float, harmed: bool) -> EndedBy:
    """Infer why an episode is over, by the rule of `EndedBy`.

    Args:
        health: What is left; an agent that has any has completed the arena.
        harmed: Whether in the last two decisions more was lost than time takes.
    """
    if health > 0.0:
        return EndedBy.GOAL
    return EndedBy.DEATH if harmed else EndedBy.TIME_LIMIT


def _fix_values(arena: Arena, seed: int) -> Arena:
    """Make every value explicit in an arena and in those that it merges with."""
    return of_parts(
        [
            fix(part, np.random.default_rng([seed, index] if index else seed))
            for index, part in enumerate(episode_arenas(arena))
        ]
    )
