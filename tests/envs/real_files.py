"""The real arena files in play: what builds, what is skipped, and how many an agent passes."""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.outcome import success
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.load import load_agent
from animalcat.envs.answers import read_answer
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ACTIONS, ObservationSpec, Phase
from tests.small import play_episode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

SETS: Final = ("animal-ai-competition", "o-piaagets")
AGENT: Final = "builtin:braitenberg"
REAL_PERCENT: Final[Mapping[int, int]] = dict(
    enumerate((65, 22, 0, 12, 6, 27, 51, 8, 3, 0), start=1)
)
"""Of each category of the competition, what a like agent passes in the real build (issue 3)."""
MOST_DECISIONS: Final = 2000


@dataclass(slots=True)
class Played:
    """What was played.

    Attributes:
        files: How many files.
        arenas: How many arenas in them.
        decisions: How many decisions in those.
        skipped: Name and reason of objects that are not in the game -> how many.
    """

    files: int = 0
    arenas: int = 0
    decisions: int = 0
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])


def arena_files(folder: Path) -> list[Path]:
    """All arena files below a folder, sorted."""
    return sorted(path for path in folder.rglob("*.y*ml"))


def play_all(files: Sequence[Path], decisions: int) -> Played:
    """Play random actions in every arena of every file.

    Args:
        files: Arena files.
        decisions: In each arena, if it lasts so long.

    Raises:
        ValueError: An observation is not finite, or not as its specification says.
        AssertionError: The agent has left the arena.
        ArenaError: A file cannot be read or built.
    """
    environment = SimEnvironment(ObservationSpec())
    played = Played()
    for file in files:
        actions = np.random.default_rng(zlib.crc32(file.name.encode())).integers(
            ACTIONS, size=decisions
        )
        played.files += 1
        for arena in load_config(file).config.arenas.values():
            played.arenas += 1
            for step in play_episode(environment, arena, 0, actions.tolist()):
                environment.spec.validate(step.observation)
                assert np.abs(step.observation.position).max() < 60, file.name
                played.decisions += step.phase is not Phase.FIRST
            played.skipped.update(environment.skipped)
    return played


def pass_rates(files: Sequence[Path]) -> dict[int, tuple[int, int]]:
    """How many of the competition's files an agent passes, and of how many, by category.

    Args:
        files: Files named CATEGORY-TASK-VARIATION.yaml.
    """
    environment = SimEnvironment(ObservationSpec())
    found: dict[int, tuple[int, int]] = {}
    for file in files:
        category = int(file.name.split("-", maxsplit=1)[0])
        passed, of = found.get(category, (0, 0))
        found[category] = (passed + _passes(environment, file), of + 1)
    return found


def _passes(environment: SimEnvironment, file: Path) -> bool:
    arena = load_config(file).config.first
    agent = load_agent(AGENT)
    agent.reset(EpisodeInfo(0, 0, environment.spec))
    step = environment.load(arena, 0)
    total = 0.0
    for _ in range(MOST_DECISIONS):
        for action in read_answer(agent.act(step.observation)).actions:
            step = environment.step(action)
            total += step.reward
            if step.phase is Phase.LAST:
                return success(total, arena.pass_mark)
    return False
