"""A Ray cluster of several nodes on this machine, and the loss of one of them."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pytest

MEMORY = 4 << 30
STORE = 80 << 20
"""What a node says that it has, in bytes: memory, and how much of it for Ray's objects."""
TRIES = 3
"""How often a node is started: Ray gives one 30 s to do so, which a busy machine may take."""


@contextmanager
def running() -> Generator[Any]:
    """A cluster without nodes; the first that is added is its head."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        patch.setenv("RAY_TMPDIR", folder)  # short, as paths of sockets must be
        made = Cluster()
        try:
            yield made
        finally:
            made.shutdown()


def add(cluster: Any, cpus: float = 1, memory: int = MEMORY) -> Any:
    """A node more."""
    for tries_left in reversed(range(TRIES)):
        try:
            return cluster.add_node(
                num_cpus=cpus, memory=memory, object_store_memory=STORE, include_dashboard=False
            )
        except Exception as error:
            if not tries_left or "timed out during startup" not in str(error):
                raise
    raise AssertionError("the last try returns or raises")


def processes(node: Any) -> list[psutil.Process]:
    """What a node started, and all that these started."""
    (raylet,) = node.all_processes["raylet"]
    return psutil.Process(raylet.process.pid).children(recursive=True)


def simulates(node: Any) -> bool:
    """Whether a worker's process is on a node."""
    for process in processes(node):
        with suppress(psutil.NoSuchProcess):  # it may end while it is looked at
            if "animalcat.service.session.player" in process.cmdline():
                return True
    return False


def lose(cluster: Any, node: Any) -> None:
    """End all of a node at once, as the loss of its machine does.

    Ray's own removal ends its daemon alone, and the actors then play on for a second or so.
    """
    for process in processes(node):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    cluster.remove_node(node, allow_graceful=False)
