"""Says whether an arena can be solved: the planner, which knows everything, plays it."""

from __future__ import annotations

from typing import NamedTuple

from animalcat.arena_configs.model import Arena


class PlannerVerdict(NamedTuple):
    """How the planner fared in an arena.

    Attributes:
        solved: Whether it passed.
        episode_return: What it got.
        steps: Decisions it took.
        reason: Why it did not pass; empty if it did.
    """

    solved: bool
    episode_return: float
    steps: int
    reason: str


def judge(arena: Arena, seed: int) -> PlannerVerdict:
    """Let the planner play an arena once in the simulator.

    Args:
        arena: The arena with every value fixed.
        seed: Seed of what spawners and operations leave to chance.

    Raises:
        ArenaError: The arena cannot be built.
    """
    # Imported here: it loads the simulator, which lists do without.
    from animalcat.envs.agents.planner.solving import solve

    solution = solve(arena, seed)
    return PlannerVerdict(
        solution.solved, round(solution.episode_return, 6), solution.steps, solution.reason
    )
