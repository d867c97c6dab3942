"""Opens a store with its files, as the data directory and the environment say where they are."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from sqlalchemy.exc import DBAPIError

from animalcat.errors import AnimalcatError
from animalcat.service.host.lock import DirectoryInUseError
from animalcat.service.host.settings import Settings
from animalcat.service.session.disk import free_bytes
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.damage import REMEDY, damage_of
from animalcat.service.storage.errors import StoreInUseError
from animalcat.service.storage.migrate import StoreUnreachableError, StoreVersionError
from animalcat.service.storage.sql import DATABASE, SqlStore

MIB: Final = 1 << 20
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FULL_DATABASE: Final = ("database or disk is full", "no space left on device", "disk full")
"""What SQLite and PostgreSQL say where there is no room."""


class DataError(AnimalcatError):
    """A store, a backup or a disk does not allow what was asked for; the message says why."""


class Tell(Protocol):
    """Takes how far something is."""

    def __call__(self, words: str, done: int = 0, total: int | None = None) -> None:
        """Show it.

        Args:
            words: What is being done.
            done: How much of it is done.
            total: How much there is to do; None: not known.
        """
        ...


def silent(words: str, done: int = 0, total: int | None = None) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Place:
    """A store with its files.

    Attributes:
        settings: What says where they are.
        home: The data directory.
        store: The database.
        files: Where batteries, recordings and draws are.
    """

    settings: Settings
    home: Path
    store: SqlStore
    files: Artefacts

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return place_name(self.settings)


def place_name(settings: Settings) -> str:
    """Return what a store is called in messages."""
    home = str(settings.home)
    return f"the PostgreSQL of {home}" if settings.store else home


@contextmanager
def open_place(settings: Settings) -> Generator[Place]:
    """Open a store that is there, for the block; it may be in use.

    Raises:
        DataError: There is none, or it cannot be used.
    """
    with say_errors(settings):
        if not settings.store and not (settings.home / DATABASE).is_file():
            raise DataError(
                f"there is no store in {settings.home}. Name its data directory with --data; where "
                "its server was started with --store, set ANIMALCAT_STORE to the same URL"
            )
        with closing(SqlStore.in_directory(settings.home, settings.store)) as store:
            yield Place(settings, settings.home, store, Artefacts(settings.home))


@contextmanager
def say_errors(settings: Settings, written: Path | None = None) -> Generator[None]:
    """Say in words what goes wrong in the block.

    Args:
        settings: Of the store.
        written: Where is written; None for the data directory.

    Raises:
        DataError: In the place of what storages, databases and disks raise.
    """
    try:
        yield
    except (
        StoreUnreachableError,
        StoreVersionError,
    ) as error:
        raise DataError(str(error)) from error
    except (DirectoryInUseError, StoreInUseError) as error:
        raise DataError(str(error), "UNAVAILABLE") from error
    except (DBAPIError, sqlite3.Error) as error:
        words = str(error.orig if isinstance(error, DBAPIError) else error).strip()
        if any(sign in words.lower() for sign in _FULL_DATABASE):
            raise DataError(full_disk(written or settings.home)) from error
        if isinstance(error, DBAPIError) and (damage := damage_of(error)):
            raise DataError(
                f"the database of {place_name(settings)} is damaged ({damage}). {REMEDY}"
            ) from error
        raise DataError(f"the database of {place_name(settings)}: {words}") from error
    except OSError as error:
        if error.errno in _FULL:
            raise DataError(full_disk(written or settings.home)) from error
        what = error.strerror or type(error).__name__
        raise DataError(f"{error.filename}: {what}" if error.filename else what) from error


def full_disk(path: Path) -> str:
    """Say that there is no room where a path is."""
    return f"the disk of {path} is full, so nothing was changed; make room there and try again"


def insist_on_room(folder: Path, wanted: int, keep: int, what: str) -> None:
    """Check that something has room before it is begun.

    Args:
        folder: An existing folder on the disk.
        wanted: Bytes that it takes.
        keep: Bytes that are to stay free.
        what: What it is, for the message.

    Raises:
        DataError: It has not.
    """
    free = free_bytes(folder)
    if free - wanted < keep:
        kept = f", and {keep / MIB:,.0f} MiB are to stay free" if keep else ""
        raise DataError(
            f"{what} takes about {wanted / MIB:,.1f} MiB, and the disk of {folder} has "
            f"{free / MIB:,.1f} MiB left{kept}; make room there, or choose another place"
        )


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync_disk(folder: Path) -> None:
    """Let all that was written on the disk of a folder survive a power cut.

    Raises:
        OSError: The disk did not take it.
    """
    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:  # not Linux
        os.sync()
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if call(handle):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
    finally:
        os.close(handle)
