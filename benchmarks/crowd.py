"""One of several agents, or of several clients of a bare echo, that are measured at once.

`python -m benchmarks.crowd agent ADDRESS SESSION` and `... crowd echo PORT` say when they
are ready, begin when they are told, and print how many round trips they made in some seconds.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

import grpc

from animalcat.client.stream import EvaluationStream
from benchmarks.echo import METHOD

SECONDS: Final = 4.0
"""How long the crowd is measured."""
CIRCLE: Final = b"\x04"
"""Forward and right: a circle that meets nothing."""
ACTION_BYTES: Final = 10
"""Size of a frame with one action."""

Trip = Callable[[], Coroutine[Any, Any, None]]


def together(commands: Sequence[Sequence[str]], seconds: float = SECONDS) -> float:
    """Let all members go at once, and return their round trips a second, added up.

    Args:
        commands: What stands behind `crowd` for each member.
        seconds: How long they go.
    """
    base = [sys.executable, "-m", "benchmarks.crowd", str(seconds)]
    members = [
        subprocess.Popen([*base, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for command in commands
    ]
    try:
        for member in members:
            if b"ready" not in _line(member):
                raise RuntimeError("a member of the crowd did not start")
        for member in members:
            assert member.stdin is not None  # a pipe
            member.stdin.write(b"\n")
            member.stdin.flush()
        return sum(float(_line(member)) for member in members) / seconds
    finally:
        for member in members:
            member.kill()
            member.communicate()


def _line(member: subprocess.Popen[bytes]) -> bytes:
    assert member.stdout is not None  # a pipe
    return member.stdout.readline()


async def playing(stream: EvaluationStream, session: str, agent: str) -> Trip:
    """Take a seat, and return what plays one step."""
    await stream.open(session, agent, None)
    start = await stream.receive()
    if not start.HasField("episode_start"):
        raise RuntimeError(f"no episode began: {start}")
    step = 0

    async def trip() -> None:
        nonlocal step
        await stream.act(0, step, CIRCLE)
        frame = await stream.receive()
        step = frame.ask.step
        stream.observation(frame.ask.observation)

    return trip


def echoing(channel: grpc.aio.Channel) -> Trip:
    """Return what makes one round trip to a bare echo."""
    plain: Any = channel
    echo = plain.stream_stream(METHOD)()
    message = bytes(ACTION_BYTES)

    async def trip() -> None:
        await echo.write(message)
        await echo.read()

    return trip


async def _run(seconds: float, kind: str, where: str, *session: str) -> None:
    async with grpc.aio.insecure_channel(where) as channel:
        if kind == "agent":
            stream = EvaluationStream(channel, session[0])
            trip = await playing(stream, session[0], session[1])
        else:
            trip = echoing(channel)
        for _ in range(100):
            await trip()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        trips, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            await trip()
            trips += 1
        print(trips, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_run(float(sys.argv[1]), *sys.argv[2:]))
