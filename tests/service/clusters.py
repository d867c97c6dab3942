"""A Ray cluster of several nodes on this machine, and the loss of one of them."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pytest

ROOM = {"memory": 4 << 30, "object_store_memory": 80 << 20}
"""What a node says that it has, in bytes."""


@contextmanager
def running() -> Generator[Any]:
    """A cluster whose head plays nothing, and makes fits."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        patch.setenv("RAY_TMPDIR", folder)  # short, as paths of sockets must be
        made = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **ROOM}
        )
        try:
            yield made
        finally:
            made.shutdown()


def add(cluster: Any, cpus: float = 1) -> Any:
    """A node more."""
    return cluster.add_node(num_cpus=cpus, **ROOM)


def processes(node: Any) -> list[psutil.Process]:
    """What a node started, and all that these started."""
    (raylet,) = node.all_processes["raylet"]
    return psutil.Process(raylet.process.pid).children(recursive=True)


def simulates(node: Any) -> bool:
    """Whether a worker's process is on a node."""
    return any("animalcat.service.session.direct" in child.cmdline() for child in processes(node))


def lose(cluster: Any, node: Any) -> None:
    """End all of a node at once, as the loss of its machine does.

    Ray's own removal ends its daemon alone, and the actors then play on for a second or so.
    """
    for process in processes(node):
        with suppress(psutil.NoSuchProcess):
            process.kill()
    cluster.remove_node(node, allow_graceful=False)
