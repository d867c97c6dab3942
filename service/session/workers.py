"""Lends worker processes that play arenas, and reuses them from session to session."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from animalcat.envs.backends import AUTOMATIC, unity_build
from animalcat.envs.patience import Patience
from animalcat.envs.starting import Fork, Spawn
from animalcat.envs.types import ObservationSpec
from animalcat.envs.worker_client import Worker, WorkerClient
from animalcat.service.errors import Code, ServiceError

KEPT: Final = 2
"""Number of idle workers that are kept, because starting one takes seconds."""
COMMAND: Final = (sys.executable, "-P", "-m", "animalcat.service.session.direct")
"""The program of a worker: one that agents may play with directly."""


class Placement(NamedTuple):
    """Where workers are.

    Attributes:
        engine: Who starts them: "local" or "ray".
        placed: Number of workers by the address of their machine.
        waiting: Number of workers that wait for room.
        most: Most workers at once; 0 for no limit of their own.
    """

    engine: str
    placed: Mapping[str, int]
    waiting: int
    most: int


class Workers:
    """Lends workers; used on one event loop only.

    A backend is checked whenever a worker is taken, not only when a session is created, because
    sessions outlive the server and a data directory may come from anywhere.
    """

    def __init__(
        self,
        allowed_builds: Sequence[Path] = (),
        patience: Patience = Patience(),
        *,
        forked: bool = True,
    ) -> None:
        """Create the pool without starting any worker.

        Args:
            allowed_builds: Paths of the Unity builds that sessions may name.
            patience: Time limits for workers.
            forked: Whether simulators share memory as forks of one process, where the system can
                do that.
        """
        self._allowed_builds = tuple(allowed_builds)
        self._patience = patience
        self._spawn = Spawn(COMMAND)
        forks = forked and Fork.works_here()
        self._starter = Fork(COMMAND, patience) if forks else self._spawn
        self._idle: list[Worker] = []
        self._lent = 0

    def check(self, backend: str) -> None:
        """Check that a backend exists and that this server may run it.

        Raises:
            ServiceError: It does not or may not; the message says what to do.
        """
        if backend == "sim":
            return
        try:
            build = unity_build(backend)
        except ValueError as error:
            raise ServiceError(Code.UNKNOWN_BACKEND, str(error)) from error
        allowed: set[Path] = set()
        for path in self._allowed_builds:
            with suppress(ValueError):  # a build that no longer exists allows nothing
                allowed.add(unity_build(f"unity:{path}"))
        if backend != AUTOMATIC and build not in allowed:
            raise ServiceError(
                Code.BUILD_NOT_ALLOWED,
                f"{build}: this server may not run it. If you trust that program, start the server "
                f"with: serve --allow-build {build} (resume takes that option too), or make it the "
                f"build that {AUTOMATIC} stands for: animalcat unity setup --build {build}",
            )

    async def take(self, backend: str, spec: ObservationSpec) -> Worker:
        """Lend a worker for a backend; its process starts at its first load at the latest.

        Args:
            backend: Name of the backend.
            spec: The observations that the worker is to make.

        Raises:
            ServiceError: The backend does not exist, or this server may not run it.
        """
        await asyncio.to_thread(self.check, backend)
        for worker in self._idle:
            if (worker.backend, worker.spec) == (backend, spec):
                self._idle.remove(worker)
                self._lent += 1
                return worker
        self._lent += 1
        return self.make(backend, spec)

    def make(self, backend: str, spec: ObservationSpec) -> Worker:
        """Describe a worker; nothing is started."""
        starter = self._starter if backend == "sim" else self._spawn
        return WorkerClient(backend, spec, starter=starter, patience=self._patience)

    def placement(self) -> Placement:
        """How many workers run where, and how many wait."""
        return Placement("local", {"this machine": self._lent + len(self._idle)}, 0, 0)

    async def give_back(self, worker: Worker) -> None:
        """Keep a worker for the next session, or end it.

        A worker that drives Unity builds is always ended: it holds one or two of them, about a
        gigabyte of memory.
        """
        self._lent -= 1
        if worker.backend.startswith("unity:"):
            await worker.close()
        else:
            worker.rest()  # another may wait for its place
            if worker.running:
                self._idle.append(worker)
        while len(self._idle) > KEPT:
            await self._idle.pop(0).close()

    async def close(self) -> None:
        """End all idle workers, and what helps to start others."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(worker.close() for worker in idle))
        await self._starter.close()
