"""Pass marks that nobody can exceed, and those that nobody can miss."""

from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.arena_configs.checks import check_loaded
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.outcome import mark_fault

ARENA = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: {limit}
    passMark: {mark}
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 5}}]
    - !Item
      name: {goal}
      positions: [!Vector3 {{x: 20, y: 0, z: 30}}]
      sizes: [!Vector3 {{x: {size}, y: {size}, z: {size}}}]
"""


@pytest.mark.parametrize(
    ("least", "greatest", "mark", "code"),
    [
        (-1.0, 1.0, 0.0, ""),
        (-1.0, 1.0, 1.0, "unreachable-pass-mark"),
        (-1.0, 1.0, 2.0, "unreachable-pass-mark"),
        (-1.0, 1.0, -1.0, ""),  # a return of -1 does not exceed it
        (-1.0, 1.0, -1.5, "sure-pass"),
        (0.0, 0.0, 0.0, "unreachable-pass-mark"),
        (-math.inf, math.inf, 5.0, ""),
        (math.nan, math.nan, 5.0, ""),
        (math.nan, 1.0, 1.0, "unreachable-pass-mark"),
        (-1.0, math.nan, -2.0, "sure-pass"),
    ],
)
def test_a_pass_mark_is_judged_by_what_is_known_of_returns(
    least: float, greatest: float, mark: float, code: str
) -> None:
    found = mark_fault(least, greatest, mark)
    assert (found.code if found else "") == code


@pytest.mark.parametrize(
    ("limit", "mark", "goal", "size", "code"),
    [
        (250, 0, "GoodGoal", 1, ""),
        (250, 1, "GoodGoal", 1, "unreachable-pass-mark"),  # "earn the goal"
        (0, 1, "GoodGoal", 1, "unreachable-pass-mark"),  # without a limit nothing decays
        (250, 3, "GoodGoal", 3, "unreachable-pass-mark"),
        (250, 1, "GoodGoalMulti", 1, "unreachable-pass-mark"),
        (250, 100, "GoodGoal", 1, "unreachable-pass-mark"),  # in per cent
        (250, 0, "BadGoal", 1, "unreachable-pass-mark"),
        (250, 0.9, "GoodGoal", 1, ""),
        (250, -1.5, "GoodGoal", 1, "sure-pass"),
        (0, -0.5, "GoodGoal", 1, "sure-pass"),
        (250, -1.5, "BadGoal", 1, ""),  # touching it may return less
        (250, -2.5, "BadGoal", 1, "sure-pass"),
        (250, 9, "SpawnerTree", 1, ""),  # may give any reward
    ],
)
def test_arena_check_says_what_the_pass_mark_does(
    limit: int, mark: float, goal: str, size: int, code: str
) -> None:
    text = ARENA.format(limit=limit, mark=mark, goal=goal, size=size)
    found = check_loaded(load_text(text, "a.yaml"), np.random.default_rng(0), file="a.yaml")
    marks = [one for one in found if one.code in ("unreachable-pass-mark", "sure-pass")]
    assert [one.code for one in marks] == [code] * bool(code)
    assert all(one.severity == ("error" if "un" in code else "warning") for one in marks)
