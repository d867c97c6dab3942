"""Lets a data directory have only one server, by a lock that ends with the server's process."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Final, NamedTuple

LOCK_FILE: Final = "server.lock"


class Holder(NamedTuple):
    """The server of a data directory: its address (empty while it starts) and its process id."""

    address: str
    pid: int


class DirectoryInUseError(RuntimeError):
    """Another server uses the data directory.

    Attributes:
        holder: That server.
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
        """Write into the lock file where the server listens."""
        content = json.dumps(Holder(address, os.getpid())._asdict()).encode()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, content, 0)

    def release(self) -> None:
        """Release the directory; a second call does nothing."""
        if self._file >= 0:
            # The file stays: after its removal, two servers could each lock a file of this name.
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = -1


def running_server(data: Path) -> Holder | None:
    """Return the server that uses a data directory; None if there is none."""
    try:
        file = os.open(data / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # A shared lock, so that two processes that ask do not take each other for the server.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(file)
    finally:
        os.close(file)
    return None


def _lock(file: int) -> bool:
    # A process that only asks (`running_server`) holds the lock for an instant: try again.
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
    except (ValueError, TypeError):  # read between truncation and writing
        return Holder("", 0)
