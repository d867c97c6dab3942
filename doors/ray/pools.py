"""Lends simulators and fits of a Ray cluster to the engines, as `Workers` and `Fits`."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.doors.ray.connect import RayConnection, join
from animalcat.doors.ray.hosts import THREADS, FitHost, Node, SimulatorHost
from animalcat.envs.messages import Reply, spec_to_json
from animalcat.envs.patience import Patience
from animalcat.envs.types import ObservationSpec, Step
from animalcat.envs.worker_client import CLOSE_SECONDS, Worker, WorkerFault
from animalcat.layouts.inference.fit import FitError, FitInterruptedError, FitRequest, FitResult
from animalcat.layouts.inference.fitter import FitterStatus
from animalcat.layouts.model.spec import Layout
from animalcat.machine.networks import parse_networks, within
from animalcat.service.host.settings import Settings
from animalcat.service.session.direct import UNIX
from animalcat.service.session.room import Room
from animalcat.service.session.workers import Loan, Workers

log = logging.getLogger(__name__)

WAIT_SECONDS: Final = 10.0
"""How long one waits for a place before another that rests gives way, and then the next one."""
_TRIES: Final = 3
"""How often a worker is started before it is a fault that its nodes are lost."""
_ABREAST: Final = 8
"""Most workers that wait for Ray at once: it has an order of its own, and we have turns."""


class Needs(NamedTuple):
    """What is declared to Ray for one actor.

    Attributes:
        cpus: CPUs.
        memory: Bytes.
    """

    cpus: float
    memory: int


class RayWorkers(Workers):
    """Lends workers of a cluster."""

    engine = "ray"

    def __init__(
        self,
        connection: RayConnection,
        needs: Needs,
        room: Room,
        networks: str,
        allowed_builds: Sequence[Path],
        patience: Patience,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """Describe the pool; nothing is started.

        Args:
            connection: The cluster.
            needs: What a worker needs.
            room: How many there may be.
            networks: Networks in which frames may go to agents without encryption.
            allowed_builds: Unity builds that sessions may name.
            patience: Time limits for workers.
            wait_seconds: As `WAIT_SECONDS`.
        """
        super().__init__(allowed_builds, patience, room)
        self.connection = connection
        self.patience = patience
        self.needs = needs
        self._wait_seconds = wait_seconds
        self._networks = parse_networks(networks)

    def make(self, backend: str, spec: ObservationSpec) -> Worker:
        """Describe a worker; its actor is made when it is opened."""
        return RayWorker(self, backend, spec)

    def machine(self, worker: Worker) -> str:
        """Address of the node on which a worker is."""
        return worker.node if isinstance(worker, RayWorker) else ""

    @property
    def pressed(self) -> bool:
        """Whether one that has a place here waits for its place on the cluster."""
        return self.room.coming > 0

    @property
    def scarce(self) -> str:
        """What another worker would wait for on the cluster, as far as can be told at once.

        What is free is known of all nodes together, and may be too little on each.
        """
        free = self.connection.ray.available_resources()
        cpus, memory = self.needs
        if free.get("CPU", 0.0) >= cpus and free.get("memory", 0.0) >= memory:
            return ""
        return f"{cpus:g} CPUs and {memory >> 20} MiB of one node of the cluster"

    async def open(self, worker: Worker, loan: Loan) -> None:
        """Open a worker; the longer that takes, the more others that rest give way."""
        with self.making_room():
            await super().open(worker, loan)

    @contextmanager
    def making_room(self, needed: Callable[[], bool] = lambda: True) -> Generator[None]:
        """Have workers that rest give way, one after another, for as long as this takes.

        Args:
            needed: Whether another has to.
        """

        async def make_room() -> None:
            while True:
                await asyncio.sleep(self._wait_seconds)
                if needed():
                    await self.give_way()

        making = asyncio.create_task(make_room())
        try:
            yield
        finally:
            making.cancel()

    def place_for(self, place: str, node: str) -> str:
        """Where a worker on a node may listen for an agent for which `place` was meant."""
        here = place.startswith(UNIX) or (place and ipaddress.ip_address(place).is_loopback)
        if here and node == self.connection.address:
            return place
        return node if place and self.trusted(node) else ""

    def trusted(self, address: str) -> bool:
        """Whether an address is in a network in which frames may go without encryption."""
        return within(address, self._networks)


class RayWorker:
    """A worker on a node of the cluster; it keeps the contract of `Worker`.

    After a `WorkerFault` its actor is gone, and the next `open` or `load` makes another, wherever
    there is room.

    Attributes:
        node: Address of its node; empty before it is open.
    """

    def __init__(self, pool: RayWorkers, backend: str, spec: ObservationSpec) -> None:
        self.backend = backend
        self.spec = spec
        self.versions: Mapping[str, str] = {}
        self.node = ""
        self._pool = pool
        self._ray = pool.connection.ray
        self._actor: Any = None

    @property
    def running(self) -> bool:
        """Whether there is an actor that has not failed."""
        return self._actor is not None

    async def open(self) -> None:
        """Start its actor unless it has one; waits until a node has room.

        A node may be lost meanwhile; then it is tried again elsewhere.

        Raises:
            WorkerFault: It cannot be started.
        """
        for tries_left in reversed(range(_TRIES)):
            if self._actor is not None:
                return
            try:
                await self._start()
            except self._ray.exceptions.RayError as error:
                if not tries_left:
                    raise WorkerFault(f"worker ({self.backend}): {_one_line(error)}") from error
                log.warning("a worker is lost while it starts: %s", _one_line(error))

    async def _start(self) -> None:
        cpus, memory = self._pool.needs
        actor = (
            self._ray.remote(SimulatorHost)
            .options(num_cpus=cpus, memory=memory, max_restarts=0, scheduling_strategy="SPREAD")
            .remote(
                self.backend,
                spec_to_json(self.spec),
                self._pool.patience,
                os.environ.get(THREADS),
            )
        )
        connection = self._pool.connection
        try:
            node = Node(*await actor.look.remote(connection.proof, connection.secret))
            if why := connection.refusal(node):
                raise WorkerFault(why)
            self.versions = _result(self.backend, await actor.open.remote())
        except BaseException:
            self._ray.kill(actor)
            raise
        self._actor, self.node = actor, node.address

    async def load(self, arena_yaml: str, seed: int, places: Sequence[MarkedPlace] = ()) -> Step:
        """Start an episode; see `Worker`."""
        await self.open()
        return await self._ask("load", arena_yaml, seed, places)

    async def step(self, actions: bytes) -> list[Step]:
        """Take decisions; see `Worker`."""
        return await self._ask("step", actions)

    def place_for(self, place: str) -> str:
        """Where it may listen for an agent; see `Worker`."""
        return self._pool.place_for(place, self.node)

    async def play(self, terms: bytes) -> Reply:
        """Play the episode with its agent; see `Worker`."""
        return await self._ask("play", terms)

    async def turn(self, answer: bytes) -> Reply:
        """Take what the agent answered; see `Worker`."""
        return await self._ask("turn", answer)

    async def reply(self, waits: float) -> Reply:
        """Wait for what the worker says of an agent that came to its node; see `Worker`."""
        return await self._ask("reply", waits)

    def recall(self) -> None:
        """Have the agent go on by the server; see `Worker`."""
        if self._actor is not None:
            self._actor.recall.remote()

    def stop(self, waited: float) -> None:
        """End the play; see `Worker`."""
        if self._actor is not None:
            self._actor.stop.remote(waited)

    def rest(self) -> None:
        """Do nothing: whoever lends it takes it away where another needs the room."""

    def drop(self) -> None:
        """End it at once."""
        actor, self._actor = self._actor, None
        if actor is not None:
            self._ray.kill(actor)

    async def close(self) -> None:
        """End it; it may be called twice."""
        if self._actor is not None:
            try:
                with suppress(self._ray.exceptions.RayError, TimeoutError):
                    async with asyncio.timeout(2 * CLOSE_SECONDS):
                        await self._actor.close.remote()
            finally:
                self.drop()

    async def _ask(self, method: str, *arguments: Any) -> Any:
        if self._actor is None:
            raise WorkerFault("no worker is running; load an arena first")
        try:
            return _result(self.backend, await getattr(self._actor, method).remote(*arguments))
        except ArenaError:
            raise
        except self._ray.exceptions.RayError as error:
            self.drop()
            raise WorkerFault(
                f"worker ({self.backend}) on {self.node}: {_one_line(error)}"
            ) from error
        except BaseException:  # also cancelled: its answer would be taken for the next one
            self.drop()
            raise


class RayFits:
    """Fits on a cluster; it keeps the contract of `Fits`.

    What is asked goes to a host that has nothing to do, in the order in which it was asked. Where
    none has, another host is made, and whichever is free first takes it: the new one may wait long
    for a place. A host declares memory and no CPUs: fits give way to episodes on their node, and a
    session that waits for one must not wait for the end of others.
    """

    def __init__(self, workers: RayWorkers, memory: int, most: int, patience: Patience) -> None:
        """Make the first host, so that workers cannot take its room.

        Args:
            workers: The workers of the same cluster, which give way to the only host.
            memory: Bytes that a fit needs.
            most: Most hosts.
            patience: How long a fit may take.
        """
        self._connection = workers.connection
        self._ray = workers.connection.ray
        self._workers = workers
        self._memory = memory
        self._most = most
        self._patience = patience
        self._hosts: dict[Any, asyncio.Task[None]] = {}
        self._nodes: dict[Any, str] = {}
        self._busy: set[Any] = set()
        self._free = asyncio.Queue[Any]()
        self._waiting = 0
        self._add()

    def fitting(self) -> FitterStatus:
        """Say on which nodes the hosts are, and how many requests wait for one."""
        hosts = ((self._nodes.get(host, ""), host in self._busy) for host in self._hosts)
        return FitterStatus(tuple(hosts), self._waiting)

    async def start(self, *layouts: Layout, weighted: bool = False) -> None:
        """Compile layouts in the background, on a host that has nothing else to do."""
        for layout in layouts:
            await self._ask("start", layout, weighted)

    async def fit(self, request: FitRequest) -> FitResult:
        """Fit; see `Fits`."""
        return await self._ask("fit", request)

    async def close(self) -> None:
        """End all hosts, and leave the cluster: fits are the last that a server ends."""
        self._most = 0  # none is made any more
        for host in list(self._hosts):
            self._drop(host)
        await asyncio.to_thread(self._connection.close)

    async def _ask(self, method: str, *arguments: Any) -> Any:
        host = await self._take()
        self._busy.add(host)
        try:
            kind, value = await getattr(host, method).remote(*arguments)
        except self._ray.exceptions.RayError as error:
            self._drop(host)
            raise FitInterruptedError(
                f"the host of the fit was lost: {_one_line(error)}"
            ) from error
        except BaseException:
            if method == "fit":  # cancelled, and it would compute for nothing
                self._drop(host)
            else:
                self._free.put_nowait(host)
            raise
        finally:
            self._busy.discard(host)
        self._free.put_nowait(host)
        if kind == "interrupted":
            raise FitInterruptedError(value)
        if kind == "unfit":
            raise FitError(value)
        return value

    async def _take(self) -> Any:
        """Wait until a host is free."""
        if self._free.empty() and len(self._hosts) < self._most:
            self._add()
        self._waiting += 1
        try:
            return await self._free.get()
        finally:
            self._waiting -= 1

    def _add(self) -> None:
        host = (
            self._ray.remote(FitHost)
            .options(num_cpus=0, memory=self._memory, max_restarts=0)
            .remote(self._patience, os.environ.get(THREADS))
        )
        self._hosts[host] = asyncio.create_task(self._come(host))

    async def _come(self, host: Any) -> None:
        """Wait until a host has its place, or is lost: whoever asks it then hears of that."""
        with (
            self._workers.making_room(self._is_needed),
            suppress(self._ray.exceptions.RayError),
        ):
            self._nodes[host] = await host.where.remote()
        self._free.put_nowait(host)

    def _is_needed(self) -> bool:
        """Whether somebody waits for a host and none has a place."""
        return self._waiting > 0 and not any(come.done() for come in self._hosts.values())

    def _drop(self, host: Any) -> None:
        come = self._hosts.pop(host, None)
        if come is None:
            return
        self._nodes.pop(host, None)
        come.cancel()
        self._ray.kill(host)
        if self._waiting and len(self._hosts) < self._most:
            self._add()


class ClusterParts(NamedTuple):
    """What a server takes from a cluster.

    Attributes:
        workers: Lends workers.
        fits: Makes fits.
    """

    workers: RayWorkers
    fits: RayFits


async def engine(settings: Settings, home: Path, versions: Mapping[str, str]) -> ClusterParts:
    """Join the cluster of the settings.

    Args:
        settings: The server's settings.
        home: The data directory, absolute.
        versions: Versions of the server's software.

    Raises:
        ClusterError: It cannot be used.
    """
    needs = Needs(settings.worker_cpus, settings.worker_memory_bytes)
    home.mkdir(parents=True, exist_ok=True)
    connection = await asyncio.to_thread(
        join,
        settings.ray_address,
        home,
        versions,
        *needs,
        settings.fit_memory_bytes,
        settings.cluster_wait_seconds,
    )
    workers = RayWorkers(
        connection,
        needs,
        Room(settings.max_workers, settings.campaign_workers, _ABREAST),
        settings.direct_networks,
        settings.allowed_builds,
        settings.worker_patience,
    )
    fits = RayFits(workers, settings.fit_memory_bytes, settings.max_fits, settings.fit_patience)
    return ClusterParts(workers, fits)


def _result(backend: str, answer: tuple[str, Any]) -> Any:
    """The result in a host's answer.

    Raises:
        ArenaError: The arena cannot be built.
        WorkerFault: The worker failed.
    """
    kind, value = answer
    if kind == "arena":
        raise ArenaError(value)
    if kind != "done":
        raise WorkerFault(value or f"worker ({backend}): {kind}")
    return value


def _one_line(error: BaseException) -> str:
    """What Ray says, in one line."""
    return " / ".join(line.strip() for line in str(error).strip().splitlines()[:3])
