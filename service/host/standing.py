"""Knows how a server is as a whole: since when it runs, what it has left, and what ends soon."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Final

from animalcat.service.access.tokens import Tokens
from animalcat.service.host.readiness import Readiness
from animalcat.service.host.serving import Expiry, expiries_of_tokens
from animalcat.service.host.settings import Settings
from animalcat.service.memory import Memory
from animalcat.service.session.disk import disk_bytes
from animalcat.values import ServerStanding
from animalcat.wire.protocol import version

log = logging.getLogger(__name__)

WARN_SECONDS: Final = 86400.0
"""How often the log warns of what ends soon."""


class Standing:
    """How one server is.

    Attributes:
        readiness: Whether it takes work.
        memory: The memory that it shares with its simulators and fits.
        certificates: Returns when those that it shows end.
    """

    def __init__(
        self,
        settings: Settings,
        readiness: Readiness,
        tokens: Tokens,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin now.

        Args:
            settings: Those of the server.
            readiness: Whether it takes work.
            tokens: Those that it admits.
            clock: Returns the current time with time zone.
            monotonic: Clock in seconds that no one sets, for how long it runs.
        """
        self.readiness = readiness
        self.memory = Memory()
        self.certificates: Callable[[], tuple[Expiry, ...]] = lambda: ()
        self._settings = settings
        self._tokens = tokens
        self._clock = clock
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

    def expiries(self) -> tuple[Expiry, ...]:
        """Return when certificates and tokens end."""
        return (*self.certificates(), *expiries_of_tokens(self._tokens))

    def warnings(self) -> list[str]:
        """Say in words what a person should see to before long."""
        now = self._clock()
        return [words for expiry in self.expiries() if (words := expiry.warning(now))]

    async def warn(self) -> None:
        """Warn in the log, now and every day."""
        while True:
            for words in await asyncio.to_thread(self.warnings):
                log.warning("%s", words)
            await asyncio.sleep(WARN_SECONDS)

    def told(self) -> ServerStanding:
        """Return how the server is, as callers are told."""
        free, size = self.disk()
        return ServerStanding(
            version=version(),
            uptime_seconds=self.uptime_seconds,
            ready=self.readiness.ready,
            reasons=tuple(self.readiness.reasons.values()),
            warnings=tuple(self.warnings()),
            disk_free_bytes=free,
            disk_bytes=size,
            memory_available_bytes=self.memory.available() or 0,
            out_of_memory_kills=self.memory.kills() or 0,
            database_seconds=self.readiness.database_seconds,
        )
