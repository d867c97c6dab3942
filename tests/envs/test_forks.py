"""Workers that are forks of one warm process: they are as others, share memory, and outlive it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from animalcat.arena_configs.loader import load_text
from animalcat.envs.backends import make_environment
from animalcat.envs.patience import Patience
from animalcat.envs.starting import Fork
from animalcat.envs.types import CameraSpec, ObservationSpec, Phase, RaySpec
from animalcat.envs.warming import ARENA
from animalcat.envs.worker_client import COMMAND, WorkerClient, WorkerFault
from tests.envs.test_worker import same

pytestmark = [
    pytest.mark.skipif(not Fork.works_here(), reason="forks need Linux"),
    # All tests of this file, so that a fork server is warmed up in one process only.
    pytest.mark.xdist_group("forks"),
]
SPEC = ObservationSpec(None, RaySpec())


@pytest.fixture
async def fork() -> AsyncIterator[Fork]:
    starter = Fork(COMMAND, Patience())
    yield starter
    await starter.close()


def memory(pid: int, kind: str) -> int:
    """Kilobytes of a process's memory of a kind."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(kind))


def status(pid: int, name: str) -> str:
    (line,) = (
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if name in line
    )
    return line.split()[1]


async def leave_it(pid: int) -> bool:
    for _ in range(200):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        await asyncio.sleep(0.05)
    return False


@pytest.mark.parametrize("spec", [SPEC, ObservationSpec(CameraSpec(32), None)])
async def test_a_fork_simulates_as_this_process_does(fork: Fork, spec: ObservationSpec) -> None:
    here = make_environment("sim", spec)
    for _ in range(2):
        worker = WorkerClient("sim", spec, starter=fork)
        assert same(
            await worker.load(ARENA, 5), here.load(load_text(ARENA, "here").config.first, 5)
        )
        actions = bytes([3, 3, 4, 5, 0, 6] * 3)
        there = await worker.step(actions)
        for action, step in zip(actions, there, strict=False):
            assert same(step, here.step(action))
        assert there[-1].phase is Phase.LAST or len(there) == len(actions)
        await worker.close()


async def test_forks_share_what_is_loaded_and_the_fork_server_has_no_threads(fork: Fork) -> None:
    workers = [WorkerClient("sim", SPEC, starter=fork) for _ in range(3)]
    for worker in workers:
        await worker.load(ARENA, 0)
        await worker.step(bytes(5))
    assert fork.pid is not None
    assert status(fork.pid, "Threads") == "1"
    for worker in workers:
        assert worker.pid is not None
        assert psutil.Process(worker.pid).ppid() == fork.pid
        assert memory(worker.pid, "Private") < memory(worker.pid, "Anonymous") / 4
        assert "grpc" not in Path(f"/proc/{worker.pid}/maps").read_text()
        await worker.close()


async def test_a_fork_has_no_secrets_and_nobody_elses_files(
    fork: Fork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "1")
    first, second = (WorkerClient("sim", SPEC, starter=fork) for _ in range(2))
    await first.open()
    await second.open()
    assert first.pid is not None
    assert second.pid is not None
    for pid in (first.pid, second.pid):
        assert b"MY_SECRET" not in Path(f"/proc/{pid}/environ").read_bytes()
    sockets = [
        {
            os.readlink(file)
            for file in Path(f"/proc/{pid}/fd").iterdir()
            if os.readlink(file).startswith(("socket", "anon_inode:[pidfd]"))
        }
        for pid in (first.pid, second.pid)
    ]
    assert all(len(one) == 1 for one in sockets)
    assert not sockets[0] & sockets[1]
    pid = first.pid
    await first.close()
    assert await leave_it(pid)
    await second.load(ARENA, 0)
    await second.close()


async def test_a_killed_fork_is_a_fault_that_says_how_it_ended(fork: Fork) -> None:
    worker = WorkerClient("sim", SPEC, starter=fork)
    await worker.load(ARENA, 0)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(WorkerFault, match="ended with code -9"):
        await worker.step(bytes(1))
    await worker.load(ARENA, 0)  # another
    await worker.close()


async def test_workers_go_on_without_the_fork_server_and_there_is_another(fork: Fork) -> None:
    worker, later = (WorkerClient("sim", SPEC, starter=fork) for _ in range(2))
    first = await worker.load(ARENA, 0)
    server = fork.pid
    assert server is not None
    os.kill(server, signal.SIGKILL)
    assert await leave_it(server)
    (step,) = await worker.step(bytes(1))
    assert step.phase is Phase.MID
    assert same(await later.load(ARENA, 0), first)
    assert fork.pid not in (None, server)
    assert later.pid is not None
    assert psutil.Process(later.pid).ppid() == fork.pid
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)  # nobody is left who could say how it ended
    with pytest.raises(WorkerFault, match="ended"):
        await worker.step(bytes(1))
    await later.close()


async def test_a_fork_server_that_hangs_is_given_up_and_a_cancelled_start_waits_for_nothing() -> (
    None
):
    program = (
        "import sys, time, runpy\n"
        "if '--forks' in sys.argv: time.sleep(600)\n"
        "runpy.run_module('animalcat.envs.worker', run_name='__main__', alter_sys=True)\n"
    )
    fork = Fork((sys.executable, "-c", program), Patience(quiet_seconds=1.0))
    cancelled = WorkerClient("sim", SPEC, starter=fork)
    opening = asyncio.ensure_future(cancelled.open())
    while fork.pid is None:
        await asyncio.sleep(0.01)
    hanging = fork.pid
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert psutil.pid_exists(hanging)
    assert not cancelled.running
    worker = WorkerClient("sim", SPEC, starter=fork, patience=Patience())
    await worker.load(ARENA, 0)
    assert await leave_it(hanging)
    await worker.close()
    await fork.close()


async def test_fork_server_and_forks_end_with_their_parent() -> None:
    program = (
        "import asyncio, os\n"
        "from animalcat.envs.worker_client import COMMAND, WorkerClient\n"
        "from animalcat.envs.starting import Fork\n"
        "from animalcat.envs.patience import Patience\n"
        "from animalcat.envs.types import ObservationSpec\n"
        "async def main():\n"
        "    fork = Fork(COMMAND, Patience())\n"
        "    w = WorkerClient('sim', ObservationSpec(), starter=fork)\n"
        "    await w.open(); print(w.pid, fork.pid, flush=True); os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program], capture_output=True, check=False
    )
    worker, server = map(int, parent.stdout.split())
    assert await leave_it(worker)
    assert await leave_it(server)
