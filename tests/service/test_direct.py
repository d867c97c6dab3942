"""Agents that play with the worker itself: what they do is stored as if it had been relayed."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from animalcat.arena_configs.loader import load_text
from animalcat.client.async_client import aconnect
from animalcat.client.direct import DirectError, DirectPlay
from animalcat.envs.agents.base import EpisodeInfo
from animalcat.envs.backends import make_environment
from animalcat.envs.messages import SECONDS, MessageKind
from animalcat.envs.pulse import Pulse
from animalcat.envs.types import CameraSpec, Observation, ObservationSpec, RaySpec
from animalcat.envs.worker import receive, send
from animalcat.envs.worker_client import WorkerClient
from animalcat.service.host.settings import Settings
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.writer import begin_recording
from animalcat.service.rpc.server import create_server
from animalcat.service.session.direct import (
    MAX_FRAME,
    Connection,
    PlayStoppedError,
    RecalledError,
    frame_bytes,
)
from animalcat.service.session.player import Player, PlayReport, Question, Terms
from animalcat.text import names
from animalcat.v1 import gateway_pb2, results_pb2, sessions_pb2, types_pb2
from animalcat.wire.steps import spec_to_proto
from benchmarks.kill import workers_of
from tests.service.conftest import NOW, Helpers, Service, action, arena, walk

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Walker:
    """The agent of `Service.play`, for the client."""

    def reset(self, info: EpisodeInfo) -> None:
        self._rng = np.random.default_rng(info.seed)

    def act(self, observation: Observation) -> int:
        return walk(self._rng)


@asynccontextmanager
async def directly(
    service: Service, session: str, **changes: Any
) -> AsyncIterator[tuple[Any, DirectPlay]]:
    """A stream in its first episode, and the connection to the worker after the first ask."""
    async with service.agent(session, **changes) as stream:
        await stream.receive("welcome")
        start = await stream.receive("episode_start")
        direct = await DirectPlay.open(start.direct)
        try:
            yield stream, direct
        finally:
            direct.close()


async def turn(direct: DirectPlay, step: int, *actions: int) -> gateway_pb2.EvaluateResponse | None:
    direct.send(action(step, *actions))
    return await direct.receive()


async def attempts(service: Service, session: str) -> list[tuple[int, str]]:
    return [(e.outcome, e.cause) for e in await service.list_episodes(session)]


def files(service: Service, session: str) -> dict[str, bytes]:
    folder = service.data / "recordings" / names.parse_session(session)
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.mcap"))}


async def test_it_is_stored_as_if_it_had_been_relayed(
    start: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte; and the server takes no step."""
    spec = types_pb2.ObservationSpec(camera=types_pb2.CameraSpec(resolution=16))
    spec.rays.per_side = 1
    async with start(tmp_path / "relayed") as service:
        session = await service.create(3, observation_spec=spec)
        await service.play(session)
        relayed, episodes = files(service, session), await service.list_episodes(session)

    async def step_refused(*_: Any) -> None:
        raise AssertionError("the server was asked for a step")

    monkeypatch.setattr(WorkerClient, "step", step_refused)
    async with start(tmp_path / "direct") as service:
        assert await service.create(3, observation_spec=spec) == session
        async with aconnect(service.running.address) as client:
            summary = await client.evaluate(Walker(), session)
        assert summary.counted == 3
        direct = await service.list_episodes(session)
        assert files(service, session) == relayed
    for one, other in zip(episodes, direct, strict=True):
        for summary in (one, other):
            summary.ClearField("seconds")
            summary.spent.ClearField("thinking_seconds")
    assert direct == episodes


async def test_a_ticket_is_good_once_and_for_its_episode(service: Service) -> None:
    session = await service.create(2, agent="direct:ticket")
    async with service.agent(session, agent="direct:ticket") as stream:
        await stream.receive("welcome")
        start = await stream.receive("episode_start")
        wrong = gateway_pb2.Direct(address=start.direct.address, ticket=b"x" * 32)
        with pytest.raises(DirectError, match="does not take the ticket"):
            await DirectPlay.open(wrong)
        direct = await DirectPlay.open(start.direct)  # whoever guesses keeps nobody out
        with pytest.raises(DirectError):
            await DirectPlay.open(start.direct)
        step = 0
        while await turn(direct, step, 3) is not None:
            step += 1
        end = await stream.receive("episode_end")
        assert end.step == step + 1
        again = await stream.receive("episode_start")
        assert again.direct.ticket != start.direct.ticket
        with pytest.raises(DirectError):
            await DirectPlay.open(start.direct)


async def test_whoever_stands_at_the_door_keeps_nobody_out(service: Service) -> None:
    session = await service.create(1, agent="direct:door")
    async with service.agent(session, agent="direct:door") as stream:
        await stream.receive("welcome")
        start = await stream.receive("episode_start")
        host, _, port = start.direct.address.rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(8)]
        (_, loud) = silent[0]
        loud.write(b"\xff" * 100)
        direct = await DirectPlay.open(start.direct)
        found = await turn(direct, 0, 3)
        assert found is not None
        assert found.ask.step == 1
        for reader, writer in silent:
            assert await reader.read() == b""  # all are sent away
            writer.close()
        direct.close()


async def test_a_connection_that_breaks_goes_on_over_the_stream(service: Service) -> None:
    session = await service.create(1, agent="direct:breaks")
    async with directly(service, session, agent="direct:breaks") as (stream, direct):
        for step in range(4):
            assert await turn(direct, step, 0) is not None
        direct.close()
        ask = await stream.receive("ask")
        assert ask.step == 4
        frame = ask
        while isinstance(frame, gateway_pb2.Ask):
            await stream.send(action(frame.step, 0))
            frame = await stream.receive()
        assert isinstance(frame, gateway_pb2.EpisodeEnd)
        await stream.receive("session_end")
    (episode,) = await service.list_episodes(session)
    assert episode.outcome in (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
    (path,) = (service.data / "recordings" / names.parse_session(session)).glob("*.mcap")
    recording = read_episode(path)
    assert recording.complete
    assert len(recording.steps) == episode.steps + 1


async def test_the_client_loses_no_answer_when_its_connection_breaks(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer that was on its way is sent again, and the agent is not asked twice."""
    session = await service.create(1, agent="direct:lost")
    sent, send = 0, DirectPlay.send

    def breaking(self: DirectPlay, frame: gateway_pb2.EvaluateRequest) -> None:
        nonlocal sent
        sent += 1
        if sent == 5:
            self.close()
        send(self, frame)

    class Counting(Walker):
        acted = 0

        def act(self, observation: Observation) -> int:
            self.acted += 1
            return super().act(observation)

    monkeypatch.setattr(DirectPlay, "send", breaking)
    agent = Counting()
    async with aconnect(service.running.address) as client:
        (played,) = (await client.evaluate(agent, session)).episodes
    assert sent == 5
    assert played.steps == agent.acted > 5


async def test_bad_frames_are_refused_and_notes_recorded(service: Service) -> None:
    session = await service.create(1, agent="direct:bad")
    async with directly(service, session, agent="direct:bad") as (stream, direct):
        stale = await turn(direct, 7, 3)
        assert stale is not None
        assert (stale.error.code, stale.error.fatal) == ("ACTION_STALE", False)
        direct.send(gateway_pb2.EvaluateRequest(note=types_pb2.Note(text="hm", tokens_in=7)))
        assert await turn(direct, 0, 3) is not None
        for _ in range(2):
            assert await turn(direct, 1, 9) is not None
        assert await turn(direct, 1, 9) is None
        await stream.refused("TOO_MANY_BAD_FRAMES")
    (found,) = await attempts(service, session)
    assert found[0] == types_pb2.OUTCOME_VOID
    (path,) = (service.data / "recordings" / names.parse_session(session)).glob("*.mcap")
    assert [n.text for n in read_episode(path).steps[1].notes] == ["hm"]


async def test_a_frame_that_is_too_long_or_none_is_no_harm(service: Service) -> None:
    session = await service.create(1, agent="direct:long")
    async with directly(service, session, agent="direct:long") as (stream, direct):
        transport: Any = direct._transport  # pyright: ignore[reportPrivateUsage]
        transport.write(b"\x00\x00\x00\x03\xff\xff\xff")
        torn = await direct.receive()
        assert torn is not None
        assert torn.error.code == "BAD_FRAME"
        transport.write((MAX_FRAME + 1).to_bytes(4, "big"))
        assert await direct.receive() is None
        await stream.refused("TOO_MANY_BAD_FRAMES")


async def test_an_offer_that_nobody_takes_runs_out(service: Service) -> None:
    session = await service.create(1, agent="direct:none", action_timeout_seconds=0.3)
    async with service.agent(session, agent="direct:none") as stream:
        await stream.receive("welcome")
        await stream.receive("episode_start")
        await stream.refused("ACTION_TIMEOUT")


async def test_a_session_is_cancelled_while_it_is_played(service: Service) -> None:
    session = await service.create(3, agent="direct:cancel")
    async with directly(service, session, agent="direct:cancel") as (stream, direct):
        assert await turn(direct, 0, 3) is not None
        await service.sessions.CancelSession(sessions_pb2.CancelSessionRequest(name=session))
        assert await direct.receive() is None
        end = await stream.receive("session_end")
        assert end.state == sessions_pb2.SESSION_STATE_CANCELLED
    assert await attempts(service, session) == [
        (types_pb2.OUTCOME_VOID, "the session was cancelled")
    ]


@pytest.mark.parametrize("starved", [False, True])
async def test_a_worker_that_dies_is_a_fault_with_a_whole_recording(
    service: Service, starved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What dies for want of memory says so, and its arena is no worse for it."""
    memory = service.running.engines.parts.memory
    monkeypatch.setattr("animalcat.service.memory.PAUSES", (0.1,))
    monkeypatch.setattr(memory, "_killed", None)
    monkeypatch.setattr(memory, "_kills", lambda: memory._known + starved)
    monkeypatch.setattr(memory, "_known", 0)
    session = await service.create(1, agent="direct:dies", seed=5 + starved)
    async with directly(service, session, agent="direct:dies") as (stream, direct):
        for step in range(3):
            assert await turn(direct, step, 3) is not None
        for worker in workers_of(os.getpid()):
            with suppress(ProcessLookupError):  # it may have ended meanwhile
                os.kill(worker, signal.SIGKILL)
        assert await direct.receive() is None
        assert (await stream.receive("episode_end")).fault
        assert (await stream.receive("episode_start")).episode == 0
    (first, *_) = await service.list_episodes(session)
    assert first.outcome == types_pb2.OUTCOME_FAULT
    assert "ended with code -9" in first.cause
    assert first.cause.startswith("the machine ran out of memory" if starved else "backend")
    recording = read_episode(
        service.data / "recordings" / names.parse_session(session) / "0-0.mcap"
    )
    assert recording.complete
    assert first.steps == len(recording.steps) - 1 >= 2


async def test_a_worker_that_hangs_beside_its_agent_is_given_up(
    start: Callable[[Path], Any], tmp_path: Path, fitter: Helpers
) -> None:
    """It may be quiet while it waits for its agent, and not longer."""
    settings = Settings(home=tmp_path, port=0, worker_quiet_seconds=0.5)
    before = workers_of(os.getpid())
    async with (
        create_server(settings, lambda: NOW, fitter, fitter.simulators) as running,
        grpc.aio.insecure_channel(running.address) as channel,
    ):
        service = Service(running, tmp_path, channel)
        session = await service.create(1, agent="direct:hangs", action_timeout_seconds=2.0)
        async with directly(service, session, agent="direct:hangs") as (stream, direct):
            await asyncio.sleep(1.0)
            assert await turn(direct, 0, 3) is not None
            for worker in workers_of(os.getpid()):
                if worker not in before:
                    os.kill(worker, signal.SIGSTOP)
            direct.send(action(1, *[0] * 100))
            assert (await stream.receive("episode_end")).fault
            (first, *_) = await service.list_episodes(session)
            assert "no answer for" in first.cause


class Table:
    """A worker in a thread, with an arena open and a unix socket at which its agent may come."""

    def __init__(self, tmp_path: Path, spec: ObservationSpec, timeout: float) -> None:
        self.environment = make_environment("sim", spec)
        arena_config = load_text(arena(0), "test").config.first
        self.environment.load(arena_config, 0)
        self.environment.step(0)  # compiles what is not yet
        first = self.environment.load(arena_config, 0)
        self.recording = tmp_path / "0-0.mcap"
        header = results_pb2.EpisodeHeader(observation_spec=spec_to_proto(spec))
        begin_recording(self.recording, header)
        self.folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="unix-"))
        self.server, theirs = socket.socketpair()
        self.pulse = Pulse()
        self.spec = spec
        terms = Terms(
            str(self.recording), False, 3, f"unix:{self.folder}", "ab" * 32, timeout=timeout
        )
        work = asyncio.to_thread(
            Player(self.pulse), theirs, self.environment, first, terms.to_json()
        )
        self._playing = asyncio.create_task(work)
        self._theirs = theirs

    async def offer(self) -> gateway_pb2.Direct:
        """Where the agent may come."""
        frame = await asyncio.to_thread(receive, self.server)
        assert frame is not None
        return gateway_pb2.Direct(address=frame[1].decode(), ticket=b"\xab" * 32)

    async def asked(self) -> Question:
        """What the agent is asked by way of the server."""
        frame = await asyncio.to_thread(receive, self.server)
        assert frame is not None
        assert frame[0] is MessageKind.ASK
        return Question.unpack(frame[1])

    async def played(self) -> PlayReport:
        """How it was played, once that is over."""
        return PlayReport.unpack(await self._playing, self.spec)

    async def __aenter__(self) -> Table:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        await asyncio.wait([self._playing])
        self.environment.close()
        self._theirs.close()
        self.folder.rmdir()


async def test_an_agent_without_a_network_comes_by_a_unix_socket(tmp_path: Path) -> None:
    """The worker answers in a folder, and takes its socket away when the agent is there."""
    async with Table(tmp_path, ObservationSpec(None, RaySpec(1)), 10.0) as table:
        direct = await DirectPlay.open(await table.offer())
        assert list(table.folder.iterdir()) == []
        assert await turn(direct, 0, 3, 3) is not None
        send(table.server, MessageKind.RECALL, b"")
        assert await direct.receive() is None
        asked = await table.asked()  # it goes on by way of the server
        assert (asked.frame.ask.step, asked.broke) == (2, False)
        send(table.server, MessageKind.STOP, SECONDS.pack(1.5))
        played = await table.played()
        assert (played.left, len(played.trace)) == ("", 2)
        assert played.spent.thinking_seconds == asked.thinking + 1.5
        assert len(read_episode(table.recording).steps) == 3


def flooding(offer: gateway_pb2.Direct, steps: int) -> socket.socket:
    """A connection with the ticket and many actions on it, of which no answer is read."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(offer.address.removeprefix("unix:"))
    ticket = gateway_pb2.EvaluateRequest(ticket=gateway_pb2.Ticket(ticket=offer.ticket))
    connection.sendall(b"".join(map(frame_bytes, [ticket, *(action(k, 0) for k in range(steps))])))
    return connection


async def test_an_agent_that_does_not_read_stalls_and_not_the_worker(tmp_path: Path) -> None:
    spec = ObservationSpec(CameraSpec(128), None)
    async with Table(tmp_path, spec, 2.0) as table:
        with flooding(await table.offer(), 200):
            before, count = -1, 0
            while before != count or not count:  # until it is stuck with what nobody reads
                await asyncio.sleep(0.4)
                before, count = count, table.pulse.read()
            assert count % 2 == 0, "it seems to work"
            assert count < 2 * 200
            played = await table.played()
        assert (played.left, played.fault) == ("the agent did not act in time", "")


def test_an_agent_that_never_lets_the_worker_wait_is_taken_off() -> None:
    server, worker = socket.socketpair()
    agent, theirs = socket.socketpair()
    with server, worker, agent, theirs:
        sent = b"".join(frame_bytes(action(k, 0)) for k in range(2))
        connection = Connection(theirs, worker, sent)
        assert connection.read(math.inf).action.step == 0
        send(server, MessageKind.RECALL, b"")
        with pytest.raises(RecalledError):
            connection.read(math.inf)
        send(server, MessageKind.STOP, SECONDS.pack(-1.0))
        with pytest.raises(PlayStoppedError):
            connection.read(math.inf)


async def test_to_come_late_and_stall_is_no_fault_of_the_backend(
    tmp_path: Path, fitter: Helpers
) -> None:
    """The time to come and the time for the first answer are one."""
    settings = Settings(home=tmp_path, port=0, worker_quiet_seconds=2.0)
    async with (
        create_server(settings, lambda: NOW, fitter, fitter.simulators) as running,
        grpc.aio.insecure_channel(running.address) as channel,
    ):
        service = Service(running, tmp_path, channel)
        session = await service.create(1, agent="direct:late", action_timeout_seconds=3.0)
        async with service.agent(session, agent="direct:late") as stream:
            await stream.receive("welcome")
            begun = await stream.receive("episode_start")
            await asyncio.sleep(2.5)
            direct = await DirectPlay.open(begun.direct)
            await stream.refused("ACTION_TIMEOUT")
            direct.close()
        (found,) = await attempts(service, session)
    assert found == (types_pb2.OUTCOME_VOID, "the agent did not act in time")
