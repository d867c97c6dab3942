"""The address at which agents of this machine play that have no network: a unix socket."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from animalcat.folders import sockets_folder

LONGEST: Final = 100
"""Most characters of a socket's path; systems take a few more."""


class LocalAddress:
    """A folder of its own for sockets, outside the data directory, which agents cannot see.

    Attributes:
        address: As gRPC takes it.
    """

    def __init__(self) -> None:
        """Make the folder."""
        self._folder = Path(tempfile.mkdtemp(prefix="animalcat-", dir=sockets_folder()))
        if len(str(self._folder)) > LONGEST - len("/agents"):
            self._folder.rmdir()
            self._folder = Path(tempfile.mkdtemp(prefix="animalcat-", dir="/tmp"))
        self._folder.chmod(0o711)
        self._socket = self._folder / "agents"
        self.address = f"unix:{self._socket}"

    def publish(self) -> None:
        """Let agents that run as another user connect, too: every call needs a ticket."""
        self._socket.chmod(0o666)

    def close(self) -> None:
        """Remove the folder with the socket."""
        shutil.rmtree(self._folder, ignore_errors=True)
