"""Plays tasks with foresight, at random, or not at all, through the client: what reward each gets.

    animalcat-openenv &
    python validation/oracle.py http://localhost:8000 --split navigation --tasks 20

The oracle plans in a copy of the arena: a task, a seed and the same actions are the same episode.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from itertools import groupby
from statistics import mean
from typing import Final

import numpy as np
from animalcat_openenv import AnimalcatAction, AnimalcatEnv
from animalcat_openenv.server.training import PERIOD, SPLIT, task

from animalcat.doors.speech.reading import FRAMES, PRESS_DECISIONS
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.planner.agent import PlannerAgent
from animalcat.envs.backends import make_environment
from animalcat.envs.types import ObservationSpec, Phase, RaySpec

TONGUE: Final = "frames,picture=0,deeds=50,answers=1000"
_NAMES: Final = {number: name for name, number in FRAMES.items()}
_COMMANDS: Final = 50
Player = Callable[[str, int, int], Iterator[str]]
"""Says the answers of an episode, by split, index and seed."""


def oracle(split: str, index: int, seed: int) -> Iterator[str]:
    """The planner's actions in that arena, in answers of fifty commands."""
    spec = ObservationSpec(None, RaySpec(), PERIOD, privileged=True)
    arena = make_environment("sim", spec)
    planner = PlannerAgent()
    try:
        step = arena.load(task(split, index).arena, seed)
        planner.reset(EpisodeInfo(0, seed, spec))
        actions: list[int] = []
        while step.phase is not Phase.LAST:
            actions.append(int(planner.act(step.observation)))
            step = arena.step(actions[-1])
    finally:
        arena.close()
    commands = [
        f"{_NAMES[action]} {min(count - done, PRESS_DECISIONS)}"
        for action, run in groupby(actions)
        for count in [len(list(run))]
        for done in range(0, count, PRESS_DECISIONS)
    ]
    for first in range(0, len(commands), _COMMANDS):
        yield "\n".join(commands[first : first + _COMMANDS])


def chance(split: str, index: int, seed: int) -> Iterator[str]:
    """Actions drawn evenly, each for six decisions."""
    rng = np.random.default_rng([index, seed])
    while True:
        yield "\n".join(f"{_NAMES[int(a)]} 6" for a in rng.integers(len(_NAMES), size=10))


def rest(split: str, index: int, seed: int) -> Iterator[str]:
    """Stands still."""
    while True:
        yield f"NOOP {PRESS_DECISIONS}"


PLAYERS: Final[dict[str, Player]] = {"oracle": oracle, "random": chance, "rest": rest}


def rewards(url: str, player: str, split: str, tasks: int, seed: int = 0) -> list[float]:
    """The rewards of the first tasks of a split, played through the client.

    Args:
        url: The server.
        player: One of `PLAYERS`.
        split: The split.
        tasks: How many of its tasks.
        seed: Seed of every episode.
    """
    got: list[float] = []
    with AnimalcatEnv(base_url=url).sync() as env:
        for index in range(tasks):
            result = env.reset(split=split, index=index, seed=seed, tongue=TONGUE)
            answers = PLAYERS[player](split, index, seed)
            while not result.done:
                result = env.step(AnimalcatAction(answer=next(answers, "NOOP 100")))
            got.append(float(result.reward or 0.0))
    return got


def main() -> None:
    """Print the mean reward of each player."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("url")
    parser.add_argument("--split", default=SPLIT)
    parser.add_argument("--tasks", type=int, default=20)
    given = parser.parse_args()
    for player in PLAYERS:
        got = rewards(given.url, player, given.split, given.tasks)
        print(f"{player:8} {mean(got):.2f} over {len(got)} tasks of {given.split}", flush=True)


if __name__ == "__main__":
    main()
