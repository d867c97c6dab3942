"""Callers who try: to fill the disk, to look twice, to shut others out, and not to be seen."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import re
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np
import pytest
import pytest_asyncio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from typer.testing import CliRunner

from animalcat.apart.plan import launch_command, plan_of, way
from animalcat.cli.main import build
from animalcat.client.connection import AuthorisedChannel
from animalcat.envs.agents.fingerprint import AgentFingerprint
from animalcat.envs.answers import NOTES_USED_UP
from animalcat.service.access import rates as limits
from animalcat.service.access.callers import Role
from animalcat.service.access.rates import DAY_SECONDS, Rates
from animalcat.service.access.tokens import Tokens
from animalcat.service.errors import ServiceError
from animalcat.service.host.listeners import (
    FLOOD_CALLS,
    MOST_OF_AGENT,
    OF_MACHINE,
    Budget,
    all_descriptors,
)
from animalcat.service.host.settings import Settings
from animalcat.service.recording.reader import read_episode
from animalcat.service.refusals import LOG_SECONDS, MOST_KEPT, OTHERS, Refusals
from animalcat.service.rpc.agent_link import MAX_FINGERPRINT
from animalcat.service.rpc.health import OF_ONE
from animalcat.service.rpc.server import create_server
from animalcat.service.session import play
from animalcat.service.session.identity import MAX_CHANGES, MAX_OTHERS, Arrival, identify_player
from animalcat.service.session.link import AgentLeftError
from animalcat.service.session.notes import EPISODE_BYTES, NOTE_BYTES, STEP_BYTES, NoteRoom
from animalcat.service.session.turns import MAX_BAD_FRAMES, AnswerReader, FrameError
from animalcat.service.storage.artefacts import recording_path
from animalcat.v1 import (
    access_pb2,
    access_pb2_grpc,
    gateway_pb2,
    operations_pb2,
    sessions_pb2,
    types_pb2,
)
from animalcat.values import NOBODY, Identity
from tests.service.conftest import AGENT, NOW, Helpers, Service, action

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("no_token")]

FLOOD = """
import socket, sys, time
made = [socket.socket(socket.AF_UNIX) for _ in range(200)]
for one in made:
    one.connect(sys.argv[1])
ended, end = set(), time.monotonic() + 20
while len(ended) < 136 and time.monotonic() < end:
    time.sleep(0.05)
    for one in set(made) - ended:
        one.setblocking(False)
        try:
            if not one.recv(1000):
                ended.add(one)
        except BlockingIOError:
            pass
        except OSError:
            ended.add(one)
print("ended", len(ended))
"""
PORT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from animalcat.service.host import listeners
listeners.BEGIN_SECONDS, listeners.KEPT_SECONDS = 1, 1
from animalcat.service.web import serving
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
serving.TAKEN_SECONDS = 1
app = Starlette(routes=[Mount("/", PlainTextResponse("x" * 10_000_000))])
serving.serve_app(app, "127.0.0.1", int(sys.argv[1]))
"""
LISTENS = r"uvicorn\.(run|Server)|secure_port\(|streamable-http|HTTPServer|[grl]\.listen\(\w*\)"
ENDED = "connections ended to 127.0.0.1"
WITHDRAW = gateway_pb2.EvaluateRequest(withdraw=gateway_pb2.Withdraw())
DECLARED = types_pb2.FINGERPRINT_SOURCE_DECLARED
Served = Callable[..., Any]


@pytest.fixture(scope="session")
def serve_callers(fitter: Helpers) -> Served:
    """Starts a server, and connects by a connection of its own with a token or without."""

    @asynccontextmanager
    async def start_server(data: Path, **settings: Any) -> AsyncGenerator[Callable[..., Service]]:
        wanted = Settings(home=data, port=0, **settings)
        async with (
            create_server(wanted, lambda: NOW, fitter, fitter.simulators) as running,
            AsyncExitStack() as stack,
        ):
            numbers = iter(range(1000))

            def connect_with(token: str = "") -> Service:
                apart = [("test.number", next(numbers))]  # else gRPC shares connections
                bare = grpc.aio.insecure_channel(running.address, apart)
                stack.push_async_callback(bare.close)
                shown = (("authorization", f"Bearer {token}"),) if token else ()
                return Service(running, data, AuthorisedChannel(bare, shown))

            yield connect_with

    return start_server


@dataclass
class Guarded:
    """A server that asks everyone for a token, and its operator."""

    connected: Callable[..., Service]
    tokens: Tokens
    data: Path

    def __post_init__(self) -> None:
        self.operator = self.connected(self.tokens.create(Role.OPERATOR)[1])

    async def ended(self) -> int:
        """How many connections were ended."""
        return (await refusals(self.operator)).get(ENDED, 0)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def guarded(
    serve_callers: Served, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Guarded]:
    """One that tests share."""
    data = tmp_path_factory.mktemp("guarded")
    async with serve_callers(data, require_token=True, max_strangers=4) as connected:
        yield Guarded(connected, Tokens(data), data)


def note(text: str) -> gateway_pb2.EvaluateRequest:
    return gateway_pb2.EvaluateRequest(note=types_pb2.Note(text=text))


def forward(rng: np.random.Generator) -> int:
    return 3


def has_free(monkeypatch: pytest.MonkeyPatch, free: list[int]) -> None:
    """Let the disk have as many bytes left as a list says, and everybody look often."""

    def free_room(folder: Path) -> int:
        return free[0]

    monkeypatch.setattr("animalcat.service.session.disk.free_bytes", free_room)
    for module in ("disk", "scheduling"):
        monkeypatch.setattr(f"animalcat.service.session.{module}.LOOK_SECONDS", 0.02)


async def refusals(service: Service) -> dict[str, int]:
    """How often what was refused."""
    found = await service.operations.GetPlacement(operations_pb2.GetPlacementRequest())
    return {f"{one.what} to {one.who}": one.number for one in found.refusals}


@pytest.fixture
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `--token` leaves in the environment is gone after the test."""
    monkeypatch.setenv("ANIMALCAT_TOKEN", "")


async def status(service: Service, *rest: str) -> Any:
    command = ["server", "status", "--server", service.running.address, *rest]
    return await asyncio.to_thread(CliRunner().invoke, build(["server"]), command)


class TestNotes:
    def test_a_step_an_episode_and_a_token_have_budgets(self) -> None:
        room = NoteRoom()
        most = STEP_BYTES // (4096 + NOTE_BYTES)
        assert [room.add(4096) for _ in range(most)] == [""] * most
        assert f"one step have at most {STEP_BYTES:,} bytes" in room.add(4096)
        steps = 1
        while not (why := room.add(4096)) or "one step" in why:
            if why:
                room.take()
                steps += 1
        assert f"one episode have at most {EPISODE_BYTES:,} bytes" in why
        room.take()
        assert room.written <= EPISODE_BYTES
        assert steps < 200
        room.begin()
        assert room.add(4096) == ""

    def test_a_model_that_says_a_kilobyte_for_a_thousand_steps_meets_none(self) -> None:
        times = [0.0]
        room = NoteRoom(Rates(lambda: times[0]).purse("model"))
        for _ in range(100):
            room.begin()
            for _ in range(1000):
                assert room.add(900) == ""
                room.take()
            times[0] += 1000.0  # a second a step

    def test_all_agents_of_a_token_share_its_budget_and_it_fills_up_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        times = [0.0]
        rates = Rates(lambda: times[0])
        monkeypatch.setattr(limits, "NOTE_BYTES", 10_000)
        told: list[str] = []
        one = NoteRoom(rates.purse("a"), lambda words, number: told.append(words))
        other = NoteRoom(rates.purse("a"))
        while not one.add(1000):
            one.take()
        assert "this token have at most 10,000 bytes a day" in other.add(1000)
        assert told == [other.add(1000)]
        assert NoteRoom(rates.purse("b")).add(1000) == ""
        times[0] += DAY_SECONDS
        assert other.add(1000) == ""

    def test_who_plays_elsewhere_has_what_is_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "NOTE_BYTES", 3000)
        there = NoteRoom.within(NoteRoom(Rates().purse("a")).rest)
        for _ in range(2):
            assert there.add(1000) == ""
            there.take()
        assert "at most 3,000 bytes a day" in there.add(1000)
        assert (there.written, there.refused) == (2 * (1000 + NOTE_BYTES), 1)
        assert NoteRoom.within(NoteRoom().rest).add(1000) == ""

    def test_a_note_beyond_a_budget_is_no_bad_frame(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another agent of the token may have spent it."""
        monkeypatch.setattr(limits, "NOTE_BYTES", 0)
        turns = AnswerReader(room=NoteRoom.within(NoteRoom(Rates().purse("a")).rest))
        note = gateway_pb2.EvaluateRequest(note=types_pb2.Note(text="x"))
        for _ in range(2 * MAX_BAD_FRAMES):
            with pytest.raises(FrameError) as refused:
                turns.read(note, 0)
            assert turns.refuse(refused.value).error.code == NOTES_USED_UP
        for _ in range(MAX_BAD_FRAMES - 1):
            turns.refuse(FrameError("BAD_FRAME", "no frame"))
        with pytest.raises(AgentLeftError):
            turns.refuse(FrameError("BAD_FRAME", "no frame"))

    @pytest.mark.parametrize("direct", [False, True])
    async def test_a_flood_of_notes_is_refused_counted_and_not_kept(
        self, guarded: Guarded, direct: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where the agent plays with the simulator, which the server hears of afterwards."""
        connected, tokens, operator = guarded.connected, guarded.tokens, guarded.operator
        monkeypatch.setattr(limits, "NOTE_BYTES", 20_000)
        token, text = tokens.create(Role.AGENT, agent=AGENT)
        session = await operator.create(2)
        told = set[str]()
        async with connected(text).agent(session) as stream:
            await stream.receive("welcome")
            start = await stream.receive("episode_start")
            send, receive = stream.send, stream.receive
            if direct:
                send, receive = await by_hand(start.direct)
            step = 0
            while True:
                for _ in range(2 if step else 4):
                    await send(note("x" * 4096))
                await send(action(step, 3))
                while isinstance(frame := await receive(), types_pb2.Error):
                    assert frame.code == "NOTES_USED_UP"
                    told.add(frame.message.partition(" bytes")[0])
                if not isinstance(frame, gateway_pb2.Ask):
                    break
                step = frame.step
            if direct:
                await stream.receive("episode_end")
        assert told == {
            f"the notes of one step have at most {STEP_BYTES:,}",
            "the notes of this token have at most 20,000",
        }
        name = session.partition("/")[2]
        kept = read_episode(recording_path(guarded.data, name, 0, 0))
        texts = [one.text for step in kept.steps for one in step.notes]
        assert 0 < sum(map(len, texts)) <= 20_000
        assert (await refusals(operator))[f"NOTES_USED_UP to token {token.id}"] > 5


class TestFingerprints:
    """What an agent says of itself is stored beside the session as well."""

    async def test_a_large_one_is_refused(self, service: Service) -> None:
        session = await service.create(2)
        large = {"WORD": "x" * MAX_FINGERPRINT}
        one = types_pb2.AgentFingerprint(source=DECLARED, name=AGENT, environment=large)
        async with service.agent(session, fingerprint=one) as stream:
            assert "may have 262,144" in (await stream.refused("INVALID_REQUEST")).message

    @pytest.mark.parametrize("what", ["version", "environment"])
    def test_an_agent_that_is_another_each_time_is_refused_at_last(self, what: str) -> None:
        known = NOBODY

        def comes(number: int) -> Identity:
            environment = {"WORD": f"{number}" * 1000} if what == "environment" else {}
            version = f"1.{number}" if what == "version" else "1"
            one = AgentFingerprint("declared", AGENT, version, environment=environment)
            return identify_player(
                known, Arrival(one, same=True), {}, begun=number > 0, company=False, episode=number
            )

        number = 0
        while number < 1000:
            try:
                known, number = comes(number), number + 1
            except ServiceError as error:
                assert "changed too often" in error.message  # noqa: PT017
                break
        assert 10 < number < 1000
        assert len(known.others) <= MAX_OTHERS
        assert sum(map(len, known.changes)) <= MAX_CHANGES


async def by_hand(offer: gateway_pb2.Direct) -> tuple[Any, Any]:
    """Come to a worker; what sends it frames and receives its own."""
    host, _, port = offer.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))

    async def send(frame: gateway_pb2.EvaluateRequest) -> None:
        data = frame.SerializeToString()
        writer.write(len(data).to_bytes(4, "big") + data)

    async def receive() -> Any:
        try:
            size = int.from_bytes(await reader.readexactly(4), "big")
        except asyncio.IncompleteReadError:
            return None
        data = await reader.readexactly(size)
        frame = gateway_pb2.EvaluateResponse.FromString(data)
        return getattr(frame, str(frame.WhichOneof("frame")))

    ticket = gateway_pb2.Ticket(ticket=offer.ticket)
    await send(gateway_pb2.EvaluateRequest(ticket=ticket))
    assert isinstance(await receive(), gateway_pb2.Ask)
    return send, receive


class TestDisk:
    async def test_who_comes_waits_for_room_and_goes_on_when_there_is(
        self, serve_callers: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        free = [1 << 40]
        has_free(monkeypatch, free)
        async with serve_callers(tmp_path, spare_disk_bytes=100 << 20) as connected:
            service = connected()
            session = await service.create(2)
            async with service.agent(session) as stream:
                await stream.receive("welcome")
                start = await stream.receive("episode_start")
                free[0] = 5 << 20
                await asyncio.sleep(0.03)
                await stream.rest_of(start, forward)  # what has begun is played to its end
                while not (waits := (await service.get(session)).waits_for):
                    await asyncio.sleep(0.02)
                assert waits == "room on the server's disk, where 100 MiB are to stay free"
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await service.create(1, seed=6)
                assert "5 MiB left, and the server keeps 100 MiB free" in str(refused.value)
                told = await status(service)
                assert told.exit_code == 1
                assert "nothing new begins: the disk of" in told.output
                assert "DISK_FULL" in told.output
                found = json.loads((await status(service, "--json")).stdout)
                assert len(found["lacks"]) == 1
                assert [one["waits_for"] for one in found["backlog"]] == [waits]
                free[0] = 1 << 40
                await stream.rest_of(await stream.receive("episode_start"), forward)
                assert not (await service.get(session)).waits_for.startswith("room")
            assert (await status(service)).exit_code == 0

    async def test_a_session_that_waits_for_room_can_be_cancelled(
        self, serve_callers: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        free = [1 << 40]
        has_free(monkeypatch, free)
        async with serve_callers(tmp_path, spare_disk_bytes=100 << 20) as connected:
            service = connected()
            session = await service.create(2)
            free[0] = 0
            await asyncio.sleep(0.03)
            async with service.agent(session) as stream:
                await stream.receive("welcome")
                while not (await service.get(session)).waits_for.startswith("room"):
                    await asyncio.sleep(0.02)
                request = sessions_pb2.CancelSessionRequest(name=session)
                await service.sessions.CancelSession(request)
                await stream.receive("session_end")

    async def test_a_deleted_session_holds_no_recording_open(
        self, serve_callers: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(path: Path, *_: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

        monkeypatch.setattr(play, "finish_recording", full)
        async with serve_callers(tmp_path, direct=False) as connected:
            service = connected()
            session = await service.create(2)
            delete = sessions_pb2.DeleteSessionRequest(name=session)
            async with service.agent(session, returns=True) as stream:
                await stream.receive("welcome")
                start = await stream.receive("episode_start")
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await service.sessions.DeleteSession(delete)
                assert "is being played; cancel it first" in str(refused.value.details())
                await stream.send(action(start.slot, *[3] * 100))
                await stream.refused("DISK_FULL")
            await service.settled(session, "WAITING", asyncio.sleep)
            assert "0-0.mcap" not in open_files()
            await service.sessions.DeleteSession(delete)
            assert not list((tmp_path / "recordings").glob("*/*"))


def open_files() -> str:
    """Names of the files that this process has open or mapped."""
    found = [Path("/proc/self/maps").read_text()]
    for one in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(os.readlink(one))
    return "\n".join(found)


class TestSeen:
    def test_a_refusal_is_logged_first_and_then_now_and_then(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        times = [0.0]
        found = Refusals(lambda: times[0], lambda: 5.0)
        with caplog.at_level(logging.WARNING):
            for _ in range(1000):
                found.count("BUSY", "one", "it is full")
            assert caplog.messages == ["BUSY, to one: it is full"]
            times[0] += LOG_SECONDS
            found.count("BUSY", "one", "it is full")
            found.count("BUSY", "two", "it is full")
        assert caplog.messages[1:] == [
            "BUSY, to one, 1000 times since this was logged: it is full",
            "BUSY, to two: it is full",
        ]
        assert [(one.who, one.number, one.last) for one in found.all()] == [
            ("one", 1001, 5.0),
            ("two", 1, 5.0),
        ]
        assert found.totals() == {"BUSY": 1002}

    def test_many_callers_take_no_memory(self) -> None:
        found = Refusals()
        for number in range(3 * MOST_KEPT):
            found.count("NO_TOKEN", f"stranger {number}", "no")
        assert len(found.all()) == MOST_KEPT + 1
        assert (found.all()[0].who, found.all()[0].number) == (OTHERS, 2 * MOST_KEPT)

    async def test_status_and_measurements_show_who_was_refused(
        self, serve_callers: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with serve_callers(tmp_path, require_token=True) as connected:
            tokens = Tokens(tmp_path)
            viewer, text = tokens.create(Role.VIEWER, subject="vera")
            operator = tokens.create(Role.OPERATOR)[1]
            service, stranger = connected(text), connected()
            with caplog.at_level(logging.WARNING):
                for _ in range(7):
                    for one in (service, stranger):
                        with pytest.raises(grpc.aio.AioRpcError):
                            await one.sessions.CancelSession(sessions_pb2.CancelSessionRequest())
            assert len([m for m in caplog.messages if m.startswith("FORBIDDEN")]) == 1
            assert await refusals(connected(operator)) == {
                f"FORBIDDEN to token {viewer.id}": 7,
                "NO_TOKEN to no good token, from 127.0.0.1": 7,
            }
            told = await status(service, "--json", "--token", operator)
            found = {one["what"]: one for one in json.loads(told.stdout)["refusals"]}
            assert found["FORBIDDEN"]["number"] == 7
            assert "may not call CancelSession" in found["FORBIDDEN"]["words"]
            assert "FORBIDDEN" in (await status(service, "--token", operator)).output


def watch(service: Service) -> Any:
    stub: Any = health_pb2_grpc.HealthStub(service.channel)
    return stub.Watch(health_pb2.HealthCheckRequest())


class TestStrangers:
    async def test_few_may_watch_over_one_connection_and_are_told(
        self, serve_callers: Served, tmp_path: Path
    ) -> None:
        async with serve_callers(tmp_path) as connected:
            stranger = connected()
            watching = [watch(stranger) for _ in range(OF_ONE)]
            for one in watching:
                assert (await one.read()).status == health_pb2.HealthCheckResponse.SERVING
            one_more = watch(stranger)
            assert await one_more.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert (await watch(connected()).read()).status == 1
            watching[0].cancel()
            again = watch(stranger)
            while not await again.read():
                again = watch(stranger)
            drain = asyncio.create_task(connected().running.drain())
            states = [(await one.read()).status for one in watching[1:]]
            assert set(states) == {health_pb2.HealthCheckResponse.NOT_SERVING}
            await drain

    async def test_a_connection_that_floods_is_ended_and_the_agent_plays_on(
        self, guarded: Guarded
    ) -> None:
        connected, operator = guarded.connected, guarded.operator
        session = await operator.create(2)
        async with operator.agent(session) as stream:
            await stream.receive("welcome")
            start = await stream.receive("episode_start")
            before = await guarded.ended()
            stranger = connected()
            codes = [
                await code_of(stranger.channel.unary_unary("/grpc.health.v1.Health/Check")(b""))
                for _ in range(FLOOD_CALLS + 1)
            ]
            assert codes[:FLOOD_CALLS] == [grpc.StatusCode.OK] * FLOOD_CALLS
            assert codes[-1] is not grpc.StatusCode.OK
            assert await guarded.ended() == before + 1
            await stream.rest_of(start, forward)

    async def test_idle_connections_beyond_the_budget_are_ended_and_no_others(
        self, guarded: Guarded
    ) -> None:
        operator = guarded.operator
        session = await operator.create(2)
        host, _, port = operator.running.address.rpartition(":")
        async with operator.agent(session) as stream:
            await stream.receive("welcome")
            start = await stream.receive("episode_start")
            before = await guarded.ended()
            idle = [socket.create_connection((host, int(port))) for _ in range(20)]
            while await guarded.ended() < before + 16:
                await asyncio.sleep(0.05)
            await stream.rest_of(start, forward)
            for one in idle:
                one.close()

    async def test_whoever_is_silent_slow_or_many_holds_no_port(self) -> None:
        """With 256 descriptors; the same guard has pages, studies, MCP and OpenEnv."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        served = await asyncio.create_subprocess_exec(sys.executable, "-c", PORT, str(port))
        url = f"http://127.0.0.1:{port}/"
        held: list[socket.socket] = []
        try:
            while not held:  # until it has begun
                with suppress(ConnectionRefusedError):
                    held.append(socket.create_connection(("127.0.0.1", port)))
                await asyncio.sleep(0.05)
            while len(held) < 600:
                with suppress(OSError):
                    held.append(socket.create_connection(("127.0.0.1", port)))
            async with httpx.AsyncClient() as browser:
                assert len((await browser.get(url, timeout=10)).content) == 10_000_000
            ask, body = b"GET / HTTP/1.1\r\nhost: x\r\n", b"content-length: 9\r\n\r\nhalf"
            for said in (ask, ask + body, ask.replace(b"GET", b"HEAD") + b"\r\n" + ask):
                held.append(socket.create_connection(("127.0.0.1", port)))
                held[-1].sendall(said)
            slow = socket.create_connection(("127.0.0.1", port))
            slow.sendall(ask + b"\r\n")  # and reads nothing
            await asyncio.sleep(4)
            for one in held:
                one.settimeout(5)
                with suppress(ConnectionError):
                    while one.recv(1000):
                        pass
            size = 0
            with suppress(ConnectionError), slow:
                while piece := slow.recv(1 << 20):
                    size += len(piece)
            assert size < 10_000_000
        finally:
            served.terminate()
            await served.wait()
            for one in held:
                one.close()

    def test_every_port_has_that_guard(self) -> None:
        """What listens is gRPC's, whose sockets are looked at, or `Listeners.listen` made it."""
        root = Path(__file__).resolve().parents[2]
        found = {
            str(file.resolve().relative_to(root))
            for folder in ("animalcat", "doors", "envs", "service", "docker")
            for file in (root / folder).rglob("*.py")
            if re.search(LISTENS, file.read_text())
        }
        assert found == {
            "service/host/listeners.py",
            "service/rpc/server.py",
            "service/session/direct.py",  # one caller with a ticket, within 5 s
            "service/web/serving.py",
        }

    @pytest.mark.skipif(not way().whole, reason="processes cannot be put apart here")
    async def test_an_agent_of_this_machine_does_not_shut_others_out(
        self, guarded: Guarded, tmp_path: Path
    ) -> None:
        """By the socket at which all agents come in that were started here."""
        operator = guarded.operator
        session = await operator.create(2)
        asked = access_pb2.GetTicketRequest(session=session)
        stub: Any = access_pb2_grpc.AccessStub(operator.channel)
        door = (await stub.GetTicket(asked)).local_address.removeprefix("unix:")
        own = [socket.socket(socket.AF_UNIX) for _ in range(MOST_OF_AGENT + 8)]
        for one in own:
            one.connect(door)
        plan = plan_of(network=False, sockets=[os.path.dirname(door)])
        started = launch_command([sys.executable, "-c", FLOOD, door], plan, way().name)
        flood = await asyncio.create_subprocess_exec(
            *started.command, env=started.variables, stdout=asyncio.subprocess.PIPE
        )
        told, _ = await flood.communicate()
        assert told.split() == [b"ended", str(200 - MOST_OF_AGENT).encode()]
        name = f"connections ended to {OF_MACHINE}"
        assert (await refusals(operator))[name] == 200 - MOST_OF_AGENT
        for one in own:  # those of people are not
            one.setblocking(False)
            with suppress(BlockingIOError):
                assert one.recv(100)
            one.close()

    async def test_a_token_has_a_budget_of_connections(
        self, guarded: Guarded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connected, tokens, operator = guarded.connected, guarded.tokens, guarded.operator
        monkeypatch.setattr(limits, "STREAMS", 2)
        text = tokens.create(Role.AGENT, agent=AGENT)[1]
        session = await operator.create(2)
        async with connected(text).agent(session) as stream:
            await stream.receive("welcome")
            start = await stream.receive("episode_start")
            before = await guarded.ended()
            for _ in range(8):
                await connected(text).get(session)
            while await guarded.ended() < before + 5:
                await asyncio.sleep(0.05)
            await stream.rest_of(start, forward)  # whose connection is in use

    async def test_descriptors_are_kept_for_other_things_than_connections(self) -> None:
        few, many = Budget.of(1024, 256), Budget.of(1 << 20, 256)
        assert few.connections + few.local < 1024 - 256
        assert few.strangers < few.connections / 2
        assert many.strangers == 256

    async def test_a_server_takes_all_descriptors_that_it_may(self) -> None:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(900, hard), hard))
            all_descriptors()
            assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def code_of(call: Any) -> grpc.StatusCode:
    with suppress(grpc.aio.AioRpcError):
        await call
    return await call.code()


class TestLooks:
    """A second look at an arena is held against who takes it."""

    @pytest.mark.parametrize("way", ["withdraw", "leave", "another process"])
    async def test_who_looks_and_comes_back_has_had_its_void(
        self, guarded: Guarded, way: str
    ) -> None:
        connected, tokens, operator = guarded.connected, guarded.tokens, guarded.operator
        agent = connected(tokens.create(Role.AGENT, agent=AGENT)[1])
        session = await operator.create(2)
        for number in range(2):
            async with agent.agent(session, instance=str(number)) as stream:
                await stream.receive("welcome")
                start = await stream.receive("episode_start")
                assert start.episode == 0
                if way == "withdraw":
                    await stream.send(WITHDRAW)
                    assert await stream.call.read() is grpc.aio.EOF
                elif way == "leave":
                    await stream.send(gateway_pb2.EvaluateRequest(leave=gateway_pb2.Leave()))
                    assert await stream.call.read() is grpc.aio.EOF
            await operator.settled(session, "WAITING", asyncio.sleep)
        first, second = await operator.list_episodes(session)
        assert first.instance == second.instance
        outcomes = [first.outcome, second.outcome]
        assert outcomes == [types_pb2.OUTCOME_VOID, types_pb2.OUTCOME_FAILURE]
        if way == "withdraw":
            assert (first.seen, second.seen) == (False, True)
            assert "withdrew from an arena that it had been shown" in first.cause

    async def test_who_shows_another_fingerprint_to_be_refused_has_looked_too(
        self, guarded: Guarded
    ) -> None:
        connected, tokens, operator = guarded.connected, guarded.tokens, guarded.operator
        agent = connected(tokens.create(Role.AGENT, agent=AGENT)[1])
        session = await operator.create(3)
        one = types_pb2.AgentFingerprint(source=DECLARED, name=AGENT, version="1")
        follows = {"fingerprint_follows": True, "same_agent": False}
        async with agent.agent(session, fingerprint=one, **follows) as stream:
            await stream.receive("welcome")
            await stream.episode(forward)
            await stream.receive("episode_start")
            await stream.send(WITHDRAW)
            assert await stream.call.read() is grpc.aio.EOF
        await operator.settled(session, "WAITING", asyncio.sleep)
        two = types_pb2.AgentFingerprint(source=DECLARED, name=AGENT, version="2")
        async with agent.agent(session, fingerprint=one, instance="2", **follows) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            await stream.send(gateway_pb2.EvaluateRequest(fingerprint=two))
            await stream.refused("AGENT_CHANGED")
        await operator.settled(session, "WAITING", asyncio.sleep)
        *_, last = await operator.list_episodes(session)
        assert last.cause_kind == types_pb2.CAUSE_LOOKED
        assert last.outcome == types_pb2.OUTCOME_FAILURE
