"""An agent that stops in the middle of an episode until it may go on, so that kills fall there."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from animalcat.envs.agents.load import BUILTIN

if TYPE_CHECKING:
    from animalcat.envs.agents.base import EpisodeInfo
    from animalcat.envs.types import Observation

FOLDER = "TEST_HELD_FOLDER"
"""Variable that names the folder for the files `held` and `go`."""
EPISODE = "TEST_HELD_EPISODE"
"""Variable that names the episode at whose second decision it waits."""


class HeldAgent:
    """Acts as `builtin:random` does, and waits once, with one decision taken."""

    def __init__(self) -> None:
        self._random = BUILTIN["random"]()
        self._folder = Path(os.environ[FOLDER])
        self._decisions = 0
        self._hold = False

    def reset(self, info: EpisodeInfo) -> None:
        self._random.reset(info)
        self._decisions = 0
        self._hold = info.episode == int(os.environ[EPISODE])

    def act(self, observation: Observation) -> int:
        if self._hold and self._decisions == 1:
            (self._folder / "held").touch()
            while not (self._folder / "go").exists():
                time.sleep(0.01)
        self._decisions += 1
        return int(self._random.act(observation))
