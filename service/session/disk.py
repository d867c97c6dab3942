"""Keeps room on the disk for the outcomes of what is played."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path
from typing import Final

LOOK_SECONDS: Final = 1.0
"""How long a look at the disk is good for, and how often who waits for room looks again."""


class Disk:
    """Says whether the disk of a data directory has the room that is to stay free."""

    def __init__(self, folder: Path = Path(), spare: int = 0) -> None:
        """Describe the disk; nothing is looked at yet.

        Args:
            folder: The data directory.
            spare: Bytes that are to stay free; 0 to ask for none.
        """
        self._folder = folder
        self._spare = spare
        self._found = spare
        self._looked = -LOOK_SECONDS

    @property
    def wanted(self) -> str:
        """What a session waits for while there is too little room, in words."""
        return f"room on the server's disk, where {self._spare >> 20} MiB are to stay free"

    async def short(self) -> str:
        """Say in words what room is missing; empty if none is, or if nobody can tell."""
        if not self._spare:
            return ""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            self._found = await asyncio.to_thread(self._look)
        if self._found >= self._spare:
            return ""
        return (
            f"the disk of {self._folder} has {self._found >> 20} MiB left, and the server keeps "
            f"{self._spare >> 20} MiB free for what is under way: delete sessions or other files "
            "there"
        )

    def _look(self) -> int:
        try:
            return free_bytes(self._folder)
        except OSError:  # whoever writes there will be told
            return self._spare


def free_bytes(folder: Path) -> int:
    """Return the bytes that are free for this process where a folder is.

    Raises:
        OSError: Nobody can tell.
    """
    return disk_bytes(folder)[0]


def disk_bytes(folder: Path) -> tuple[int, int]:
    """Return the bytes that are free for this process where a folder is, and all bytes there.

    Raises:
        OSError: Nobody can tell.
    """
    found = shutil.disk_usage(folder)
    return found.free, found.total
