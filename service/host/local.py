"""A unix socket at which agents of this machine play that have no network, or commands call."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from animalcat.machine.folders import SERVER_FOLDER, SOCKET, sockets_folder

LONGEST: Final = 84
"""Most characters of the folder, as systems take about 104 for the path of a socket in it."""
LOCK: Final = ".lock"
"""File that the server of a folder has locked for as long as it lives."""


class LocalAddress:
    """A folder of its own for sockets, outside the data directory, which agents cannot see.

    Folders that killed servers of this user left behind are removed.

    Attributes:
        folder: The folder, in which workers have sockets for their agents as well.
        address: The server's own socket, as gRPC takes it.
    """

    def __init__(self) -> None:
        """Make the folder."""
        below = sockets_folder()
        if below is not None:
            clean(below)
        self.folder = Path(tempfile.mkdtemp(prefix=SERVER_FOLDER, dir=below))
        if len(str(self.folder)) > LONGEST:
            self.folder.rmdir()
            self.folder = Path(tempfile.mkdtemp(prefix=SERVER_FOLDER, dir="/tmp"))
        # The file is there only once it is locked, so that no other server takes this one for dead.
        unlocked = self.folder / f"{LOCK}.new"
        self._lock = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        unlocked.rename(self.folder / LOCK)
        self.folder.chmod(0o711)
        self._socket = self.folder / SOCKET
        self.address = f"unix:{self._socket}"

    def publish(self) -> None:
        """Let agents that run as another user connect, too: every call needs a ticket."""
        self._socket.chmod(0o666)

    def close(self) -> None:
        """Remove the folder with the socket; a second call does nothing."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def clean(below: Path) -> None:
    """Remove the folders of servers that are dead.

    Args:
        below: The folder of this user in which they are.
    """
    for folder in below.glob(f"{SERVER_FOLDER}*"):
        with suppress(OSError):  # another server that starts is removing it as well
            if folder.lstat().st_uid == os.getuid() and folder.is_dir() and _is_dead(folder):
                shutil.rmtree(folder)


def _is_dead(folder: Path) -> bool:
    """Return whether nobody serves a folder; one without any trace may be about to be served."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:  # it is new, or of a version that made no such file
        with socket.socket(socket.AF_UNIX) as caller:
            try:
                caller.connect(str(folder / SOCKET))
            except ConnectionRefusedError:
                return True
            except OSError:
                return False
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
