"""An agent whose connection breaks comes back to the very step that it left; nobody else does."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from animalcat.client.async_client import aconnect
from animalcat.client.direct import DirectPlay
from animalcat.client.remote_env import RemoteEnv
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.types import Observation
from animalcat.errors import AnimalcatError
from animalcat.service.access.callers import Role
from animalcat.service.access.gate import Gate
from animalcat.service.access.tokens import Tokens
from animalcat.service.host.settings import Settings
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify
from animalcat.service.rpc.server import create_server
from animalcat.text import names
from animalcat.v1 import gateway_pb2, gateway_pb2_grpc, sessions_pb2, types_pb2
from benchmarks.kill import workers_of
from tests.service.conftest import NOW, Guarded, Helpers, Service, Stream, action, hello, walk
from tests.service.cutting import Cutter, Way, cutting
from tests.service.test_direct import files

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

EPISODES = 3
WAYS: list[Way] = ["now", "up", "down"]


class Walker:
    """A random walk; `breaks` is told of every decision before it is sent."""

    def __init__(self, breaks: Callable[[int], None] = lambda decision: None) -> None:
        self.decisions = 0
        self._breaks = breaks

    async def reset(self, info: EpisodeInfo) -> None:
        self.seed = info.seed
        self._rng = np.random.default_rng(info.seed)

    async def act(self, observation: Observation) -> int:
        chosen = walk(self._rng)
        self._breaks(self.decisions)
        self.decisions += 1
        await asyncio.sleep(0)
        return chosen


@asynccontextmanager
async def serving(data: Path, fitter: Helpers | None, **options: Any) -> AsyncGenerator[Service]:
    asked = Settings(home=data, port=0, **options)
    async with (
        create_server(asked, lambda: NOW, fitter, fitter and fitter.simulators) as running,
        grpc.aio.insecure_channel(running.address) as channel,
    ):
        yield Service(running, data, channel)


async def stored_rows(service: Service, session: str) -> list[sessions_pb2.EpisodeSummary]:
    """What is stored of every attempt, but for the time that it took."""
    episodes = await service.list_episodes(session)
    for one in episodes:
        one.ClearField("seconds")
        one.spent.ClearField("thinking_seconds")
    return episodes


@pytest.fixture(scope="module")
def unbroken() -> dict[str, Any]:
    """What is stored where nothing breaks; the first test that needs it fills it."""
    return {}


async def whole(unbroken: dict[str, Any], start: Any, folder: Path) -> tuple[Any, Any, int]:
    if not unbroken:
        async with start(folder) as service:
            session = await service.create(EPISODES)
            agent = Walker()
            async with aconnect(service.running.address) as client:
                await client.evaluate(agent, session)
            unbroken["all"] = (
                files(service, session),
                await stored_rows(service, session),
                agent.decisions,
            )
    return unbroken["all"]


@pytest.mark.parametrize(
    ("way", "direct"),
    [
        pytest.param(way, direct, marks=() if (k % 2 == 1) == direct else pytest.mark.slow)
        for k, way in enumerate(WAYS)
        for direct in (False, True)
    ],
)
async def test_breaks_at_every_step_leave_no_trace(
    start: Any,
    tmp_path: Path,
    fitter: Helpers,
    unbroken: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    way: Way,
    direct: bool,
) -> None:
    """Recordings, decisions and outcomes are the same; the agent decides once for each step."""
    recordings, episodes, decisions = await whole(unbroken, start, tmp_path / "whole")
    workers: list[Cutter] = []

    async with serving(tmp_path / "cut", fitter, direct=direct) as service:
        session = await service.create(EPISODES)
        async with AsyncExitStack() as stack:
            cutter = await stack.enter_async_context(cutting(service.running.address))
            original = DirectPlay.open

            async def opening(offer: gateway_pb2.Direct) -> DirectPlay:
                worker = await stack.enter_async_context(cutting(offer.address))
                workers.append(worker)
                there = gateway_pb2.Direct(address=worker.address, ticket=offer.ticket)
                return await original(there)

            monkeypatch.setattr(DirectPlay, "open", opening)

            def breaks(decision: int) -> None:
                # Directly: in its second decision of an episode the worker's connection breaks
                # too, or alone, and the episode goes on over the stream.
                for worker in workers:
                    if decision % 3 != 1:
                        worker.cut(way)
                cutter.cut(way)

            agent = Walker(breaks)
            async with aconnect(cutter.address) as client:
                summary = await client.evaluate(agent, session)
        assert summary.counted == EPISODES
        assert agent.decisions == decisions
        assert cutter.cuts >= decisions / 2
        assert (len(workers) > 0) == direct
        assert files(service, session) == recordings
        assert await stored_rows(service, session) == episodes
        request = sessions_pb2.VerifySessionRequest(name=session)
        assert not (await service.sessions.VerifySession(request)).problems


async def test_an_environment_notices_nothing(
    start: Any, tmp_path: Path, unbroken: dict[str, Any]
) -> None:
    """Blocking code, whose event loop turns only while it waits."""
    recordings, episodes, decisions = await whole(unbroken, start, tmp_path / "whole")
    loop = asyncio.get_running_loop()
    async with start(tmp_path / "env") as service:
        session = await service.create(EPISODES)
        async with cutting(service.running.address) as cutter:

            def plays() -> int:
                env, taken = RemoteEnv(cutter.address, session), 0
                ways = iter(WAYS * decisions)
                for _ in range(EPISODES):
                    _, info = env.reset()
                    rng, over = np.random.default_rng(info["agent_seed"]), False
                    while not over:
                        loop.call_soon_threadsafe(cutter.cut, next(ways))
                        taken += 1
                        _, _, ended, truncated, _ = env.step(walk(rng))
                        over = ended or truncated
                env.close()
                return taken

            assert await asyncio.to_thread(plays) == decisions
            assert cutter.cuts >= decisions / 2
        await service.settled(session, "FINISHED", asyncio.sleep)
        assert files(service, session) == recordings
        assert await stored_rows(service, session) == episodes


async def test_it_comes_back_when_the_way_is_open_again(start: Any, tmp_path: Path) -> None:
    async with start(tmp_path) as service:
        session = await service.create(1)
        async with cutting(service.running.address) as cutter:

            def breaks(decision: int) -> None:
                if decision == 2:
                    cutter.down = True
                    cutter.cut()
                    asyncio.get_running_loop().call_later(0.5, setattr, cutter, "down", False)

            async with aconnect(cutter.address) as client:
                summary = await client.evaluate(Walker(breaks), session)
        assert summary.counted == 1
        (only,) = await service.list_episodes(session)
        assert only.outcome in (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)


async def test_what_is_read_is_asked_for_again(tmp_path: Path, fitter: Helpers) -> None:
    """As by an agent whose connection breaks between its last step and its profile."""
    way: Way = "down"
    async with serving(tmp_path, fitter) as service:
        session = await service.create(1)
        async with cutting(service.running.address) as cutter, aconnect(cutter.address) as client:
            cutter.cut(way)
            assert (await client.get_session(session)).name == session
            cutter.cut(way)
            assert await client.episodes(session) == []
            assert cutter.cuts == 2
            cutter.down = True
            cutter.cut()
            with pytest.raises(AnimalcatError, match="lost the server at") as lost:
                await client.get_session(session)
            assert lost.value.code == "UNAVAILABLE"


async def test_a_way_that_stays_closed_is_an_error(tmp_path: Path, fitter: Helpers) -> None:
    async with serving(tmp_path, fitter, direct=False) as service:
        session = await service.create(1, lease_seconds=0.5)
        async with cutting(service.running.address) as cutter:

            def breaks(decision: int) -> None:
                cutter.down = True
                cutter.cut()

            async with aconnect(cutter.address) as client:
                with pytest.raises(AnimalcatError) as lost:
                    await client.evaluate(Walker(breaks), session)
        assert lost.value.code == "UNAVAILABLE"
        await service.settled(session, "WAITING", asyncio.sleep)
        assert [e.cause for e in await service.list_episodes(session)] == ["the agent left"]


async def test_an_agent_that_fails_keeps_nobody_waiting(start: Any, tmp_path: Path) -> None:
    """It leaves for good: its episode is void although its lease would hold for half a minute."""

    def fails(decision: int) -> None:
        if decision == 2:
            raise RuntimeError("a bug")

    async with start(tmp_path) as service:
        session = await service.create(1, lease_seconds=3600.0)
        async with aconnect(service.running.address) as client:
            with pytest.raises(RuntimeError, match="a bug"):
                await client.evaluate(Walker(fails), session)
        await service.settled(session, "WAITING", asyncio.sleep)
        (only,) = await service.list_episodes(session)
        assert only.cause.startswith("the agent's code failed: RuntimeError: a bug (")


# What agents may do that write the protocol by hand.


@asynccontextmanager
async def stream_of(service: Service, session: str, **changes: Any) -> AsyncGenerator[Stream]:
    """A stream after its hello; leaving the block cuts it."""
    stub: Any = gateway_pb2_grpc.AgentGatewayStub(service.channel)
    stream = Stream(stub.Evaluate())
    await stream.send(hello(session, **changes))
    try:
        yield stream
    finally:
        stream.call.cancel()


async def number(stream: Stream) -> tuple[gateway_pb2.EvaluateResponse, int]:
    frame = await stream.call.read()
    return frame, frame.number


@asynccontextmanager
async def leave_lease(
    service: Service, session: str, steps: int = 2, **changes: Any
) -> AsyncGenerator[tuple[bytes, gateway_pb2.EvaluateResponse]]:
    """The lease and the last frame of an agent whose connection broke after some steps."""
    async with stream_of(service, session, returns=True, **changes) as stream:
        lease = (await stream.receive("welcome")).lease
        frame = await stream.call.read()
        for step in range(steps):
            await stream.send(action(step, 3))
            frame = await stream.call.read()
    while names.parse_session(session) not in await service.running.engines.waiting():
        await asyncio.sleep(0.01)  # the break is noticed a moment later
    yield lease, frame


async def refusal(service: Service, session: str, **changes: Any) -> str:
    async with stream_of(service, session, **changes) as stream:
        return (await stream.refused("LEASE_LOST")).message


async def test_the_same_bytes_again(service: Service) -> None:
    session = await service.create(1, agent="lease:bytes")
    async with leave_lease(service, session, agent="lease:bytes") as (lease, last):
        for _ in range(3):  # as often as the connection breaks
            async with stream_of(
                service, session, agent="lease:bytes", lease=lease, seen=last.number
            ) as stream:
                assert (await stream.receive("welcome")).lease == lease
                assert (await stream.call.read()) == last
        async with stream_of(
            service, session, agent="lease:bytes", lease=lease, seen=last.number - 1
        ) as stream:
            await stream.receive("welcome")
            assert (await stream.call.read()) == last
            await stream.send(action(2, 3))
            assert (await stream.receive("ask")).step == 3


@pytest.mark.parametrize("hours", [1.0, -1.0])
async def test_a_jump_of_the_clock_ends_what_has_a_date_alone(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    """Leases, the time for an action, uptime and the order of logs go by a clock that nobody sets.

    A token that ends does so by the date, and is good again when the clock goes back.
    """
    now = [NOW]
    monkeypatch.setattr("animalcat.service.rpc.server.Gate", partial(Gate, clock=lambda: now[0]))
    monkeypatch.setattr("animalcat.service.access.gate.REVIEW_SECONDS", 0.02)
    tokens = Tokens(tmp_path, lambda: now[0])
    async with guarded(tmp_path, lambda: now[0]) as connected:
        operator = connected(tokens.create(Role.OPERATOR, days=9)[1])
        short = connected(tokens.create(Role.OPERATOR, days=1 / 48)[1])
        session = await operator.create(2, lease_seconds=600.0, action_timeout_seconds=600.0)
        uptime = operator.running.standing.uptime_seconds
        async with leave_lease(operator, session) as (lease, last):
            for _ in range(3):
                now[0] += timedelta(hours=hours)
                async with stream_of(operator, session, lease=lease, seen=last.number) as stream:
                    await stream.receive("welcome")
                    assert (await stream.call.read()) == last
                if hours > 0:
                    with pytest.raises(grpc.aio.AioRpcError) as ended:
                        await short.get(session)
                    assert "has expired" in (ended.value.details() or "")
                    now[0] -= timedelta(hours=hours)
                await short.get(session)
        assert 0.0 < operator.running.standing.uptime_seconds - uptime < 300.0
        assert (await operator.play(session)).episodes == 2
        now[0] += timedelta(hours=hours)
        other = await operator.create(1, seed=6)
        listed = await operator.sessions.ListSessions(sessions_pb2.ListSessionsRequest())
        assert [one.name for one in listed.sessions] == [other, session], "the newest first"
        asked = sessions_pb2.VerifySessionRequest(name=session)
        assert not (await operator.sessions.VerifySession(asked)).problems


async def test_an_action_is_taken_once(service: Service) -> None:
    """It was taken, and its answer was lost; another answer to that step is out of date."""
    session = await service.create(1, agent="lease:once")
    async with stream_of(service, session, agent="lease:once", returns=True) as stream:
        lease = (await stream.receive("welcome")).lease
        start = await stream.call.read()
        await stream.send(action(0, 3))
        await stream.call.read()
    back = {"agent": "lease:once", "lease": lease, "seen": start.number}
    async with stream_of(service, session, **back) as stream:
        await stream.receive("welcome")
        assert (await stream.receive("ask")).step == 1
        await stream.send(action(0, 6))
        assert (await stream.receive("error")).code == "ACTION_STALE"
        await stream.send(action(1, 3))
        assert (await stream.receive("ask")).step == 2


async def test_nobody_else_comes_back_or_learns_anything(service: Service) -> None:
    """Whatever is wrong with a lease, the answer is the same, and its owner can still return."""
    session = await service.create(1, agent="lease:foreign")
    other = await service.create(1, agent="lease:other")
    hers: dict[str, Any] = {"agent": "lease:foreign"}
    async with (
        leave_lease(service, other, agent="lease:other", instance="process 2") as (theirs, _),
        leave_lease(service, session, **hers) as (lease, last),
    ):
        told = {
            await refusal(service, session, lease=b"x" * 32, seen=last.number, **hers),
            await refusal(service, session, lease=b"x", **hers),
            await refusal(service, session, lease=theirs, seen=last.number, **hers),
            await refusal(service, session, lease=lease, seen=last.number + 1, **hers),
            await refusal(service, session, lease=lease, seen=last.number - 2, **hers),
            await refusal(
                service, session, lease=lease, seen=last.number, instance="process 9", **hers
            ),
            await refusal(service, other, lease=lease, seen=last.number, agent="lease:other"),
        }
        assert len(told) == 1
        async with stream_of(service, session, lease=lease, seen=last.number, **hers) as stream:
            await stream.receive("welcome")
            assert (await stream.call.read()) == last


async def test_a_restarted_process_has_its_episode_voided(service: Service) -> None:
    """And the lease of the process before it is worth nothing any more."""
    session = await service.create(1, agent="lease:again")
    async with leave_lease(service, session, agent="lease:again") as (lease, last):
        async with stream_of(
            service, session, agent="lease:again", instance="process 2", returns=True
        ) as stream:
            await stream.receive("welcome")
            start = await stream.receive("episode_start")
            assert start.episode == 0
            late = {"agent": "lease:again", "lease": lease, "seen": last.number}
            await refusal(service, session, **late)
            await stream.send(action(0, 3))
            assert (await stream.receive("ask")).step == 1
        first, second = await service.list_episodes(session)
    assert (first.outcome, first.cause) == (types_pb2.OUTCOME_VOID, "the agent left")
    assert (second.episode, second.attempt) == (0, 1)


@pytest.mark.parametrize("decisions", [0, 1])
async def test_a_lease_runs_out_also_for_who_was_to_play_elsewhere(
    service: Service, decisions: int
) -> None:
    """It may have died before it came to the worker, or there; the action's time is far off."""
    agent = f"lease:elsewhere-{decisions}"
    session = await service.create(1, agent=agent, lease_seconds=0.2, action_timeout_seconds=3600.0)
    async with stream_of(service, session, agent=agent, returns=True) as stream:
        await stream.receive("welcome")
        start = await stream.receive("episode_start")
        direct = await DirectPlay.open(start.direct) if decisions else None
        if direct is not None:
            direct.send(action(0, 3))
            assert await direct.receive() is not None
    await service.settled(session, "WAITING", asyncio.sleep)
    if direct is not None:
        assert await direct.receive() is None
    (only,) = await service.list_episodes(session)
    assert (only.outcome, only.cause) == (types_pb2.OUTCOME_VOID, "the agent left")
    assert only.steps == decisions


@pytest.mark.parametrize("wants", [True, False])
async def test_without_a_lease_a_break_voids_at_once(service: Service, wants: bool) -> None:
    """Where the session gives none, or the client does not come back; even if the worker died."""
    agent = f"lease:none-{wants}"
    seconds = 0.0 if wants else 3600.0
    session = await service.create(1, agent=agent, lease_seconds=seconds)
    async with stream_of(service, session, agent=agent, returns=wants) as stream:
        welcome = await stream.receive("welcome")
        assert (welcome.lease, welcome.lease_seconds) == (b"", 0.0)
        start, first = await number(stream)
        assert (start.WhichOneof("frame"), first) == ("episode_start", 0)
        await stream.send(action(0, 3))
        await stream.receive("ask")
        for worker in workers_of(os.getpid()) if wants else ():
            with suppress(ProcessLookupError):  # it may have ended meanwhile
                os.kill(worker, signal.SIGKILL)
    await service.settled(session, "WAITING", asyncio.sleep)
    (only,) = await service.list_episodes(session)
    assert (only.cause, only.steps) == ("the agent left", 1)


async def test_to_come_back_gives_no_time(service: Service) -> None:
    """The clock of the action runs while the connection is broken, and over all returns."""
    session = await service.create(1, agent="lease:slow", action_timeout_seconds=1.0)
    async with leave_lease(service, session, agent="lease:slow") as (lease, last):
        back = {"agent": "lease:slow", "lease": lease, "seen": last.number}
        for _ in range(400):
            await asyncio.sleep(0.1)
            async with stream_of(service, session, **back) as stream:
                frame = await stream.receive()
                if isinstance(frame, types_pb2.Error):
                    assert frame.code == "LEASE_LOST"
                    break
        else:
            raise AssertionError("it may come back for ever")
    # The place is lost a moment before the outcome is stored.
    await service.settled(session, "WAITING", asyncio.sleep)
    (only,) = await service.list_episodes(session)
    assert (only.outcome, only.cause) == (types_pb2.OUTCOME_VOID, "the agent did not act in time")


async def test_to_leave_the_worker_gives_no_time(service: Service) -> None:
    """Who thinks beside the worker and breaks that connection goes on with the same clock."""
    session = await service.create(1, agent="lease:worker", action_timeout_seconds=3.0)
    async with stream_of(service, session, agent="lease:worker", returns=True) as stream:
        await stream.receive("welcome")
        start = await stream.receive("episode_start")
        direct = await DirectPlay.open(start.direct)
        direct.send(action(0, 3))
        assert await direct.receive() is not None
        await asyncio.sleep(2.5)
        direct.close()
        assert (await stream.receive("ask")).step == 1
        await asyncio.sleep(1.0)
        await stream.refused("ACTION_TIMEOUT")


async def test_to_come_back_forgives_no_bad_frames(service: Service) -> None:
    session = await service.create(1, agent="lease:bad")
    async with stream_of(service, session, agent="lease:bad", returns=True) as stream:
        lease = (await stream.receive("welcome")).lease
        start = await stream.call.read()
        for _ in range(2):
            await stream.send(action(7, 3))
            assert not (await stream.receive("error")).fatal
    back = {"agent": "lease:bad", "lease": lease, "seen": start.number}
    async with stream_of(service, session, **back) as stream:
        await stream.receive("welcome")
        await stream.receive("episode_start")
        await stream.send(action(7, 3))
        await stream.refused("TOO_MANY_BAD_FRAMES")


async def test_one_process_has_one_stream(service: Service) -> None:
    """It comes back although nobody has noticed that its connection broke: that one is given up."""
    session = await service.create(1, agent="lease:twice")
    async with stream_of(service, session, agent="lease:twice", returns=True) as first:
        lease = (await first.receive("welcome")).lease
        start = await first.call.read()
        back = {"agent": "lease:twice", "lease": lease, "seen": start.number}
        async with stream_of(service, session, **back) as second:
            await second.receive("welcome")
            assert (await second.call.read()).episode_start.observation == (
                start.episode_start.observation
            )
            assert await first.call.read() is grpc.aio.EOF
            await second.send(action(0, 3))
            assert (await second.receive("ask")).step == 1


async def test_what_was_noted_is_recorded_once(service: Service) -> None:
    """Notes since the last question are sent again with the answer to it."""
    session = await service.create(1, agent="lease:notes")
    note = gateway_pb2.EvaluateRequest(note=types_pb2.Note(text="hm", tokens_in=7))
    async with stream_of(service, session, agent="lease:notes", returns=True) as stream:
        lease = (await stream.receive("welcome")).lease
        start = await stream.call.read()
        await stream.send(note)
        await stream.send(action(5, 3))  # refused, and so the note has come
        assert (await stream.receive("error")).code == "ACTION_STALE"
    back = {"agent": "lease:notes", "lease": lease, "seen": start.number}
    async with stream_of(service, session, **back) as stream:
        await stream.receive("welcome")
        await stream.receive("episode_start")
        await stream.send(note)
        await stream.send(action(0, 3))
        await stream.receive("ask")
        await stream.send(gateway_pb2.EvaluateRequest(leave=gateway_pb2.Leave()))
        assert await stream.call.read() is grpc.aio.EOF
        await service.settled(session, "WAITING", asyncio.sleep)
    (path,) = (service.data / "recordings" / names.parse_session(session)).glob("*.mcap")
    assert [n.text for n in read_episode(path).steps[1].notes] == ["hm"]


async def test_a_place_that_is_kept_counts_as_taken(tmp_path: Path, fitter: Helpers) -> None:
    """Agents cannot hold more simulators than the server lends by letting connections break."""
    async with serving(tmp_path, fitter, max_agents=1) as service:
        session = await service.create(1)
        other = await service.create(1, agent="lease:more")
        async with leave_lease(service, session) as (lease, last):
            async with stream_of(service, other, agent="lease:more") as stream:
                await stream.refused("BUSY")
            async with stream_of(service, session, lease=lease, seen=last.number) as stream:
                await stream.receive("welcome")
                assert (await stream.call.read()) == last


async def test_a_session_that_ended_meanwhile_is_told(service: Service) -> None:
    session = await service.create(2, agent="lease:ended")
    async with leave_lease(service, session, agent="lease:ended") as (lease, last):
        cancel = sessions_pb2.CancelSessionRequest(name=session)
        await service.sessions.CancelSession(cancel)
        await refusal(service, session, agent="lease:ended", lease=lease, seen=last.number)
    (only,) = await service.list_episodes(session)
    assert only.cause == "the session was cancelled"


async def test_a_worker_that_dies_meanwhile_is_replaced(
    start: Any, tmp_path: Path, fitter: Helpers, unbroken: dict[str, Any]
) -> None:
    """The arena is brought to where it was, and nothing tells that it was another worker's."""
    recordings, episodes, _ = await whole(unbroken, start, tmp_path / "whole")
    before = set(workers_of(os.getpid()))
    async with serving(tmp_path / "broken", fitter, direct=False) as service:
        session = await service.create(EPISODES)
        async with cutting(service.running.address) as cutter:

            class Cut(Walker):
                killed = 0

                async def reset(self, info: EpisodeInfo) -> None:
                    await super().reset(info)
                    self.step = 0

                async def act(self, observation: Observation) -> int:
                    self.step += 1
                    if self.step in (1, 4, 9):
                        cutter.cut()
                        for worker in set(workers_of(os.getpid())) - before:
                            with suppress(ProcessLookupError):
                                os.kill(worker, signal.SIGKILL)
                                self.killed += 1
                    return await super().act(observation)

            agent = Cut()
            async with aconnect(cutter.address) as client:
                await client.evaluate(agent, session)
        assert agent.killed >= EPISODES
        assert files(service, session) == recordings
        assert await stored_rows(service, session) == episodes


async def test_an_arena_that_comes_out_otherwise_is_a_fault(
    tmp_path: Path, fitter: Helpers
) -> None:
    """As where another machine rounds otherwise: the agent is given the same arena again."""
    before = set(workers_of(os.getpid()))
    async with serving(tmp_path, fitter, direct=False) as service:
        session = await service.create(1)
        async with leave_lease(service, session) as (lease, last):
            (worker,) = set(workers_of(os.getpid())) - before
            os.kill(worker, signal.SIGKILL)
            (path,) = (service.data / "recordings").rglob("*.mcap")
            rays = read_episode(path).steps[-1].observation.rays
            with path.open("r+b") as recording:  # a bit of what the agent saw last
                recording.seek(path.read_bytes().rindex(rays) + 6)
                recording.write(bytes((rays[6] ^ 1,)))
            async with stream_of(service, session, lease=lease, seen=last.number) as stream:
                await stream.receive("welcome")
                assert (await stream.call.read()) == last
                await stream.send(action(2, 3))
                assert (await stream.receive("episode_end")).fault
                start = await stream.receive("episode_start")
                assert start.episode == 0
        first, _ = await service.list_episodes(session)
        assert (first.outcome, first.steps) == (types_pb2.OUTCOME_FAULT, 2)
        assert "went differently after decision" in first.cause


async def test_who_played_directly_finds_its_arena_again_too(
    tmp_path: Path, fitter: Helpers
) -> None:
    """Both connections break, and then the worker dies, which the server had gone on with."""
    before = set(workers_of(os.getpid()))
    async with serving(tmp_path, fitter) as service:
        session = await service.create(1)
        async with stream_of(service, session, returns=True) as stream:
            lease = (await stream.receive("welcome")).lease
            first = await stream.call.read()
            direct = await DirectPlay.open(first.episode_start.direct)
            asked = None
            for step in range(3):
                direct.send(action(step, 3))
                asked = await direct.receive()
            direct.close()
            again = await stream.call.read()  # the worker gave the episode back
            assert asked is not None
            assert again.ask.step == 3
            assert again.ask.observation == asked.ask.observation
        (worker,) = set(workers_of(os.getpid())) - before
        os.kill(worker, signal.SIGKILL)
        async with stream_of(service, session, lease=lease, seen=again.number) as stream:
            await stream.receive("welcome")
            assert await stream.call.read() == again
            await stream.send(action(3, 3))
            assert (await stream.receive("ask")).step == 4
            await stream.send(gateway_pb2.EvaluateRequest(leave=gateway_pb2.Leave()))
            assert await stream.call.read() is grpc.aio.EOF
        await service.settled(session, "WAITING", asyncio.sleep)
        (path,) = (service.data / "recordings").rglob("*.mcap")
        recording = read_episode(path)
        assert len(recording.steps) == 5
        assert (await asyncio.to_thread(verify, recording)).difference is None
