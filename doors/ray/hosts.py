"""What runs on a node: the same simulator process and the same fitting process as elsewhere.

A host is an actor of Ray with its process as a child beside it. So whoever looks whether the
process works or hangs is on its machine, and a process ends with its host.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.envs.messages import spec_from_json
from animalcat.envs.patience import Patience
from animalcat.envs.starting import Spawn
from animalcat.envs.worker_client import WorkerClient, WorkerFault
from animalcat.layouts.inference.fit import FitError, FitInterruptedError, FitRequest
from animalcat.layouts.inference.fitter import Fitter
from animalcat.layouts.model.spec import Layout
from animalcat.service.session.workers import COMMAND
from animalcat.service.versions import versions

HostReply: TypeAlias = tuple[Literal["done", "arena", "fault", "unfit", "interrupted"], Any]
"""What a host answers: a result, or which error with its message. Errors of our own do not travel
as exceptions, because Ray wraps these."""

THREADS: Final = "OMP_NUM_THREADS"
"""Ray sets it to the CPUs of an actor, and numerical libraries add in another order then."""


def address() -> str:
    """Address of this node in the network of the cluster."""
    ray: Any = importlib.import_module("ray")
    return str(ray.util.get_node_ip_address())


class Node(NamedTuple):
    """What a node says of itself.

    Attributes:
        address: Its address in the network of the cluster.
        versions: Versions of its software.
        shared: Whether it sees the server's data directory.
        pid: Id of the process that says it.
    """

    address: str
    versions: Mapping[str, str]
    shared: bool
    pid: int


def look(proof: str, secret: str) -> Node:
    """Say what there is on this node.

    Args:
        proof: Path of a file in the server's data directory.
        secret: What stands in it.
    """
    try:
        shared = Path(proof).read_text() == secret
    except OSError:
        shared = False
    return Node(address(), versions(), shared, os.getpid())


class SimulatorHost:
    """Holds one worker; its methods are those of `WorkerClient`."""

    def __init__(
        self, backend: str, spec: dict[str, Any], patience: Patience, threads: str | None
    ) -> None:
        _set_threads(threads)
        self._worker = WorkerClient(
            backend, spec_from_json(spec), starter=Spawn(COMMAND), patience=patience
        )

    async def look(self, proof: str, secret: str) -> Node:
        """Say what there is on this node."""
        return look(proof, secret)

    async def open(self) -> HostReply:
        """Start the process; answers with its versions."""
        kind, value = await _try_work(self._worker.open())
        return (kind, dict(self._worker.versions)) if kind == "done" else (kind, value)

    async def load(
        self, arena_yaml: str, seed: int, places: Sequence[MarkedPlace] = ()
    ) -> HostReply:
        """Start an episode; answers with its first step."""
        return await _try_work(self._worker.load(arena_yaml, seed, places))

    async def step(self, actions: bytes) -> HostReply:
        """Take decisions; answers with the steps."""
        return await _try_work(self._worker.step(actions))

    async def play(self, terms: bytes) -> HostReply:
        """Play the episode with its agent; answers with what the worker replies."""
        return await _try_work(self._worker.play(terms))

    async def turn(self, answer: bytes) -> HostReply:
        """Take what the agent answered; answers with what the worker replies."""
        return await _try_work(self._worker.turn(answer))

    async def reply(self, waits: float) -> HostReply:
        """Wait for what the worker says of an agent that came to it."""
        return await _try_work(self._worker.reply(waits))

    async def recall(self) -> None:
        """Have the agent go on by the server."""
        self._worker.recall()

    async def stop(self, waited: float) -> None:
        """End the play."""
        self._worker.stop(waited)

    async def close(self) -> None:
        """End the process."""
        await self._worker.close()


class FitHost:
    """Holds one fitting process; its methods are those of `Fitter`."""

    def __init__(self, patience: Patience, threads: str | None) -> None:
        _set_threads(threads)
        self._fitter = Fitter(patience.outlast)

    async def where(self) -> str:
        """Address of this node."""
        return address()

    async def start(self, layout: Layout, weighted: bool) -> HostReply:
        """Compile a layout in the background."""
        return await _try_work(self._fitter.start(layout, weighted=weighted))

    async def fit(self, request: FitRequest) -> HostReply:
        """Fit; answers with the result."""
        return await _try_work(self._fitter.fit(request))

    async def close(self) -> None:
        """End the process."""
        await self._fitter.close()


async def _try_work(work: Awaitable[Any]) -> HostReply:
    try:
        return "done", await work
    except ArenaError as error:
        return "arena", str(error)
    except WorkerFault as error:
        return "fault", str(error)
    except FitInterruptedError as error:
        return "interrupted", str(error)
    except FitError as error:
        return "unfit", str(error)


def _set_threads(threads: str | None) -> None:
    """Have libraries use as many threads as in the server's own processes."""
    if threads is None:
        os.environ.pop(THREADS, None)
    else:
        os.environ[THREADS] = threads
