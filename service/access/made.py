"""Remembers which sessions were made with a token, where the token has a quota of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from animalcat.service.access.tokens import private_folder, write_private


class MadeSessions:
    """The sessions of tokens, in one file for each."""

    def __init__(self, folder: Path) -> None:
        """Describe where they are kept; nothing is made.

        Args:
            folder: The folder of tokens.
        """
        self._folder = folder

    def of(self, token: str) -> list[str]:
        """List the ids of the sessions that were kept for a token."""
        with suppress(FileNotFoundError, ValueError):
            return [str(one) for one in json.loads(self._file(token).read_bytes())]
        return []

    def keep(self, token: str, sessions: Sequence[str]) -> None:
        """Keep these ids for a token, and no others."""
        private_folder(self._folder)
        write_private(self._file(token), json.dumps(list(dict.fromkeys(sessions))).encode())

    def _file(self, token: str) -> Path:
        return self._folder / f"sessions-{token}.json"
