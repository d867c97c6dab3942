"""Writes the audit log of a server: who did what to what, from where, and what came of it.

What changes something is written before it is done, so that nothing is done that the log does not
tell of; while it cannot be written, such calls are refused. Results and refusals are written as
soon as that can be: they wait in memory meanwhile. So what plays is never kept waiting. Commands
that work beside a server write into its log themselves.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
import secrets
import socket
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy.exc import DBAPIError

from animalcat.service import calls
from animalcat.service.access.callers import Caller
from animalcat.service.access.private_files import keep_owner
from animalcat.service.access.tokens import TokenError
from animalcat.service.errors import CATALOGUE, Code, ServiceError, public
from animalcat.service.refusals import Seldom
from animalcat.service.storage.audit import BEGUN, AuditFilter, AuditLog, join_names
from animalcat.service.storage.listing import Page
from animalcat.service.storage.migrate import StoreUnreachableError, StoreVersionError
from animalcat.service.storage.sql import DATABASE, SqlStore
from animalcat.values import AuditLine

log = logging.getLogger(__name__)

MOST_WAITING: Final = 10_000
"""Most lines that wait in memory while the log cannot be written."""
LINES_A_MINUTE: Final = 20
"""Refusals of one caller that are told one by one; the others are told by their number."""
OF_STRANGERS: Final = 60
"""The same of all together who have shown no good token."""
STOPPED: Final = "StopServer"
"""What is told last of a server that stops in order."""
MOST_WORDS: Final = 500
"""Most characters of what is said of a call."""
_STRANGERS: Final = ""
_BATCH: Final = 200
_LOOK_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 5.0
_SOON_SECONDS: Final = 10.0


class Audit:
    """The audit log, as one server writes it; used on one event loop only."""

    def __init__(
        self,
        store: AuditLog,
        server: str,
        clock: Callable[[], datetime],
        host_of: Callable[[str], str],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Describe the log; `run` writes what waits.

        Args:
            store: Keeps it.
            server: Name of this server, for its lines.
            clock: Returns the current time with time zone.
            host_of: Returns the host of an address as gRPC writes it.
            now: Returns seconds that never go back.
        """
        self._store = store
        self._host_of = host_of
        self._server = server
        self._clock = clock
        self._waiting: deque[AuditLine] = deque()
        self._writing = asyncio.Lock()
        self._news = asyncio.Event()
        self._lost = 0
        self._seldom = Seldom(now)
        self._failed = Seldom(now)
        self._now = now
        self._minute = 0.0
        self._told = Counter[str]()

    async def begin(self, caller: Caller) -> int:
        """Write that the present call begins; return the number of the line.

        Raises:
            ServiceError: It cannot be written, and so must not be done.
        """
        line = self._line(caller, BEGUN)
        try:
            return (await asyncio.to_thread(self._store.write, [line]))[0]
        except Exception as error:
            if times := self._failed.due("begin"):
                log.error(
                    "the audit log cannot be written, %d calls refused: %s", times, _first(error)
                )
            why = public(error)
            text = CATALOGUE[Code.AUDIT_CLOSED].text
            raise ServiceError(
                Code.AUDIT_CLOSED, f"{text} {why.message}", retry_seconds=_SOON_SECONDS
            ) from error

    def note(
        self,
        caller: Caller | None,
        result: str,
        words: str = "",
        *,
        begun: int = 0,
        times: int = 1,
    ) -> None:
        """Have a line about the present call written as soon as that can be.

        Args:
            caller: Who calls; None for somebody who has not proved it.
            result: "done", or the code of an error.
            words: What is to be said of it.
            begun: Number of the line that says that it was begun; 0 for none.
            times: How often it happened.
        """
        self._wait(replace(self._line(caller, result, words, times), seq=begun))

    def tell(self, action: str, words: str, *, result: str = "done", times: int = 1) -> None:
        """Have a line written of what has befallen the server itself.

        Args:
            action: What that is.
            words: What is to be said of it.
            result: What came of it.
            times: How often it happened.
        """
        line = AuditLine(
            *(self._clock(), "", "", "the server", "", action, f"servers/{self._server}"),
            result=result,
            words=words[:MOST_WORDS],
            server=self._server,
            times=times,
        )
        self._wait(line)

    async def begin_server(self, version: str) -> None:
        """Tell that the server begins, and in the log if the one before it was killed."""
        mine = AuditFilter(object=f"servers/{self._server}")
        last = await asyncio.to_thread(self._store.lines, mine, Page(limit=1))
        killed = bool(last) and last[0].action != STOPPED
        if killed:
            log.warning("the previous server did not shut down: it was killed")
        self.tell("StartServer", f"version {version}" + ", after one that was killed" * killed)

    def _wait(self, line: AuditLine) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._lost += 1
        else:
            self._waiting.append(line)
        self._news.set()

    def refused(self, caller: Caller | None, error: ServiceError) -> None:
        """Have it written that the present call was refused; of many alike, how many they are."""
        call = calls.current.get(None)
        if call is None or call.written:
            return
        who = self._host_of(call.peer) if caller is None else ""
        if self._now() - self._minute >= 60.0:
            self._minute, self._told = self._now(), Counter[str]()
        kind = _STRANGERS if caller is None else f"caller {caller.id}"
        most = OF_STRANGERS if caller is None else LINES_A_MINUTE
        alike: tuple[object, ...] = (error.code, kind)
        if self._told[kind] < most:
            alike = (*alike, who, call.action, call.about)
        if times := self._seldom.due(alike):
            self._told[kind] += 1
            self.note(caller, error.code.value, error.message, times=times)

    async def lines(self, read: Callable[[], Any]) -> Any:
        """Read the log after what waits was written, as far as it can be."""
        await self.catch_up()
        return await asyncio.to_thread(read)

    async def run(self) -> None:
        """Write what waits, until this is cancelled."""
        while True:
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                pass
            if not await self.catch_up():
                await asyncio.sleep(_RETRY_SECONDS)

    async def close(self) -> None:
        """Write what waits a last time."""
        if not await self.catch_up():
            log.error("%d lines of the audit log are lost", len(self._waiting) + self._lost)

    async def catch_up(self) -> bool:
        """Write what waits; return whether nothing does any more."""
        self._news.clear()
        if self._lost and len(self._waiting) < MOST_WAITING:
            words = "lines that this server could not write, and did not keep"
            self.tell("LoseLines", words, result="LOST", times=self._lost)
            self._lost = 0
        try:
            # Who is cancelled meanwhile leaves no line that is written and waits to be.
            await asyncio.shield(asyncio.create_task(self._write()))
        except Exception as error:  # noqa: BLE001 - the database may come back
            if times := self._failed.due("write"):
                log.error(
                    "the audit log cannot be written, tried %d times: %s", times, _first(error)
                )
            return False
        return True

    async def _write(self) -> None:
        async with self._writing:
            while batch := list(self._waiting)[:_BATCH]:
                await asyncio.to_thread(self._store.write, batch)
                for _ in batch:
                    self._waiting.popleft()

    def _line(
        self, caller: Caller | None, result: str, words: str = "", times: int = 1
    ) -> AuditLine:
        call = calls.current.get()
        return AuditLine(
            created=self._clock(),
            request=call.id,
            subject="" if caller is None else caller.subject,
            caller="no good token" if caller is None else caller.words,
            role="" if caller is None else caller.role.value,
            action=call.action,
            object=join_names(call.about),
            result=result,
            words=words[:MOST_WORDS],
            peer=self._host_of(call.peer) or "this machine",
            server=self._server,
            times=times,
        )


def note_by_command(home: Path, url: str, action: str, thing: str, words: str) -> None:
    """Write what a person is about to do beside a server into the audit log of its store.

    Args:
        home: The data directory of the store, which is made where it is not there.
        url: URL of its PostgreSQL; empty for none.
        action: What is done.
        thing: To what.
        words: What is to be said of it.

    Raises:
        TokenError: It cannot be written, and so must not be done.
    """
    try:
        with closing(SqlStore.in_directory(home, url)) as store:
            if not url:
                keep_owner(home / DATABASE)
            store.audit.write([by_command(action, thing, words)])
    except (DBAPIError, StoreVersionError, StoreUnreachableError) as error:
        raise TokenError(
            f"the audit log cannot be written, so nothing was changed: {_first(error)}"
        ) from error


def by_command(action: str, thing: str, words: str) -> AuditLine:
    """Return a line about what a person does at this machine; see `note_by_command`."""
    return AuditLine(
        *(datetime.now(UTC), secrets.token_hex(8), "", _person(), "administrator", action, thing),
        words=words,
        peer="this machine",
        server=socket.gethostname(),
    )


def _person() -> str:
    """Return who runs this process, in words."""
    number = os.getuid()
    try:
        name = pwd.getpwuid(number).pw_name
    except KeyError:
        name = str(number)
    asked = os.environ.get("SUDO_USER", "")
    return f"user {name}" + (f", for {asked[:40]!r}" if asked and asked != name else "")


def _first(error: Exception) -> str:
    return str(error).partition("\n")[0]
