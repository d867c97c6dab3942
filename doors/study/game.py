"""Lets one person play episodes of arenas, and records them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.builds import NEWEST, Build
from animalcat.arena_configs.draws import UnityDraws
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.outcome import success
from animalcat.arena_configs.placement import fix
from animalcat.arena_configs.sequence import merge_arenas, pass_mark
from animalcat.arena_configs.writer import to_yaml
from animalcat.envs.backends import make_environment
from animalcat.envs.types import (
    PHYSICS_STEP,
    CameraSpec,
    EndedBy,
    Environment,
    ObservationSpec,
    RaySpec,
    Step,
)
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.storage.artefacts import recording_path
from animalcat.service.versions import versions
from animalcat.text import names
from animalcat.v1 import results_pb2, types_pb2
from animalcat.wire.steps import spec_to_proto

AGENT: Final = "person"
BACKEND: Final = "sim"
PERIOD: Final = 3
"""Physics steps per decision, the same as the default for agents."""
ACTIONS_PER_SECOND: Final = 1.0 / (PERIOD * PHYSICS_STEP)
FULL_HEALTH: Final = 100.0
SECONDS_PER_UNIT: Final = 0.1
"""Seconds per unit of an arena's time limit."""

Make = Callable[[str, ObservationSpec], Environment]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What a person is shown.

    Attributes:
        episode: Number of the episode, from 0.
        step: Number of decisions taken in it.
        health: Health, 0 to 100.
        reward: Reward of the last decision.
        episode_return: Sum of the rewards so far.
        seconds_left: Seconds until time has used up all health, if nothing is won or lost on the
            way; this holds in merged arenas too. None if time costs nothing.
        ended_by: Why the episode is over; None while it runs.
        passed: Whether it was a success; None while it runs.
        speed: Speed in m/s.
        camera: Picture, uint8 (resolution, resolution, 3).
    """

    episode: int
    step: int
    health: float
    reward: float
    episode_return: float
    seconds_left: float | None
    ended_by: EndedBy | None
    passed: bool | None
    speed: float
    camera: npt.NDArray[np.uint8]


class Game:
    """Episodes of arenas, each with its recording; not safe to share between threads.

    Attributes:
        session: Id under which the recordings are kept.
        view: What the person sees now.
    """

    def __init__(
        self,
        arena: Arena,
        seed: int,
        *,
        session: str,
        instance: str,
        data: Path,
        others: Sequence[tuple[str, Arena]] = (),
        resolution: int = 256,
        make: Make | None = None,
        build: Build = NEWEST,
        draws: UnityDraws | None = None,
    ) -> None:
        """Start the first episode.

        Args:
            arena: The arena to play.
            seed: Together with the episode's number, the seed for what the arena leaves to chance.
            session: Id for the recordings.
            instance: Name of the arena, for the recordings' headers.
            data: Data directory; recordings go to `recordings/SESSION/` in it.
            others: Arenas that come after it, with their names.
            resolution: Side of the camera's picture in pixels.
            make: Makes the environment instead.
            build: The build that is simulated.
            draws: What draws instead of a generator of the seed, on and on as in a build's process.

        Raises:
            ArenaError: The arena cannot be built.
            OSError: The recording cannot be written.
        """
        self.session = names.check_component(session, "session")
        self._arenas, self._at = ((instance, arena), *others), 0
        self._seed, self._data = seed, data
        self._spec = ObservationSpec(CameraSpec(resolution), RaySpec(), PERIOD)
        self._environment = (
            make(BACKEND, self._spec)
            if make is not None
            else make_environment(BACKEND, self._spec, build=build)
        )
        self._draws = draws
        self._recorder: EpisodeRecorder | None = None
        self._number = 0
        self.view = self._start()

    @property
    def instance(self) -> str:
        """Name of the arena that is played."""
        return self._arenas[self._at][0]

    @property
    def title(self) -> str:
        """The arena's name, and where there are several, which of them it is."""
        several = f" ({self._at + 1} of {len(self._arenas)})" if len(self._arenas) > 1 else ""
        return self.instance + several

    @property
    def recording(self) -> Path:
        """Path of the present episode's recording; the file appears with the first action."""
        return recording_path(self._data, self.session, self._number, 0)

    def act(self, action: int) -> View:
        """Take one decision; once the episode is over, nothing happens.

        Args:
            action: 3 x move + turn, 0 to 8.

        Returns:
            What the person sees after it.

        Raises:
            ValueError: The action is out of range.
            OSError: The recording cannot be written.
        """
        if self.view.ended_by is not None:
            return self.view
        step = self._environment.step(action)
        if self._recorder is None:
            self._recorder = EpisodeRecorder(self.recording, self._header)
            self._recorder.step(self._first, None)
        self._recorder.step(step, action)
        self.view = self._view_of(step, self.view.step + 1, self.view.episode_return + step.reward)
        if self.view.ended_by is not None:
            passed = types_pb2.OUTCOME_SUCCESS if self.view.passed else types_pb2.OUTCOME_FAILURE
            self._finish(types_pb2.OUTCOME_FAULT if step.ended_by is EndedBy.FAULT else passed)
        return self.view

    def restart(self) -> View:
        """Begin the next episode; one that still runs is recorded as void.

        Once an episode is over, the next arena comes, and the first one after the last.

        Raises:
            ArenaError: The arena cannot be built with the next draws.
            OSError: The recording cannot be written.
        """
        self._finish(types_pb2.OUTCOME_VOID)
        if self.view.ended_by is not None:
            self._at = (self._at + 1) % len(self._arenas)
        self._number += 1
        self.view = self._start()
        return self.view

    def close(self) -> None:
        """End the game; a running episode is recorded as void. Calling it twice is fine."""
        self._finish(types_pb2.OUTCOME_VOID)
        self._environment.close()

    def _start(self) -> View:
        seed = self._seed + self._number
        draws = np.random.default_rng(seed) if self._draws is None else self._draws
        instance, arena = self._arenas[self._at]
        text = to_yaml(fix(arena, draws))
        self._played = merge_arenas(load_text(text, instance).config)
        self._header = results_pb2.EpisodeHeader(
            name=names.episode_name(self.session, self._number, 0),
            instance=instance,
            arena_yaml=text,
            seed=seed,
            observation_spec=spec_to_proto(self._spec),
            backend=BACKEND,
            versions=versions(),
            agent=AGENT,
        )
        self._first = self._environment.load(self._played, seed)
        return self._view_of(self._first, 0, 0.0)

    def _finish(self, outcome: int) -> None:
        if self._recorder is not None:
            self._recorder.finish(outcome)
            self._recorder = None

    def _view_of(self, step: Step, number: int, total: float) -> View:
        observation, limit = step.observation, self._played.time_limit
        assert observation.camera is not None  # the specification has one
        over = step.ended_by is not None
        return View(
            episode=self._number,
            step=number,
            health=observation.health,
            reward=step.reward,
            episode_return=total,
            seconds_left=limit * SECONDS_PER_UNIT * observation.health / FULL_HEALTH
            if limit > 0
            else None,
            ended_by=step.ended_by,
            passed=success(total, pass_mark(self._played)) if over else None,
            speed=float(np.linalg.norm(observation.velocity)),
            camera=observation.camera,
        )
