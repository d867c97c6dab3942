"""Remembers which sessions were made with a token, where the token has a quota of them."""

from __future__ import annotations

import asyncio
import fcntl
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from animalcat.service.access.private_files import private_folder, write_private


class MadeSessions:
    """The sessions of tokens, in one file for each."""

    def __init__(self, folder: Path) -> None:
        """Describe where they are kept; nothing is made.

        Args:
            folder: The folder of tokens.
        """
        self._folder = folder

    @asynccontextmanager
    async def changing(self, token: str) -> AsyncGenerator[None]:
        """Keep other calls from making sessions with a token meanwhile."""
        private_folder(self._folder)
        with self._file(token).with_suffix(".lock").open("ab") as lock:
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
            yield

    def of(self, token: str) -> list[str]:
        """List the ids of the sessions that were kept for a token."""
        with suppress(FileNotFoundError, ValueError):
            return [str(session) for session in json.loads(self._file(token).read_bytes())]
        return []

    def keep(self, token: str, sessions: Sequence[str]) -> None:
        """Keep these ids for a token, and no others."""
        write_private(self._file(token), json.dumps(list(dict.fromkeys(sessions))).encode())

    def _file(self, token: str) -> Path:
        return self._folder / f"sessions-{token}.json"
