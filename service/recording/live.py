"""The file of a recording while its episode plays."""

from __future__ import annotations

import mmap
import os
from io import FileIO
from pathlib import Path
from typing import Final

_LEAST: Final = 64 * 1024
"""Bytes of room for records that a file has at least, once there is one."""
_MOST: Final = 256 * 1024
"""Bytes by which the room grows at most beyond what is needed at once."""


class LiveFile:
    """A file that grows record by record; not safe across threads.

    It is mapped into memory, because a system call for every record takes twice the time. The
    operating system has a record when `add` returns, so killing the process loses none. As long as
    the file is open it ends with zeros, with which no record begins.
    """

    def __init__(self, path: Path, *, anew: bool) -> None:
        """Open a file.

        Args:
            path: The file.
            anew: Whether to begin it, replacing an older one; if not, to go on at its end.

        Raises:
            OSError: It cannot be written.
        """
        self._file = FileIO(path, "w+" if anew else "r+")
        self._size = self._room = os.fstat(self._file.fileno()).st_size
        self._map: mmap.mmap | None = None

    def add(self, opcode: int, rest: bytes) -> None:
        """Add a record.

        Args:
            opcode: Its first byte, not 0.
            rest: All its other bytes.

        Raises:
            OSError: There is no room for it; the file stays as it was.
        """
        size = len(rest)
        memory, start = self.reserve(size)
        memory[start : start + size] = rest
        self.commit(opcode, size)

    def reserve(self, size: int) -> tuple[mmap.mmap, int]:
        """Make room for the next record but for its first byte, to be written in place.

        Args:
            size: Bytes of that rest.

        Returns:
            The memory to write to, and where to begin. There is no record before `commit`.

        Raises:
            OSError: There is no room for it; the file stays as it was.
        """
        start = self._size + 1
        if self._map is None or start + size > self._room:
            self._map = self._mapped(start + size)
        return self._map, start

    def commit(self, opcode: int, size: int) -> None:
        """Make a record of what was written where `reserve` said.

        Args:
            opcode: Its first byte, not 0.
            size: Bytes of its rest.
        """
        assert self._map is not None
        self._map[self._size] = opcode  # last, as there is no record if the process dies before
        self._size += 1 + size

    def content(self) -> memoryview:
        """Return all records, of which at least one was added here."""
        assert self._map is not None
        return memoryview(self._map)[: self._size]

    def close(self) -> None:
        """Close the file, which ends with its last record then; a second call does nothing."""
        self._map = None  # not closed, since that fails as long as someone holds the content
        if not self._file.closed:
            with self._file:
                os.ftruncate(self._file.fileno(), self._size)

    def _mapped(self, needed: int) -> mmap.mmap:
        """Make room for so many bytes and more, and map it.

        The room is taken from the disk here. Where a disk that is full were noticed only on
        writing to the map, that would kill the process. Zeros are written for it, since the first
        write to each page of a room that `fallocate` made takes three times as long.
        """
        room = needed + min(max(needed, _LEAST), _MOST)
        file, at = self._file.fileno(), self._room
        try:
            while at < room:
                at += os.pwrite(file, bytes(room - at), at)
            mapped = mmap.mmap(file, room)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._file.name) from error
        self._room = room
        return mapped
