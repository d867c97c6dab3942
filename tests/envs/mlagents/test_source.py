"""The client's arenas, played with Unity's bookkeeping."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from animalcat.arena_configs.draws import UnityRandom
from animalcat.arena_configs.model import Arena, ArenaConfig
from animalcat.envs.mlagents.source import ConfigSource, ScheduledStep, config_source
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.types import EndedBy, ObservationSpec, Phase
from tests.small import FORWARD, NOOP, start, thing

VECTOR = ObservationSpec(rays=None)
STEP = np.float32(-1 / 50)
"""Reward of one physics step where the time limit is 10."""


def empty(x: float = 20.0, time_limit: int = 10, **values: object) -> Arena:
    return Arena(time_limit=time_limit, items=(start(x),), **values)


def source(*arenas: Arena, seed: int = 0, spec: ObservationSpec = VECTOR) -> ConfigSource:
    config = ArenaConfig(arenas=dict(enumerate(arenas)))
    return ConfigSource(SimEnvironment(spec), config, seed)


def place(turn: ScheduledStep) -> float:
    return float(turn.step.observation.position[0])


def to_the_end(played: ConfigSource, action: int = NOOP) -> Iterator[ScheduledStep]:
    while True:
        turn = played.step(action)
        yield turn
        if turn.step.phase is Phase.LAST:
            return


def test_the_very_first_episode_begins_with_nothing_simulated() -> None:
    step = source(empty()).reset().step
    assert (step.phase, step.reward, step.observation.health) == (Phase.FIRST, 0.0, 100.0)
    assert step.observation.position.tolist() == pytest.approx([20.0, 0.51, 5.0])


def test_after_a_reset_one_physics_step_has_passed() -> None:
    played = source(empty())
    played.reset()
    step = played.reset().step
    assert (step.phase, step.reward) == (Phase.FIRST, STEP)
    assert step.observation.health == 98.0
    # As recorded in every first row of the traces of build 3.1.3 (section 4.6).
    assert float(step.observation.position[1]) == pytest.approx(0.50620157, abs=1e-7)
    assert float(step.observation.velocity[1]) == pytest.approx(-0.1899216, abs=1e-6)


@pytest.mark.parametrize("period", [1, 2, 3, 4, 7])
def test_a_restart_waits_for_the_next_decision(period: int) -> None:
    played = source(empty(), spec=ObservationSpec(rays=None, decision_period=period))
    played.reset()
    *_, last = to_the_end(played)
    assert last.step.ended_by is EndedBy.TIME_LIMIT
    idle = -50 % period
    assert last.due == (idle == 0)
    first = played.restart().step
    assert first.phase is Phase.FIRST
    assert first.reward == pytest.approx(idle * STEP, abs=1e-6)
    assert first.observation.health == pytest.approx(100.0 - 2.0 * idle, abs=1e-4)


def test_the_decision_after_a_reset_is_due_at_once() -> None:
    played = source(empty())
    played.reset()
    played.reset()
    turns = list(to_the_end(played))
    assert len(turns) == 17  # 50 updates, one of them before the first decision
    assert played.restart().step.reward == pytest.approx(2 * STEP)


def test_random_order_follows_the_seed() -> None:
    arenas = {n: empty(5.0 + n) for n in range(8)}
    config = ArenaConfig(arenas=arenas, randomize_arenas=True)

    def places(seed: int) -> list[float]:
        played = ConfigSource(SimEnvironment(VECTOR), config, seed)
        return [place(played.reset()) for _ in range(9)]

    assert places(3) == places(3) != places(4)
    assert sorted(places(3)[:8]) == sorted(5.0 + n for n in arenas)


def test_what_a_reset_breaks_off_counts_toward_the_pass_mark() -> None:
    goal = thing("GoodGoal", 20.0, 0.0, 8.0)
    first = Arena(time_limit=50, items=(start(), goal), merge_next_arena=True, pass_mark=0.9)
    played = source(first, empty(9.0, time_limit=50))

    def merges() -> bool:
        return 9 in [round(place(turn)) for turn in to_the_end(played, FORWARD)]

    played.reset()
    assert merges()
    played.reset()
    for _ in range(50):  # -0.6 by the time it is broken off
        played.step(NOOP)
    played.reset()
    assert not merges()
    played.restart()
    assert merges()


def test_a_client_s_seed_is_that_of_unity_s_stream() -> None:
    """One stream for all episodes, from the seed on; random orders are drawn from it as well."""
    anywhere = Arena(time_limit=10, items=(thing("Agent", -1, 0, -1, yaw=-1),))
    config = ArenaConfig(arenas=dict.fromkeys(range(4), anywhere), randomize_arenas=True)
    played = config_source(VECTOR, -5)
    played.use(config)
    random = UnityRandom(2**32 - 5)
    for episode in range(5):
        if episode:
            random.bits()  # which arena
        x, _z, _yaw, _skin = random.uniform(0, 40), random.bits(), random.bits(), random.bits()
        assert place(played.reset()) == pytest.approx(x, abs=0.01)
    played.close()
