"""Worker processes that play arenas: one that a session has left serves the next of its kind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from animalcat.envs.backends import AUTOMATIC, unity_build
from animalcat.envs.patience import Patience
from animalcat.envs.types import ObservationSpec
from animalcat.envs.worker_client import WorkerClient
from animalcat.service.errors import Code, ServiceError

KEPT: Final = 2
"""Idle workers that are kept: starting one takes seconds."""


class Workers:
    """Lends workers; used on one event loop only.

    A backend is looked at whenever a worker is taken, not only when a session is made: sessions
    stay, and a data directory may come from anywhere.
    """

    def __init__(
        self, allowed_builds: Sequence[Path] = (), patience: Patience | None = None
    ) -> None:
        """Lend nothing yet.

        Args:
            allowed_builds: Unity builds that may be named by their path.
            patience: How long workers are waited for; by default as the workers' client has it.
        """
        self._allowed_builds = tuple(allowed_builds)
        self._patience = patience
        self._idle: list[WorkerClient] = []

    def check(self, backend: str) -> None:
        """Refuse a backend that is not there, or that this server must not run.

        Raises:
            ServiceError: It is refused; the message says what to do.
        """
        if backend == "sim":
            return
        try:
            build = unity_build(backend)
        except ValueError as error:
            raise ServiceError(Code.UNKNOWN_BACKEND, str(error)) from error
        allowed: set[Path] = set()
        for path in self._allowed_builds:
            with suppress(ValueError):  # one that is gone allows nothing
                allowed.add(unity_build(f"unity:{path}"))
        if backend != AUTOMATIC and build not in allowed:
            raise ServiceError(
                Code.BUILD_NOT_ALLOWED,
                f"{build}: this server may not run it. If you trust that program, start the server "
                f"with: serve --allow-build {build} (resume takes that option too), or let "
                f"{AUTOMATIC} mean it: animalcat unity setup --build {build}",
            )

    async def take(self, backend: str, spec: ObservationSpec) -> WorkerClient:
        """A worker of a kind; it is started by its first load at the latest.

        Raises:
            ServiceError: This server must not run the backend, or it is not there.
        """
        await asyncio.to_thread(self.check, backend)
        for worker in self._idle:
            if (worker.backend, worker.spec) == (backend, spec):
                self._idle.remove(worker)
                return worker
        return WorkerClient(backend, spec, patience=self._patience)

    async def give_back(self, worker: WorkerClient) -> None:
        """Keep a worker for the next session, or end it.

        One that drives Unity builds holds one or two of them, and so a gigabyte: it is ended.
        """
        if worker.backend.startswith("unity:"):
            await worker.close()
        elif worker.running:
            self._idle.append(worker)
        while len(self._idle) > KEPT:
            await self._idle.pop(0).close()

    async def close(self) -> None:
        """End the idle workers."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(worker.close() for worker in idle))
