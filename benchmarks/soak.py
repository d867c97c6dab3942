"""Lets many scripted agents play at once for a long time: is one starved, and does memory grow?

All agents act as fast as they are asked, so they fight for the processors all the time.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import grpc

from animalcat.benchmarks import crowd
from animalcat.benchmarks.service import new_session
from animalcat.client.stream import EvaluationStream
from animalcat.errors import AnimalcatError
from animalcat.service.host.lock import running_server
from animalcat.service.host.private import server_for

AGENTS: Final = 200
SECONDS: Final = 1200.0
QUICK_AGENTS: Final = 4
QUICK_SECONDS: Final = 8.0
SAMPLES: Final = 20
"""How often memory is looked at."""
STARTING: Final = 8
"""Agents whose simulators start at once."""
LEAST_SHARE: Final = 0.5
"""Least share of the median's steps that the slowest agent is to get."""
MOST_GROWTH: Final = 1.05
"""Most memory at the end, in shares of that at the beginning."""


def run(quick: bool) -> list[dict[str, Any]]:
    """Play and look; a row for fairness, for memory and for speed."""
    agents, seconds = (QUICK_AGENTS, QUICK_SECONDS) if quick else (AGENTS, SECONDS)
    with tempfile.TemporaryDirectory() as folder, server_for(None, Path(folder)) as address:
        holder = running_server(Path(folder))
        assert holder is not None, "the private server holds its directory"
        steps, memory = asyncio.run(_soak(address, holder.pid, agents, seconds))
    if not steps:
        raise RuntimeError("no agent was admitted; is there too little memory?")
    median = statistics.median(steps)
    third = max(1, len(memory) // 3)
    grown = statistics.mean(memory[-third:]) / statistics.mean(memory[:third])
    share = min(steps) / median if median else 0.0
    return [
        {
            "name": f"steps of the slowest of {len(steps)} agents, in shares of the median",
            "value": share,
            "low": min(steps),
            "high": max(steps),
            "target": f"at least {LEAST_SHARE:g}",
            "met": share >= LEAST_SHARE and len(steps) == agents,
            "note": f"{agents - len(steps)} of {agents} agents were refused",
        },
        {
            "name": f"memory of server and simulators after {seconds:g} s, in shares of before",
            "value": grown,
            "target": f"at most {MOST_GROWTH:g}",
            "met": grown <= MOST_GROWTH,
        },
        {"name": "memory an agent", "value": memory[-1] / len(steps) / 2**20, "unit": "MiB"},
        {"name": "steps of all agents", "value": sum(steps) / seconds, "unit": "steps/s"},
    ]


async def _soak(
    address: str, server: int, agents: int, seconds: float
) -> tuple[list[int], list[int]]:
    """Return the steps of each agent, and the memory in bytes again and again."""
    async with grpc.aio.insecure_channel(address) as channel:
        seats = asyncio.Semaphore(STARTING)
        seated = await asyncio.gather(*(_seat(channel, seats, k) for k in range(agents)))
        playing = [one for one in seated if one is not None]
        steps = [0] * len(playing)
        end = time.monotonic() + seconds

        async def play(k: int, trip: crowd.Trip) -> None:
            while time.monotonic() < end:
                await trip()
                steps[k] += 1

        async def look() -> None:
            while time.monotonic() < end:
                memory.append(await asyncio.to_thread(_memory, server))
                await asyncio.sleep(seconds / SAMPLES)

        memory: list[int] = []
        await asyncio.gather(look(), *(play(k, trip) for k, (_, trip) in enumerate(playing)))
        for stream, _ in playing:
            stream.cancel()
    return steps, memory


async def _seat(
    channel: grpc.aio.Channel, seats: asyncio.Semaphore, number: int
) -> tuple[EvaluationStream, crowd.Trip] | None:
    """Begin a session's only episode; None if the server has no room for it."""
    name = f"soak {number}"
    async with seats:
        stream = EvaluationStream(channel, name)
        try:
            return stream, await crowd.playing(
                stream, await new_session(channel, "rays", name), name
            )
        except AnimalcatError as error:
            stream.cancel()
            if error.code != "BUSY":
                raise
            return None


def _memory(server: int) -> int:
    """Bytes of a process and all that it started; what they share is counted once."""
    total, waiting = 0, [server]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        with suppress(OSError):  # it has ended meanwhile
            for line in (process / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
            for task in (process / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return total
