"""A long session through the real engine, store and certificates, on demands that are coins.

The server, its worker process, the recordings and the fits are the real ones. What plays is a
plug-in backend that flips coins (`coins_worker`), so that what is measured is all but the arenas.
The server is killed now and then, and the session goes on with a new one.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import numpy as np

from animalcat.client.stream import EvaluationStream
from animalcat.errors import AnimalcatError
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.library.choice import load_layout
from animalcat.service.batteries.battery import BATTERIES, load
from animalcat.service.host.lock import running_server
from animalcat.service.host.private import server_for
from animalcat.service.storage.sql import SqlStore
from animalcat.v1 import operations_pb2, operations_pb2_grpc, sessions_pb2, sessions_pb2_grpc
from animalcat.values import Outcome
from benchmarks import coins_worker
from benchmarks.checkout import ROOT

EPISODES: Final = 20_000
QUICK: Final = 150
ARENAS: Final = 2000
"""Arenas of the battery, each with demands of its own; they are played again and again."""
QUICK_ARENAS: Final = 60
PROFILE: Final = (3.6, 1.9, 0.2, 0.1)
"""The agent that decides the chances: ability to navigate and to see, bias, and noise."""
STRETCH: Final = 1000
"""Episodes between two looks at time and memory."""
BATTERY: Final = "coins"
PACKAGE: Final = "animalcat-coins"
SEED: Final = 46
START_SECONDS: Final = 120.0
"""How long a server may take to let go of what a killed one held."""
PLUGIN: Final = """from pathlib import Path

from benchmarks.coins_worker import Coins


class Flipped(Coins):
    file = Path({file!r})
"""


class Look(NamedTuple):
    """How a session stood at some time.

    Attributes:
        episodes: Episodes that the agent was told the end of.
        seconds: Wall-clock seconds since it began.
        server_cpu: Processor seconds of the server and what it has started and waited for, of all
            servers so far.
        megabytes: What the server takes, in MB.
    """

    episodes: int
    seconds: float
    server_cpu: float
    megabytes: float


class Resumed(NamedTuple):
    """How a killed session came back.

    Attributes:
        episodes: Episodes that were over.
        seconds: From the new server's answer to the first episode.
        cpu: Processor seconds of the server for it.
    """

    episodes: int
    seconds: float
    cpu: float


class Coins:
    """One session of coins.

    Attributes:
        data: The data directory.
        looks: How it stood again and again.
        resumed: How it came back.
    """

    def __init__(
        self, folder: Path, episodes: int, arenas: int, kills: int, tell: Callable[[str], None]
    ) -> None:
        """Prepare.

        Args:
            folder: Where everything is to be.
            episodes: Episodes of the session.
            arenas: Arenas of its battery.
            kills: How often the server is killed, at equal distances.
            tell: Is told in words how it goes.
        """
        self.data = folder / "data"
        self.looks: list[Look] = []
        self.resumed: list[Resumed] = []
        self.ends: dict[int, bool] = {}
        self._folder, self._episodes, self._arenas = folder, episodes, arenas
        self._kills = [round(episodes * k / (kills + 1)) for k in range(1, kills + 1)]
        self._tell = tell
        self._session = ""
        self._began = time.monotonic()
        self._gone_cpu = 0.0

    def play(self) -> None:
        """Play the session to its end."""
        with self._plugin():
            while not self._over():
                with self._server() as address:
                    asyncio.run(self._with(address))

    def differences(self) -> list[str]:
        """What is wrong with what is stored; nothing may be."""
        store = SqlStore.in_directory(self.data)
        try:
            kept = [one for one in store.episodes(self._session) if one.counts]
        finally:
            store.close()
        found = {one.number: one.outcome is Outcome.SUCCESS for one in kept}
        wrong = [
            *(f"episode {n} is gone" for n in range(self._episodes) if n not in found),
            *(f"episode {n} came out otherwise" for n, y in self.ends.items() if found.get(n) != y),
        ]
        if len(kept) != len(found):
            wrong.append(f"{len(kept) - len(found)} episodes are there twice")
        return wrong

    def _over(self) -> bool:
        return len(self.ends) >= self._episodes and not self._kills

    async def _with(self, address: str) -> None:
        """Go on with one server, until it is killed or the session is over."""
        async with grpc.aio.insecure_channel(address) as channel:
            if not self._session:
                await self._create(channel)
            stream = EvaluationStream(channel, f"coins {len(self.resumed)}", same_agent=True)
            before, done = self._cpu(), len(self.ends)
            began = time.monotonic()
            try:
                await stream.open(f"sessions/{self._session}", "coins", None)
                await self._episodes_of(stream, began, before, done)
            finally:
                stream.cancel()

    async def _episodes_of(
        self, stream: EvaluationStream, began: float, before: float, done: int
    ) -> None:
        reward = 0.0
        while True:
            frame = await stream.receive()
            match frame.WhichOneof("frame"):
                case "session_end":
                    self._look()
                    self._kills.clear()
                    return
                case "episode_start":
                    if done and began:
                        cpu = self._cpu() - before
                        back = Resumed(done, time.monotonic() - began, cpu)
                        self.resumed.append(back)
                        self._tell(f"resumed {back}")
                    began = 0.0
                    number = np.random.default_rng(frame.episode_start.agent_seed).random()
                    await stream.act(0, 0, coins_worker.decided(number))
                case "episode_end":
                    reward = frame.episode_end.reward
                    self.ends[frame.episode_end.episode] = reward > 0.0
                    if len(self.ends) % STRETCH == 0:
                        self._look()
                    if self._kills and len(self.ends) >= self._kills[0]:
                        self._kill()
                        return
                case other:
                    raise RuntimeError(f"the server sent {other} in the middle of a session")

    def _kill(self) -> None:
        """Kill the server in the middle of what it does."""
        self._kills.pop(0)
        self._gone_cpu = self._cpu()
        pid = self._pid
        self._tell(f"killed after {len(self.ends)} episodes")
        os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{pid}").exists() and _state(pid) != "Z":
            time.sleep(0.05)

    @property
    def _pid(self) -> int:
        holder = running_server(self.data)
        assert holder is not None, "a server holds the directory"
        return holder.pid

    def _cpu(self) -> float:
        return self._gone_cpu + _cpu_of(self._pid)

    def _look(self) -> None:
        taken = _megabytes(self._pid)
        look = Look(len(self.ends), time.monotonic() - self._began, self._cpu(), taken)
        self.looks.append(look)
        self._tell(
            f"{look.episodes} episodes, {look.seconds:.0f} s, server {look.server_cpu:.0f} s of "
            f"CPU, {look.megabytes:.0f} MB"
        )

    @contextmanager
    def _server(self) -> Generator[str]:
        """A private server that may run the coins."""
        end = time.monotonic() + START_SECONDS
        with ExitStack() as stack:
            while True:
                try:
                    serving = server_for(None, self.data, plugins=[PACKAGE])
                    address = stack.enter_context(serving)
                    break
                except AnimalcatError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.5)
            yield address

    @contextmanager
    def _plugin(self) -> Generator[None]:
        """Have the backend found, as if it were installed, by the processes of the server."""
        site = self._folder / "site"
        about = site / "animalcat_coins-1.0.dist-info"
        about.mkdir(parents=True)
        (site / "animalcat_coins.py").write_text(PLUGIN.format(file=str(self._chances)))
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n")
        points = "[animalcat.backends]\ncoins = animalcat_coins:Flipped\n"
        (about / "entry_points.txt").write_text(points)
        files = ["animalcat_coins.py", f"{about.name}/METADATA", f"{about.name}/entry_points.txt"]
        (about / "RECORD").write_text("".join(f"{file},,\n" for file in files))
        known = os.environ.get("PYTHONPATH")
        path = os.pathsep.join(filter(None, (str(site), str(ROOT), known)))
        changed = {"PYTHONPATH": path, "ANIMALCAT_DIRECT": "0"}
        before = {name: os.environ.get(name) for name in changed}
        os.environ.update(changed)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    @property
    def _chances(self) -> Path:
        return self._folder / "chances.json"

    async def _create(self, channel: grpc.aio.Channel) -> None:
        """Import the battery, find the chances of its instances, and create the session."""
        digest = await self._import(channel)
        battery = load(digest, self.data / BATTERIES)
        layout = load_layout("aaio")
        features = [[one.features[f] for f in layout.feature_names] for one in battery.instances]
        chances = Evaluator(layout).probability([PROFILE], features)[0].tolist()
        names = [one.name for one in battery.instances]
        self._chances.write_text(json.dumps(dict(zip(names, chances, strict=True))))
        sessions: Any = sessions_pb2_grpc.SessionsStub(channel)
        spec = sessions_pb2.SessionSpec(
            agent="coins",
            battery=f"batteries/{BATTERY}",
            layout="aaio",
            backend="coins",
            policy=sessions_pb2.SelectionPolicy(exposures=0),
            stop=sessions_pb2.StoppingRule(max_episodes=self._episodes, target_sd=0, futility=0),
            seed=SEED,
            secret="coins",
        )
        created = await sessions.CreateSession(sessions_pb2.CreateSessionRequest(spec=spec))
        self._session = created.session.name.split("/")[1]
        self._tell(f"session {self._session}, data in {self.data}")

    async def _import(self, channel: grpc.aio.Channel) -> str:
        """Import the demands, and return the digest of the battery."""
        batteries: Any = sessions_pb2_grpc.BatteriesStub(channel)
        header = sessions_pb2.BatteryHeader(name=BATTERY, demands_only=True)
        own = sessions_pb2.FeatureTable(content=table(self._arenas).encode())
        requests = [
            sessions_pb2.ImportBatteryRequest(header=header),
            sessions_pb2.ImportBatteryRequest(table=own),
        ]
        importing = await batteries.ImportBattery(iter(requests))
        operations: Any = operations_pb2_grpc.OperationsStub(channel)
        watching = operations_pb2.WatchOperationRequest(name=importing.operation.name)
        async for _ in operations.WatchOperation(watching):
            pass
        wanted = sessions_pb2.GetBatteryRequest(name=f"batteries/{BATTERY}")
        return (await batteries.GetBattery(wanted)).battery.digest


def run(
    quick: bool,
    episodes: int | None = None,
    kills: int = 0,
    folder: Path | None = None,
    tell: Callable[[str], None] = lambda words: None,
) -> list[dict[str, Any]]:
    """Play one session, and return its figures as rows.

    Args:
        quick: Whether to play few episodes.
        episodes: How many; None for as many as are usual.
        kills: How often the server is killed.
        folder: Where the data are kept; None for a folder that is removed.
        tell: Is told in words how it goes.
    """
    count = episodes or (QUICK if quick else EPISODES)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary) if folder is None else folder
        coins = Coins(place, count, QUICK_ARENAS if quick else ARENAS, kills, tell)
        coins.play()
        return rows(coins)


def rows(coins: Coins) -> list[dict[str, Any]]:
    """The figures of a session that is over."""
    wrong = coins.differences()
    last = coins.looks[-1]
    size = sum(file.stat().st_size for file in coins.data.rglob("*") if file.is_file())
    database = sum(file.stat().st_size for file in coins.data.glob("*.sqlite*"))
    made = [
        {
            "name": "episodes that are gone, doubled or changed",
            "value": len(wrong),
            "target": "0",
            "met": not wrong,
            "note": "; ".join(wrong[:3]),
        },
        {
            "name": f"wall-clock time of an episode, of {last.episodes}",
            "value": 1e3 * last.seconds / last.episodes,
            "unit": "ms",
        },
        {
            "name": "processor time of the server an episode",
            "value": 1e3 * last.server_cpu / last.episodes,
            "unit": "ms",
            "note": "; ".join(_stretches(coins.looks)),
        },
        {"name": "memory of the server at the end", "value": last.megabytes, "unit": "MB"},
        {
            "name": "disk an episode",
            "value": size / last.episodes / 1e3,
            "unit": "kB",
            "note": f"{database / last.episodes / 1e3:.2g} kB of it in the database",
        },
    ]
    return [
        *made,
        *(
            {
                "name": f"resuming after {back.episodes} episodes",
                "value": back.seconds,
                "unit": "s",
                "note": f"{back.cpu:.3g} s of processor time",
            }
            for back in coins.resumed
        ),
    ]


def table(count: int) -> str:
    """Demands at all distances, of all sizes, on all sides, and with nothing in the way."""
    generator = np.random.default_rng(SEED)
    layout = load_layout("aaio")
    excluded = [exclusion.feature for exclusion in layout.excludes]
    without = {name: float(name == "rewards") for name in excluded}
    lines = [",".join(("instance", *layout.feature_names, *without))]
    for k in range(count):
        demands = {
            "rewardDistance": round(float(generator.uniform(2.5, 45.0)), 2),
            "rewardSize": round(0.5 * 8.0 ** float(generator.random()), 2),
            "rewardBehind": float(generator.choice([0.0, 0.5, 1.0])),
            "XPos": float(generator.choice([-1.0, 0.0, 1.0])),
        }
        values = [*(demands[name] for name in layout.feature_names), *without.values()]
        lines.append(",".join((f"coin-{k:06}", *map(str, values))))
    return "\n".join(lines)


def _stretches(looks: Sequence[Look]) -> list[str]:
    """Processor time an episode in the first, middle and last stretch, in words."""
    if len(looks) < 4:
        return []
    pairs = [(looks[k], looks[k + 1]) for k in (0, len(looks) // 2 - 1, len(looks) - 3)]
    return [
        f"{1e3 * (b.server_cpu - a.server_cpu) / (b.episodes - a.episodes):.1f} ms at {b.episodes}"
        for a, b in pairs
    ]


def _state(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    return "Z"


def _cpu_of(pid: int) -> float:
    """Processor seconds of a process and of the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _megabytes(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6
