"""Knows how a server is as a whole: since when it runs, and what it has left."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from animalcat.service.host.readiness import Readiness
from animalcat.service.host.settings import Settings
from animalcat.service.memory import Memory
from animalcat.service.session.disk import disk_bytes
from animalcat.values import ServerStanding
from animalcat.wire.protocol import version


class Standing:
    """How one server is.

    Attributes:
        readiness: Whether it takes work.
        memory: The memory that it shares with its simulators and fits.
    """

    def __init__(
        self,
        settings: Settings,
        readiness: Readiness,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin now.

        Args:
            settings: Those of the server.
            readiness: Whether it takes work.
            monotonic: Clock in seconds that no one sets, for how long it runs.
        """
        self.readiness = readiness
        self.memory = Memory()
        self._settings = settings
        self._monotonic = monotonic
        self._began = monotonic()

    @property
    def uptime_seconds(self) -> float:
        """Seconds since the start, whatever becomes of the machine's clock."""
        return self._monotonic() - self._began

    def disk(self) -> tuple[int, int]:
        """Return the bytes that are free where the data directory is, and all; 0 if unknown."""
        with suppress(OSError):
            return disk_bytes(self._settings.home)
        return 0, 0

    def told(self) -> ServerStanding:
        """Return how the server is, as callers are told."""
        free, size = self.disk()
        return ServerStanding(
            version=version(),
            uptime_seconds=self.uptime_seconds,
            ready=self.readiness.ready,
            reasons=tuple(self.readiness.reasons.values()),
            disk_free_bytes=free,
            disk_bytes=size,
            memory_available_bytes=self.memory.available() or 0,
            out_of_memory_kills=self.memory.kills() or 0,
            database_seconds=self.readiness.database_seconds,
        )
