"""Pools of processes, which end with the one that made them."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from typing import Any


def process_pool(
    processes: int | None = None, begin: Callable[..., object] | None = None, *arguments: Any
) -> ProcessPoolExecutor:
    """Return a pool whose processes start afresh.

    A fork would copy locks that threads of numerical libraries may hold. By itself a process of a
    pool would wait for ever for work when the one that made it was killed.

    Args:
        processes: How many; None for as many as there are CPUs.
        begin: Called in each process before its first task.
        arguments: For `begin`.
    """
    return ProcessPoolExecutor(processes, get_context("spawn"), _begin, (begin, arguments))


def _begin(begin: Callable[..., object] | None, arguments: tuple[Any, ...]) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    for kind in (resource.RLIMIT_CPU, resource.RLIMIT_AS):  # of one step of who made the pool
        most = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most, most))
    if begin is not None:
        begin(*arguments)


def end_with_parent() -> None:
    """Wait for the end of the process that made this one, and end this one; for a thread."""
    parent = parent_process()
    assert parent is not None, "only in processes of a pool"
    parent.join()
    os._exit(1)  # at once: nobody is there for what it has done
