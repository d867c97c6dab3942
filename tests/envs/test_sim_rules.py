"""Health, rewards and ends follow Unity's float32 bookkeeping to the last physics step."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.envs.sim.rules import EpisodeState, Pickup, is_dark
from animalcat.envs.types import EndedBy


@pytest.mark.parametrize(
    ("time_limit", "updates"),
    [
        (55, 275),
        (70, 351),
        (100, 501),
        (250, 1250),
        (350, 1750),
        (400, 2000),
        (500, 2500),
        (750, 3751),
        (1000, 5001),
    ],
)
def test_health_lasts_as_many_steps_as_in_the_reference(time_limit: int, updates: int) -> None:
    episode = EpisodeState(time_limit, goals=1)
    while episode.ended_by is None:
        episode.tick()
    assert episode.steps == updates
    assert episode.ended_by is EndedBy.TIME_LIMIT
    assert episode.health == 0.0


def test_a_decision_costs_what_the_traces_show() -> None:
    episode = EpisodeState(500, goals=1)
    for _ in range(3):
        episode.tick()
    assert episode.take_reward() == pytest.approx(-0.0012)
    assert float(episode.health) == pytest.approx(99.88)
    assert episode.take_reward() == 0.0


def test_steps_begun_at_once_are_those_begun_one_by_one() -> None:
    single, many = EpisodeState(55, goals=1), EpisodeState(55, goals=1)
    many.freeze(2)
    assert not many.glide(3)
    assert many.steps == 0
    glided = 0
    while many.ended_by is None:
        if many.glide(3):
            glided += 3
        else:
            many.tick()
    while single.ended_by is None:
        single.tick()
    assert many.steps - 6 < glided < many.steps == single.steps
    assert many.ended_by is single.ended_by
    assert (many.health, many.total) == (single.health, single.total)
    assert many.take_reward() == single.take_reward()
    assert not many.glide(1)


def test_health_and_reward_are_float32() -> None:
    episode = EpisodeState(500, goals=1)
    for _ in range(100):
        episode.tick()
    assert isinstance(episode.health, np.float32)
    assert isinstance(episode.total, np.float32)


def test_a_gain_fills_health_no_further_than_full() -> None:
    episode = EpisodeState(100, goals=3)
    for _ in range(50):
        episode.tick()
    assert float(episode.health) == pytest.approx(90.0, abs=1e-3)
    episode.collect(Pickup(0.5, ends=False))
    assert episode.health == 100.0
    assert float(episode.total) == pytest.approx(0.4, abs=1e-5)


def test_multi_goals_end_the_episode_when_all_are_collected() -> None:
    episode = EpisodeState(500, goals=3)
    one = Pickup(1.0, ends=False)
    episode.collect(one)
    episode.collect(one)
    episode.collect(Pickup(-0.5, ends=False))
    assert episode.ended_by is None
    episode.collect(one)
    assert episode.ended_by is EndedBy.GOAL


@pytest.mark.parametrize(
    ("size", "cause"), [(0.5, EndedBy.GOAL), (0.999, EndedBy.GOAL), (1.0, EndedBy.DEATH)]
)
def test_a_bad_goal_ends_by_itself_or_by_the_health_it_takes(size: float, cause: EndedBy) -> None:
    episode = EpisodeState(0, goals=1)
    episode.collect(Pickup(-size, ends=True))
    assert episode.ended_by is cause
    assert float(episode.total) == pytest.approx(-size)


def test_a_hot_zone_charges_ten_times_the_decay() -> None:
    episode = EpisodeState(250, goals=1)
    episode.burn()
    assert episode.take_reward() == pytest.approx(-10 / 1250)
    slow = EpisodeState(5000, goals=1)
    slow.burn()
    assert slow.take_reward() == pytest.approx(-0.001)
    while episode.ended_by is None:
        episode.burn()
    assert episode.ended_by is EndedBy.DEATH


def test_a_frozen_start_costs_nothing_and_lasts_fifty_steps_a_second() -> None:
    episode = EpisodeState(100, goals=1, frozen_seconds=2.0)
    for _ in range(100):
        episode.tick()
        assert episode.frozen
    assert (episode.health, episode.total) == (100.0, 0.0)
    episode.tick()
    assert not episode.frozen
    assert float(episode.total) == pytest.approx(-1 / 500)


def test_blackouts_toggle_at_their_times() -> None:
    dark = [step for step in range(400) if is_dark((10, 20, 60), step)]
    assert dark == [*range(50, 100), *range(300, 400)]
    assert is_dark((0, 50), 0)
    assert not is_dark((0, 50), 250)
    assert not is_dark((), 7)
