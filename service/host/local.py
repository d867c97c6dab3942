"""The address at which agents of this machine play that have no network: a unix socket."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from animalcat.folders import sockets_folder

LONGEST: Final = 84
"""Most characters of the folder, as systems take about 104 for the path of a socket in it."""


class LocalAddress:
    """A folder of its own for sockets, outside the data directory, which agents cannot see.

    Attributes:
        folder: The folder, in which workers have sockets for their agents as well.
        address: The server's own socket, as gRPC takes it.
    """

    def __init__(self) -> None:
        """Make the folder."""
        self.folder = Path(tempfile.mkdtemp(prefix="animalcat-", dir=sockets_folder()))
        if len(str(self.folder)) > LONGEST:
            self.folder.rmdir()
            self.folder = Path(tempfile.mkdtemp(prefix="animalcat-", dir="/tmp"))
        self.folder.chmod(0o711)
        self._socket = self.folder / "agents"
        self.address = f"unix:{self._socket}"

    def publish(self) -> None:
        """Let agents that run as another user connect, too: every call needs a ticket."""
        self._socket.chmod(0o666)

    def close(self) -> None:
        """Remove the folder with the socket."""
        shutil.rmtree(self.folder, ignore_errors=True)
