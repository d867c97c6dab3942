"""Lets a data directory have only one server, by a lock that ends with the server's process."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Final, NamedTuple

from animalcat.machine.marks import mark

LOCK_FILE: Final = "server.lock"


class Holder(NamedTuple):
    """The server of a data directory.

    Attributes:
        address: Where it listens; empty while it starts, and where the lock file was deleted.
        pid: Id of its process; 0 where that is not known.
    """

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
        who = f"the server {where} (process {holder.pid})" if holder.pid else "another server"
        super().__init__(
            f"data directory {data} is in use by {who}; "
            "connect to it, or choose another directory with --data"
        )


class DirectoryLock:
    """Holds a data directory until `release` or the end of the process.

    Raises:
        DirectoryInUseError: Another server holds it.
    """

    def __init__(self, data: Path) -> None:
        data.mkdir(parents=True, exist_ok=True)
        self._path = data / LOCK_FILE
        self._content = b""
        # The folder is locked as well: the file may be deleted, and another one would take a lock.
        self._folder = _open_folder(data)
        self._file = -1
        try:
            self._file = self._open()
            if not _lock(self._file) or (self._folder >= 0 and not _lock(self._folder)):
                raise DirectoryInUseError(data, _read(self._file))
            mark(data)
        except BaseException:
            self._close()
            raise
        self.publish("")

    def publish(self, address: str, local: str = "", web: str = "") -> None:
        """Write into the lock file where the server listens.

        Args:
            address: Where it listens.
            local: Where commands of this machine reach it, if not there.
            web: Address of its web pages; empty for none.
        """
        also = {"local": local, "web": web}
        said = Holder(address, os.getpid())._asdict() | {k: v for k, v in also.items() if v}
        self._content = json.dumps(said).encode()
        self._write()

    def restore(self) -> None:
        """Write the lock file again if it was deleted, so that others find the server."""
        try:
            if self._path.stat().st_ino == os.fstat(self._file).st_ino:
                return
        except FileNotFoundError:
            pass
        fresh = self._open()
        if not _lock(fresh):  # somebody looks whether there is a server; the next time will do
            os.close(fresh)
            return
        lost, self._file = self._file, fresh
        os.close(lost)
        self._write()

    def release(self) -> None:
        """Release the directory; a second call does nothing."""
        if self._file >= 0:
            # The file stays: after its removal, two servers could each lock a file of this name.
            os.ftruncate(self._file, 0)
            self._close()

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _write(self) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, self._content, 0)

    def _close(self) -> None:
        for file in (self._file, self._folder):
            if file >= 0:
                os.close(file)
        self._file = self._folder = -1


def running_server(data: Path) -> Holder | None:
    """Return the server that uses a data directory; None if there is none."""
    try:
        file = os.open(data / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # Perhaps the file was deleted, and the server is about to write it again.
        folder = _open_folder(data)
        return Holder("", 0) if folder >= 0 and _is_locked(folder) else None
    holder = _read(file)
    return holder if _is_locked(file) else None


def local_address(data: Path) -> str:
    """Return where commands of this machine reach the server of a data directory.

    Empty where that is its own address, and where there is no server.
    """
    return _publish(data, "local")


def web_address(data: Path) -> str:
    """Return the address of the web pages of a data directory's server; empty for none."""
    return _publish(data, "web")


def _publish(data: Path, what: str) -> str:
    try:
        return str(json.loads((data / LOCK_FILE).read_bytes()).get(what, ""))
    except (OSError, ValueError, AttributeError):
        return ""


def _is_locked(file: int) -> bool:
    """Return whether another process holds an open file; it is closed."""
    try:
        # A shared lock, so that two processes that ask do not take each other for the server.
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system on which a folder cannot be locked
        return False
    finally:
        os.close(file)
    return False


def _open_folder(data: Path) -> int:
    """Return a folder opened to be locked; -1 where folders cannot be."""
    try:
        file = os.open(data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_UN)
    except BlockingIOError:
        return file
    except OSError:  # NFS, for one, locks only what is open for writing
        os.close(file)
        return -1
    return file


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
        said = json.loads(os.pread(file, 4096, 0))
        return Holder(said["address"], said["pid"])
    except (ValueError, TypeError, KeyError):  # read between truncation and writing
        return Holder("", 0)
