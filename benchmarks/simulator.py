"""How fast the simulator is, beside bare PhysX."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NotRequired, TypedDict

import gymnasium
import numpy as np

from animalcat.arena_configs.model import Arena
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.writer import to_yaml
from animalcat.envs.register import ARENA_ID
from animalcat.envs.sim.builder import build_level
from animalcat.envs.sim.environment import SimEnvironment
from animalcat.envs.sim.physics import Physics
from animalcat.envs.types import ACTIONS, CameraSpec, ObservationSpec, RaySpec
from animalcat.envs.worker_client import WorkerClient
from animalcat.service.recording.writer import EpisodeRecorder
from animalcat.service.versions import versions
from animalcat.values import Decision, EpisodeHeader
from animalcat.wire.codec import encode
from tests.small import start, thing

PERIOD: Final = 3
RAYS: Final = ObservationSpec(rays=RaySpec(), decision_period=PERIOD)
EIGHT: Final = 8
PAIRS: Final = np.array([divmod(action, 3) for action in range(ACTIONS)])
CHUNK: Final = 100
"""Decisions between two looks at the clock; each chunk plays a fresh arena."""


class Row(TypedDict):
    """One line of the table: a median, and for rates the baseline and value over baseline."""

    name: str
    median: float
    unit: str
    baseline: float | None
    ratio: float | None
    target: NotRequired[str]


def arena() -> Arena:
    """Twenty walls in a ring, two ramps, a block, a tunnel, a hot zone and four goals."""
    ring = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    walls = [
        thing("Wall", 20 + 15 * np.sin(a), 0, 20 + 15 * np.cos(a), yaw=a * 57.3, size=(3, 2, 0.5))
        for a in ring.tolist()
    ]
    rest = [
        thing("Ramp", 12, 0, 20, yaw=90, size=(3, 1, 3)),
        thing("Ramp", 28, 0, 20, yaw=270, size=(3, 1, 3)),
        thing("LightBlock", 24, 0, 26, size=(1.5, 1, 1.5)),
        thing("CylinderTunnel", 16, 0, 26, size=(4, 4, 4)),
        thing("HotZone", 26, 0, 14, size=(3, 0.5, 3)),
        *(thing("GoodGoalMulti", x, 0, z) for x, z in ((2, 2), (38, 2), (2, 38), (38, 38))),
    ]
    return Arena(time_limit=0, items=(start(20, 18), *walls, *rest))


def run(quick: bool = False) -> list[Row]:
    """Measure rates, times and memory.

    Args:
        quick: A tenth of the work.
    """
    chunks = 4 if quick else 40
    specs = {
        "vector only": (ObservationSpec(rays=None, decision_period=PERIOD), ""),
        "rays": (RAYS, ">= 0.6 of bare"),
        "camera 84x84": (ObservationSpec(CameraSpec(84), None, PERIOD), ">= 1500"),
        "camera 150x150": (ObservationSpec(CameraSpec(150), None, PERIOD), ">= 600"),
    }
    players = [_player(spec) for spec, _ in specs.values()]
    bare, *rates, single, sync, several = _rates(
        chunks, [_bare, *players, _gymnasium(), _vector("sync"), _vector("vector_entry_point")]
    )
    rows = [_row("bare PhysX stepping", bare, "decisions/s", None)]
    for (name, (_, target)), rate in zip(specs.items(), rates, strict=True):
        rows.append(_row(f"simulator, {name}", rate, "decisions/s", bare, target))
    rows.append(_row("Gymnasium, rays", single, "decisions/s", bare, ">= 0.72 of bare"))
    for name, steps in (("SyncVectorEnv", sync), ("ArenaVectorEnv", several)):
        eight = [EIGHT * rate for rate in steps]
        rows.append(_row(f"eight in a {name}, rays", eight, "decisions/s", bare))
    seen = "camera 84x84, beside rays"
    rows.append(_row(seen, rates[2], "decisions/s", rates[1], ">= 0.28 of rays"))
    with TemporaryDirectory() as folder:
        bare, recorded = _rates(chunks, [_player(RAYS), _recorder(Path(folder))])
    rows.append(_row("simulator, rays, recorded", recorded, "decisions/s", bare, ">= 0.9 of rays"))
    worker = asyncio.run(_worker_rates(chunks))
    rows.append(_row("worker process, rays", worker, "decisions/s", rates[1]))
    times = [_row("arena build, 31 objects", build_times([arena()] * chunks), "ms", None)]
    times.append(_row("restore 800 decisions", _restore_times(chunks // 4), "ms", None, "<= 100"))
    if sys.platform == "linux":
        times.append(_row("memory beyond imports", [_memory()], "MB", None, "<= 100"))
    return [*rows, *times]


def _row(
    name: str, values: list[float], unit: str, baseline: list[float] | None, target: str = ""
) -> Row:
    """A line of the table; with a baseline, the ratio is that of chunks beside each other."""
    median = statistics.median(values)
    base = ratio = None
    if baseline:
        base = statistics.median(baseline)
        # What else the machine does slows a chunk and its neighbour in time alike.
        ratio = statistics.median(v / b for v, b in zip(values, baseline, strict=True))
    return Row(name=name, median=median, unit=unit, baseline=base, ratio=ratio, target=target)


def _rates(chunks: int, variants: list[Callable[[], Callable[[int], object]]]) -> list[list[float]]:
    """Decisions a second of each variant's chunks.

    Variants take turns, so that what else the machine does slows all alike; the first round,
    which compiles, is left out.
    """
    actions = np.random.default_rng(0).integers(ACTIONS, size=CHUNK).tolist()
    rates: list[list[float]] = [[] for _ in variants]
    for _ in range(chunks + 1):
        for prepare, seen in zip(variants, rates, strict=True):
            decide = prepare()
            began = time.perf_counter()
            for action in actions:
                decide(action)
            seen.append(CHUNK / (time.perf_counter() - began))
    return [seen[1:] for seen in rates]


def _player(spec: ObservationSpec) -> Callable[[], Callable[[int], object]]:
    environment, scene = SimEnvironment(spec), arena()

    def prepare() -> Callable[[int], object]:
        environment.load(scene, 0)
        return environment.step

    return prepare


def _gymnasium() -> Callable[[], Callable[[int], object]]:
    env = gymnasium.make(ARENA_ID, arena=to_yaml(arena()), sensors=["rays"])

    def prepare() -> Callable[[int], object]:
        env.reset(seed=0)
        return lambda action: env.step(PAIRS[action])

    return prepare


def _vector(mode: str) -> Callable[[], Callable[[int], object]]:
    """Steps of `EIGHT` arenas at once."""
    text = to_yaml(arena())
    envs = gymnasium.make_vec(
        ARENA_ID, EIGHT, vectorization_mode=mode, arena=text, sensors=["rays"]
    )

    def prepare() -> Callable[[int], object]:
        envs.reset(seed=0)
        return lambda action: envs.step(np.roll(PAIRS, action, axis=0)[:EIGHT])

    return prepare


def _recorder(folder: Path) -> Callable[[], Callable[[int], object]]:
    environment, scene, text = SimEnvironment(RAYS), arena(), to_yaml(arena())
    header = EpisodeHeader(
        session="bench",
        number=0,
        attempt=0,
        instance="ring",
        arena_yaml=text,
        seed=0,
        observation_spec=RAYS,
        backend="sim",
        versions=versions(),
        decision=Decision("ring", 0.0, 1.0, 0.5, {}, "listed"),
        agent="bench",
        pixels=False,
        places=(),
    )

    def prepare() -> Callable[[int], object]:
        recorder = EpisodeRecorder(folder / "0-0.mcap", encode(header))
        recorder.step(environment.load(scene, 0), None)
        return lambda action: recorder.step(environment.step(action), action)

    return prepare


def _bare() -> Callable[[int], object]:
    placement = place(arena(), np.random.default_rng(0))
    physics = Physics(placement.agent.position, build_level(placement).bodies)

    def decide(action: int) -> None:
        velocity = (0.0, 0.0, float(action))
        for _ in range(PERIOD):
            physics.advance(velocity)

    return decide


async def _worker_rates(chunks: int) -> list[float]:
    """Decisions a second, one message a decision."""
    actions = np.random.default_rng(0).integers(ACTIONS, size=CHUNK).tolist()
    rates: list[float] = []
    client = await WorkerClient.start("sim", RAYS)
    try:
        for _ in range(chunks + 1):
            await client.load(to_yaml(arena()), 0)
            began = time.perf_counter()
            for action in actions:
                await client.step(bytes([action]))
            rates.append(CHUNK / (time.perf_counter() - began))
    finally:
        await client.close()
    return rates[1:]


def build_times(arenas: list[Arena]) -> list[float]:
    """Milliseconds from an arena to its first observation; the first is built twice."""
    environment = SimEnvironment(ObservationSpec(rays=None))
    environment.load(arenas[0], 0)
    return [_milliseconds(lambda a=a: environment.load(a, 0)) for a in arenas]


def _restore_times(times: int) -> list[float]:
    """Milliseconds to go back to the 800th decision of random actions."""
    environment = SimEnvironment(RAYS)
    environment.load(Arena(time_limit=0, items=(start(), thing("Wall", 20, 0, 20))), 0)
    for action in np.random.default_rng(0).integers(ACTIONS, size=800).tolist():
        environment.step(action)
    snapshot = environment.snapshot()
    return [_milliseconds(lambda: environment.restore(snapshot)) for _ in range(times)]


def _milliseconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


_MEASURE_MEMORY: Final = """
import resource
from pathlib import Path
from benchmarks.simulator import *
from animalcat.envs.sim import camera, rays

def used():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6

before = most = used()
environment = SimEnvironment(ObservationSpec(CameraSpec(84), RaySpec(), PERIOD))
for _ in range(20):
    environment.load(arena(), 0)
    for action in range(90):
        environment.step(action % ACTIONS)
    most = max(most, used())
print(most - before)
"""


def _memory() -> float:
    """Megabytes that a process with camera and rays takes, once all is imported (Linux)."""
    command = [sys.executable, "-c", _MEASURE_MEMORY]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
