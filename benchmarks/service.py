"""How fast agents are served over loopback, relayed or directly, beside bare echoes."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import psutil

from animalcat.arena_configs.loader import load_text
from animalcat.client.stream import EvaluationStream
from animalcat.envs.backends import make_environment
from animalcat.service.host.private import server_for
from animalcat.v1 import (
    gateway_pb2,
    gateway_pb2_grpc,
    operations_pb2,
    operations_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
    types_pb2,
)
from animalcat.wire.protocol import PROTOCOL
from animalcat.wire.steps import spec_from_proto
from benchmarks.echo import METHOD

CHUNK: Final = 250
"""Steps that one rate is taken over."""

# No time limit, so that the agent walks in circles for as long as it is measured.
ARENA: Final = b"""!ArenaConfig
arenas:
  0: !Arena
    t: 0
    items:
    - !Item {name: Agent, positions: [!Vector3 {x: 20, y: 0, z: 20}], rotations: [0]}
    - !Item {name: GoodGoal, positions: [!Vector3 {x: 2, y: 0, z: 2}], sizes: [!Vector3 {x: 1, y: 1, z: 1}]}
    - !Item {name: Wall, positions: [!Vector3 {x: 30, y: 0, z: 30}, !Vector3 {x: 5, y: 0, z: 30}], sizes: [!Vector3 {x: 6, y: 3, z: 1}, !Vector3 {x: 1, y: 3, z: 6}], rotations: [0, 0]}
    - !Item {name: DeathZone, positions: [!Vector3 {x: 35, y: 0, z: 5}], sizes: [!Vector3 {x: 4, y: 0, z: 4}]}
"""  # noqa: E501

SPECS: Final[dict[str, types_pb2.ObservationSpec]] = {
    "rays": types_pb2.ObservationSpec(
        rays=types_pb2.RaySpec(per_side=2, max_degrees=60, tags=12), decision_period=3
    ),
    "rays and 84x84 camera": types_pb2.ObservationSpec(
        camera=types_pb2.CameraSpec(resolution=84),
        rays=types_pb2.RaySpec(per_side=2, max_degrees=60, tags=12),
        decision_period=3,
    ),
}
TARGETS: Final = {"rays": 1500.0}
MOST_ECHOES: Final = 1.35
"""Most bare echoes that a step may take besides its simulation."""
_CIRCLE: Final = b"\x04"
"""Forward and right: a circle that meets nothing."""
_ACTION_BYTES: Final = 10
"""Size of a frame with one action."""
_BLOCKS: Final = 6
_Trip = Callable[[], Coroutine[Any, Any, None]]


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure; the service and the echo take turns, so that both meet the same noise."""
    chunks = 8 if quick else 30
    with tempfile.TemporaryDirectory() as folder, server_for(None, Path(folder)) as address:
        asyncio.run(_warm(address))
        rows = [asyncio.run(_measure(address, name, chunks)) for name in SPECS]
        return [*rows, *(asyncio.run(_measure_direct(address, name, chunks)) for name in SPECS)]


def cpu_of_a_step(way: str, name: str, steps: int) -> float:
    """CPU microseconds that a step costs agent, server and worker together.

    Args:
        way: "relayed", or "direct".
        name: Which observations.
        steps: How many steps a block has; it is the least of several.
    """
    with tempfile.TemporaryDirectory() as folder, server_for(None, Path(folder)) as address:
        asyncio.run(_warm(address))
        return asyncio.run(_measure_cpu(address, way, name, steps)) / steps * 1e6


async def _measure_cpu(address: str, way: str, name: str, steps: int) -> float:
    async with grpc.aio.insecure_channel(address) as channel:
        if way == "direct":
            session = await new_session(channel, name, "direct")
            stream: Any = EvaluationStream(channel, "1")
            played: _Trip = await _playing(stream, session, "direct")
        else:
            stream, question = await _open(channel, name)

            async def step_relay() -> None:
                nonlocal question
                await stream.write(_action(question.ask.step))
                question = await _read(stream)

            played = step_relay

        spent: list[float] = []
        for _ in range(_BLOCKS):
            before = _cpu_seconds()
            for _ in range(steps):
                await played()
            spent.append(_cpu_seconds() - before)
        stream.cancel()
    return min(spent)


def _cpu_seconds() -> float:
    """What this process and all that it has started have spent."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(time.user + time.system for time in times)


async def _warm(address: str) -> None:
    """Play a session of one short episode to its end, which waits until the layout is compiled."""
    async with grpc.aio.insecure_channel(address) as channel:
        stream, question = await _open(channel, "rays", ARENA.replace(b"t: 0", b"t: 3"))
        while question.WhichOneof("frame") != "session_end":
            if question.WhichOneof("frame") == "ask":
                await stream.write(_action(question.ask.step))
            question = await _read(stream)


async def _measure(address: str, name: str, chunks: int) -> dict[str, Any]:
    async with grpc.aio.insecure_channel(address) as channel:
        agent, question = await _open(channel, name)
        answer = _action(question.ask.step)
        with _echo_server(question.ByteSize()) as port:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as bare:
                channel_: Any = bare
                echo = channel_.stream_stream(METHOD)()
                message = answer.SerializeToString()

                async def step_agent() -> None:
                    nonlocal question
                    await agent.write(_action(question.ask.step))
                    question = await agent.read()

                async def step_echo() -> None:
                    await echo.write(message)
                    await echo.read()

                rates: list[float] = []
                baselines: list[float] = []
                for chunk in range(chunks + 1):
                    pair = (await _rate(step_agent), await _rate(step_echo))
                    if chunk:  # the first one warms up
                        rates.append(pair[0])
                        baselines.append(pair[1])
                echo.cancel()
        agent.cancel()
    median, baseline = statistics.median(rates), statistics.median(baselines)
    row: dict[str, Any] = {
        "name": f"steps over gRPC with {name}, beside a bare echo",
        "median": median,
        "unit": "steps/s",
        "baseline": baseline,
        "ratio": median / baseline,
    }
    return row | ({"target": TARGETS[name]} if name in TARGETS else {})


async def _measure_direct(address: str, name: str, chunks: int) -> dict[str, Any]:
    """What a step takes besides its simulation when the agent plays with the worker itself."""
    async with grpc.aio.insecure_channel(address) as channel:
        session = await new_session(channel, name, "direct")
        stream = EvaluationStream(channel, "1")
        played = await _playing(stream, session, "direct")
        await played()
        environment = make_environment("sim", spec_from_proto(SPECS[name]))
        environment.load(load_text(ARENA.decode(), "bench").config.first, 0)

        async def step_simulator() -> None:
            environment.step(_CIRCLE[0])

        with _echo_server(_size(name)) as port:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as bare:
                echoed = _echoing(bare)
                times: list[tuple[float, float, float]] = []
                for chunk in range(chunks + 1):
                    found = [1.0 / await _rate(one) for one in (played, step_simulator, echoed)]
                    if chunk:
                        times.append((found[0], found[1], found[2]))
        environment.close()
        stream.cancel()
    step, alone, trip = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = (step - alone) / trip
    return {
        "name": f"a step played directly with {name}, less its simulation, in bare echoes",
        "median": step * 1e6,
        "unit": "us",
        "simulation": alone * 1e6,
        "baseline": trip * 1e6,
        "ratio": ratio,
        "target": f"at most {MOST_ECHOES:g}",
        "met": ratio <= MOST_ECHOES,
    }


async def _playing(stream: EvaluationStream, session: str, agent: str) -> _Trip:
    """Take a seat, and return what plays one step."""
    await stream.open(session, agent, None)
    start = await stream.receive()
    if not start.HasField("episode_start"):
        raise RuntimeError(f"no episode began: {start}")
    step = 0

    async def trip() -> None:
        nonlocal step
        await stream.act(0, step, _CIRCLE)
        frame = await stream.receive()
        step = frame.ask.step
        stream.observation(frame.ask.observation)

    return trip


def _echoing(channel: grpc.aio.Channel) -> _Trip:
    """Return what makes one round trip to a bare echo."""
    plain: Any = channel
    echo = plain.stream_stream(METHOD)()
    message = bytes(_ACTION_BYTES)

    async def trip() -> None:
        await echo.write(message)
        await echo.read()

    return trip


def _size(name: str) -> int:
    """Bytes of a frame that asks for an action."""
    spec = spec_from_proto(SPECS[name])
    pixels = spec.camera.resolution**2 * 3 if spec.camera else 0
    return 60 + pixels + (4 * spec.rays.size if spec.rays else 0)


async def _rate(step: Callable[[], Awaitable[None]]) -> float:
    start = time.perf_counter()
    for _ in range(CHUNK):
        await step()
    return CHUNK / (time.perf_counter() - start)


async def _open(
    channel: grpc.aio.Channel, name: str, arena: bytes = ARENA
) -> tuple[Any, gateway_pb2.EvaluateResponse]:
    """A session's stream at its first ask."""
    session = await new_session(channel, name, "bench", arena)
    gateway: Any = gateway_pb2_grpc.AgentGatewayStub(channel)
    stream = gateway.Evaluate()
    hello = gateway_pb2.Hello(session=session, agent="bench", instance="1", protocol=PROTOCOL)
    await stream.write(gateway_pb2.EvaluateRequest(hello=hello))
    await _read(stream)
    await _read(stream)
    await stream.write(_action(0))
    return stream, await _read(stream)


async def new_session(
    channel: grpc.aio.Channel, name: str, agent: str, arena: bytes = ARENA, timeout: float = 60.0
) -> str:
    """A session of one episode, and its battery.

    Args:
        channel: To the server.
        name: Which observations.
        agent: Name of its agent.
        arena: Of the episode.
        timeout: Seconds that the agent may take for an action.
    """
    batteries: Any = sessions_pb2_grpc.BatteriesStub(channel)
    header = sessions_pb2.BatteryHeader(name="bench", replace=True)
    file = sessions_pb2.ArenaFile(path="navigation-1.yaml", content=arena)
    importing = await batteries.ImportBattery(
        iter(
            [
                sessions_pb2.ImportBatteryRequest(header=header),
                sessions_pb2.ImportBatteryRequest(file=file),
            ]
        )
    )
    operations: Any = operations_pb2_grpc.OperationsStub(channel)
    watching = operations_pb2.WatchOperationRequest(name=importing.operation.name)
    async for _ in operations.WatchOperation(watching):
        pass
    sessions: Any = sessions_pb2_grpc.SessionsStub(channel)
    spec = sessions_pb2.SessionSpec(
        agent=agent,
        battery="batteries/bench",
        layout="one-capability",
        stop=sessions_pb2.StoppingRule(max_episodes=1),
        observation_spec=SPECS[name],
        action_timeout_seconds=timeout,
        keep_unpassable=True,  # in the shortest, the goal is too far to be reached in time
    )
    request = sessions_pb2.CreateSessionRequest(spec=spec)
    return (await sessions.CreateSession(request)).session.name


async def _read(stream: Any) -> gateway_pb2.EvaluateResponse:
    frame = await stream.read()
    if frame is grpc.aio.EOF or frame.HasField("error"):
        raise RuntimeError(f"the service ended the stream: {frame}")
    return frame


def _action(step: int) -> gateway_pb2.EvaluateRequest:
    circle = gateway_pb2.ActionList(actions=_CIRCLE)
    return gateway_pb2.EvaluateRequest(action=gateway_pb2.Action(step=step, list=circle))


@contextmanager
def _echo_server(size: int) -> Generator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.echo", str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None  # both are pipes
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
