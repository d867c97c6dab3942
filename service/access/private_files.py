"""Writes files that their owner alone can read, and leaves them to the owner of their folder.

Whoever runs a command as root would else take away files from the server that reads them.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from animalcat.machine.files import replace_file


def private_folder(folder: Path) -> None:
    """Make a folder that its owner alone can look into."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    keep_owner(folder)


def keep_owner(path: Path) -> None:
    """Let a file or folder that root has made belong to whom the folder around it belongs."""
    if os.geteuid() == 0:
        theirs, its = path.parent.stat(), path.stat()
        if (its.st_uid, its.st_gid) != (theirs.st_uid, theirs.st_gid):
            os.chown(path, theirs.st_uid, theirs.st_gid)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read, as a whole or not at all."""
    replace_file(path, content, 0o600, keep_owner)


def make_private(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read, unless it is there already.

    Of several processes that do so at once one writes, and all find the same.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    write_private(temporary, content)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()
