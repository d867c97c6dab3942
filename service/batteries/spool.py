"""Keeps uploaded arena files on disk until their battery is made, so that they take no memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from animalcat.service.batteries.battery import ArenaFile

FOLDER: Final = "uploads"
"""The folder in a data directory that holds what is being uploaded."""


_ODD: Final = "surrogateescape"
"""Bytes that are no UTF-8 stay what they are, until the loader names their file and line."""


class _Place(NamedTuple):
    """Where in the file one arena file stands."""

    path: str
    start: int
    size: int


class Spool:
    """Arena files that were received; iterating reads them in order of path, one at a time."""

    def __init__(self, data: Path) -> None:
        """Begin with no file.

        Args:
            data: The data directory.

        Raises:
            OSError: Nothing can be written there.
        """
        folder = data / FOLDER
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # It has no name, so that nothing is left if the server is killed.
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`
        self._places: list[_Place] = []

    def __getstate__(self) -> tuple[Any, list[_Place]]:
        """What a process that this one begins gets of it: the same file."""
        self._file.flush()
        return DupFd(self._file.fileno()), self._places

    def __setstate__(self, state: tuple[Any, list[_Place]]) -> None:
        """Take the file in a process that was begun."""
        self._file, self._places = os.fdopen(state[0].detach(), "rb"), state[1]

    def __len__(self) -> int:
        return len(self._places)

    def add(self, file: ArenaFile) -> None:
        """Keep a file.

        Raises:
            OSError: The disk is full.
        """
        content = file.text.encode(errors=_ODD)
        self._places.append(_Place(file.path, self._file.seek(0, 2), len(content)))
        self._file.write(content)

    def __iter__(self) -> Iterator[ArenaFile]:
        for place in sorted(self._places):
            self._file.seek(place.start)
            yield ArenaFile(place.path, self._file.read(place.size).decode(errors=_ODD))

    def close(self) -> None:
        """Drop all files; a second call does nothing."""
        self._file.close()
