"""Says how much memory there is, and whether processes were killed for want of it (Linux)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/sys/fs/cgroup")
_GROUPS: Final = Path("/proc/self/cgroup")
_MACHINE: Final = Path("/proc/meminfo")
_UNLIMITED: Final = 1 << 60
"""Version 1 of control groups says a number above this where there is no limit."""


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
                free.append(_left(folder))
        return min(free, default=None)

    def kills(self) -> int:
        """Return how many processes were killed for want of memory in these groups since boot.

        A group counts what is killed in the groups below it too, so the largest number stands for
        all. Where no group counts, the kills of the whole machine do.
        """
        found: list[int] = []
        for folder in self._folders():
            for name in ("memory.events", "memory.oom_control"):
                with suppress(OSError, ValueError, KeyError):
                    found.append(_fields(folder / name)["oom_kill"])
        if not found:
            with suppress(OSError, ValueError, KeyError):
                found.append(_fields(Path("/proc/vmstat"))["oom_kill"])
        return max(found, default=0)

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


def _left(folder: Path) -> int:
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
