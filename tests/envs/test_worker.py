"""Worker processes: what they answer, and what happens when they do not."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from animalcat.arena_configs.loader import load_text
from animalcat.envs.backends import make_environment
from animalcat.envs.messages import pack_steps, unpack_steps
from animalcat.envs.patience import Patience
from animalcat.envs.starting import Spawn
from animalcat.envs.types import (
    CameraSpec,
    EndedBy,
    Observation,
    ObservationSpec,
    Phase,
    RaySpec,
    Step,
)
from animalcat.envs.worker_client import WorkerClient, WorkerFault

POINT = Path(__file__).with_name("point_worker.py")
COMMAND = (sys.executable, str(POINT))
ARENA = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 100
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 15}]
      sizes: [!Vector3 {x: 2, y: 2, z: 2}]
"""
BOTH = ObservationSpec(CameraSpec(21), RaySpec(), 3)
specs = st.builds(
    ObservationSpec,
    st.none() | st.builds(CameraSpec, st.integers(4, 40), st.booleans()),
    st.none() | st.builds(RaySpec, st.integers(1, 5), st.just(60.0), st.sampled_from([12, 18])),
    st.integers(1, 20),
)


def _point_worker_module():
    found = importlib.util.spec_from_file_location("point_worker", POINT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


point_worker = _point_worker_module()


def same(a: Step, b: Step) -> bool:
    """Bitwise equality of all that a step holds."""
    x, y = a.observation, b.observation
    return a[:3] == b[:3] and all(
        np.array_equal(getattr(x, name), getattr(y, name))
        if getattr(x, name) is not None
        else getattr(y, name) is None
        for name in ("health", "velocity", "position", "rays", "camera")
    )


def observation(spec: ObservationSpec, seed: int) -> Observation:
    rng = np.random.default_rng(seed)
    return Observation(
        health=float(rng.random()),
        velocity=rng.random(3, dtype=np.float32),
        position=rng.random(3, dtype=np.float32),
        rays=rng.random(spec.rays.size, dtype=np.float32) if spec.rays else None,
        camera=rng.integers(0, 256, spec.camera.shape, np.uint8) if spec.camera else None,
    )


@given(specs, st.lists(st.floats(allow_nan=False), max_size=3))
def test_packing_steps_keeps_every_bit(spec: ObservationSpec, rewards: list[float]) -> None:
    steps = [
        Step(Phase.LAST, reward, EndedBy.DEATH, observation(spec, seed))
        for seed, reward in enumerate(rewards)
    ]
    found = unpack_steps(pack_steps(steps), spec)
    assert len(found) == len(steps)
    assert all(same(a, b) for a, b in zip(found, steps, strict=True))


def test_a_torn_step_is_refused() -> None:
    spec = ObservationSpec()
    data = pack_steps([Step(Phase.MID, 0.0, None, observation(spec, 0))])
    with pytest.raises(ValueError, match="whole number"):
        unpack_steps(data[:-1], spec)


@pytest.fixture
async def point() -> AsyncIterator[WorkerClient]:
    worker = WorkerClient("point", BOTH, starter=Spawn(COMMAND))
    yield worker
    await worker.close()


async def test_a_worker_is_told_what_it_needs_and_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("ANIMALCAT_SESSION", "mine")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    worker = WorkerClient("point", BOTH, starter=Spawn(COMMAND))
    await worker.open()
    told = psutil.Process(worker.pid).environ()
    await worker.close()
    assert told["OMP_NUM_THREADS"] == "1"
    assert told["PATH"] == os.environ["PATH"]
    assert not {"AWS_SECRET_ACCESS_KEY", "ANIMALCAT_SESSION"} & set(told)


async def test_a_worker_answers_as_its_environment_does(point: WorkerClient) -> None:
    (arena,) = load_text(ARENA, "test").config.arenas.values()
    here = point_worker.PointEnvironment(BOTH)
    assert same(await point.load(ARENA, 3), here.load(arena, 3))
    for actions in (b"\x03", b"\x00\x03"):
        for there, action in zip(await point.step(actions), actions, strict=True):
            assert same(there, here.step(action))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (point_worker.DIE, "ended with code 7 / dying now"),
        (point_worker.RAISE, "RuntimeError: the backend is upset"),
        (point_worker.HANG, "no answer for 0.5 s, nor any work"),
    ],
)
async def test_a_failed_worker_is_a_fault_and_the_next_load_has_a_new_one(
    action: int, message: str
) -> None:
    worker = WorkerClient("point", BOTH, starter=Spawn(COMMAND), patience=Patience(0.5))
    await worker.load(ARENA, 0)
    pid = worker.pid
    with pytest.raises(WorkerFault, match=message):
        await worker.step(bytes([0, action]))
    assert not worker.running
    with pytest.raises(WorkerFault, match="no worker is running"):
        await worker.step(b"\x00")
    assert same(await worker.load(ARENA, 0), await worker.load(ARENA, 0))
    assert worker.pid != pid
    await worker.close()


@pytest.mark.slow
async def test_a_worker_that_works_is_waited_for_to_a_limit_of_its_work() -> None:
    worker = WorkerClient("point", BOTH, starter=Spawn(COMMAND), patience=Patience(0.5, 5.0))
    await worker.load(ARENA, 0)
    (step,) = await worker.step(bytes([point_worker.WORK]))
    assert step.phase is Phase.MID
    with pytest.raises(WorkerFault, match="no answer after 5 s of CPU time"):
        await worker.step(bytes([point_worker.LOOP]))
    await worker.close()


async def test_a_cancelled_request_does_not_answer_the_next_one(point: WorkerClient) -> None:
    await point.load(ARENA, 0)
    waiting = asyncio.create_task(point.step(bytes([point_worker.HANG])))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await point.load(ARENA, 0)).phase is Phase.FIRST


async def test_nobody_waits_for_the_end_of_a_worker_that_was_given_up(
    point: WorkerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may still work, and the whole server would stand still meanwhile."""
    asked: list[object] = []

    def ask(process: object) -> str:
        asked.append(process)
        return "ended"

    monkeypatch.setattr("animalcat.envs.worker_client._Process._epitaph", ask)
    await point.load(ARENA, 0)
    waiting = asyncio.create_task(point.step(bytes([point_worker.HANG])))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await point.close()
    await asyncio.sleep(0.05)  # the loop hears of the closed socket
    assert waiting.cancelled()
    assert asked == []


async def test_a_worker_ends_with_its_parent() -> None:
    program = (
        "import asyncio, sys, os\n"
        "from animalcat.envs.worker_client import WorkerClient\n"
        "from animalcat.envs.starting import Spawn\n"
        "from animalcat.envs.types import ObservationSpec\n"
        "async def main():\n"
        "    w = WorkerClient('point', ObservationSpec(), starter=Spawn(sys.argv[1:]))\n"
        "    await w.open(); print(w.pid, flush=True); os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    parent = subprocess.run(
        [sys.executable, "-c", program, *COMMAND], capture_output=True, check=False
    )
    pid = int(parent.stdout)
    for _ in range(100):
        if not Path(f"/proc/{pid}/stat").exists():
            return
        if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return
        await asyncio.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the worker outlived its parent")


async def test_the_simulator_behind_a_worker_is_the_simulator() -> None:
    spec = ObservationSpec()
    (arena,) = load_text(ARENA, "test").config.arenas.values()
    here = make_environment("sim", spec)
    worker = await WorkerClient.start("sim", spec)
    try:
        assert same(await worker.load(ARENA, 5), here.load(arena, 5))
        actions = bytes([3, 3, 4, 5, 0, 6] * 20)
        there = await worker.step(actions)
        assert there[-1].phase is Phase.LAST or len(there) == len(actions)
        # Ctrl-C in a terminal reaches the worker too, and is for its parent to act on.
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGINT)
        assert same(await worker.load(ARENA, 6), make_environment("sim", spec).load(arena, 6))
        for step, action in zip(there, actions, strict=False):
            assert same(step, here.step(action))
    finally:
        await worker.close()
        here.close()
