"""Buttons, data zones, operations and merged arenas: sections 1.6 and 1.7 of the reference."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.model import (
    AnyOperation,
    Arena,
    ArenaConfig,
    EndEpisode,
    FreezeAgent,
    GrantContinuousReward,
    GrantReward,
    Item,
    OperationFromList,
    ToggleObject,
    Vector3,
)
from animalcat.arena_configs.sequence import ArenaOrder, merge_arenas
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import EndedBy, ObservationSpec, Step
from tests.small import FORWARD, NOOP, play_episode, start, thing
from tests.suites.environments import assert_same_steps

BACKWARD = 6
PHYSICS = ObservationSpec(rays=None, decision_period=1)
"""A decision is one physics step."""


def zone(*operations: AnyOperation, z: float = 20.0, size: float = 4.0) -> Item:
    item = thing("DataZone", 20, 0, z, size=(size, 2, size))
    return item.model_copy(update={"operations": operations})


def button(**fields: object) -> Item:
    """Its face looks at the agent, whose way it ends."""
    item = thing("SpawnerButton", 20, 0, 8, yaw=90)
    return item.model_copy(update=fields)


def play_out(arena: Arena, actions: list[int], seed: int = 0) -> tuple[SimEnvironment, list[Step]]:
    environment = SimEnvironment(PHYSICS)
    return environment, list(play_episode(environment, arena, seed, actions))


def rewards(steps: list[Step]) -> list[float]:
    return [round(step.reward, 5) for step in steps if step.reward]


def test_a_zone_grants_at_every_entry_and_nothing_while_inside() -> None:
    arena = Arena(items=(start(), zone(GrantReward(reward=0.25), z=10)))
    _, steps = play_out(arena, [FORWARD] * 60 + [BACKWARD] * 140)
    assert rewards(steps) == [0.25, 0.25]
    assert all(step.ended_by is None for step in steps)


def test_a_continuous_reward_comes_at_every_step_inside() -> None:
    arena = Arena(items=(start(), zone(GrantContinuousReward(reward_per_step=-0.001), z=5)))
    _, steps = play_out(arena, [NOOP] * 40)
    assert rewards(steps) == [-0.001] * 40
    _, steps = play_out(arena, [NOOP] * 10 + [FORWARD] * 60)
    assert 10 < len(rewards(steps)) < 60
    assert steps[-1].reward == 0.0


def test_freezing_stops_movement_for_its_steps_while_health_falls() -> None:
    arena = Arena(time_limit=100, items=(start(), zone(FreezeAgent(freeze_steps=50), z=12)))
    _, steps = play_out(arena, [FORWARD] * 150)
    speed = np.array([step.observation.velocity[2] for step in steps])
    frozen = np.flatnonzero((speed == 0) & (np.arange(len(speed)) > 5))
    assert len(frozen) == 1 + 50  # the step that freezes takes the speed, then 50 without a move
    assert (np.diff(frozen) == 1).all()
    before, after = steps[frozen[0]].observation.health, steps[frozen[-1]].observation.health
    assert before - after == pytest.approx(50 * 100 / 500, abs=1e-3)
    assert speed[-1] > 1


def test_a_list_is_drawn_by_weight_from_the_seed() -> None:
    def draw_some(weights: tuple[float, ...]) -> list[float]:
        choice = OperationFromList(
            operations=(GrantReward(reward=0.25), GrantReward(reward=0.5)),
            operation_weights=weights,
        )
        arena = Arena(items=(start(), zone(choice, z=5)))
        return [rewards(play_out(arena, [NOOP], seed)[1])[0] for seed in range(60)]

    even = draw_some(())
    assert even == draw_some(())
    assert 15 < even.count(0.25) < 45
    assert draw_some((0.0, 1.0)) == [0.5] * 60
    assert draw_some((1.0, 0.0)) == [0.25] * 60
    assert draw_some((9.0, 1.0)).count(0.25) > 45


def test_a_toggle_spawns_and_takes_away_in_turn() -> None:
    wall = thing("Wall", 30, 0, 30)
    arena = Arena(items=(start(), zone(ToggleObject(spawnable=wall), z=10, size=2.0)))
    environment = SimEnvironment(PHYSICS)
    environment.load(arena, 0)
    present: list[bool] = []
    for _ in range(3):
        for action in [FORWARD] * 60 + [BACKWARD] * 70:
            environment.step(action)
        present.append(bool(environment.scene.active[1:].any()))
    entries = 6  # forth and back each time
    assert len(environment.scene) - 1 == entries / 2
    assert present == [False, False, False]


def test_spawned_things_take_part() -> None:
    """A death zone, a goal in front, and a zone within a zone's operation."""
    items = {
        EndedBy.DEATH: thing("DeathZone", 20, 0, 20, size=(4, 1, 4)),
        EndedBy.GOAL: thing("GoodGoal", 20, 0, 20),
    }
    for cause, item in items.items():
        arena = Arena(items=(start(), zone(ToggleObject(spawnable=item), z=5)))
        assert play_out(arena, [FORWARD] * 120)[1][-1].ended_by is cause
    inner = zone(EndEpisode(reward=0.25), z=20)
    arena = Arena(items=(start(), zone(ToggleObject(spawnable=inner), z=5)))
    assert play_out(arena, [FORWARD] * 120)[1][-1].reward == 0.25


def test_a_button_acts_after_its_move_and_again_only_after_its_reset() -> None:
    times = {"move_durations": (0.4,), "reset_durations": (0.6,)}
    item = button(operations=(GrantReward(reward=0.125),), **times)
    push, away = [FORWARD] * 60, [BACKWARD] * 20
    _, steps = play_out(Arena(items=(start(), item)), push + away + push + away + push)
    touched = next(i for i, s in enumerate(steps) if i > 20 and s.observation.velocity[2] < 0.1)
    granted = [i for i, step in enumerate(steps) if step.reward]
    assert granted[0] == pytest.approx(touched + 20, abs=3)
    assert len(granted) >= 2
    assert granted[1] - granted[0] > 50
    _, steps = play_out(Arena(items=(start(), item)), [FORWARD] * 300)
    assert rewards(steps) == [0.125]  # leaning on it is one press


def test_old_button_fields_spawn_rewards_at_their_place_up_to_their_number() -> None:
    item = button(
        reward_names=("GoodGoal",),
        reward_spawn_pos=Vector3(x=30, y=0, z=30),
        spawned_reward_size=Vector3(x=2, y=2, z=2),
        max_reward_counts=(1,),
        move_durations=(0.1,),
        reset_durations=(0.1,),
    )
    environment, _ = play_out(Arena(items=(start(), item)), ([FORWARD] * 60 + [BACKWARD] * 20) * 4)
    assert len(environment.scene) == 2
    assert environment.scene.half[1, 0] == np.float32(0.999)
    assert environment.scene.center[1, [0, 2]] == pytest.approx([30, 30], abs=1e-3)


def test_operations_replay_bitwise() -> None:
    choice = OperationFromList(
        operations=(
            ToggleObject(spawnable=Item(name="GoodGoalMultiBounce"), spawn_and_forget=True),
            ToggleObject(spawnable=Item(name="LightBlock")),
            FreezeAgent(freeze_steps=7),
        )
    )
    arena = Arena(time_limit=500, items=(start(), zone(choice, z=10), zone(choice, z=20)))
    spec = ObservationSpec()
    actions = np.random.default_rng(3).choice([3, 3, 3, 6, 4, 5], size=250).tolist()
    one, two = SimEnvironment(spec), SimEnvironment(spec)
    steps = list(play_episode(one, arena, 1, actions))
    assert len(one.scene) > 2
    assert_same_steps(steps, list(play_episode(two, arena, 1, actions)))
    assert_same_steps([two.restore(one.snapshot())], steps[-1:])


def goal_ahead(name: str = "GoodGoal", **fields: object) -> Arena:
    arena = Arena(time_limit=100, items=(start(), thing(name, 20, 0, 9)))
    return arena.model_copy(update=fields)


def test_merged_arenas_play_in_one_episode() -> None:
    second = Arena(time_limit=10, items=(start(10, 10, yaw=90), thing("GoodGoal", 18, 0, 10)))
    config = ArenaConfig(arenas={0: goal_ahead(merge_next_arena=True), 1: second})
    _, steps = play_out(merge_arenas(config), [FORWARD] * 200)
    gains = [i for i, step in enumerate(steps) if step.reward > 0.5]
    assert len(gains) == 2
    assert steps[-1].ended_by is EndedBy.GOAL
    after = steps[gains[0]].observation
    assert after.position.tolist() == pytest.approx([10, 0.51, 10], abs=1e-3)
    assert not after.velocity.any()
    # The decay per step stays that of the first arena, and health goes on.
    costs = {round(step.reward, 6) for i, step in enumerate(steps[1:], 1) if i not in gains}
    assert costs == {-0.002}


def test_a_merge_needs_the_pass_mark_and_carries_pickups_over() -> None:
    second = Arena(items=(start(), *(thing("GoodGoalMulti", 20, 0, z) for z in (9, 14))))

    def run(mark: float) -> list[Step]:
        first = goal_ahead(merge_next_arena=True, pass_mark=mark)
        return play_out(merge_arenas(ArenaConfig(arenas={0: first, 1: second})), [FORWARD] * 300)[1]

    assert sum(step.reward > 0.5 for step in run(2.0)) == 1
    # One pickup before, so that the first of the two already makes two.
    passed = run(0.5)
    assert sum(step.reward > 0.5 for step in passed) == 2
    assert passed[-1].ended_by is EndedBy.GOAL


def order(numbers: list[int], merging: tuple[int, ...] = (), **fields: bool) -> ArenaOrder:
    arenas = {n: Arena(merge_next_arena=n in merging) for n in numbers}
    return ArenaOrder(ArenaConfig.model_validate({"arenas": arenas, **fields}))


def test_random_order_repeats_nothing_until_all_were_played() -> None:
    rng = np.random.default_rng(1)
    random = order([0, 1, 2, 3, 4], (3,), randomizeArenas=True)
    first = [random.next(rng) for _ in range(4)]
    assert first[0] == 0
    assert sorted(first) == [0, 1, 2, 3]  # 4 belongs to 3
    again = [random.next(rng) for _ in range(3)]
    assert again[0] != first[-1]
    assert len(set(again)) == 3
    alone = order([0], randomizeArenas=True)
    assert [alone.next(rng) for _ in range(3)] == [0, 0, 0]
