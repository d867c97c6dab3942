"""How long to wait for a process: as long as it works, up to a generous limit of CPU time.

Wall-clock time says little about a process: on a loaded machine, compiling for ten seconds may take
minutes. What distinguishes a working process from a hung one is the CPU time that the operating
system counts for it. A heartbeat from a thread would not do: it continues beside a deadlock, and
stops while a compiler holds the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

WORK: Final = 0.02
"""Seconds of CPU time that count as work; the system counts in hundredths."""


@dataclass(frozen=True, slots=True)
class Patience:
    """When to give up a process that was asked something.

    Attributes:
        quiet_seconds: Time without answer or work after which it counts as hung.
        cpu_seconds: CPU time for one answer after which it counts as in an endless loop.
    """

    quiet_seconds: float = 30.0
    cpu_seconds: float = 300.0

    @property
    def interval(self) -> float:
        """Seconds between two looks."""
        return min(5.0, self.quiet_seconds / 4)

    async def outlast(self, pid: int) -> str:
        """Wait until the process is to be given up, and return the reason.

        Args:
            pid: Id of the process, which has just been asked something.
        """
        watch = Watchdog(self, pid)
        while not (reason := watch.look()):
            await asyncio.sleep(self.interval)
        return reason


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has used, in seconds.

    On a system without `/proc`, wall-clock time is used instead. Then nothing counts as hung, and
    the limit of CPU time also ends what hangs.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Watchdog:
    """Watches a process that was asked one thing."""

    __slots__ = ("_clock", "_cpu", "_first", "_looked", "_patience", "_pid", "_quiet", "_worked")

    def __init__(
        self,
        patience: Patience,
        pid: int,
        clock: Callable[[], float] = time.monotonic,
        cpu: Callable[[int], float] = cpu_seconds,
    ) -> None:
        """Begin to watch; nothing is read before the first look, so a quick answer costs nothing.

        Args:
            patience: When to give up.
            pid: Id of the process.
            clock: Returns the time in seconds.
            cpu: Returns the CPU seconds of a process.
        """
        self._patience = patience
        self._pid = pid
        self._clock = clock
        self._cpu = cpu
        self._first: float | None = None
        self._worked = self._looked = self._quiet = 0.0

    def look(self) -> str:
        """Why to give up the process; empty while there is no reason. Call it every `interval`."""
        now, cpu = self._clock(), self._cpu(self._pid)
        if self._first is None:
            self._first = self._worked = cpu
        elif cpu - self._worked >= WORK:
            self._worked, self._quiet = cpu, 0.0
        else:
            # While nobody looked, the machine may have slept, and the process with it.
            self._quiet += min(now - self._looked, 2 * self._patience.interval)
        self._looked = now
        if self._quiet >= self._patience.quiet_seconds:
            return f"no answer for {self._patience.quiet_seconds:g} s, nor any work"
        if cpu - self._first >= self._patience.cpu_seconds:
            return f"no answer after {self._patience.cpu_seconds:g} s of CPU time"
        return ""
