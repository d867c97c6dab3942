"""A server in this process, and agents that speak the protocol by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import pytest_asyncio

from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.writer import to_yaml
from animalcat.client.connection import AuthorisedChannel
from animalcat.envs.starting import Fork
from animalcat.layouts.inference.fitter import Fitter
from animalcat.service.batteries.battery import ArenaFile, Battery, import_files
from animalcat.service.host.settings import Settings
from animalcat.service.rpc import profiles
from animalcat.service.rpc.server import RunningServer, create_server
from animalcat.service.session.workers import COMMAND
from animalcat.v1 import (
    campaigns_pb2_grpc,
    gateway_pb2,
    gateway_pb2_grpc,
    layouts_pb2_grpc,
    operations_pb2,
    operations_pb2_grpc,
    results_pb2,
    results_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
    types_pb2,
)

AGENT = "tests:agent"
NOW = datetime(2026, 11, 20, tzinfo=UTC)


def arena(k: int) -> str:
    """A short arena: the goal straight ahead, nearer or farther, or where only a turn helps."""
    x, z = 20 + (0, 6, -6)[k % 3], 6 + k
    return f"""!ArenaConfig
arenas:
  0: !Arena
    pass_mark: 0
    t: 24
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {{x: 20, y: 0, z: 3}}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {{x: {x}, y: 0, z: {z}}}]
      sizes: [!Vector3 {{x: {1 + k % 4}, y: 1, z: 1}}]
"""


FILES = [(f"navigation-{k:02}.yaml", arena(k).encode()) for k in range(24)]


def open_floor(n: int, folder: Path) -> Battery:
    """A battery of arenas of the family `navigation` in which there is nothing but the reward."""
    made = generate("navigation", 3 * n, np.random.default_rng(0))
    bare = [one for one in made if one.paradigm.startswith("open")][::2][:n]
    files = [ArenaFile(f"{one.paradigm}-{one.name}.yaml", to_yaml(one.arena)) for one in bare]
    return import_files(files, 0, folder)


def action(step: int, *actions: int, **rest: int) -> gateway_pb2.EvaluateRequest:
    return gateway_pb2.EvaluateRequest(
        action=gateway_pb2.Action(
            step=step, list=gateway_pb2.ActionList(actions=bytes(actions)), **rest
        )
    )


def hello(session: str, **changes: Any) -> gateway_pb2.EvaluateRequest:
    fields = {"session": session, "agent": AGENT, "instance": "process 1", "protocol": 1}
    # Nothing is declared here, and of most tests it is not the matter which process comes.
    fields |= {"same_agent": True, **changes}
    return gateway_pb2.EvaluateRequest(hello=gateway_pb2.Hello(**fields))


@dataclass
class Stream:
    """An agent's stream, frame by frame."""

    call: Any

    async def send(self, frame: gateway_pb2.EvaluateRequest) -> None:
        await self.call.write(frame)

    async def receive(self, kind: str = "") -> Any:
        frame = await self.call.read()
        assert frame is not grpc.aio.EOF, "the stream has ended"
        found = frame.WhichOneof("frame")
        assert kind in ("", found), f"{found} came instead of {kind}: {frame}"
        return getattr(frame, found)

    async def refused(self, code: str) -> types_pb2.Error:
        """The fatal error that ends the stream."""
        error = await self.receive("error")
        assert (error.code, error.fatal) == (code, True)
        with pytest.raises(grpc.aio.AioRpcError) as status:
            await self.call.read()
        assert dict(status.value.trailing_metadata() or ())["animalcat-code"] == code
        return error

    async def episode(self, policy: Callable[[np.random.Generator], int]) -> gateway_pb2.EpisodeEnd:
        """Play one episode."""
        return await self.rest_of(await self.receive("episode_start"), policy)

    async def rest_of(
        self, start: gateway_pb2.EpisodeStart, policy: Callable[[np.random.Generator], int]
    ) -> gateway_pb2.EpisodeEnd:
        """Play an episode that has begun."""
        rng = np.random.default_rng(start.agent_seed)
        await self.send(action(0, policy(rng)))
        while True:
            frame = await self.receive()
            if isinstance(frame, gateway_pb2.EpisodeEnd):
                return frame
            await self.send(action(frame.step, policy(rng)))


class OperationError(Exception):
    """An operation has failed."""

    def __init__(self, error: types_pb2.Error) -> None:
        super().__init__(error.message)
        self.code = error.code


@dataclass
class Service:
    """A running server and its clients."""

    running: RunningServer
    data: Path
    channel: grpc.aio.Channel

    def __post_init__(self) -> None:
        self.sessions: Any = sessions_pb2_grpc.SessionsStub(self.channel)
        self.campaigns: Any = campaigns_pb2_grpc.CampaignsStub(self.channel)
        self.batteries: Any = sessions_pb2_grpc.BatteriesStub(self.channel)
        self.layouts: Any = layouts_pb2_grpc.LayoutsStub(self.channel)
        self.operations: Any = operations_pb2_grpc.OperationsStub(self.channel)
        self.profiles: Any = results_pb2_grpc.ProfilesStub(self.channel)
        self.episodes: Any = results_pb2_grpc.EpisodesStub(self.channel)

    async def import_files(
        self, files: list[tuple[str, bytes]] = FILES, name: str = "small", table: bytes = b""
    ) -> sessions_pb2.Battery:
        async def frames() -> AsyncIterator[sessions_pb2.ImportBatteryRequest]:
            yield sessions_pb2.ImportBatteryRequest(header=sessions_pb2.BatteryHeader(name=name))
            for path, content in files:
                yield sessions_pb2.ImportBatteryRequest(
                    file=sessions_pb2.ArenaFile(path=path, content=content)
                )
            if table:
                own = sessions_pb2.FeatureTable(content=table)
                yield sessions_pb2.ImportBatteryRequest(table=own)

        done = await self.done((await self.batteries.ImportBattery(frames())).operation)
        if done.HasField("error"):
            raise OperationError(done.error)
        request = sessions_pb2.GetBatteryRequest(name=done.resource)
        return (await self.batteries.GetBattery(request)).battery

    async def done(self, operation: operations_pb2.Operation) -> operations_pb2.Operation:
        """An operation after its end, whatever that was."""
        request = operations_pb2.WatchOperationRequest(name=operation.name)
        async for event in self.operations.WatchOperation(request):
            operation = event.operation
        return operation

    async def create(self, episodes: int = 6, **changes: Any) -> str:
        """A session on the small battery; its resource name."""
        await self.import_files()
        fields: dict[str, Any] = {
            "agent": AGENT,
            "battery": "batteries/small",
            "layout": "aaio",
            "stop": sessions_pb2.StoppingRule(max_episodes=episodes, target_sd=0.0, futility=0.0),
            "seed": 5,
            "certify": False,
            **changes,
        }
        request = sessions_pb2.CreateSessionRequest(spec=sessions_pb2.SessionSpec(**fields))
        return (await self.sessions.CreateSession(request)).session.name

    async def exported(self, session: str, form: results_pb2.ProfileFormat.ValueType) -> bytes:
        """The content of an exported profile."""
        request = results_pb2.ExportProfileRequest(name=f"{session}/profile", format=form)
        head, *pieces = [part async for part in self.profiles.ExportProfile(request)]
        content = b"".join(piece.content for piece in pieces)
        assert (len(content), head.content) == (head.size, b"")
        assert all(len(piece.content) <= profiles.PIECE for piece in pieces)
        return content

    async def get(self, session: str) -> sessions_pb2.Session:
        request = sessions_pb2.GetSessionRequest(name=session)
        return (await self.sessions.GetSession(request)).session

    async def settled(
        self, session: str, state: str, wait: Callable[[float], Awaitable[None]]
    ) -> sessions_pb2.Session:
        """The session once it is in a state."""
        for _ in range(9000):
            found = await self.get(session)
            if found.state == sessions_pb2.SessionState.Value(f"SESSION_STATE_{state}"):
                return found
            await wait(0.02)
        raise AssertionError(f"not {state}: {found}")

    async def list_episodes(self, session: str) -> list[sessions_pb2.EpisodeSummary]:
        request = results_pb2.ListEpisodesRequest(parent=session, page_size=1000)
        found: list[sessions_pb2.EpisodeSummary] = []
        while True:
            page = await self.episodes.ListEpisodes(request)
            found += page.episodes
            request.page_token = page.next_page_token
            if not page.next_page_token:
                return found

    @asynccontextmanager
    async def agent(self, session: str, **changes: Any) -> AsyncIterator[Stream]:
        """A stream after its hello; leaving the block cuts it."""
        stub: Any = gateway_pb2_grpc.AgentGatewayStub(self.channel)
        stream = Stream(stub.Evaluate())
        await stream.send(hello(session, **changes))
        try:
            yield stream
        finally:
            stream.call.cancel()

    async def play(
        self,
        session: str,
        policy: Callable[[np.random.Generator], int] | None = None,
        **changes: Any,
    ) -> gateway_pb2.SessionEnd:
        """Let an agent play to the end: a random walk that mostly goes forward, or another."""
        act = policy or walk
        async with self.agent(session, **changes) as stream:
            await stream.receive("welcome")
            while True:
                frame = await stream.receive()
                if isinstance(frame, gateway_pb2.SessionEnd):
                    return frame
                if isinstance(frame, gateway_pb2.EpisodeEnd):
                    continue
                assert not isinstance(frame, types_pb2.Error), frame
                if isinstance(frame, gateway_pb2.EpisodeStart):
                    rng = np.random.default_rng(frame.agent_seed)
                    step = 0
                else:
                    step = frame.step
                await stream.send(action(step, act(rng)))


def walk(rng: np.random.Generator) -> int:
    return int(rng.choice([3, 3, 3, 4, 5]))


class Helpers(Fitter):
    """What servers of all tests share: the process that fits, and the one that forks simulators."""

    def __init__(self) -> None:
        super().__init__()
        self.simulators = Fork(COMMAND, Settings().worker_patience)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def fitter() -> AsyncIterator[Helpers]:
    """One process of each kind for all tests: to import and compile takes seconds."""
    shared = Helpers()
    yield shared
    await shared.simulators.close()
    await shared.close()


@pytest.fixture(scope="session")
def start(fitter: Helpers) -> Callable[[Path], Any]:
    """Starts servers."""

    @asynccontextmanager
    async def start_one(
        data: Path, other: Fitter | None = None, **settings: Any
    ) -> AsyncIterator[Service]:
        asked = Settings(home=data, port=0, **settings)
        async with (
            create_server(asked, lambda: NOW, other or fitter, fitter.simulators) as running,
            grpc.aio.insecure_channel(running.address) as channel,
        ):
            yield Service(running, data, channel)

    return start_one


Guarded = Callable[..., Any]


@pytest.fixture(scope="session")
def guarded(fitter: Helpers) -> Guarded:
    """Starts a server that asks everyone for a token, and connects with one."""

    @asynccontextmanager
    async def start_one(
        data: Path, clock: Callable[[], datetime] = lambda: NOW, **settings: Any
    ) -> AsyncIterator[Callable[[str], Service]]:
        wanted = Settings(home=data, port=0, **{"require_token": True, **settings})
        async with create_server(wanted, clock, fitter, fitter.simulators) as running:
            channels: list[grpc.aio.Channel] = []

            def connect_with(token: str) -> Service:
                bare = grpc.aio.insecure_channel(running.address)
                shown = (("authorization", f"Bearer {token}"),) if token else ()
                channels.append(AuthorisedChannel(bare, shown))
                return Service(running, data, channels[-1])

            yield connect_with
            for channel in channels:
                await channel.close()

    return start_one


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def service(
    start: Callable[[Path], Any], tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Service]:
    """A server that tests share; each has sessions of its own."""
    async with start(tmp_path_factory.mktemp("shared")) as running:
        yield running
