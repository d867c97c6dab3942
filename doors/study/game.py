"""Lets one person play episodes of arenas, and records them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
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
from animalcat.service.web.stage import Shown
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
    """What a person is shown; `seconds_left` is None if time costs nothing.

    It says when time has used up all health, if nothing is won or lost on the way; this holds in
    merged arenas too. `ended_by` and `passed` are None while the episode runs.
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
    """Episodes of arenas, each with its recording; not safe to share between threads."""

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

        Recordings go to `recordings/SESSION/` in the data directory. Seed and number of the episode
        decide what arenas leave to chance, unless `draws` does, on and on as in a build's process.

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
        """Take one decision, 3 x move + turn; once the episode is over, nothing happens."""
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


class GameShow:
    """A game as a page shows it."""

    def __init__(self, game: Game) -> None:
        """Show a game."""
        self._game = game
        self.close = game.close

    def state(self) -> Shown:
        """Return what is to be seen now."""
        return self._shown(self._game.view)

    def restart(self) -> Shown:
        """Begin the next episode."""
        return self._shown(self._game.restart())

    def act(self, action: int) -> Shown:
        """Take a decision."""
        return self._shown(self._game.act(action))

    def _shown(self, view: View) -> Shown:
        state = asdict(view)
        pixels, ended = state.pop("camera"), view.ended_by
        state |= {"title": self._game.title, "return": state.pop("episode_return")}
        state |= {"ended_by": ended and ended.name.lower(), "resolution": pixels.shape[0]}
        return Shown(state, pixels.tobytes())
