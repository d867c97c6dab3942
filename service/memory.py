"""Says how much memory there is, and whether processes were killed for want of it (Linux)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/sys/fs/cgroup")
_GROUPS: Final = Path("/proc/self/cgroup")
_MACHINE: Final = Path("/proc/meminfo")
_UNLIMITED: Final = 1 << 60
"""Version 1 of control groups says a number above this where there is no limit."""


LOOK_SECONDS: Final = 0.5
"""How long a look at the memory is good for."""
RECENT_SECONDS: Final = 60.0
"""How long after a kill for want of memory a process that was killed is taken for one of these."""
PAUSES: Final = (2.0, 5.0, 15.0, 30.0, 60.0, 120.0)
"""Seconds to wait before what has died for want of memory is tried again, each time longer."""


class Memory:
    """The memory of this process and its children: of the machine, and of control groups.

    A limit may stand in any of the groups that this process is in, from its own one to the topmost
    that can be seen, as in a service within a slice, or a container within a pod.
    """

    def __init__(
        self, mounts: Path = _MOUNTS, groups: Path = _GROUPS, machine: Path = _MACHINE
    ) -> None:
        """Describe where the system tells of it.

        Args:
            mounts: Where control groups are mounted.
            groups: File with the groups of this process.
            machine: File with the memory of the machine.
        """
        self._mounts = mounts
        self._groups = groups
        self._machine = machine

    def available(self) -> int | None:
        """Return the bytes that processes can still get; None where nothing says it."""
        free = [] if (there := self._of_machine("MemAvailable")) is None else [there]
        for folder in self._folders():
            with suppress(OSError, ValueError):
                free.append(_room_left(folder))
        return min(free, default=None)

    def kills(self) -> int | None:
        """Return how many processes were killed for want of memory in these groups since boot.

        None where nothing says it. A group counts what is killed in the groups below it too, so
        the largest number stands for all. Where no group counts, those of the whole machine do.
        """
        found: list[int] = []
        for folder in self._folders():
            for name in ("memory.events", "memory.oom_control"):
                with suppress(OSError, ValueError, KeyError):
                    found.append(_fields(folder / name)["oom_kill"])
        if not found:
            with suppress(OSError, ValueError, KeyError):
                found.append(_fields(Path("/proc/vmstat"))["oom_kill"])
        return max(found, default=None)

    def _of_machine(self, key: str) -> int | None:
        with suppress(OSError, ValueError, IndexError):
            for line in self._machine.read_text("ascii").splitlines():
                if line.startswith(f"{key}:"):
                    return int(line.split()[1]) * 1024
        return None

    def _folders(self) -> Iterator[Path]:
        """Yield the folders of the groups that this process is in, the innermost first."""
        below = ""
        root = self._mounts
        with suppress(OSError, ValueError):
            for line in self._groups.read_text().splitlines():
                _, controllers, path = line.split(":", 2)
                if "memory" in controllers.split(","):  # version 1
                    root, below = self._mounts / "memory", path
                    break
                if not controllers:  # version 2
                    below = path
        folder = root / below.lstrip("/")
        # In a container the path may be one of the host's, of which only the top is seen here.
        while folder != root:
            if folder.is_dir():
                yield folder
            folder = folder.parent
        yield root


class SpareMemory:
    """Says whether there is memory for what is to begin; used on one event loop."""

    def __init__(
        self,
        spare: int = 0,
        available: Callable[[], int | None] | None = None,
        kills: Callable[[], int | None] | None = None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Begin to watch.

        Args:
            spare: Bytes that are to stay free.
            available: Returns the bytes that are free; None to ask the system.
            kills: Returns how often a process was killed for want of memory; None to ask it.
            now: Clock in seconds that no one sets.
            sleep: Waits for seconds.
        """
        self._spare = spare
        self._available = available or Memory().available
        self._kills = kills or Memory().kills
        self._now = now
        self._sleep = sleep
        self._known = self._kills()
        self._killed: float | None = None
        self._free: int | None = None
        self._looked: float | None = None

    def short(self) -> str:
        """Say in words what memory is missing; empty if none is, or if nobody can tell."""
        now = self._now()
        if self._looked is None or now - self._looked > LOOK_SECONDS:
            self._free, self._looked = self._available(), now
        if self._free is None or self._free >= self._spare:
            return ""
        return (
            f"the server has {self._free >> 20} MiB of memory left and keeps {self._spare >> 20} "
            "MiB free for what is under way"
        )

    def was_it(self, died_of: str) -> bool:
        """Return whether a process ended for want of memory.

        The system tells only how many it has killed for that: so one that was killed, by whomever,
        at the time of such a kill counts as one of them; where nothing tells it, every one does.

        Args:
            died_of: "memory" where it could get none, "kill" where it was killed, or empty.
        """
        kills = self._kills()
        if kills is not None and self._known is not None and kills > self._known:
            self._known, self._killed = kills, self._now()
        if died_of != "kill":
            return died_of == "memory"
        recent = self._killed is not None and self._now() - self._killed < RECENT_SECONDS
        return recent or kills is None

    async def recover(self, times: int) -> None:
        """Wait until what has died so many times, at least once, may be tried again.

        Where there is no memory by then, ten times as long as after so many deaths, and no longer.
        """
        for _ in range(11):
            await self._sleep(pause_after(times))
            if not self.short():
                return


def pause_after(times: int) -> float:
    """Return the seconds to wait after something has died so many times, at least once."""
    return PAUSES[min(times, len(PAUSES)) - 1]


def _room_left(folder: Path) -> int:
    """Return what a group has left, counting what the system takes back from files as free.

    Raises:
        OSError: It is no group with a limit.
        ValueError: It has no limit.
    """
    if (folder / "memory.max").exists():
        most = int((folder / "memory.max").read_text("ascii"))
        used = int((folder / "memory.current").read_text("ascii"))
        idle = "inactive_file"
    else:
        most = int((folder / "memory.limit_in_bytes").read_text("ascii"))
        used = int((folder / "memory.usage_in_bytes").read_text("ascii"))
        idle = "total_inactive_file"
        if most > _UNLIMITED:
            raise ValueError("no limit")
    return most - used + _fields(folder / "memory.stat").get(idle, 0)


def _fields(file: Path) -> dict[str, int]:
    """Read lines of a name and a number each."""
    lines = (line.split() for line in file.read_text("ascii").splitlines())
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdecimal()}
