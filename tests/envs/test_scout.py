"""The scout: that it finds and remembers, and that each setting takes away what it names."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, sqrt
from typing import Any

import numpy as np
import pytest

from animalcat.arena_configs.model import RGB, STEPS_PER_UNIT, Arena, Item
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.agents.load import load_agent
from animalcat.envs.agents.scout import chart, eyes
from animalcat.envs.agents.scout.agent import ScoutAgent
from animalcat.envs.agents.scout.memory import Memory
from animalcat.envs.agents.scout.pose import Pose
from animalcat.envs.agents.scout.settings import ScoutSettings
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import CameraSpec, EndedBy, Observation, ObservationSpec
from tests.small import start, thing

RAYS = ObservationSpec()
CAMERA = ObservationSpec(CameraSpec(84))
BEST = ScoutSettings()


class Run:
    """An episode.

    Attributes:
        ended_by: Why it ended; None after the most decisions.
        total: Its return.
        actions: What was done.
        path: x, y and z after each decision.
    """

    def __init__(
        self,
        arena: Arena,
        settings: ScoutSettings = BEST,
        spec: ObservationSpec = RAYS,
        *,
        most: int = 900,
        seed: int = 0,
    ) -> None:
        environment, scout = SimEnvironment(spec), ScoutAgent(settings)
        step = environment.load(arena, seed)
        limit = arena.time_limit * STEPS_PER_UNIT
        scout.reset(EpisodeInfo(0, seed, spec, -(-limit // spec.decision_period)))
        self.total, self.actions, self.path = 0.0, list[int](), list[tuple[float, float, float]]()
        while step.ended_by is None and len(self.actions) < most:
            self.actions.append(scout.act(step.observation))
            step = environment.step(self.actions[-1])
            x, y, z = map(float, step.observation.position)
            self.path.append((x, y, z))
            self.total += step.reward
        self.ended_by = step.ended_by
        environment.close()

    @property
    def metres(self) -> float:
        """Length of the path."""
        return sum(
            hypot(b[0] - a[0], b[2] - a[2])
            for a, b in zip(self.path[:-1], self.path[1:], strict=True)
        )


def arena(*items: Item, yaw: float = 0.0, time: int = 250, x: float = 20, z: float = 10) -> Arena:
    return Arena(time_limit=time, items=(start(x, z, yaw=yaw), *items))


def screen(x: float, z: float, width: float = 5.0) -> Item:
    return thing("Wall", x, 0, z, size=(width, 3, 0.5))


def without(**lacking: Any) -> ScoutSettings:
    return replace(BEST, **lacking)


# --- what it can -------------------------------------------------------------------------------


@pytest.mark.parametrize("yaw", [0, 75, 180, 290])
def test_it_finds_a_goal_wherever_it_starts_to_look(yaw: float) -> None:
    assert Run(arena(thing("GoodGoal", 32, 0, 30), yaw=yaw)).ended_by is EndedBy.GOAL


def test_an_agent_that_has_played_plays_as_a_new_one() -> None:
    one, other = arena(thing("GoodGoal", 8, 0, 30)), arena(thing("GoodGoalMulti", 30, 0, 20))
    scout = load_agent("builtin:scout")
    taken: list[list[int]] = []
    for what in (one, other, one):
        environment = SimEnvironment(RAYS)
        step = environment.load(what, 0)
        scout.reset(EpisodeInfo(0, 0, RAYS, 417))
        taken.append([])
        while step.ended_by is None:
            action = scout.act(step.observation)
            assert isinstance(action, int)
            taken[-1].append(action)
            step = environment.step(action)
        environment.close()
    assert taken[0] == taken[2] != taken[1]


def test_it_finds_what_it_has_never_seen_behind_a_screen() -> None:
    hidden = arena(thing("GoodGoal", 30, 0, 33), screen(30, 30), yaw=180, time=500)
    assert Run(hidden).ended_by is EndedBy.GOAL


def test_it_takes_the_yellow_goals_before_the_green_one() -> None:
    both = arena(thing("GoodGoal", 20, 0, 15), thing("GoodGoalMulti", 12, 0, 22), time=500)
    run = Run(both)
    assert run.ended_by is EndedBy.GOAL
    assert run.total > 1.2


def test_it_waits_until_it_can_move_and_then_finds_its_heading() -> None:
    held = start(20, 10, yaw=200.0).model_copy(update={"frozen_agent_delays": (2.0,)})
    run = Run(Arena(time_limit=250, items=(held, thing("GoodGoal", 30, 0, 30))))
    assert run.ended_by is EndedBy.GOAL


def on_a_platform(*items: Item) -> Arena:
    up = thing("Agent", 20, 1, 6).model_copy(update={"sizes": ()})
    return Arena(time_limit=250, items=(up, thing("Wall", 20, 0, 5, size=(4, 1, 8)), *items))


def test_from_a_platform_the_camera_shows_what_no_ray_meets() -> None:
    """The smaller food is on one side, the larger on the other, and a wall is between them."""
    goals = (thing("GoodGoal", 15, 0, 24), thing("GoodGoal", 25, 0, 24, size=(3, 3, 3)))
    both = on_a_platform(*goals, thing("Wall", 20, 0, 24, size=(0.5, 4, 30)))
    assert Run(both, spec=CAMERA).total > 2.0


# --- what its settings take away ----------------------------------------------------------------


@pytest.mark.parametrize("value", [-1.0, float("nan")])
@pytest.mark.parametrize("name", ["memory_seconds", "longest_path_m", "patience_s"])
def test_settings_that_mean_nothing_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        without(**{name: value})


# --- its parts ---------------------------------------------------------------------------------


def view_of(x: float, z: float, right: float, ahead: float, health: float = 99.0) -> Observation:
    return Observation(
        health, np.array([right, 0, ahead], np.float32), np.array([x, 0.49, z], np.float32)
    )


def test_three_rays_tell_where_a_ball_is_and_how_large() -> None:
    radius, x, z = 1.2, 21.0, 30.0
    touch = sqrt((0.5 + radius) ** 2 - (radius - 0.5) ** 2)
    pose = Pose(3, limited=False)
    pose.update(view_of(20, 20, 0, 0), 0)
    memory = Memory()
    for degrees_ in (0.0, 3.0, 8.0):
        a = np.radians(degrees_)
        along = (x - 20) * np.sin(a) + (z - 20) * np.cos(a)
        across = (x - 20) * np.cos(a) - (z - 20) * np.sin(a)
        found = memory.meet(
            eyes.GREEN,
            degrees_,
            float(along - np.sqrt(touch**2 - across**2)),
            pose,
            1.0 + degrees_ / 60,
        )
    assert len(memory.goals) == 1
    assert (found.x, found.z) == pytest.approx((x, z), abs=0.02)
    assert found.radius == pytest.approx(radius, abs=0.05)


def test_ways_lead_round_what_is_barred_and_out_of_it_but_never_in() -> None:
    state = np.full(chart.SIDE**2, chart.FREE, np.uint8).reshape(chart.SIDE, chart.SIDE)
    state[60:100, 80:83] = chart.FIRM
    cost = chart.costs(state.ravel(), np.zeros((0, 4)), 1.5, 2.0, 8.0, True)
    goal = chart.disc_cells(20.0, 25.0, 0.3)
    way = chart.spread(cost, goal, -1, 0.0, False)
    before, inside = chart.cell_of(20.0, 18.0), chart.cell_of(20.0, 20.3)
    assert way[before] > 11.0
    assert np.isfinite(way[inside])
    reach = chart.spread(cost, np.array([before]), -1, 0.0, True)
    assert np.isinf(reach[inside])
    assert reach[chart.cell_of(20.0, 25.0)] == pytest.approx(way[before], rel=0.1)


def up_a_ramp() -> Arena:
    """Food on a platform, and a slope up to it; the camera shows both."""
    pink = RGB(r=255, g=0, b=255)
    ramp = thing("Ramp", 20, 0, 22, yaw=180, size=(5, 1.5, 6))
    return arena(
        ramp.model_copy(update={"colors": (pink,)}),
        thing("Wall", 20, 0, 28, size=(5, 1.5, 6)),
        thing("GoodGoal", 20, 1.5, 29, size=(2, 2, 2)),
        time=500,
    )


def test_without_climbing_it_stays_below_a_slope() -> None:
    assert Run(up_a_ramp(), spec=CAMERA, most=1800).ended_by is EndedBy.GOAL
    run = Run(up_a_ramp(), without(climbs=False), spec=CAMERA)
    assert run.ended_by is EndedBy.TIME_LIMIT
    assert max(y for _, y, _ in run.path) < 1.5


def test_without_permanence_it_does_not_look_behind_what_hides_a_goal() -> None:
    """The ball falls behind a screen while the agent is held."""
    held = start(20, 10).model_copy(update={"frozen_agent_delays": (4.0,)})
    ball = thing("GoodGoal", 20, 6, 25)
    falls = Arena(time_limit=500, items=(held, ball, screen(20, 23, 8)))
    assert Run(falls, without(searches=False), CAMERA).ended_by is EndedBy.GOAL
    stays = Run(falls, without(searches=False, permanence=False), CAMERA)
    assert stays.ended_by is EndedBy.TIME_LIMIT
