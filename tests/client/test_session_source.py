"""What a stand-in plays in a session, where the service does what real ones seldom do."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from animalcat.client.session_source import SERVER, SESSION, source_maker
from animalcat.envs.mlagents.source import EpisodeSource, SourceFailedError, SourceOver
from animalcat.envs.types import ObservationSpec, Phase

from .test_evaluation import FINISHED, MOST, SPEC, Script, ask, end, service, start


@contextmanager
def source(script: Script, spec: ObservationSpec = SPEC) -> Iterator[EpisodeSource]:
    with service(script) as address:
        make = source_maker({SERVER: address, SESSION: "s"})
        assert make is not None
        played = make(spec, 0)
        try:
            yield played
        finally:
            played.close()


def test_resets_before_the_first_decision_stay_at_the_episode() -> None:
    def script(requests: Any) -> Iterator[Any]:
        for episode in range(MOST):
            yield start(0, episode)
            assert next(requests).action.list.actions == b"\x05"
            yield end(0, episode, 1)

    with source(script) as played:
        for _ in range(MOST):
            for turn in (played.reset(), played.reset(), played.restart()):
                assert (turn.step.phase, turn.step.reward, turn.due) == (Phase.FIRST, 0.0, False)
            last = played.step(5)
            assert (last.step.phase, last.step.reward, last.due) == (Phase.LAST, 0.5, False)
            assert last.step.ended_by is None, "an agent is not told"
        # Known without the service, which makes the profile before it says that it is over.
        with pytest.raises(SourceOver, match=f"has had its {MOST} episodes"):
            played.reset()


def test_what_the_backend_failed_in_does_not_count() -> None:
    def script(requests: Any) -> Iterator[Any]:
        for attempt in range(MOST + 1):
            yield start(0, attempt)
            next(requests)
            yield end(0, attempt, 0, fault=attempt == 0, observation=None)

    with source(script) as played:
        for _ in range(MOST + 1):
            first = played.reset().step.observation
            last = played.step(0).step
            assert last.phase is Phase.LAST
            assert last.observation is first, "there is nothing newer to show"
        with pytest.raises(SourceOver):
            played.restart()


def test_a_session_that_knows_enough_early_is_over() -> None:
    def script(requests: Any) -> Iterator[Any]:
        yield start(0, 0)
        next(requests)
        yield end(0, 0, 1)
        yield FINISHED

    with source(script) as played:
        played.step(0)
        for go_on in (played.reset, played.restart):
            with pytest.raises(SourceOver, match="sessions/s is finished after 2 episodes"):
                go_on()


def test_an_episode_that_is_left_goes_on_without_actions(caplog: pytest.LogCaptureFixture) -> None:
    taken: list[bytes] = []

    def script(requests: Any) -> Iterator[Any]:
        yield start(0, 0)
        for step in (1, 101):
            taken.append(next(requests).action.list.actions)
            yield ask(0, step)
        taken.append(next(requests).action.list.actions)
        yield end(0, 0, 130)
        yield start(0, 1)

    with source(script) as played, caplog.at_level(logging.WARNING):
        played.step(3)
        assert played.reset().step.phase is Phase.FIRST
    assert taken == [b"\3", bytes(100), bytes(100)]
    assert "episode 0 was left at decision 1" in caplog.text


def test_without_a_time_limit_an_episode_cannot_be_left() -> None:
    def script(requests: Any) -> Iterator[Any]:
        endless = start(0, 0)
        endless.episode_start.time_budget_steps = 0
        yield endless
        next(requests)
        yield ask(0, 1)

    with source(script) as played:
        played.step(3)
        with pytest.raises(SourceFailedError, match="has no time limit"):
            played.reset()
