"""Pass marks that nobody can exceed, and those that nobody can miss."""

from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.arena_configs.checks import OF_MARKS, check_loaded
from animalcat.arena_configs.features.registry import read_features
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.outcome import mark_fault
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.quickest import NEEDED, returns_in_time
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec

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
        (250, 0.95, "GoodGoal", 1, "unreachable-pass-mark"),  # 25 m take more than 62 steps
        (250, 0.996, "GoodGoal", 1, "unreachable-pass-mark"),
        (250, 0.9, "GoodGoal", 1, "tight-pass-mark"),  # the scout takes 230
        (250, 0.8, "GoodGoal", 1, ""),
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
    marks = [one for one in found if one.code in OF_MARKS and one.code != "no-reward"]
    assert [one.code for one in marks] == [code] * bool(code)
    assert all(one.severity == ("error" if "un" in code else "warning") for one in marks)


@pytest.mark.parametrize("metres", [3.0, 25.0])
@pytest.mark.parametrize("size", [0.5, 3.0])
def test_no_play_exceeds_what_the_way_leaves_and_the_fastest_comes_near(
    metres: float, size: float
) -> None:
    text = ARENA.format(limit=250, mark=0, goal="GoodGoal", size=size)
    text = text.replace("z: 30", f"z: {5 + metres}").replace("z: 5}", "z: 5}]\n      rotations: [0")
    arena = load_text(text, "a.yaml").config.first
    survey = Survey(place(arena, np.random.default_rng(0)))
    known = returns_in_time(read_features(survey, NEEDED).values, 1250)
    played = SimEnvironment(ObservationSpec(decision_period=1))
    played.load(arena, 0)
    total, ended = 0.0, None
    while ended is None:
        step = played.step(3)
        total, ended = total + step.reward, step.ended_by
    assert total <= known.greatest < total + 8 / 1250
    assert known.likely == pytest.approx(known.greatest - 3.3 / 25)


def test_a_wall_on_the_way_costs_what_the_way_around_it_takes() -> None:  # I5
    wall = """    - !Item
      name: Wall
      positions: [!Vector3 {x: 20, y: 0, z: 15}]
      rotations: [0]
      sizes: [!Vector3 {x: 36, y: 5, z: 1}]
"""
    text = ARENA.format(limit=250, mark=0.93, goal="GoodGoal", size=1)
    assert "tight-pass-mark" in codes_of(text)
    assert "unreachable-pass-mark" in codes_of(text + wall)


def codes_of(text: str) -> list[str]:
    found = check_loaded(load_text(text, "a.yaml"), np.random.default_rng(0), file="a.yaml")
    return [problem.code for problem in found]
