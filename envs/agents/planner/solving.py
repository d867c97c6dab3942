"""Plays the planner in the simulator, to find out whether an arena can be solved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.model import STEPS_PER_UNIT
from animalcat.arena_configs.outcome import success
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.returns import max_return
from animalcat.arena_configs.sequence import episode_arenas, pass_mark
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.planner.agent import PlannerAgent
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import EndedBy, ObservationSpec

if TYPE_CHECKING:
    from animalcat.arena_configs.model import Arena

SPEC: Final = ObservationSpec(None, None, privileged=True)
LONGEST: Final = 6000
"""Decisions after which an episode without a time limit is given up."""


@dataclass(frozen=True, slots=True)
class Solution:
    """How the planner fared in one episode.

    Attributes:
        solved: Whether its return is above the pass mark.
        episode_return: Sum of the rewards.
        pass_mark: The arena's pass mark.
        steps: Decisions taken.
        reason: Why it is not solved; empty if it is.
    """

    solved: bool
    episode_return: float
    pass_mark: float
    steps: int
    reason: str


def solve(arena: Arena, seed: int) -> Solution:
    """Let the planner play an arena once.

    Args:
        arena: The arena, with those that it merges with.
        seed: Seed of what it leaves to chance.

    Raises:
        ArenaError: The arena cannot be built.
    """
    environment, agent = SimEnvironment(SPEC, tell=False), PlannerAgent()
    try:
        step = environment.load(arena, seed)
        limit = arena.time_limit * STEPS_PER_UNIT
        agent.reset(EpisodeInfo(0, seed, SPEC, -(-limit // SPEC.decision_period)))
        total, steps = 0.0, 0
        while step.ended_by is None and steps < LONGEST:
            step = environment.step(agent.act(step.observation))
            total += step.reward
            steps += 1
    finally:
        environment.close()
    mark = pass_mark(arena)
    if success(total, mark):
        return Solution(True, total, mark, steps, "")
    return Solution(False, total, mark, steps, _reason(arena, seed, step.ended_by, agent.status))


def _reason(arena: Arena, seed: int, ended_by: EndedBy | None, status: str) -> str:
    """Why an episode was not passed."""
    placed = (place(part, np.random.default_rng(seed)) for part in episode_arenas(arena))
    if max_return(*placed) <= pass_mark(arena):
        return "no play returns more than the pass mark"
    match ended_by:
        case EndedBy.DEATH:
            return "it died"
        case EndedBy.GOAL:
            return "the rewards that it took are not enough"
        case _:
            return f"time ran out: {status}"
