"""What an agent's process prints: read as it comes, kept in little memory, and shown harmlessly."""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Final

from animalcat.text.terminals import harmless

KEPT_BYTES: Final = 64 << 10
"""How much of the end of what an agent printed is kept."""
LINES: Final = 60
"""Most lines of it that are shown, so that a traceback is whole."""
_LONGEST: Final = 4000
"""Most characters of a line that are shown."""
_PIECE: Final = 64 << 10
MARK: Final = "agent | "
"""Stands before each line, so that none is taken for the command's own."""

WAITS: Final = "waiting: "
"""Begins a line in which an agent says what it waits for, which is shown at once."""


class AgentOutput:
    """Reads a pipe to its end in a thread, and keeps the end of what comes.

    An agent that prints much is not held up, and takes no memory of the command.
    """

    def __init__(self) -> None:
        """Make a pipe, and begin to read."""
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._total = 0
        self._end, self.writes = os.pipe()
        self._changing = threading.Lock()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def begun(self) -> None:
        """Let go of the end that the process writes to, once it has it."""
        os.close(self.writes)

    def wait(self, seconds: float = 2.0) -> None:
        """Wait for the rest of what a process printed that has ended.

        Args:
            seconds: How long, where something that it left behind still could print.
        """
        self._thread.join(seconds)

    def text(self) -> str:
        """What was kept, as the agent printed it; with a note where the beginning is cut."""
        with self._changing:
            kept, total = b"".join(self._kept)[-KEPT_BYTES:], self._total
        text = kept.decode(errors="replace")
        if (away := total - len(kept)) > 0:
            return f"[{away:,} bytes before this are not kept]\n{text}"
        return text

    def _read(self) -> None:
        while piece := os.read(self._end, _PIECE):
            with self._changing:
                self._total += len(piece)
                self._kept.append(piece)
                self._size += len(piece)
                while self._size - len(self._kept[0]) >= KEPT_BYTES:
                    self._size -= len(self._kept.popleft())
        os.close(self._end)


def last_lines(text: str) -> list[str]:
    """Return the last lines of what an agent printed, as they are shown to people."""
    lines = harmless(text.replace("\r\n", "\n")).strip().splitlines()
    return [
        MARK
        + (line if len(line) <= _LONGEST else f"{line[:_LONGEST]} [... {len(line):,} characters]")
        for line in lines[-LINES:]
    ]
