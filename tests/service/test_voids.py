"""Voids are counted by what the arenas demanded, since those that go with a demand would bias."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from animalcat.layouts.library import load_layout
from animalcat.service.measuring.voids import Voids, voids_by_demand, voids_to_dict
from animalcat.v1 import sessions_pb2, types_pb2
from animalcat.values import Cause, Decision, Episode, Outcome
from tests.service.conftest import Service, Stream, action
from tests.service.test_direct import files

LAYOUT = load_layout("aaio", "scaled")
NAMES = LAYOUT.feature_names
FAR, DARK = NAMES.index("rewardDistance"), NAMES.index("rewardSize")


def row(**values: float) -> list[float]:
    return [values.get(name, 1.0) for name in NAMES]


COVERED = {
    "near": row(rewardDistance=2.0),
    "nearer": row(rewardDistance=1.0),
    "far": row(rewardDistance=20.0),
    "farther": row(rewardDistance=30.0, rewardSize=2.0),
}


def attempt(instance: str, outcome: Outcome, cause: str = "") -> Episode:
    decision = Decision(instance, 0.0, 1.0, 0.5, {}, "")
    return Episode("s", 0, 0, decision, outcome=outcome, cause=cause)


def test_what_the_agent_leaves_is_counted_where_it_leaves() -> None:
    attempts = [
        attempt("near", Outcome.SUCCESS),
        attempt("nearer", Outcome.FAILURE),
        attempt("far", Outcome.VOID, Cause.AGENT_LEFT),
        attempt("far", Outcome.FAILURE, f"{Cause.AGENT_LEFT}, for the second time"),
        attempt("farther", Outcome.SUCCESS),
        # What is no doing of the agent's is not counted.
        attempt("near", Outcome.VOID, Cause.CANCELLED),
        attempt("near", Outcome.VOID, Cause.WITHDREW),
        attempt("near", Outcome.FAULT, "backend: it fell"),
        replace(attempt("near", Outcome.SUCCESS), invalid="the camera was covered"),
        replace(attempt("near", Outcome.SUCCESS), outcome=None),
    ]
    first, second = voids_by_demand(LAYOUT, COVERED, attempts)
    unit = LAYOUT.features[FAR].unit
    assert first == Voids("rewardDistance", unit, 11.0, 0, 2, 2, 3)
    assert second == Voids("rewardSize", LAYOUT.features[DARK].unit, 2.0, 2, 4, 0, 1)
    told = voids_to_dict([first, second])
    assert told["words"].startswith(
        f"Attempts that the agent voided, by demand: 2 of 3 where rewardDistance is 11 {unit} or "
        "more, 0 of 2 where it is less; 0 of 1 where rewardSize is 2"
    )
    assert told["demands"][0]["voids_from"] == 2


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("replaced", [True, False])
async def test_who_remembers_is_given_another_arena(service: Service, replaced: bool) -> None:
    """After an attempt that did not count, also over a restart and for as often as it happens."""
    session = await service.create(2, seed=71, replace_voids=replaced)
    for process in ("one", "two"):
        async with service.agent(session, instance=process) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            await stream.send(action(0, 3))
            await stream.receive("ask")
        await service.settled(session, "WAITING", asyncio.sleep)
    await service.play(session, instance="three")
    first = [e for e in await service.list_episodes(session) if e.episode == 0]
    outcomes = [e.outcome for e in first]
    if replaced:
        void = types_pb2.OUTCOME_VOID
        assert outcomes[:2] == [void, void]
        assert outcomes[2] in (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
        assert len({e.instance for e in first}) == 3
    else:  # the second void of an arena is a failure
        assert outcomes == [types_pb2.OUTCOME_VOID, types_pb2.OUTCOME_FAILURE]
        assert len({e.instance for e in first}) == 1
    counted = [e.instance for e in await service.list_episodes(session) if e.episode == 1]
    assert not {*counted} & {e.instance for e in first}


REMEMBERS = {"returns": True, "resumes": True}


async def steps(stream: Stream, start: Any, until: int = 10**6) -> None:
    """Play an episode on by actions that follow from the number of the step alone."""
    step: int = start.step
    while step < until:
        await stream.send(action(step, (3, 4, 3, 5, 0)[step % 5]))
        frame = await stream.receive()
        if frame.DESCRIPTOR.name != "Ask":
            return
        step = int(frame.step)


@asynccontextmanager
async def agent_after_cut(service: Service, session: str) -> AsyncGenerator[Stream]:
    """Another process's stream after its welcome; it comes until the cut before it is seen."""
    while True:
        async with service.agent(session, instance="process 2", **REMEMBERS) as stream:
            first = await stream.receive()
            if getattr(first, "code", "") != "AGENT_CONNECTED":
                assert first.DESCRIPTOR.name == "Welcome", first
                yield stream
                return
        await asyncio.sleep(0.02)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("way", ["killed", "stopped", "the agent's process is another"])
async def test_who_remembers_goes_on_at_the_step(start: Any, tmp_path: Path, way: str) -> None:
    """The recording and what counts are to the bit what they are where nothing was killed."""
    at = 4
    spec = types_pb2.ObservationSpec(camera=types_pb2.CameraSpec(resolution=16))
    asked = {"observation_spec": spec, "replace_voids": True}
    async with start(tmp_path / "whole") as service:
        session = await service.create(1, **asked)
        async with service.agent(session, **REMEMBERS) as stream:
            await stream.receive("welcome")
            begun = await stream.receive("episode_start")
            assert not begun.HasField("step")
            await steps(stream, begun)
            await stream.receive("session_end")
        recordings, (whole,) = files(service, session), await service.list_episodes(session)
    home = tmp_path / "home"
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(start(home))
        assert await service.create(1, **asked) == session
        async with service.agent(session, **REMEMBERS) as stream:
            await stream.receive("welcome")
            await steps(stream, await stream.receive("episode_start"), at)
            if way == "killed":  # what is on disk then is what another server finds
                shutil.copytree(home, tmp_path / "left")
                service = await stack.enter_async_context(start(tmp_path / "left"))
            elif way == "stopped":
                await stack.aclose()
                service = await stack.enter_async_context(start(home))
        async with agent_after_cut(service, session) as stream:
            goes_on = await stream.receive("episode_start")
            assert (goes_on.episode, goes_on.HasField("step"), goes_on.step) == (0, True, at)
            await steps(stream, goes_on)
            await stream.receive("session_end")
        (only,) = await service.list_episodes(session)
        assert (only.outcome, only.steps, only.attempt) == (whole.outcome, whole.steps, 0)
        assert only.episode_return == whole.episode_return
        assert files(service, session) == recordings
        request = sessions_pb2.VerifySessionRequest(name=session)
        assert not (await service.sessions.VerifySession(request)).problems


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("why", ["does not remember", "cut", "another header"])
async def test_what_cannot_go_on_is_a_fault_and_another_arena_follows(
    start: Any, tmp_path: Path, why: str
) -> None:
    home, resumes = tmp_path / "home", why != "does not remember"
    async with start(home) as service:
        session = await service.create(1, replace_voids=True)
        async with service.agent(session, **REMEMBERS) as stream:
            await stream.receive("welcome")
            await steps(stream, await stream.receive("episode_start"), 4)
            shutil.copytree(home, tmp_path / "left")
    (path,) = (tmp_path / "left" / "recordings").rglob("*.mcap")
    if why == "cut":  # by a power cut, before the first step was on disk
        path.write_bytes(path.read_bytes()[:40])
    elif why == "another header":
        path.write_bytes(path.read_bytes().replace(b"GoodGoal", b"GOodGoal", 1))
    async with start(tmp_path / "left") as service:
        async with service.agent(session, instance="process 2", resumes=resumes) as stream:
            await stream.receive("welcome")
            begun = await stream.receive("episode_start")
            assert not begun.HasField("step")
            await steps(stream, begun)
            await stream.receive("session_end")
        first, second = await service.list_episodes(session)
        assert (first.outcome, first.cause) == (types_pb2.OUTCOME_FAULT, "the server stopped")
        assert (second.episode, second.attempt) == (0, 1)
        assert first.instance != second.instance
