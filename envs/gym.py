"""One arena as a Gymnasium environment: `gymnasium.make("animalcat/Arena-v0", arena=...)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import gymnasium
import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.builds import NEWEST, build_named
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.reading import read_arena
from animalcat.envs.answers import Answer
from animalcat.envs.backends import make_environment
from animalcat.envs.spaces import (
    GymObservation,
    action_space,
    choose_sensors,
    observation_space,
    read_actions,
    to_gym,
)
from animalcat.envs.types import (
    PHYSICS_STEP,
    CameraSpec,
    EndedBy,
    ObservationSpec,
    Phase,
    RaySpec,
    Step,
)
from animalcat.envs.window import Window

if TYPE_CHECKING:
    from animalcat.envs.sim.environment import Rng, SimEnvironment
    from animalcat.envs.snapshot import Snapshot

NAVIGATION: Final = """\
!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 250
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: -1, y: 0, z: -1}]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: -1, y: 0, z: -1}]
      sizes: [!Vector3 {x: 2, y: 2, z: 2}]
"""
"""The arena that is played when none is given: a goal in the open, both ends drawn by the seed."""

Source = Arena | Path | str
"""An arena, the path of its YAML file, or YAML text."""

_RENDER_RESOLUTION: Final = 256


class ArenaEnv(gymnasium.Env[GymObservation, Answer]):
    """A Gymnasium environment that plays one arena over and over, or several in turn.

    What the arena leaves to chance is drawn anew in every episode, from the seed of `reset`. With
    `rng="unity"` it is what a real build draws: `reset(seed=...)` stands for a process started with
    that seed, and every `reset` without one goes on with the process's stream.
    Observations are a Dict of `camera`, `rays`, `health`, `velocity` and `position`, or a plain
    array if `sensors` names only one, such as `sensors=["rays"]` for rays without the vector part.
    An episode that ends by goal or death is terminated, one that runs out of time is truncated, and
    a fault of the backend raises.

    Attributes:
        observation_spec: What is observed.
        sensors: What of it is shown.
    """

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": 17}  # noqa: RUF012

    def __init__(
        self,
        arena: Source | Sequence[Source] | None = None,
        *,
        observation_spec: ObservationSpec | None = None,
        camera: bool = False,
        resolution: int = 84,
        grayscale: bool = False,
        rays: bool = True,
        rays_per_side: int = 2,
        ray_max_degrees: float = 60.0,
        ray_tags: int = 12,
        decision_period: int = 3,
        sensors: Sequence[str] | None = None,
        flat_actions: bool = False,
        animalai_reset: bool = False,
        backend: str = "sim",
        rng: Rng = "animalcat",
        build: str | None = None,
        keep_unpassable: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Choose the arena, and what is observed of it.

        Args:
            arena: An arena, the path of its YAML file, or YAML text (which has a line break). Of
                several arenas in a file the first is played, together with those that it merges
                with. Of a list of these, each `reset` plays the next one, over and over. None for
                `NAVIGATION`. An `ArenaWarning` tells what is doubtful in an arena.
            observation_spec: What is observed; it replaces the nine arguments after it.
            camera: Whether there is a camera image.
            resolution: Side of the image in pixels.
            grayscale: Whether the image has one channel.
            rays: Whether there are rays.
            rays_per_side: Number of rays on each side of the middle one.
            ray_max_degrees: Angle of the outermost ray.
            ray_tags: Number of kinds of objects that rays tell apart: 12 or 18.
            decision_period: Number of physics steps of 0.02 s in one decision.
            sensors: Which sensors to show; None for all that are on.
            flat_actions: Whether actions are Discrete(9) = 3 x move + turn instead of
                MultiDiscrete([3, 3]).
            animalai_reset: Whether episodes start as by `reset` of `animalai`, after one physics
                step without action, instead of at rest; only the backend "sim" can.
            backend: What plays the arena, as in `animalcat.envs.backends`.
            rng: How chance is drawn: "animalcat", or "unity" as Animal-AI's build draws it; only
                the backend "sim" can.
            build: Which build of Animal-AI is simulated: None for the newest, or 3.1.3 and others
                that `build_named` knows; only the backend "sim" can.
            keep_unpassable: Whether to play arenas too whose pass mark no play can exceed, for
                example because there is no goal.
            render_mode: "rgb_array", with which `gymnasium.wrappers.RecordVideo` works; "human" for
                a window that shows every step at the pace of play; or None. Both wrapper and window
                need the extra `render`.

        Raises:
            ArenaError: The arena cannot be read, or has an error; `animalcat arena check` finds the
                same.
            ValueError: A number is out of range; the list of arenas is empty; there is no such
                sensor, backend, rng, build or mode; or the backend cannot do `animalai_reset`,
                `rng` or `build`.
            ImportError: The backend needs a package that is not installed.
        """
        modes = (None, *self.metadata["render_modes"])
        if render_mode not in modes:
            raise ValueError(f"render_mode {render_mode!r} is not one of {modes}")
        self.render_mode = render_mode
        spec = observation_spec or ObservationSpec(
            CameraSpec(resolution, grayscale) if camera else None,
            RaySpec(rays_per_side, ray_max_degrees, ray_tags) if rays else None,
            decision_period,
        )
        self.observation_spec: Final = spec
        self.sensors: Final = choose_sensors(spec, sensors)
        self.observation_space = observation_space(spec, self.sensors)
        self.action_space = action_space(flat=flat_actions)
        self._read = partial(
            read_arena,
            build=NEWEST if build is None else build_named(build),
            keep_unpassable=keep_unpassable,
        )
        self._choose(NAVIGATION if arena is None else arena)
        if render_mode is not None and spec.camera is None and backend != "sim":
            spec = ObservationSpec(CameraSpec(_RENDER_RESOLUTION), spec.rays, spec.decision_period)
        self._backend = make_environment(backend, spec, rng, build)
        draws = self._simulator("rng").unity_draws if rng == "unity" else None
        self._unity_draws = draws
        self._begun = self._open = False
        self._load = self._loader(animalai_reset)
        self._frame: npt.NDArray[np.uint8] | None = None
        rate = 1.0 / (PHYSICS_STEP * spec.decision_period)
        self.metadata = {**self.metadata, "render_fps": round(rate)}
        self._window = Window("animalcat", rate) if render_mode == "human" else None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[GymObservation, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: Seed of this episode and, through it, of those that follow without one.
            options: `{"arena": ...}` plays another arena from now on; as in the constructor.

        Returns:
            The first observation, and `{"episode_seed": int}`.

        Raises:
            ArenaError: The arena cannot be read or built, or has an error.
            ValueError: An option is unknown, or the list of arenas is empty.
        """
        super().reset(seed=seed)
        options = options or {}
        unknown = sorted(set(options) - {"arena"})
        if unknown:
            raise ValueError(f"reset options {unknown} are unknown; there is: arena")
        if "arena" in options:
            self._choose(options["arena"])
        episode_seed = int(self.np_random.integers(2**31))
        if self._unity_draws is not None and (seed is not None or not self._begun):
            self._unity_draws.random.seed(episode_seed if seed is None else seed)
        self._begun, self._open = True, False
        step = self._load(self._arenas[self._next], episode_seed)
        self._open = True
        self._next = (self._next + 1) % len(self._arenas)
        return self._to_observation(step), {"episode_seed": episode_seed}

    def step(self, action: Answer) -> tuple[GymObservation, float, bool, bool, dict[str, Any]]:
        """Take one decision, or several one after the other, of which the reward is the sum.

        Args:
            action: Any form of action that agents may answer with (see `animalcat.envs.answers`),
                or a pair as a list where the space is of pairs; a note on it changes nothing.

        Returns:
            Observation, reward, terminated, truncated, and an info that holds `ended_by`
            ("goal", "death" or "time_limit") when the episode is over.

        Raises:
            ValueError: It is no action; the text shows it, and the right forms.
            RuntimeError: No episode is open, or the backend failed.
        """
        numbers = read_actions(action, self.action_space)
        if not self._open:
            over = "the episode is over" if self._begun else "no episode is open"
            raise RuntimeError(f"{over}: call reset() to start one")
        step = self._backend.step(numbers[0])
        seen, reward = self._to_observation(step), step.reward
        for number in numbers[1:]:
            if step.phase is Phase.LAST:
                break
            step = self._backend.step(number)
            seen, reward = self._to_observation(step), reward + step.reward
        ended_by = step.ended_by
        if step.phase is not Phase.LAST:
            return seen, reward, False, False, {}
        self._open = False
        if ended_by is EndedBy.FAULT:
            raise RuntimeError("the backend failed in mid-episode: reset() starts a new one")
        info = {"ended_by": ended_by.name.lower()} if ended_by is not None else {}
        truncated = ended_by is EndedBy.TIME_LIMIT
        return seen, reward, not truncated, truncated, info

    def snapshot(self) -> Snapshot:
        """This point of the episode, for `restore`; the wrappers around have no part in it.

        Raises:
            ValueError: The backend cannot do it.
            RuntimeError: There is no episode.
        """
        return self._simulator("snapshot").snapshot()

    def restore(self, snapshot: Snapshot) -> GymObservation:
        """Go back to a point of an episode, which is played again up to there.

        Returns:
            What is observed there.

        Raises:
            ValueError: The backend cannot do it.
        """
        step = self._simulator("restore").restore(snapshot)
        self._begun, self._open = True, step.phase is not Phase.LAST
        return self._to_observation(step)

    def render(self) -> npt.NDArray[np.uint8] | None:  # type: ignore[override]
        """The latest camera image, (height, width, 3) uint8; None in the mode "human" and without.

        In the mode "human" every step and reset has shown it already.

        Raises:
            RuntimeError: There is no observation yet.
        """
        if self.render_mode is None:
            gymnasium.logger.warn('render() needs render_mode="rgb_array" or "human"')
            return None
        frame = self._picture()
        return None if self._window is not None else frame

    def close(self) -> None:
        """Release the backend and the window; it may be called twice."""
        self._open = False
        self._backend.close()
        if self._window is not None:
            self._window.close()

    def _choose(self, arena: Source | Sequence[Source]) -> None:
        """Read what is played from now on."""
        several = [arena] if isinstance(arena, (Arena, Path, str)) else arena
        self._arenas = [self._read(source) for source in several]
        if not self._arenas:
            raise ValueError("the list of arenas is empty; leave arena out for one of ours")
        self._next = 0

    def _simulator(self, wish: str) -> SimEnvironment:
        """The simulator.

        Raises:
            ValueError: Something else plays the arena, and cannot do what is wished for.
        """
        from animalcat.envs.sim.environment import SimEnvironment

        if not isinstance(self._backend, SimEnvironment):
            raise ValueError(f'{wish}: only the backend "sim" can')
        return self._backend

    def _loader(self, animalai_reset: bool) -> Callable[[Arena, int], Step]:
        if not animalai_reset:
            return self._backend.load
        try:
            return partial(self._simulator("animalai_reset=True").load, idle=1)
        except ValueError:
            self._backend.close()
            raise

    def _picture(self) -> npt.NDArray[np.uint8]:
        if not self._begun:
            raise RuntimeError("there is nothing to render: call reset() first")
        if self._frame is None:  # nobody sees pictures, so one is drawn as it is asked for
            self._frame = self._simulator("render").glance(_RENDER_RESOLUTION)[0]
        return np.repeat(self._frame, 3, axis=2) if self._frame.shape[2] == 1 else self._frame

    def _to_observation(self, step: Step) -> GymObservation:
        self._frame = step.observation.camera
        if self._window is not None:
            self._window.show(self._picture())
        return to_gym(step.observation, self.sensors)
