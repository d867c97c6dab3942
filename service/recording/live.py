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
_ZEROS: Final = bytes(_LEAST)


class LiveFile:
    """A file that grows record by record; not safe across threads.

    It is mapped into memory, because a system call for every record takes twice the time. The
    operating system has a record when `add` returns, so killing the process loses none. As long as
    the file is open it ends with zeros, with which no record begins.

    Whoever packs a record in place writes all but its first byte to `memory` from `size + 1` on,
    after `grow` if it ends beyond `room`, and then calls `end_record`.

    Attributes:
        size: Bytes of all records.
        room: Bytes for which there is room.
        memory: The whole room.
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
        self.size = self.room = os.fstat(self._file.fileno()).st_size
        self.memory = memoryview(b"")

    def add(self, opcode: int, rest: bytes) -> None:
        """Add a record.

        Args:
            opcode: Its first byte, not 0.
            rest: All its other bytes.

        Raises:
            OSError: There is no room for it; the file stays as it was.
        """
        start, size = self.size + 1, len(rest)
        if start + size > self.room:
            self.grow(start + size)
        self.memory[start : start + size] = rest
        self.end_record(opcode, size)

    def end_record(self, opcode: int, size: int) -> None:
        """Make a record of what was written after the last one.

        Args:
            opcode: Its first byte, not 0.
            size: Bytes of its rest.
        """
        self.memory[self.size] = opcode  # last, as there is no record if the process dies before
        self.size += 1 + size

    def grow(self, needed: int) -> None:
        """Make room for so many bytes and more, and map it.

        The room is taken from the disk here. Where a disk that is full were noticed only on
        writing to the map, that would kill the process. Zeros are written for it, since the first
        write to each page of a room that `fallocate` made takes three times as long.

        Raises:
            OSError: There is none; the file stays as it was.
        """
        room = needed + min(max(needed, _LEAST), _MOST)
        file, at = self._file.fileno(), self.room
        try:
            while at < room:
                at += os.pwrite(file, _ZEROS[: room - at], at)
            self.memory = memoryview(mmap.mmap(file, room))
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._file.name) from error
        self.room = room

    def content(self) -> memoryview:
        """Return all records, of which at least one was added here."""
        return self.memory[: self.size]

    def close(self) -> None:
        """Close the file, which ends with its last record then; a second call does nothing."""
        self.memory = memoryview(b"")  # the map ends when nobody holds the content any more
        self.room = self.size
        if not self._file.closed:
            with self._file:
                os.ftruncate(self._file.fileno(), self.size)
