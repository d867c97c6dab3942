"""A counter that a worker shares with its parent, by which the parent sees that it works or waits.

While a worker speaks to its agent itself, its parent hears nothing. The counter is odd while the
worker simulates and even while it waits for the agent, and it changes with every decision. So the
parent knows which of the two it sees, without a message.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from typing import Final

_COUNTER: Final = struct.Struct("=Q")


class Pulse:
    """The counter, in memory that both processes map."""

    def __init__(self, fd: int | None = None) -> None:
        """Make a counter, or map that of another process.

        Args:
            fd: File descriptor of the other process's counter; None to make one.
        """
        if fd is None:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
            os.ftruncate(fd, _COUNTER.size)
        self.fd = fd
        self._map = mmap.mmap(fd, _COUNTER.size)
        self._count = self.read()

    def beat(self) -> None:
        """Go from waiting to working, or back; only the worker calls it."""
        self._count += 1
        _COUNTER.pack_into(self._map, 0, self._count)

    def rest(self) -> None:
        """Go to waiting, whatever the state was; only the worker calls it."""
        if self._count % 2:
            self.beat()

    def read(self) -> int:
        """Return the counter: odd while the worker works."""
        return _COUNTER.unpack_from(self._map)[0]

    def close(self) -> None:
        """Free it in this process; a second call does nothing."""
        if self.fd >= 0:
            self._map.close()
            os.close(self.fd)
            self.fd = -1
