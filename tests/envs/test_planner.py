"""The planner solves small arenas of each kind, and plays only where it is shown the state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from animalcat.arena_configs.model import Arena, Item, Point, Vector3
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.load import load_agent
from animalcat.envs.agents.planner.beliefs import Beliefs, Hiders
from animalcat.envs.agents.planner.settings import PlannerSettings
from animalcat.envs.agents.planner.solving import SPEC, Solution, solve
from animalcat.envs.agents.planner.terrain import Floats, Mask
from animalcat.envs.agents.planner.view import Ball, Viewer, balls_in
from animalcat.envs.messages import pack_steps, spec_from_json, spec_to_json, unpack_steps
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.state import AGENT as AGENT_ROW
from animalcat.envs.state import Column
from animalcat.envs.types import EndedBy, Observation, ObservationSpec, Phase, Step
from animalcat.wire.steps import (
    observation_from_proto,
    observation_to_proto,
    spec_from_proto,
    spec_to_proto,
)
from tests.things import AGENT, GOAL, ON_FOOT, thing

if TYPE_CHECKING:
    from animalcat.envs.state import State

ARENAS = {
    **ON_FOOT,
    "pocket": (
        AGENT,
        thing("Wall", 20, 15, 12, 3, 1),
        thing("Wall", 14, 11, 1, 3, 8),
        thing("Wall", 26, 11, 1, 3, 8),
        GOAL,
    ),
    "bent between lava": (
        AGENT,
        thing("DeathZone", 15, 14, 30, 0.5, 2),
        thing("DeathZone", 25, 22, 30, 0.5, 2),
        thing("HotZone", 20, 30, 10, 0.5, 4),
        GOAL,
    ),
    "drop": (
        thing("Agent", 20, 5, y=2),
        thing("Wall", 20, 8, 8, 2, 16),
        thing("GoodGoal", 32, 5, 1, 1, 1),
    ),
    "moving": (AGENT, thing("GoodGoalBounce", 12, 20, 1, 1, 1, yaw=90)),
    "push": (
        AGENT,
        thing("Wall", 9, 20, 18, 3, 1),
        thing("Wall", 31, 20, 18, 3, 1),
        thing("LightBlock", 20, 22, 5, 1, 1),
        GOAL,
    ),
}


@pytest.mark.parametrize("name", ARENAS)
def test_it_solves_small_arenas(name: str) -> None:
    solution = solve(Arena(time_limit=500, pass_mark=0.4, items=ARENAS[name]), 0)
    assert solution.solved, solution


def test_it_presses_buttons() -> None:
    button = thing(
        "SpawnerButton",
        20,
        20,
        reward_names=("GoodGoal",),
        reward_spawn_pos=Vector3(x=30, y=0, z=30),
        move_durations=(0.5,),
        reset_durations=(0.5,),
    )
    solution = solve(Arena(time_limit=500, pass_mark=0.2, items=(AGENT, button)), 0)
    assert solution.solved, solution


def test_it_says_why_it_does_not_solve_an_arena() -> None:
    walled = [thing("Wall", 20, z, 6, 5, 1) for z in (32, 38)]
    walled += [thing("Wall", x, 35, 1, 5, 5) for x in (17.5, 22.5)]
    closed = solve(Arena(time_limit=20, pass_mark=0, items=(AGENT, *walled, GOAL)), 0)
    assert closed == Solution(False, closed.episode_return, 0, 34, closed.reason)
    assert closed.reason == "time ran out: no way to any reward"
    assert closed.episode_return == pytest.approx(-1.0, abs=0.02)
    high = solve(Arena(time_limit=100, pass_mark=5, items=(AGENT, GOAL)), 0)
    assert high.reason == "no play returns more than the pass mark"


def ball(number: int, reward: float, **more: Any) -> Ball:
    return Ball(number, Point(0, 0, 0), 0.5, reward, False, reward, 0.0, 0.0)._replace(**more)


def state(observation: Observation) -> State:
    assert observation.state is not None
    return observation.state


def first_step(spec: ObservationSpec, items: tuple[Item, ...]) -> Step:
    environment = SimEnvironment(spec)
    try:
        return environment.load(Arena(time_limit=250, items=items), 0)
    finally:
        environment.close()


def test_it_looks_again_when_something_has_moved_and_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = (AGENT, thing("Wall", 20, 20, 8, 4, 1), GOAL)
    now = state(first_step(SPEC, items).observation)
    looks: list[int] = []
    clear = Hiders.clear

    def count_up(hiders: Hiders, eye: Floats, ends: Floats) -> Mask:
        looks.append(len(ends))
        return clear(hiders, eye, ends)

    monkeypatch.setattr(Hiders, "clear", count_up)
    viewer, beliefs = Viewer(), Beliefs(PlannerSettings(memory_seconds=2.0))
    view = viewer.view(now)
    hidden = beliefs.update(now, 0.0)
    assert len(hidden) == len(now) - 1
    assert viewer.view(now.copy()) is view
    assert len(beliefs.update(now.copy(), 0.1)) == len(now) - 1
    assert len(looks) == 1
    beside = now.copy()
    beside[AGENT_ROW, Column.CENTER] = 2.0
    assert len(beliefs.update(beside, 0.2)) == len(now)
    (ball,) = np.flatnonzero(balls_in(now))
    nearer = now.copy()
    nearer[ball, Column.CENTER + 2] = 10.0
    assert len(beliefs.update(nearer, 0.3)) == len(now)
    assert viewer.view(nearer).balls[0].center.z == 10.0
    assert len(looks) == 3


def test_the_state_travels_to_agents() -> None:
    spec = replace(ObservationSpec(), privileged=True)
    assert spec_from_json(spec_to_json(spec)) == spec == spec_from_proto(spec_to_proto(spec))
    step = first_step(spec, (AGENT, GOAL, thing("Wall", 3, 3, 1, 1, 1)))
    last = Step(Phase.LAST, 1.0, EndedBy.GOAL, step.observation)
    packed = pack_steps([step, last])
    for unpacked in unpack_steps(packed, spec):
        seen = unpacked.observation
        assert np.array_equal(state(seen), state(step.observation))
        assert seen.rays is not None
        assert step.observation.rays is not None
        assert np.array_equal(seen.rays, step.observation.rays)
    with pytest.raises(ValueError, match=r"buffer|cut off"):
        unpack_steps(packed[:-100], spec)
    message = observation_to_proto(step.observation)
    assert np.array_equal(state(observation_from_proto(message, spec)), state(step.observation))
    with pytest.raises(ValueError, match="state"):
        observation_from_proto(message, ObservationSpec())


def test_a_planner_without_a_state_says_what_to_do() -> None:
    agent = load_agent("builtin:planner")
    with pytest.raises(ValueError, match="--privileged"):
        agent.reset(EpisodeInfo(0, 0, ObservationSpec()))


def test_it_waits_while_waiting_pays() -> None:
    growing = thing(
        "GrowGoal",
        20,
        20,
        delays=(50.0,),
        initial_values=(0.5,),
        final_values=(3.0,),
        change_rates=(0.01,),
    )
    solution = solve(Arena(time_limit=500, pass_mark=2.5, items=(AGENT, growing)), 0)
    assert solution.solved, solution
    assert solution.steps > 90
