"""Has a changing call done once: a repetition with the same request id does nothing more."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from google.protobuf.message import Message

from animalcat.machine.files import replace_file
from animalcat.service.errors import Code, ServiceError
from animalcat.service.rpc.asked import checked_id

log = logging.getLogger(__name__)

KEPT: Final = 10_000
"""Fewest request ids that are remembered."""


class Requests:
    """Remembers which requests were done; used on one event loop only.

    An id is noted after its request has been done and before the caller is told. If the server is
    killed between the two, the request is done a second time. That does no harm, because the calls
    that use this class ask for a state and not for a change.
    """

    def __init__(self, file: Path) -> None:
        """Read which requests were done.

        Args:
            file: Where they are kept, one per line; created when first needed.
        """
        self._file = file
        self._done: dict[str, str] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        lines = file.read_bytes().splitlines() if file.exists() else []
        for line in lines:
            try:
                request_id, asked = json.loads(line)
                self._done[str(request_id)] = str(asked)
            except (ValueError, TypeError):  # the last line, if a crash cut it short
                log.warning("%s: a line is left out", file)
        if len(lines) > 2 * KEPT:
            self._done = dict(list(self._done.items())[-KEPT:])
            replace_file(file, b"".join(map(_line, self._done.items())))

    async def once(self, request: Message, work: Callable[[], Awaitable[object]]) -> None:
        """Do what a request asks for, unless it was done under the same request id before.

        Args:
            request: Has a `request_id`; if that is empty, the work is always done.
            work: Does what the request asks for.

        Raises:
            ServiceError: The id is too long, or was used for another request.
        """
        request_id = checked_id(getattr(request, "request_id"))  # noqa: B009
        if not request_id:
            await work()
            return
        name = request.DESCRIPTOR.full_name.encode()
        data = request.SerializeToString(deterministic=True)
        asked = hashlib.blake2b(name + b"\n" + data, digest_size=16).hexdigest()
        lock = self._locks.setdefault(request_id, asyncio.Lock())
        try:
            async with lock:
                known = self._done.get(request_id)
                if known is None:
                    await work()
                    self._note(request_id, asked)
                elif known != asked:
                    raise ServiceError(
                        Code.REQUEST_ID_REUSED,
                        f"request id {request_id!r} was used for another request",
                    )
        finally:
            self._locks.pop(request_id, None)

    def _note(self, request_id: str, asked: str) -> None:
        with self._file.open("ab") as file:
            file.write(_line((request_id, asked)))
            file.flush()
            os.fsync(file.fileno())
        self._done[request_id] = asked


def _line(done: tuple[str, str]) -> bytes:
    return json.dumps(done).encode() + b"\n"
