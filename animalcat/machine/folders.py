"""Where animalcat keeps files of its own on this machine."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Final

SERVER_FOLDER: Final = "animalcat-"
"""How the name of a server's folder of sockets begins."""
SOCKET: Final = "agents"
"""Name of the socket in it at which agents come in."""


def caches() -> Path:
    """Folder in which programs of this user keep what can be worked out again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cache_folder(part: str) -> Path:
    """Folder for what can be worked out again: below XDG_CACHE_HOME, or else ~/.cache.

    Args:
        part: What is kept there, as the name of a folder.
    """
    return caches() / "animalcat" / part


def sockets_folder() -> Path | None:
    """Folder for the sockets at which agents without a network reach this user's servers.

    It is made here, so that it is there before an agent's process could make another in its place.

    Returns:
        The folder; None if somebody else has made one of this name.
    """
    folder = Path(tempfile.gettempdir()) / f"animalcat-{os.getuid()}"
    folder.mkdir(mode=0o711, exist_ok=True)
    found = folder.lstat()
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if mine and not found.st_mode & stat.S_IXOTH:  # the umask of a server leaves others nothing
        folder.chmod(0o711)
    return folder if mine and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else None
