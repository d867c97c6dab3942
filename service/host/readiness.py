"""Looks whether a server can take work: its database answers and is written, its disk has room."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from animalcat.service.host.limits import ServerLimits
from animalcat.service.memory import Memory
from animalcat.service.storage.sql import SqlStore

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""Seconds between two looks."""
ANSWER_SECONDS: Final = 5.0
"""Seconds within which the database has to answer."""
DATABASE: Final = "database"
READ_ONLY: Final = "database is not written"
DRAINING: Final = "draining"
LACKS: Final = "lacks"
"""Why a server is not ready."""
_WORDS: Final = {
    DATABASE: "the database cannot be read",
    READ_ONLY: "the database cannot be written",
}


@dataclass(slots=True)
class Readiness:
    """How a server is, as the last look found it; used on one event loop, read from any thread.

    Attributes:
        store: The database.
        limits: Knows what the server lacks.
        told: Is called after each look.
        note: Is called with what the audit log is to say, an action and words.
        kills: Returns how many processes were killed for want of memory; None if nothing tells it.
        reasons: Why it is not ready, in words, by kind; empty where it is.
        sessions: Number of sessions by the name of their state, at the last look that had them;
            None before.
        database_seconds: How long the database took, at the last look that it answered.
    """

    store: SqlStore
    limits: ServerLimits
    told: Callable[[Readiness], None] = lambda now: None
    note: Callable[[str, str], None] = lambda action, words: None
    kills: Callable[[], int | None] = field(default_factory=lambda: Memory().kills)
    reasons: dict[str, str] = field(default_factory=dict[str, str])
    sessions: Mapping[str, int] | None = None
    database_seconds: float = 0.0

    @property
    def ready(self) -> bool:
        """Whether it takes work."""
        return not self.reasons

    @property
    def answers(self) -> bool:
        """Whether its database answers, so that it can say what it has."""
        return DATABASE not in self.reasons

    async def watch(self) -> None:
        """Look again and again."""
        asked: dict[Callable[[], Any], asyncio.Future[Any]] = {}
        killed = self.kills() or 0
        while True:
            before = dict(self.reasons)
            if await self._look(DATABASE, self._read, asked):
                await self._look(READ_ONLY, self.store.try_to_write, asked)
            lacks = "; ".join(await self.limits.lacks())
            self._note(LACKS, lacks)
            for kind, words in self.reasons.items():
                if kind not in before:
                    log.error("the server is not ready: %s", words)
                    self.note("LoseReadiness", words)
            if before and not self.reasons:
                log.warning("the server is ready again")
                self.note("RegainReadiness", "")
            if (now := self.kills() or 0) > killed:
                words = f"processes ran out of memory and were killed: {now - killed}"
                log.error("%s", words)
                self.note("LoseProcesses", words)
            killed = now
            self.told(self)
            await asyncio.sleep(LOOK_SECONDS)

    def drain(self) -> None:
        """Say from now on that it takes no more work, since it will stop."""
        self.reasons[DRAINING] = "the server is draining, and will stop"

    def _read(self) -> None:
        start = time.perf_counter()
        self.sessions = self.store.count_sessions()
        self.database_seconds = time.perf_counter() - start

    async def _look(
        self,
        kind: str,
        ask: Callable[[], Any],
        asked: dict[Callable[[], Any], asyncio.Future[Any]],
    ) -> bool:
        """Ask the database for something, and note what came of it."""
        # One that hangs is asked no second time: each question holds a thread.
        question = asked.pop(ask, None) or asyncio.ensure_future(asyncio.to_thread(ask))
        done, _ = await asyncio.wait([question], timeout=ANSWER_SECONDS)
        if not done:
            asked[ask] = question
            self._note(kind, f"{_WORDS[kind]} within {ANSWER_SECONDS:g} s")
            return False
        error = question.exception()
        self._note(kind, f"{_WORDS[kind]}: {error}" if error else "")
        return error is None

    def _note(self, kind: str, words: str) -> None:
        if words:
            self.reasons[kind] = words
        else:
            self.reasons.pop(kind, None)
