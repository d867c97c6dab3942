"""One server per data directory: a lock that the operating system drops with its process."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Final, NamedTuple

LOCK_FILE: Final = "server.lock"


class Holder(NamedTuple):
    """Who holds a data directory: address of the server (empty while it starts), process id."""

    address: str
    pid: int


class DirectoryInUseError(RuntimeError):
    """Another server works on the data directory.

    Attributes:
        holder: Who.
    """

    def __init__(self, data: Path, holder: Holder) -> None:
        self.holder = holder
        where = f"at {holder.address}" if holder.address else "that is starting"
        super().__init__(
            f"data directory {data} is in use by the server {where} (process {holder.pid}); "
            "connect to it, or choose another directory with --data"
        )


class DirectoryLock:
    """Holds a data directory until `release` or the end of the process.

    Raises:
        DirectoryInUseError: Another server holds it.
    """

    def __init__(self, data: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self._file = os.open(data / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if not _lock(self._file):
            holder = _read(self._file)
            os.close(self._file)
            raise DirectoryInUseError(data, holder)
        self.publish("")

    def publish(self, address: str) -> None:
        """Write down where the server listens."""
        content = json.dumps(Holder(address, os.getpid())._asdict()).encode()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, content, 0)

    def release(self) -> None:
        """Let go; calling it twice is fine."""
        if self._file >= 0:
            # The file stays: removing it would let two servers lock two files of one name.
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = -1


def running_server(data: Path) -> Holder | None:
    """Who works on a data directory; None where nobody does."""
    try:
        file = os.open(data / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # Shared, so that two who ask do not take each other for the server.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(file)
    finally:
        os.close(file)
    return None


def _lock(file: int) -> bool:
    # Somebody who only asks (`running_server`) holds the lock for an instant: try again.
    for pause in (0.02, 0.05, 0.1, None):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if pause is not None:
                time.sleep(pause)
    return False


def _read(file: int) -> Holder:
    try:
        return Holder(**json.loads(os.pread(file, 4096, 0) or b"{}"))
    except (ValueError, TypeError):  # between truncation and writing
        return Holder("", 0)
