"""What was worked out before and can be worked out again, kept for this user up to a size."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from animalcat.machine.folders import cache_folder

T = TypeVar("T")

LIMIT: Final = "ANIMALCAT_USER_CACHE_BYTES"
"""The variable of the environment that says how many bytes each cache of this user may take."""
DEFAULT_LIMIT: Final = 512 * 1024 * 1024
FILE: Final = "kept.sqlite"
_SCHEMA: Final = """
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS kept (
    key TEXT PRIMARY KEY, value BLOB NOT NULL, used INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_use ON kept (used);
"""
_DAY: Final = 24 * 3600
"""Seconds after which a use is noted anew: to note each would make a write of every reading."""
_LOOK: Final = 256
"""Texts that are kept between two looks at the size."""
_LEAST: Final = 0.8
"""Share of the limit that is left when texts have had to go."""


def size_limit() -> int:
    """Bytes that each cache of this user may take.

    Raises:
        ValueError: The variable is no whole number.
    """
    said = os.environ.get(LIMIT, "")
    if not said:
        return DEFAULT_LIMIT
    if not said.isdecimal():
        raise ValueError(f"{LIMIT} is {said!r}; give a number of bytes, 0 to keep nothing")
    return int(said)


class KeptTexts:
    """Texts by key in one file of the user's cache; those that were not used for longest go first.

    Several processes may use the file at the same time. That it cannot be read or written is no
    error: what is not found is worked out again. A damaged file is thrown away.
    """

    def __init__(
        self,
        folder: Path | None = None,
        limit: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open the file when it is first used.

        Args:
            folder: Where it is; None for the user's cache.
            limit: Bytes that it may take; None for `size_limit`.
            clock: Seconds since some time.
        """
        self.path = (folder or cache_folder("")) / FILE
        self._limit = size_limit() if limit is None else limit
        self._clock = clock
        self._open: sqlite3.Connection | None = None
        self._since = 0

    def find(self, key: str) -> str | None:
        """Return what is kept under a key; None if there is nothing."""

        def read(connection: sqlite3.Connection) -> str | None:
            row = connection.execute("SELECT value, used FROM kept WHERE key = ?", [key]).fetchone()
            if row is None:
                return None
            now = int(self._clock())
            if now - row[1] > _DAY:
                connection.execute("UPDATE kept SET used = ? WHERE key = ?", [now, key])
            return zlib.decompress(row[0]).decode()

        return self._try(read) if self.path.exists() else None

    def keep(self, key: str, text: str) -> None:
        """Keep a text; others may have to go for it."""
        if not self._limit:
            return
        row = [key, zlib.compress(text.encode(), 1), int(self._clock())]

        def write(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", row)
            if self._since % _LOOK == 0:
                self._prune(connection)
            self._since += 1

        self._try(write)

    def keys(self) -> list[str]:
        """The keys under which something is kept, in order."""
        query = "SELECT key FROM kept ORDER BY key"
        return self._try(lambda found: [key for (key,) in found.execute(query)]) or []

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Let those go that were not used for longest, until enough room is free in the file."""
        before = _bytes_used(connection)
        while _bytes_used(connection) > self._limit:
            (count,) = connection.execute("SELECT count(*) FROM kept").fetchone()
            share = max(1.0 - _LEAST * self._limit / _bytes_used(connection), 0.01)
            connection.execute(
                "DELETE FROM kept WHERE key IN (SELECT key FROM kept ORDER BY used, key LIMIT ?)",
                [max(1, int(share * count))],
            )
            if count <= 1:
                break
        if _bytes_used(connection) < before:
            connection.executescript("PRAGMA incremental_vacuum")  # `execute` takes one step only

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        try:
            if self._open is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._open = sqlite3.connect(
                    self.path, timeout=5.0, isolation_level=None, check_same_thread=False
                )
                self._open.executescript(_SCHEMA)
            return work(self._open)
        except sqlite3.OperationalError:  # another process holds it, or the disk is full
            return None
        except (sqlite3.DatabaseError, zlib.error, UnicodeDecodeError):
            self.close()
            for end in ("", "-wal", "-shm"):
                with suppress(OSError):
                    self.path.with_name(FILE + end).unlink(missing_ok=True)
            return None
        except OSError:
            return None

    def close(self) -> None:
        """Close the file; it opens again when it is used."""
        if self._open is not None:
            with suppress(sqlite3.Error):
                self._open.close()
            self._open = None


def _bytes_used(connection: sqlite3.Connection) -> int:
    """Bytes of the file that hold something: what was freed is used again."""
    size, pages, free = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_size", "page_count", "freelist_count")
    )
    return size * (pages - free)


def prune_folders(folder: Path, most: int, limit: int) -> None:
    """Remove folders within a folder, those with the oldest time first.

    Args:
        folder: The folder.
        most: How many may stay.
        limit: Bytes that they may take together; the newest stays whatever it takes.
    """
    newest = sorted(folder.iterdir(), key=lambda kept: -kept.stat().st_mtime)
    taken = 0
    for number, kept in enumerate(newest):
        taken += folder_size(kept)
        if number >= most or (number and taken > limit):
            shutil.rmtree(kept, ignore_errors=True)


def folder_size(folder: Path) -> int:
    """Bytes on the disk of what is in a folder; 0 if it is not there."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):
                total += Path(place, name).lstat().st_size
    return total


def cache_sizes() -> dict[str, int]:
    """Bytes that each part of the user's cache takes, by the name of its file or folder."""
    found: Any = {}
    with suppress(OSError):
        for path in sorted(cache_folder("").iterdir()):
            name = FILE if path.name.startswith(FILE) else path.name
            size = folder_size(path) if path.is_dir() else path.lstat().st_size
            found[name] = found.get(name, 0) + size
    return found
