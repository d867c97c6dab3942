"""Runs long operations in the background, and reports their progress and their end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from animalcat.machine.files import replace_file
from animalcat.service.batteries.battery import Tick
from animalcat.service.calls import owner_of_new
from animalcat.service.errors import Code, ServiceError, public, unknown
from animalcat.text import names
from animalcat.values import Operation, OperationKind, OperationState

log = logging.getLogger(__name__)

KEPT: Final = 200
"""Number of finished operations that are remembered."""
TOLD_SECONDS: Final = 0.1
"""Least seconds between two reports of progress to watchers."""


class StoppedError(Exception):
    """The work is no longer wanted."""


_FORM: Final = TypeAdapter(Operation)


class Operations:
    """The operations of a server; used on one event loop, except for reports of progress.

    Each operation has a file of its own, written when it begins and when it ends. One that is found
    running at the start belonged to a server that stopped; it becomes aborted. Nothing is done
    again unless the caller asks again.
    """

    def __init__(self, folder: Path, clock: Callable[[], datetime]) -> None:
        """Read the operations that are stored.

        Args:
            folder: Where operations are kept; created when first needed.
            clock: Returns the current time with time zone.
        """
        self._folder = folder
        self._clock = clock
        self._known: dict[str, Operation] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stops: dict[str, Stop] = {}
        self._news: dict[str, asyncio.Event] = {}
        self._closing = False
        for path in sorted(folder.glob("*.json")):
            try:
                stored = _FORM.validate_json(path.read_bytes())
            except ValueError as error:
                log.warning("%s is left out: %s", path, error)
                continue
            if not stored.state.over:
                stored = self._over(
                    stored, OperationState.ABORTED, ServiceError(Code.OPERATION_ABORTED)
                )
                self._write(stored)
            self._known[stored.id] = stored

    def begin(
        self,
        kind: OperationKind,
        subject: str,
        work: Callable[[Tick], Awaitable[str]],
        request_id: str = "",
        asked: str = "",
    ) -> Operation:
        """Begin an operation, unless the same request id has begun one already.

        Args:
            kind: What it does.
            subject: Resource name of what it works on.
            work: Does the work and returns the resource name of the result. It may report progress
                from any thread; the report raises `StoppedError` once the work is no longer wanted.
            request_id: The caller's id for the request; may be empty.
            asked: Digest of what is asked for.

        Returns:
            The operation, whether new or begun before.

        Raises:
            ServiceError: The request id was used for something else, or the server is stopping.
        """
        if self._closing:
            raise ServiceError(Code.SHUTTING_DOWN)
        owner = owner_of_new()
        for known in self._known.values() if request_id else ():
            if known.request_id == request_id:
                if (known.kind, known.asked, known.owner) != (kind, asked, owner):
                    raise ServiceError(
                        Code.REQUEST_ID_REUSED,
                        f"request id {request_id!r} was used for {names.operation_name(known.id)}, "
                        "which is about something else",
                    )
                return known
        last = max((int(known_id.rsplit("-", 1)[-1]) for known_id in self._known), default=0)
        operation = Operation(
            f"{kind.name.lower().replace('_', '-')}-{last + 1:06}",
            kind,
            subject,
            self._clock(),
            request_id,
            asked,
            owner=owner,
        )
        self._write(operation)
        self._known[operation.id] = operation
        self._news[operation.id] = asyncio.Event()
        stop = self._stops[operation.id] = Stop()
        self._tasks[operation.id] = asyncio.create_task(
            self._run(operation.id, work, stop), name=operation.id
        )
        self._forget()
        return operation

    def get(self, operation: str) -> Operation:
        """Return the operation with this id.

        Raises:
            ServiceError: There is no such operation.
        """
        found = self._known.get(operation)
        if found is None:
            raise unknown(
                Code.UNKNOWN_OPERATION, "operation", operation, sorted(self._known, reverse=True)
            )
        return found

    def all(self) -> list[Operation]:
        """List all operations, newest first."""
        return sorted(
            self._known.values(),
            key=lambda operation: operation.id.rsplit("-", 1)[-1],
            reverse=True,
        )

    def cancel(self, operation: str) -> Operation:
        """Ask an operation to stop; one that is over stays as it is.

        Raises:
            ServiceError: There is no such operation.
        """
        known = self.get(operation)
        if not known.state.over:
            self._stops[operation].wanted = True
        return known

    async def watch(self, operation: str) -> AsyncIterator[Operation]:
        """Yield an operation as it is now, at each report of progress, and finally when it is over.

        Raises:
            ServiceError: There is no such operation.
        """
        while True:
            news = self._news.get(operation)
            current = self.get(operation)
            yield current
            if current.state.over or news is None:
                return
            await news.wait()

    async def close(self) -> None:
        """Stop all and wait for it; what was running becomes aborted."""
        self._closing = True
        for stop in self._stops.values():
            stop.wanted = True
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _run(
        self, operation: str, work: Callable[[Tick], Awaitable[str]], stop: Stop
    ) -> None:
        loop = asyncio.get_running_loop()

        def tick(done: int, total: int, message: str) -> None:
            if stop.wanted:
                raise StoppedError
            now = time.monotonic()
            if now >= stop.next_told or done == total:
                stop.next_told = now + TOLD_SECONDS
                loop.call_soon_threadsafe(self._progress, operation, done, total, message)

        try:
            resource = await work(tick)
        except (StoppedError, asyncio.CancelledError):
            state = OperationState.ABORTED if self._closing else OperationState.CANCELLED
            code = Code.OPERATION_ABORTED if self._closing else Code.OPERATION_CANCELLED
            ended = self._over(self._known[operation], state, ServiceError(code))
        except Exception as error:  # noqa: BLE001 - becomes what the operation tells
            ended = self._over(self._known[operation], OperationState.FAILED, public(error))
        else:
            now = self._known[operation]
            ended = replace(now, state=OperationState.DONE, resource=resource, ended=self._clock())
        self._write(ended)
        self._known[operation] = ended
        self._tell(operation)
        del self._tasks[operation], self._stops[operation], self._news[operation]

    def _progress(self, operation: str, done: int, total: int, message: str) -> None:
        known = self._known[operation]
        if not known.state.over:
            self._known[operation] = replace(known, done=done, total=total, message=message)
            self._tell(operation)

    def _tell(self, operation: str) -> None:
        news, self._news[operation] = self._news[operation], asyncio.Event()
        news.set()

    def _over(self, operation: Operation, state: OperationState, error: ServiceError) -> Operation:
        return replace(
            operation,
            state=state,
            error=error.message,
            error_code=error.code.value,
            ended=self._clock(),
        )

    def _write(self, operation: Operation) -> None:
        """Write an operation to its file, either completely or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        replace_file(self._folder / f"{operation.id}.json", _FORM.dump_json(operation))

    def _forget(self) -> None:
        """Drop the oldest operations that are over."""
        over = [operation for operation in self.all() if operation.state.over]
        for old in over[KEPT:]:
            del self._known[old.id]
            (self._folder / f"{old.id}.json").unlink(missing_ok=True)


@dataclass(slots=True)
class Stop:
    """Whether an operation is to stop, and when to report again (seconds, monotonic clock)."""

    wanted: bool = False
    next_told: float = 0.0
