"""Ends an agent whose processes take more memory together than they may."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from animalcat.apart.confine import descendants, parents_of_all

_LOOK_SECONDS: Final = 0.2
"""How often the memory is looked at; a process fills some hundred megabytes meanwhile."""
_SHARED_SECONDS: Final = 0.1
"""For how long a look at all processes serves all agents of a command: it takes milliseconds, and a
session may have 64 agents."""
_looking: Final = threading.Lock()
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class MemoryLimit:
    """Watches a process and all that come from it, in a thread that ends with it.

    As long as all programs of the machine together take less than the agent may, nothing but that
    is looked at, so that an agent that means no harm costs nothing.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], most: int, folders: Sequence[str] = ()
    ) -> None:
        """Begin.

        Args:
            process: Whose.
            most: Bytes of memory.
            folders: Its folders that are in memory, as it sees them.
        """
        self._process, self._most, self._folders = process, most, tuple(folders)
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def why(self) -> str:
        """Why it was ended, in words; empty if it was not."""
        if not self._over.is_set():
            return ""
        return f"its processes took more than {self._most / (1 << 30):.3g} GiB of memory together"

    def _watch(self) -> None:
        while self._process.poll() is None:
            time.sleep(_LOOK_SECONDS)
            if _of_machine() <= self._most:
                continue
            processes = descendants(self._process.pid, _parents_lately())
            if _bytes_taken(processes, self._folders, self._most) > self._most:
                self._over.set()
                for process in descendants(self._process.pid):
                    with suppress(OSError):  # it has ended
                        os.kill(process, signal.SIGKILL)


def _parents_lately() -> dict[int, int]:
    """All processes of the machine, as they were a moment ago, and from which each comes."""
    with _looking:
        return _parents_at(int(time.monotonic() / _SHARED_SECONDS))


@lru_cache(maxsize=1)
def _parents_at(moment: int) -> dict[int, int]:
    """Look at all processes, once at each moment."""
    return parents_of_all()


def _of_machine() -> int:
    """Bytes of memory that all programs of the machine take, files in memory among them."""
    sizes: dict[str, int] = {}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            name, _, rest = line.partition(":")
            sizes[name] = int(rest.split()[0]) << 10
    return sizes["MemTotal"] - sizes["MemAvailable"]


def _bytes_taken(processes: Iterable[int], folders: Iterable[str], most: int) -> int:
    """Bytes that some processes take, and their folders in memory.

    What processes share counts once. To find that takes longer, so it is done where they would
    take too much otherwise.

    Args:
        processes: Their numbers.
        folders: As they see them.
        most: What they may take.
    """
    processes = list(processes)
    kept = max((_in_folders(process, folders) for process in processes), default=0)
    kept += sum(
        {key: size for process in processes for key, size in _without_name(process)}.values()
    )
    resident = {process: _resident(process) for process in processes}
    if kept + sum(resident.values()) <= most:
        return kept + sum(resident.values())
    shares = [_share(process, whole) for process, whole in resident.items()]
    # What they have mapped of files in memory is in both.
    return sum(own for own, _ in shares) + max(kept, sum(mapped for _, mapped in shares))


def _resident(process: int) -> int:
    with suppress(OSError), open(f"/proc/{process}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * _PAGE
    return 0


def _share(process: int, whole: int) -> tuple[int, int]:
    """Memory of a process, and what it has mapped of files in memory.

    What it shares counts in part. Of what it has mapped of files on disk, such as an agent's
    weights, the system lets go where memory is wanted, so that is not counted. If all this is
    unknown, all is its own.
    """
    sizes: dict[str, int] = {}
    with suppress(OSError), open(f"/proc/{process}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name in ("Pss_Anon", "Pss_Shmem"):
                sizes[name] = int(rest.split()[0]) << 10
    return sizes.get("Pss_Anon", whole), sizes.get("Pss_Shmem", 0)


def _without_name(process: int) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield the files in memory that a process has open and no folder has, each with its bytes."""
    folder = f"/proc/{process}/fd"
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):  # it was closed
                if os.readlink(f"{folder}/{name}").startswith("/memfd:"):
                    status = os.stat(f"{folder}/{name}")
                    yield (status.st_dev, status.st_ino), status.st_blocks * 512


def _in_folders(process: int, folders: Iterable[str]) -> int:
    """Bytes in folders that are in memory, as a process sees them; 0 where it has the machine's."""
    root = f"/proc/{process}/root"
    total = 0
    for folder in folders:
        with suppress(OSError):
            if os.path.samefile(root, "/"):  # it is what starts the agent
                return 0
            there = os.statvfs(root + folder)
            total += (there.f_blocks - there.f_bfree) * there.f_frsize
    return total
