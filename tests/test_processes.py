"""Pools of processes, and their end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from animalcat.machine.processes import process_pool

PROGRAM = """
import os
from animalcat.machine.processes import process_pool

if __name__ == "__main__":
    pool = process_pool(2)
    print(pool.submit(os.getpid).result(), flush=True)
    input()
"""
LIMIT = 60
"""Seconds after which a process that has not ended is taken to work on."""


def double(number: int) -> int:
    return 2 * number


def test_a_pool_works_and_begins_as_it_is_told(tmp_path: Path) -> None:
    with process_pool(1, os.chdir, tmp_path) as pool:
        assert list(pool.map(double, range(3))) == [0, 2, 4]
        assert pool.submit(os.getcwd).result() == os.path.realpath(tmp_path)


def test_a_pool_ends_with_a_process_that_is_killed() -> None:
    pipe = subprocess.PIPE
    made = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True)
    with made:
        assert made.stdout is not None
        worker = psutil.Process(int(made.stdout.readline()))
        made.kill()
    _, alive = psutil.wait_procs([worker], LIMIT)
    for one in alive:
        one.kill()
    assert not alive
