"""Worker processes that play arenas: one that a session has left serves the next of its kind."""

from __future__ import annotations

import asyncio
from typing import Final

from animalcat.envs.types import ObservationSpec
from animalcat.envs.worker_client import WorkerClient

KEPT: Final = 2
"""Idle workers that are kept: starting one takes seconds."""


class Workers:
    """Lends workers; used on one event loop only."""

    def __init__(self) -> None:
        self._idle: list[WorkerClient] = []

    def take(self, backend: str, spec: ObservationSpec) -> WorkerClient:
        """A worker of a kind; it is started by its first load at the latest."""
        for worker in self._idle:
            if (worker.backend, worker.spec) == (backend, spec):
                self._idle.remove(worker)
                return worker
        return WorkerClient(backend, spec)

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
