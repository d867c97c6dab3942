"""What is held against a build, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.library import FAMILIES
from animalcat.arena_configs.model import Arena
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import ObservationSpec, Phase, RaySpec
from animalcat.envs.unity.witness import Mismatch, Witness
from tests.small import FORWARD, NOOP, goal_arena, start, thing

SPEC = ObservationSpec()


def watch(meant: Arena, loaded: Arena, actions: tuple[int, ...] = (NOOP,) * 3) -> None:
    """Let a witness of one arena see another being played."""
    witness = Witness(RaySpec(), SPEC.decision_period)
    witness.load(meant, 1)
    sim = SimEnvironment(SPEC)
    witness.check_first(sim.load(loaded, 1).observation)
    for action in actions:
        step = sim.step(action)
        if step.phase is Phase.LAST:
            return
        witness.check_step(action, step.reward)


def with_agent(arena: Arena, **values: object) -> Arena:
    return arena.model_copy(update={"items": (start().model_copy(update=values), *arena.items[1:])})


def without(arena: Arena, name: str) -> Arena:
    return arena.model_copy(
        update={"items": tuple(item for item in arena.items if item.name != name)}
    )


@pytest.mark.parametrize("family", sorted(FAMILIES)[::3])
def test_the_right_arena_is_never_accused(family: str) -> None:
    for made in generate(family, 6, np.random.default_rng(2)):
        watch(made.arena, made.arena, (FORWARD,) * 20)


@pytest.mark.parametrize(
    ("loaded", "message"),
    [
        (without(goal_arena(), "GoodGoal"), "0 rays meet goals where 1 should"),
        (with_agent(goal_arena(), rotations=(10.0,)), "another arena was loaded"),
        (goal_arena().model_copy(update={"time_limit": 255}), "time limit 255"),
        (goal_arena().model_copy(update={"time_limit": 0}), "time limit none"),
    ],
    ids=["no goal", "turned by 10 degrees", "2 % more time", "no limit"],
)
def test_another_arena_is_accused(loaded: Arena, message: str) -> None:
    with pytest.raises(Mismatch, match=message):
        watch(goal_arena(), loaded)


def test_the_time_limit_waits_until_nothing_but_time_costs() -> None:
    """In a hot zone, and while the agent is frozen, health tells nothing of the limit."""
    zone = thing("HotZone", 20.0, 0.0, 5.0, size=(3.0, 1.0, 3.0))
    hot = Arena(time_limit=250, items=(start(), zone))
    hotter = hot.model_copy(update={"time_limit": 240})
    watch(hot, hotter, (FORWARD,) * 2)  # inside
    with pytest.raises(Mismatch, match="240"):
        watch(hot, hotter, (FORWARD,) * 20)
    frozen = with_agent(goal_arena(), frozen_agent_delays=(1.0,))
    sooner = with_agent(goal_arena(), frozen_agent_delays=(0.98,))
    watch(frozen, sooner, (NOOP,) * 40)  # Unity's wait may be a step off
    with pytest.raises(Mismatch, match="240"):
        watch(frozen, frozen.model_copy(update={"time_limit": 240}), (NOOP,) * 40)


def test_a_grazing_ray_is_not_held_against_a_build() -> None:
    """A ray at an edge meets one thing or the other."""
    witness = Witness(RaySpec(), SPEC.decision_period)
    # Ray and ball are a metre apart at the ball: they only just miss each other.
    arena = Arena(time_limit=250, items=(start(), thing("GoodGoal", 21.005, 0.0, 15.0)))
    witness.load(arena, 1)
    seen = SimEnvironment(SPEC).load(arena, 1).observation
    assert seen.rays is not None
    rays = seen.rays.copy().reshape(5, 14)
    assert rays[0, 0] == 1.0
    rays[0] = 0.0
    rays[0, [3, 13]] = 1.0, 9.9 / 200
    witness.check_first(seen._replace(rays=rays.ravel()))
