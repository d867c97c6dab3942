"""How agents that think share a server: more and more of them, with processes and with Ray."""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import grpc

from animalcat.bench import crowd
from animalcat.bench.service import new_session
from animalcat.client.stream import EvaluationStream
from animalcat.processes import finish

THINK_SECONDS: Final = 0.05
"""How long an agent thinks of each decision."""
NUMBERS: Final = (1, 2, 4, 8, 16)
FEW: Final = (1, 2)
SECONDS: Final = 10.0
BEGIN_SECONDS: Final = 600.0
"""How long an agent that has begun may wait until all others have."""
LEAST: Final = 0.8
"""Least efficiency: share of the rate that as many agents would have if each were alone."""
MOST: Final = 1.2
"""Most local steps that a step on Ray may take besides thinking."""
ENGINES: Final = ("local", "ray")


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure both engines in turn, with the same agents."""
    numbers, seconds = (FEW, 1.0) if quick else (NUMBERS, SECONDS)
    rows: list[dict[str, Any]] = []
    alone: dict[str, float] = {}
    steps: dict[str, float] = {}
    with ExitStack() as stack:
        servers = {engine: stack.enter_context(_server(engine)) for engine in ENGINES}
        # In turn, since what else the machine does changes with time.
        for number in numbers:
            for engine, address in servers.items():
                rate, step = asyncio.run(_measured(address, number, seconds))
                if number == numbers[0]:
                    alone[engine], steps[engine] = rate, step
                efficiency = rate / (number * alone[engine])
                row = {
                    "name": f"{engine}: {number} agents that think {THINK_SECONDS * 1e3:g} ms",
                    "median": rate,
                    "unit": "steps/s",
                    "baseline": number * alone[engine],
                    "ratio": efficiency,
                }
                if number == numbers[-1]:
                    row |= {"target": f"at least {LEAST:g}", "met": efficiency >= LEAST}
                rows.append(row)
    ratio = steps["ray"] / steps["local"]
    rows.append(
        {
            "name": "a step of one agent on Ray besides thinking, beside the local engine",
            "median": steps["ray"] * 1e6,
            "unit": "us",
            "baseline": steps["local"] * 1e6,
            "ratio": ratio,
            "target": f"at most {MOST:g}",
            "met": ratio <= MOST,
        }
    )
    return rows


async def _measured(address: str, number: int, seconds: float) -> tuple[float, float]:
    """Steps a second of so many agents, and the median seconds of a step besides thinking."""
    async with grpc.aio.insecure_channel(address) as channel:
        names = [f"thinks {number} {k}" for k in range(number)]
        sessions = [
            await new_session(channel, "rays", name, timeout=BEGIN_SECONDS) for name in names
        ]
        streams = [EvaluationStream(channel, name) for name in names]
        trips = await asyncio.gather(
            *(crowd.playing(*one) for one in zip(streams, sessions, names, strict=True))
        )
        for trip in trips:
            await trip()
        end = time.perf_counter() + seconds

        async def play(trip: crowd.Trip) -> list[float]:
            taken: list[float] = []
            while time.perf_counter() < end:
                await asyncio.sleep(THINK_SECONDS)
                start = time.perf_counter()
                await trip()
                taken.append(time.perf_counter() - start)
            return taken

        taken = [one for steps in await asyncio.gather(*map(play, trips)) for one in steps]
        for stream in streams:
            stream.cancel()
    return len(taken) / seconds, statistics.median(taken)


@contextmanager
def _server(engine: str) -> Generator[str]:
    """A server with an engine in a process of its own; its address."""
    # All workers share this machine, whatever its CPUs: what they cost is what is measured.
    few = ["--worker-cpus", "0.01", "--worker-memory", "128"] if engine == "ray" else []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", "animalcat", "serve", "--port", "0", "--json"]
        process = subprocess.Popen(
            [*command, "--data", folder, "--engine", engine, *few], stdout=subprocess.PIPE
        )
        assert process.stdout is not None  # a pipe
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the server with the engine {engine} did not start")
            yield str(json.loads(line)["address"])
        finally:
            process.send_signal(signal.SIGINT)
            finish(process)
