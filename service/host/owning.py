"""Keeps a data directory its owner's: no other user reads it, and none leaves files in it."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from animalcat.service.access.tokens import FOLDER
from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.host.lock import LOCK_FILE
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.storage.artefacts import RECORDINGS
from animalcat.service.storage.sql import DATABASE

UMASK: Final = 0o077
"""What other users get of new files: nothing."""
_FILES: Final = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", LOCK_FILE, "requests.jsonl")
_FOLDERS: Final = (RECORDINGS, CERTIFICATES, BATTERIES, FOLDER, "operations")
_PUBLIC: Final = frozenset({"server.pem"})
"""The certificate, which callers are given."""


class OtherOwnerError(Exception):
    """A data directory is another user's; the message says whose, and what to do."""


def check_owner(data: Path) -> None:
    """Check that what is in a data directory is this user's, so that all of it stays one user's.

    A folder in which a server has never been may be anybody's, as a volume is that is shared with
    this process by its group.

    Args:
        data: The data directory, which need not be there.

    Raises:
        OtherOwnerError: It is another user's.
    """
    there = [data / name for name in (DATABASE, LOCK_FILE, FOLDER)]
    with suppress(OSError):
        found = next((path.stat() for path in there if path.exists()), None)
        if found is None and os.geteuid() == 0 and data.exists():
            found = data.stat()  # root can write everywhere, and its files nobody else can read
        if found is None or found.st_uid == os.geteuid():
            return
        whose, me = _name(found.st_uid), _name(os.geteuid())
        raise OtherOwnerError(
            f"the data directory {data} is {whose}'s, and you are {me}: {whose} could not read "
            f"what you make there. Do it as that user: sudo -u {whose} animalcat ..."
        )


def own(data: Path) -> None:
    """See that no other user can read what a server has in its data directory, now or later.

    What others may read of files of before is taken back. The umask of this process, and so of its
    simulators and fits, is set for what is to come.

    Args:
        data: The data directory; it is made where it is not there.
    """
    os.umask(UMASK)
    data.mkdir(parents=True, exist_ok=True)
    for path in _of_server(data):
        with suppress(OSError):  # it is gone, or another user's
            found = path.lstat()
            open_to = stat.S_IMODE(found.st_mode) & UMASK
            if open_to and found.st_uid == os.geteuid() and not stat.S_ISLNK(found.st_mode):
                path.chmod(stat.S_IMODE(found.st_mode) & ~UMASK)


def _of_server(data: Path) -> Iterator[Path]:
    """Yield the files and folders of a server; who cannot enter a folder reads nothing in it."""
    for folder in (data / name for name in _FOLDERS):
        with suppress(OSError):
            if folder.stat().st_mode & UMASK:
                yield from (path for path in folder.rglob("*") if path.name not in _PUBLIC)
                yield folder
    yield from (data / name for name in _FILES)
    if (data / DATABASE).exists() or not any(data.iterdir()):
        yield data


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"#{uid}"
