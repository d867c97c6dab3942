"""What nobody uses leaves memory, and comes back as it was."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from animalcat.service.session.unused import Unused, bytes_of, spare
from animalcat.v1 import gateway_pb2, sessions_pb2

from .conftest import Service, action, walk


class Thing:
    """Something that weighs, and may be in use."""

    def __init__(self, weight: int) -> None:
        self.weight = weight
        self.idle = True
        self.uses = 0


class Shelf:
    """Things with a clock that stands still."""

    def __init__(self) -> None:
        self.now = 0.0
        self.kept = Unused[Thing](
            lambda: self.now, lambda t: t.idle, lambda t: t.weight, lambda t: t.uses
        )

    def put(self, **weights: int) -> None:
        for key, weight in weights.items():
            self.kept.put(key, Thing(weight))

    def spare(self, seconds: float = 60.0, most: int = 1000) -> str:
        """What stays."""
        spare((self.kept,), seconds, most)
        gc.collect()
        return "".join(self.kept)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_what_nobody_used_for_long_leaves(shelf: Shelf) -> None:
    shelf.put(a=1, b=1)
    shelf.now = 40.0
    assert shelf.kept.get("b") is not None
    assert shelf.spare() == "ab"
    shelf.now = 60.0
    assert shelf.spare() == "b"
    assert shelf.kept.get("a") is None


def test_what_somebody_uses_stays_and_counts_as_used_until_then(shelf: Shelf) -> None:
    shelf.put(a=10**9)
    thing = shelf.kept.get("a")
    assert thing is not None
    thing.idle = False
    shelf.now = 1000.0
    assert shelf.spare() == "a"
    thing.idle = True
    shelf.now = 1059.0
    assert shelf.spare(most=10**10) == "a"
    thing.uses += 1  # between two looks
    shelf.now = 1060.0
    assert shelf.spare(most=10**10) == "a"
    shelf.now = 1119.0
    assert shelf.spare(most=10**10) == "a"


def test_of_what_weighs_too_much_the_longest_unused_leaves(shelf: Shelf) -> None:
    shelf.put(a=400, b=400, c=400)
    shelf.now = 1.0
    assert shelf.kept.get("a") is not None
    assert shelf.spare(most=900) == "ac"
    shelf.put(d=10)
    assert shelf.spare(most=0) == ""


def test_values_weigh_what_they_hold() -> None:
    big = np.zeros(10**6)
    assert bytes_of({"a": [big, big]}) == pytest.approx(8 * 10**6, rel=0.01)
    assert bytes_of({"a": big[:10]}) == pytest.approx(8 * 10**6, rel=0.01)
    assert bytes_of({"a": big}, without=(big,)) < 1000
    many = [(float(k), f"name {k}") for k in range(10_000)]
    assert bytes_of(many) == pytest.approx(10_000 * (8 + 56 + 24 + 58), rel=0.1)


async def play_out(service: Service, session: str) -> list[Any]:
    return [
        (e.episode, e.instance, e.decision, e.outcome, e.episode_return, e.steps)
        for e in await service.list_episodes(session)
        if e.outcome in (1, 2)
    ]


@pytest.mark.asyncio(loop_scope="session")
async def test_a_session_that_left_memory_goes_on_as_if_it_had_stayed(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    async with start(tmp_path / "stays", secret="s") as service:
        session = await service.create(7)
        await service.play(session)
        expected = await play_out(service, session)
    async with start(tmp_path / "leaves", secret="s", unused_seconds=0.0) as service:
        engines = service.running.engines
        session, other = await service.create(7), await service.create(7, seed=6)
        own = session.removeprefix("sessions/")

        def in_memory() -> list[str]:
            return [one.session.id for one in engines._engines.values() if one.loaded]

        async def pass_by() -> None:
            await service.sessions.PauseSession(sessions_pb2.PauseSessionRequest(name=other))

        async with service.agent(session) as stream:
            await stream.receive("welcome")
            for _ in range(3):
                start_of = await stream.receive("episode_start")
                rng, step = np.random.default_rng(start_of.agent_seed), 0
                while True:
                    await stream.send(action(step, walk(rng)))
                    frame = await stream.receive()
                    if isinstance(frame, gateway_pb2.EpisodeEnd):
                        break
                    step = frame.step
                await pass_by()
                assert own in in_memory()
        await service.settled(session, "WAITING", asyncio.sleep)
        for _ in range(1000):  # what it computes beside the episodes comes to its end first
            await pass_by()
            if own not in in_memory():
                break
            await asyncio.sleep(0.02)
        assert own not in in_memory()
        assert (await service.get(session)).episodes == 3
        await service.play(session)
        assert await play_out(service, session) == expected
