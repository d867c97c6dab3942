"""The planner solves small arenas of each kind, and plays only where it is shown the state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest

from animalcat.arena_configs.model import Arena, ArenaConfig, Item, Point, Vector3
from animalcat.arena_configs.sequence import merged
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.load import load_agent
from animalcat.envs.agents.planner.agent import PlannerAgent
from animalcat.envs.agents.planner.beliefs import Beliefs, Hiders
from animalcat.envs.agents.planner.order import best_plan, later, ripe
from animalcat.envs.agents.planner.settings import PlannerSettings
from animalcat.envs.agents.planner.solving import SPEC, Solution, solve
from animalcat.envs.agents.planner.terrain import Floats, Mask, PlannerTerrain
from animalcat.envs.agents.planner.view import Ball, Viewer, balls_in, is_other
from animalcat.envs.backends import make_environment
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


def test_it_does_the_same_again() -> None:
    arena = Arena(time_limit=250, items=(AGENT, thing("GoodGoalBounce", 8, 12, 1, 1, 1, yaw=60)))
    assert solve(arena, 3) == solve(arena, 3)


def test_it_takes_yellow_goals_before_the_green_one() -> None:
    yellow = [thing("GoodGoalMulti", x, z, 1, 1, 1) for x, z in ((8, 8), (32, 12), (20, 38))]
    items = (AGENT, thing("GoodGoal", 20, 15, 1, 1, 1), *yellow)
    assert solve(Arena(time_limit=500, pass_mark=3.3, items=items), 0).solved


def test_it_keeps_off_bad_goals() -> None:
    bad = thing("BadGoal", 20, 15, 4, 4, 4), thing("DecoyGoal", 15, 22, 2, 2, 2)
    assert solve(Arena(time_limit=250, pass_mark=1.5, items=(AGENT, *bad, GOAL)), 0).solved


def test_it_needs_no_light() -> None:
    items = ARENAS["zigzag"]
    assert solve(Arena(time_limit=250, pass_mark=1, items=items, blackouts=(0,)), 0).solved


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


def test_orders_return_most() -> None:
    inf = float("inf")
    one, two, last = ball(1, 1.0), ball(2, 1.0), ball(3, 2.0, ends=True)
    legs: list[list[float]] = [[5, 9, 3], [inf, 4, 4], [4, inf, 4], [inf, inf, inf]]
    plan = best_plan([one, two, last], legs, 50.0, 1.0)
    assert plan.order == (0, 1, 2)
    # One of two that cannot both be had, however near it is.
    small, large = ball(1, 1.0), ball(2, 3.0)
    assert best_plan([small, large], [[1, 9], [inf, inf], [inf, inf]], 50.0, 1.0).order[0] == 1


def test_rewards_change_by_their_rates() -> None:
    growing = ball(1, 0.5, final=2.5, rate=0.01, wait=100.0)
    assert ripe(growing) == pytest.approx(6.0)
    assert later(growing, 4.0) == pytest.approx(1.5)
    assert later(growing, 60.0) == pytest.approx(2.5)
    fading = ball(2, 2.0, final=0.5, rate=-0.01)
    assert (ripe(fading), later(fading, 1.0)) == (0.0, pytest.approx(1.5))
    plan = best_plan([growing._replace(ends=True)], [[12.0]], 50.0, 1.0)
    assert plan.wait > 2.0


def state(observation: Observation) -> State:
    assert observation.state is not None
    return observation.state


def first_step(spec: ObservationSpec, items: tuple[Item, ...]) -> Step:
    environment = SimEnvironment(spec)
    try:
        return environment.load(Arena(time_limit=250, items=items), 0)
    finally:
        environment.close()


def test_the_state_says_what_is_there() -> None:
    step = first_step(SPEC, (thing("Agent", 20, 5, yaw=90), thing("BadGoal", 5, 6, 2, 2, 2), GOAL))
    SPEC.validate(step.observation)
    agent, bad, good = state(step.observation)
    assert agent[Column.CENTER : Column.HALF] == pytest.approx(step.observation.position)
    assert agent[[Column.ROTATION + 2, Column.ROTATION]] == pytest.approx([1.0, 0.0], abs=1e-6)
    assert good[Column.CENTER : Column.HALF] == pytest.approx([20, 1.009, 35], abs=1e-3)
    rewards = [row[[Column.REWARD, Column.ENDS]].tolist() for row in (agent, bad, good)]
    assert np.allclose(rewards, [[0, 0], [-1.998, 1], [1.998, 1]])


def test_it_looks_again_when_something_has_moved_and_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = (AGENT, thing("Wall", 20, 20, 8, 4, 1), GOAL)
    now = state(first_step(SPEC, items).observation)
    looks: list[int] = []
    clear = Hiders.clear

    def counted(hiders: Hiders, eye: Floats, ends: Floats) -> Mask:
        looks.append(len(ends))
        return clear(hiders, eye, ends)

    monkeypatch.setattr(Hiders, "clear", counted)
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


def in_the_dark(now: State, **moved: float) -> State:
    """A state without light, in which its goal is elsewhere."""
    dark = now.copy()
    dark[AGENT_ROW, Column.HIDES] = 1.0
    (ball,) = np.flatnonzero(balls_in(now))
    for axis, value in moved.items():
        dark[ball, Column.CENTER + "xyz".index(axis)] = value
    return dark


def taken_for(beliefs: Beliefs, now: State, time: float) -> tuple[float, float] | None:
    """x and z of where it takes the one goal to be; None: it knows of none."""
    believed = beliefs.update(now, time)
    balls = believed[balls_in(believed)]
    return None if not len(balls) else (float(balls[0, 3]), float(balls[0, 5]))


@pytest.mark.parametrize(("side", "x"), [("left", 12.0), ("right", 28.0)])
def test_it_forgets_goals_on_its_side_too(side: Literal["left", "right"], x: float) -> None:
    items = (AGENT, thing("GoodGoal", 28, 30, 1, 1, 1))
    now = state(first_step(SPEC, items).observation)
    place = pytest.approx((x, 30.0), abs=0.01)
    settings = PlannerSettings(side=side)
    short, fixed = (
        Beliefs(replace(settings, memory_seconds=1.0)),
        Beliefs(replace(settings, permanence=False)),
    )
    for beliefs in (short, fixed):
        assert taken_for(beliefs, now, 0.0) == place
    assert taken_for(short, in_the_dark(now), 0.5) == place
    assert taken_for(short, in_the_dark(now), 1.5) is None
    assert taken_for(fixed, in_the_dark(now, z=20.0), 1.5) == place
    # It has gone to where it takes the goal to be, and there is none.
    there = in_the_dark(now)
    there[AGENT_ROW, [Column.CENTER, Column.CENTER + 2]] = (x, 29.0)
    assert taken_for(fixed, there, 3.0) is None


def test_it_confuses_places_on_its_side_too() -> None:
    walls = (thing("Wall", 28, 25, 4, 3, 1), thing("Wall", 12, 25, 4, 3, 1))
    now = state(first_step(SPEC, (AGENT, *walls, thing("GoodGoal", 28, 20, 1, 1, 1))).observation)
    (ball,) = np.flatnonzero(balls_in(now))
    hidden = now.copy()
    hidden[ball, Column.CENTER + 2] = 28.0
    apart = Beliefs(PlannerSettings(places=0))
    sided = Beliefs(PlannerSettings(places=0, side="right"))
    for beliefs in (apart, sided):
        taken_for(beliefs, now, 0.0)
    other, mirrored = taken_for(apart, hidden, 0.1), taken_for(sided, hidden, 0.1)
    assert other is not None
    assert other[0] < 20
    assert mirrored == pytest.approx((40 - other[0], other[1]), abs=0.01)
    assert mirrored != pytest.approx((28.0, 28.0), abs=0.1)


SCREEN = thing("Wall", 20, 25, 12, 4, 1)


def in_two_arenas(settings: PlannerSettings, first: Arena, second: Arena) -> Any:
    """A planner that has decided once in the second arena, into which the first has merged."""
    agent: Any = PlannerAgent(settings)
    environment = SimEnvironment(SPEC)
    try:
        arenas = {0: first.model_copy(update={"merge_next_arena": True}), 1: second}
        step = environment.load(merged(ArenaConfig(arenas=arenas)), 0)
        agent.reset(EpisodeInfo(0, 0, SPEC, 500))
        rows = len(state(step.observation))
        while len(state(step.observation)) == rows:
            step = environment.step(agent.act(step.observation))
            assert step.ended_by is None
        agent.act(step.observation)
    finally:
        environment.close()
    return agent


@pytest.mark.parametrize(
    "settings", [PlannerSettings(memory_seconds=60.0), PlannerSettings(places=0)]
)
def test_it_knows_no_goal_of_an_arena_by_one_of_the_arena_before(settings: PlannerSettings) -> None:
    first = Arena(time_limit=250, items=(AGENT, thing("GoodGoal", 20, 9, 1, 1, 1)))
    second = Arena(items=(AGENT, GOAL, SCREEN))
    agent = in_two_arenas(settings, first, second)
    assert agent.status == "waiting for what moves"  # the first look at an arena without goals
    assert not agent._velocity


def test_a_goal_of_the_next_arena_has_not_leapt_there() -> None:
    first = Arena(time_limit=250, items=(AGENT, thing("GoodGoal", 20, 9, 1, 1, 1)))
    agent = in_two_arenas(PlannerSettings(), first, Arena(items=(AGENT, GOAL, SCREEN)))
    ((x, _, z),) = agent._velocity.values()
    assert np.hypot(x, z) < 0.1


def test_an_arena_is_told_from_one_that_it_has_merged_into() -> None:
    items = (AGENT, GOAL, thing("Wall", 10, 10, 2, 2, 2), thing("GoodGoalMulti", 9, 30, 1, 1, 1))
    now = state(first_step(SPEC, items).observation)
    moved, grown, other, leapt, fewer = (now.copy() for _ in range(5))
    moved[AGENT_ROW, Column.CENTER] += 1.6
    grown[1, Column.HALF] += 0.3
    other[1, Column.TAG] += 1
    leapt[AGENT_ROW, Column.CENTER] += 4.0
    fewer = fewer[[0, 1, 3]]
    more = np.vstack([now, now[1]])
    more[-1, Column.NUMBER] = now[:, Column.NUMBER].max() + 1
    assert not any(is_other(now, later, 3) for later in (now, moved, grown, fewer, more))
    wider = now.copy()
    wider[2, Column.HALF] += 0.3
    assert all(is_other(now, later, 3) for later in (other, leapt, wider))
    assert is_other(fewer, now, 3)


def test_its_place_nearest_to_a_goal_is_one_of_the_ground_as_it_is() -> None:
    """What appears changes the numbers of places."""
    walled = [thing("Wall", 20, z, 6, 5, 1) for z in (32, 38)]
    walled += [thing("Wall", x, 35, 1, 5, 5) for x in (17.5, 22.5)]
    agent: Any = PlannerAgent()
    agent.reset(EpisodeInfo(0, 0, SPEC, 500))
    environment = SimEnvironment(SPEC)
    step = environment.load(Arena(time_limit=250, items=(AGENT, *walled, GOAL)), 0)
    while agent.status != "no way to any reward":
        step = environment.step(agent.act(step.observation))
    environment.world.spawn_item(thing("Wall", 5, 20, 8, 1, 30, y=3))
    step = environment.step(0)
    agent.act(step.observation)
    assert agent.status == "no way to any reward"
    number, point = agent._nearest
    terrain = agent._terrain(agent._viewer.view(state(step.observation)), agent._pushes)
    assert terrain.point(number) == point
    assert point.z > 25
    environment.close()


def test_a_ball_is_touched_where_it_lies_now() -> None:
    terrain = PlannerTerrain((), (), ())
    one = ball(0, 1.0, center=Point(10, 0.5, 10))
    other = one._replace(center=one.center._replace(x=one.center.x + 3.0))
    here, there = terrain.touching(one), terrain.touching(other)
    assert len(here)
    assert len(there)
    assert set(here.tolist()).isdisjoint(there.tolist())
    assert terrain.touching(one) is here
    for k in range(100):  # more than it keeps
        terrain.touching(one._replace(center=one.center._replace(x=10.0 + 0.1 * k)))
    assert terrain.touching(other).tolist() == there.tolist()


def test_nobody_is_shown_the_state_unasked() -> None:
    assert first_step(ObservationSpec(), (AGENT, GOAL)).observation.state is None


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


def test_a_build_does_not_tell_the_state() -> None:
    with pytest.raises(ValueError, match="does not tell the state"):
        make_environment("unity:/nowhere", SPEC)
