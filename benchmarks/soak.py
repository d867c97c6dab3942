"""Lets many scripted agents play at once for a long time: is one starved, and does memory grow?

Every agent plays episode after episode of one session of its own after another, and acts as fast as
it is asked, so they fight for the processors all the time.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc

from animalcat.bench.crowd import CIRCLE
from animalcat.bench.service import SPECS
from animalcat.client.stream import EvaluationStream
from animalcat.envs.worker import COMM
from animalcat.errors import AnimalcatError
from animalcat.service.host.lock import running_server
from animalcat.service.host.private import server_for
from animalcat.v1 import (
    operations_pb2,
    operations_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
)

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
BATTERY: Final = "batteries/soak"
ARENAS: Final = 60
EPISODES: Final = 30
"""How many an agent plays before it cancels its session and begins another.

A session that came to its end would be fitted by NUTS, one after another for all agents."""
# Fifty decisions; the goal is out of the way, so that every episode lasts as long.
ARENA: Final = """!ArenaConfig
arenas:
  0: !Arena
    t: 30
    items:
    - !Item {{name: Agent, positions: [!Vector3 {{x: 20, y: 0, z: 20}}], rotations: [0]}}
    - !Item {{name: GoodGoal, positions: [!Vector3 {{x: 2, y: 0, z: {z}}}], sizes: [!Vector3 {{x: 1, y: 1, z: 1}}]}}
    - !Item {{name: Wall, positions: [!Vector3 {{x: 30, y: 0, z: 30}}, !Vector3 {{x: 5, y: 0, z: 30}}], sizes: [!Vector3 {{x: 6, y: 3, z: 1}}, !Vector3 {{x: 1, y: 3, z: 6}}], rotations: [0, 0]}}
"""  # noqa: E501


class Memory(NamedTuple):
    """What processes take at a moment, in bytes.

    Attributes:
        simulators: Number of simulators that are open.
        theirs: What they take.
        rest: What the server and its other processes take.
    """

    simulators: int
    theirs: int
    rest: int

    def of(self, agents: int) -> float:
        """What it would be with so many simulators open.

        Between two sessions an agent has none, so sums of different moments do not compare.
        """
        return self.rest + agents * self.theirs / max(1, self.simulators)


class Played(NamedTuple):
    """What came of it.

    Attributes:
        steps: Steps of each agent that was admitted.
        episodes: Episodes of all of them.
        waits: The longest that each waited for the server or its simulator, in seconds.
        memory: What the server and all that it started took, again and again.
    """

    steps: list[int]
    episodes: int
    waits: list[float]
    memory: list[Memory]


def run(quick: bool) -> list[dict[str, Any]]:
    """Play and look; rows for fairness, for memory and for speed."""
    agents, seconds = (QUICK_AGENTS, QUICK_SECONDS) if quick else (AGENTS, SECONDS)
    return soak(agents, seconds)


def soak(agents: int, seconds: float) -> list[dict[str, Any]]:
    """Let a number of agents play for some seconds; see `run`."""
    with tempfile.TemporaryDirectory() as folder, server_for(None, Path(folder)) as address:
        holder = running_server(Path(folder))
        assert holder is not None, "the private server holds its directory"
        played = asyncio.run(_soak(address, holder.pid, agents, seconds))
    steps = played.steps
    if not steps:
        raise RuntimeError("no agent was admitted; is there too little memory?")
    median = statistics.median(steps)
    memory = [one.of(len(steps)) for one in played.memory if one.simulators]
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
            "note": f"all simulators open; {_in_words(played.memory[-1])} at the end",
        },
        {"name": "memory an agent", "value": memory[-1] / len(steps) / 2**20, "unit": "MiB"},
        {
            "name": "longest wait of an agent",
            "value": max(played.waits),
            "unit": "s",
            "note": f"{statistics.median(played.waits):.2g} s is that of the median agent",
        },
        {
            "name": "steps of all agents",
            "value": sum(steps) / seconds,
            "unit": "steps/s",
            "note": f"{played.episodes} episodes",
        },
    ]


class _Agent:
    """Plays one session after another, and counts."""

    def __init__(self, channel: grpc.aio.Channel, number: int) -> None:
        self._channel = channel
        self._name = f"soak {number}"
        self._stream: EvaluationStream | None = None
        self._session = ""
        self.steps = self.episodes = 0
        self.wait = 0.0

    async def sit(self) -> bool:
        """Begin a session; returns whether the server has room for it."""
        self._session = await _new_session(self._channel, self._name)
        stream = EvaluationStream(self._channel, self._name)
        try:
            await stream.open(self._session, self._name, None)
        except AnimalcatError as error:
            stream.cancel()
            if error.code not in ("BUSY", "NO_MEMORY"):
                raise
            return False
        self._stream = stream
        return True

    async def play(self, end: float) -> None:
        """Act until a time of the monotonic clock."""
        while (asked := time.monotonic()) < end:
            assert self._stream is not None, "sit first"
            frame = await self._stream.receive()
            self.wait = max(self.wait, time.monotonic() - asked)
            match frame.WhichOneof("frame"):
                case "ask":
                    self.steps += 1
                    await self._stream.act(0, frame.ask.step, CIRCLE)
                case "episode_start":
                    await self._stream.act(0, 0, CIRCLE)
                case "episode_end":
                    self.steps += 1
                    self.episodes += 1
                    if self.episodes % EPISODES == 0:
                        await self._change()
                case other:
                    raise RuntimeError(f"the server sent {other} in the middle of a session")

    async def _change(self) -> None:
        """Cancel the session, and begin another one."""
        assert self._stream is not None, "sit first"
        sessions: Any = sessions_pb2_grpc.SessionsStub(self._channel)
        await sessions.CancelSession(sessions_pb2.CancelSessionRequest(name=self._session))
        while not (await self._stream.receive()).HasField("session_end"):
            pass  # an episode had begun meanwhile
        self.leave()
        while not await self.sit():
            await asyncio.sleep(1.0)

    def leave(self) -> None:
        """End the stream."""
        if self._stream is not None:
            self._stream.cancel()


async def _soak(address: str, server: int, agents: int, seconds: float) -> Played:
    """Let agents play."""
    async with grpc.aio.insecure_channel(address) as channel:
        await _import_battery(channel)
        seats = asyncio.Semaphore(STARTING)

        async def seated(number: int) -> _Agent | None:
            agent = _Agent(channel, number)
            async with seats:
                return agent if await agent.sit() else None

        found = await asyncio.gather(*(seated(k) for k in range(agents)))
        playing = [one for one in found if one is not None]
        end = time.monotonic() + seconds
        memory: list[Memory] = []

        async def look() -> None:
            while time.monotonic() < end:
                memory.append(await asyncio.to_thread(_memory, server))
                await asyncio.sleep(seconds / SAMPLES)

        await asyncio.gather(look(), *(agent.play(end) for agent in playing))
        for agent in playing:
            agent.leave()
    return Played(
        [agent.steps for agent in playing],
        sum(agent.episodes for agent in playing),
        [agent.wait for agent in playing],
        memory,
    )


async def _import_battery(channel: grpc.aio.Channel) -> None:
    batteries: Any = sessions_pb2_grpc.BatteriesStub(channel)
    header = sessions_pb2.BatteryHeader(name=BATTERY.split("/")[1])
    files = [
        sessions_pb2.ArenaFile(
            path=f"navigation-{k}.yaml", content=ARENA.format(z=1 + 38 * k / ARENAS).encode()
        )
        for k in range(ARENAS)
    ]
    importing = await batteries.ImportBattery(
        iter(
            [
                sessions_pb2.ImportBatteryRequest(header=header),
                *(sessions_pb2.ImportBatteryRequest(file=file) for file in files),
            ]
        )
    )
    operations: Any = operations_pb2_grpc.OperationsStub(channel)
    watching = operations_pb2.WatchOperationRequest(name=importing.operation.name)
    async for _ in operations.WatchOperation(watching):
        pass


async def _new_session(channel: grpc.aio.Channel, agent: str) -> str:
    sessions: Any = sessions_pb2_grpc.SessionsStub(channel)
    spec = sessions_pb2.SessionSpec(
        agent=agent,
        battery=BATTERY,
        layout="one-capability",
        stop=sessions_pb2.StoppingRule(max_episodes=ARENAS, target_sd=0, futility=0),
        observation_spec=SPECS["rays"],
        certify=False,
    )
    request = sessions_pb2.CreateSessionRequest(spec=spec)
    return (await sessions.CreateSession(request)).session.name


def _in_words(memory: Memory) -> str:
    each = memory.theirs / max(1, memory.simulators) / 2**20
    return f"{each:.1f} MiB each and {memory.rest / 2**20:.0f} MiB besides"


def _memory(server: int) -> Memory:
    """What a process and all that it started take; what they share is counted once.

    Pages of files are left out: the system takes them back when it needs room, and how many count
    for a process depends on who else uses the same libraries.
    """
    simulators = theirs = rest = 0
    waiting = [server]
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        with suppress(OSError):  # it has ended meanwhile
            taken = sum(
                int(line.split()[1]) * 1024
                for line in (process / "smaps_rollup").read_text().splitlines()
                if line.startswith(("Pss_Anon:", "Pss_Shmem:"))
            )
            if (process / "comm").read_text().strip() == COMM:
                simulators, theirs = simulators + 1, theirs + taken
            else:
                rest += taken
            for task in (process / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
    return Memory(simulators, theirs, rest)
