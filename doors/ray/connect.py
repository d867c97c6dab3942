"""Joins a Ray cluster, and says before an episode is played why it cannot be used."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from animalcat.doors.ray.hosts import Node, look
from animalcat.extending.installing import install
from animalcat.service.session.workers import EngineError
from animalcat.service.versions import changed_versions

PROOF: Final = "cluster-proof"
"""Beginning of the name of a file in the data directory, by which a node shows that it sees that
directory. Servers may share one, so the name goes on at random."""
_STORE_BYTES: Final = 100 * 1024 * 1024
"""Size of Ray's object store where we start Ray: messages are small, so hardly any is used."""
_ANSWER_SECONDS: Final = 5.0
"""How long a cluster may take to accept a connection."""
_LOOK_SECONDS: Final = 60.0
"""How long a node may take to say what there is on it."""
_PAUSE_SECONDS: Final = 1.0
"""How long to wait before a starting cluster is looked at again."""
_MOST_FOLDER_BYTES: Final = 32
"""Longest folder of temporary files below which Ray's sockets have paths that the system takes."""
_TO_START: Final = (
    "start one with `ray start --head`, and join this machine to it with "
    "`ray start --address HOST:6379`; without --address the server starts a Ray of its own"
)

log = logging.getLogger(__name__)


class ClusterError(EngineError):
    """The cluster cannot be used; the message says why, and what to do."""


class _NewNodeError(ClusterError):
    """A node has just come: it is listed, and gets no tasks yet."""


class RayConnection:
    """This process as a driver of a cluster; Ray allows one at a time."""

    def __init__(self, ray: Any, home: Path, versions: Mapping[str, str]) -> None:
        self.ray = ray
        self.address = str(ray.util.get_node_ip_address())
        self._versions = versions
        self.secret = secrets.token_hex(16)
        self.proof = str(home / f"{PROOF}-{secrets.token_hex(4)}")
        Path(self.proof).write_text(self.secret)

    def refusal(self, node: Node) -> str:
        """Why a node cannot play for this server; empty if it can."""
        if not node.shared:
            return (
                f"the node {node.address} does not see the data directory {Path(self.proof).parent}"
                "; mount the same folder there under the same path, for recordings"
            )
        if changed := changed_versions(node.versions, self._versions):
            listed = ", ".join(f"{c.name} {c.recorded or 'missing'} ({c.here})" for c in changed)
            return (
                f"the node {node.address} has other versions than the server (in brackets): "
                f"{listed}; install the same ones everywhere, or results would differ"
            )
        return ""

    def close(self) -> None:
        """Leave the cluster, which ends our actors; a Ray of our own ends altogether."""
        self.ray.shutdown()
        Path(self.proof).unlink(missing_ok=True)


def join(
    address: str,
    home: Path,
    versions: Mapping[str, str],
    cpus: float,
    memory: int,
    fit_memory: int,
    wait_seconds: float = 0.0,
) -> RayConnection:
    """Join a cluster and look at its nodes. To be called in a thread that is not the main one.

    Ray sets signal handlers where it is imported and started in the main thread, and the server
    has its own.

    Args:
        address: HOST:PORT of the cluster's head, "auto" for the one that runs on this machine, or
            empty to start Ray on this machine for as long as the server runs.
        home: The data directory.
        versions: Versions of the server's software.
        cpus: What a worker needs of a node's CPUs.
        memory: What it needs of its memory, in bytes.
        fit_memory: What a fit needs of the memory of that node or another, in bytes.
        wait_seconds: How long the cluster may take to answer, and to have room.

    Raises:
        ClusterError: The cluster cannot be used.
    """
    end = time.monotonic() + wait_seconds
    if address and address != "auto":
        _patiently(partial(_check_answers, address), end)
    ray = attach(address)
    connection = RayConnection(ray, home, versions)
    try:
        _patiently(lambda: check_room(ray.nodes(), cpus, memory, fit_memory), end)
        known = max(end, time.monotonic() + _LOOK_SECONDS)
        _patiently(partial(_look_at_nodes, connection), known, _NewNodeError)
    except BaseException:
        connection.close()
        raise
    return connection


def attach(address: str) -> Any:
    """Become a driver of a cluster.

    Args:
        address: As for `join`.

    Returns:
        The module `ray`, connected.

    Raises:
        ClusterError: The cluster cannot be used.
    """
    ray = _import_ray()
    if address.startswith("ray://"):
        raise ClusterError(
            f"{address}: the server has to run on a node of the cluster, so that no call goes "
            "through Ray's client; give HOST:6379 or auto, after `ray start --address` there"
        )
    if address and address != "auto":
        _check_answers(address)
    try:
        if address:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        else:
            ray.init(
                address="local",
                include_dashboard=False,
                object_store_memory=_STORE_BYTES,
                _temp_dir=_short_folder(),
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    except (RuntimeError, ConnectionError, ValueError, OSError) as error:
        ray.shutdown()  # what it has begun to join would be in the way of the next try
        raise ClusterError(_why(address, str(error))) from error
    return ray


def check_room(nodes: list[dict[str, Any]], cpus: float, memory: int, fit_memory: int) -> None:
    """Check that one worker and one fit have room at the same time, each on one of the nodes.

    Raises:
        ClusterError: They have not.
    """
    rooms = [node.get("Resources", {}) for node in nodes if node.get("Alive")]
    able = [r for r in rooms if r.get("CPU", 0.0) >= cpus and r.get("memory", 0.0) >= memory]
    if any(
        other.get("memory", 0.0) >= fit_memory + (memory if other is room else 0)
        for room in able
        for other in rooms
    ):
        return
    listed = "; ".join(
        f"{r.get('CPU', 0.0):g} CPUs and {r.get('memory', 0.0) / 2**20:.0f} MiB" for r in rooms
    )
    worker = f"one worker, which needs {cpus:g} CPUs and {memory / 2**20:.0f} MiB"
    fit = f" and beside it for one fit, which needs {fit_memory / 2**20:.0f} MiB" if able else ""
    raise ClusterError(
        f"no node has room for {worker}{fit}; there are {len(rooms)} nodes: {listed}. Add a node, "
        "or say with ANIMALCAT_WORKER_CPUS and ANIMALCAT_WORKER_MEMORY_BYTES that a worker needs "
        "less" + (", or with ANIMALCAT_FIT_MEMORY_BYTES that a fit does" if able else "")
    )


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers of the server
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ModuleNotFoundError as error:
        raise ClusterError(
            "--engine ray needs a library that is not installed; install it with: "
            f"{install('server', 'ray')}"
        ) from error
    return ray


def _short_folder() -> str | None:
    """Where a Ray of our own keeps its sockets, whose paths may have 107 bytes; None: as usual."""
    usual = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
    return None if len(os.fsencode(usual)) <= _MOST_FOLDER_BYTES else "/tmp/ray"


def _check_answers(address: str) -> None:
    """Ask at the address first, because Ray itself tries for a minute."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ClusterError(f"{address!r} is not the address of a cluster; give HOST:6379, or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"no Ray cluster answers at {address} ({error}); {_TO_START}") from error


def _patiently(
    check: Callable[[], None], end: float, passing: type[ClusterError] = ClusterError
) -> None:
    """Check again until all is well, or until an end by `time.monotonic`.

    Args:
        check: What to do.
        end: The end.
        passing: Errors that may pass; others are raised at once.

    Raises:
        ClusterError: It was not well at the end.
    """
    while True:
        try:
            return check()
        except passing:
            if time.monotonic() >= end:
                raise
        time.sleep(_PAUSE_SECONDS)


def _why(address: str, text: str) -> str:
    """A sentence for what Ray says."""
    said = " ".join(text.split())
    if "ersion mismatch" in said:
        return f"the cluster at {address} has another Ray or Python than the server: {said}"
    if address:
        return f"the Ray cluster {address} cannot be joined: {said}; {_TO_START}"
    return f"Ray does not start on this machine: {said}"


def _look_at_nodes(connection: RayConnection) -> None:
    """Ask every node what there is on it.

    Raises:
        ClusterError: One cannot play for this server.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ray = connection.ray
    asked = {
        ray.remote(num_cpus=0)(look)
        .options(
            max_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        )
        .remote(connection.proof, connection.secret): node["NodeManagerAddress"]
        for node in ray.nodes()
        if node["Alive"]
    }
    for answer, address in asked.items():
        try:
            node = Node(*ray.get(answer, timeout=_LOOK_SECONDS))
        except ray.exceptions.TaskUnschedulableError as error:
            raise _NewNodeError(f"the node {address} takes no task: {error}") from error
        except ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()[-1:]
            raise ClusterError(
                f"the node {address} cannot run animalcat ({''.join(first)}); install "
                "animalcat with the extras server and ray there, in the Python that Ray runs in"
            ) from error
        if why := connection.refusal(node):
            raise ClusterError(why)
