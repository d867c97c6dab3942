"""The training environment: arenas of the practice part of every family, freely chosen."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final
from uuid import uuid4

import numpy as np
from animalcat_openenv.models import AnimalcatObservation, AnimalcatState
from animalcat_openenv.server.spoken import Moved, SpokenEnvironment, read_tongue

from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.library import FAMILIES
from animalcat.arena_configs.model import STEPS_PER_UNIT
from animalcat.arena_configs.outcome import success
from animalcat.arena_configs.sequence import pass_mark
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.backends import make_environment
from animalcat.envs.types import (
    CameraSpec,
    EndedBy,
    Environment,
    ObservationSpec,
    Phase,
    RaySpec,
)

TASKS: Final = 1000
"""Arenas of each split."""
SPLIT: Final = "navigation"
"""The split that is played where none is named."""
TONGUE: Final = "script,picture=0"
"""Words first: pictures come by `tongue="script,picture=84"`."""
PERIOD: Final = 3
MOST_SEED: Final = 2**31 - 1
_OPTIONS: Final = ("split", "index", "tongue")


class TrainingEnvironment(SpokenEnvironment):
    """Plays an arena of a split, as often as one likes.

    A split is a family of arenas, and its tasks are arenas of the family's practice part: none of
    them is in the test part of a battery. The same split, index, seed and answers give the same
    episode. A task is passed when Animal-AI's return exceeds the arena's pass mark, and the reward
    is then 1.
    """

    about = "Arenas of Animal-AI to train in, told in words; the reward is 1 for a passed arena"

    def __init__(self) -> None:
        super().__init__()
        self._chance = np.random.default_rng()
        self._simulators: dict[ObservationSpec, Environment] = {}
        self._simulator: Environment | None = None
        self._mark = self._points = 0.0

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **kwargs: Any
    ) -> AnimalcatObservation:
        """Begin an episode.

        Args:
            seed: Seed of all that the arena leaves to chance, and of the arena where no index is
                given; at most 2**31 - 1. None: a fresh one, which the state tells.
            episode_id: What the episode is called; by default a random name.
            **kwargs: `split`, a family of arenas (navigation); `index`, which of its 1,000 arenas;
                `tongue`, how the agent is told and answers (script,picture=0).

        Raises:
            ValueError: An option is unknown, or has no such value.
        """
        if unknown := sorted(set(kwargs) - {*_OPTIONS}):
            raise ValueError(f"reset has no option {unknown[0]}; there are {', '.join(_OPTIONS)}")
        if seed is None:
            seed = int(self._chance.integers(MOST_SEED))
        # What came over the wire was not looked at.
        if type(seed) is not int or not 0 <= seed <= MOST_SEED:
            raise ValueError(f"seed {seed!r} is not a whole number from 0 to {MOST_SEED}")
        split = _split(kwargs.get("split", SPLIT))
        index = kwargs.get("index")
        if index is None:
            index = int(np.random.default_rng(seed).integers(TASKS))
        tongue = read_tongue(kwargs.get("tongue", TONGUE))
        instance = task(split, _index(split, index))
        camera = CameraSpec(tongue.picture) if tongue.picture else None
        spec = ObservationSpec(camera, RaySpec(), PERIOD)
        self._talk = None
        self._simulator = self._simulators.get(spec)
        if self._simulator is None:
            self._simulator = self._simulators[spec] = make_environment("sim", spec)
        step = self._simulator.load(instance.arena, seed)
        self._mark, self._points = pass_mark(instance.arena), 0.0
        self._state = AnimalcatState(
            episode_id=episode_id or str(uuid4()),
            split=split,
            index=index,
            seed=seed,
            tongue=str(tongue),
        )
        limit = max(0, instance.arena.time_limit) * STEPS_PER_UNIT
        info = EpisodeInfo(0, seed, spec, time_budget_steps=-(-limit // PERIOD))
        return self._opened(tongue, info, step.observation)

    def list_splits(self) -> list[dict[str, str]]:
        """The splits: one a family, all of them to train in."""
        return [{"name": name, "type": "train"} for name in FAMILIES]

    def num_tasks(self, split: str) -> int:
        """How many arenas a split has."""
        _split(split)
        return TASKS

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """An arena of a split: what it is called, and its paradigm, but not where things are.

        Raises:
            IndexError: The split has no such arena.
            ValueError: There is no such split.
        """
        instance = task(_split(split), _index(split, index))
        return {
            "id": f"{split}-{index}",
            "split": split,
            "index": index,
            "paradigm": instance.paradigm,
        }

    def get_task_range(
        self, split: str, start: int | None = None, stop: int | None = None
    ) -> list[dict[str, Any]]:
        """Arenas of a split, by the bounds of a slice of Python."""
        return [self.get_task(split, index) for index in range(TASKS)[slice(start, stop)]]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """The first hundred arenas of a split."""
        return self.get_task_range(split, 0, 100)

    def close(self) -> None:
        """Let the simulators go."""
        self._talk = None
        for simulator in self._simulators.values():
            simulator.close()
        self._simulators.clear()

    def _act(self, actions: bytes) -> Moved:
        assert self._simulator is not None  # an episode is open
        points, step = 0.0, None
        for step in map(self._simulator.step, actions):
            if step.ended_by is EndedBy.FAULT:
                self._talk = None
                raise RuntimeError("the simulator failed in mid-episode: reset begins a new one")
            points += step.reward
            if step.phase is Phase.LAST:
                break
        assert step is not None, "a conversation says at least one action"
        self._points += points
        return Moved(step.observation, points, step.phase is Phase.LAST)

    def _meanwhile(self) -> float:
        return 0.0

    def _worth(self) -> float:
        return float(success(self._points, self._mark))


@lru_cache(maxsize=4096)
def task(split: str, index: int) -> FamilyInstance:
    """The arena of a split with an index; the same in every process.

    Args:
        split: Name of a family.
        index: Its number, from 0.
    """
    (drawn,) = generate(split, 1, np.random.default_rng(index), part="practice")
    return drawn


def _split(name: object) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9-]+", name) or name not in FAMILIES:
        raise ValueError(f"there is no split {name!r}; there are {', '.join(FAMILIES)}")
    return name


def _index(split: str, index: object) -> int:
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < TASKS:
        raise IndexError(f"{split} has no task {index!r}; its tasks are 0 to {TASKS - 1}")
    return index
