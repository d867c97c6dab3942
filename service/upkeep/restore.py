"""Restores a backup into an empty place."""

from __future__ import annotations

import gzip
import re
import secrets
import shutil
import tarfile
import zlib
from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Final

from animalcat.machine import marks
from animalcat.machine.files import sync_folder
from animalcat.service.access.tokens import FOLDER as ACCESS
from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.host.lock import LOCK_FILE, DirectoryLock
from animalcat.service.host.settings import Settings
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.storage import schema
from animalcat.service.storage.artefacts import MARK, RECORDINGS, Artefacts
from animalcat.service.storage.belonging import KEPT
from animalcat.service.storage.sql import DATABASE, SqlStore
from animalcat.service.upkeep.backup import DUMP, MANIFEST, OTHERS, manifest_in, run_postgres
from animalcat.service.upkeep.place import (
    DataError,
    Tell,
    file_digest,
    insist_on_room,
    place_name,
    say_errors,
    silent,
    sync_disk,
)

_STAGE: Final = ".restoring-"
"""Begins the name of the folder within a data directory in which a backup is put together."""
_READY: Final = "ready"
"""Folder in that once all is in it, and only names have to be changed."""
_NAMES: Final = re.compile(
    rf"{re.escape(DATABASE)}|{re.escape(DUMP)}|{re.escape(MANIFEST)}"
    rf"|(?:{'|'.join((RECORDINGS, CERTIFICATES))})/[^/.][^/]*/[^/.][^/]*"
    rf"|(?:{'|'.join((BATTERIES, ACCESS, *OTHERS))})(?:/[^/.][^/]*)+"
)
"""What a file of a backup may be called, since a backup may come from anywhere."""
MOST_FILES: Final = 2_000_000
"""Most files of a backup."""
_MOST_AT_ONCE: Final = 1 << 20
"""Most bytes that are read at once; only what goes before a file, as its name, is."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored.

    Attributes:
        place: Where.
        made: When the backup was made, ISO 8601.
        sessions: Number of sessions.
        files: Number of files.
        keys: Whether tokens and keys were in the backup.
        damaged: What was wrong already when the backup was made, a sentence each.
    """

    place: str
    made: str
    sessions: int
    files: int
    keys: bool
    damaged: tuple[str, ...]


def restore(path: Path, settings: Settings, tell: Tell = silent) -> Restored:
    """Restore a backup into an empty place, with the kind of database that it is of.

    Everything is put together aside and compared with its digests, and appears at the end. When
    this is killed while it does, the next call finishes it. The database gets an id of its own,
    since the store that was backed up may go on. Tokens and keys of the place stay.

    Args:
        path: The backup.
        settings: Where to: a data directory, and a database if one is set.
        tell: Told how far it is.

    Raises:
        DataError: The place is not empty or is in use, the backup is no whole one, or the disk is
            full. The place is as it was.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    with say_errors(settings, settings.home), _own_store(settings):
        for stage in settings.home.glob(f"{_STAGE}*"):  # of one that was killed
            if (stage / _READY).exists() and not settings.store:
                return _finish(stage, settings)
            shutil.rmtree(stage)
        _insist_on_empty(settings)
        insist_on_room(settings.home, path.stat().st_size, 0, "the backup")
        stage = settings.home / f"{_STAGE}{secrets.token_hex(4)}"
        stage.mkdir(mode=0o700)
        try:
            _unpack(path, stage / "content", settings, tell)
            tell("making it safe on the disk")
            sync_disk(stage)
            (stage / "content").rename(stage / _READY)
            return _finish(stage, settings)
        finally:
            if settings.store or not (stage / _READY).exists():  # else the next call finishes it
                shutil.rmtree(stage, ignore_errors=True)


@contextmanager
def _open_archive(path: Path) -> Generator[Any]:
    """Open a backup for the block, compressed or not, by what it begins with."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        pieces: Any = _InPieces(gzip.GzipFile(fileobj=file) if packed else file)
        with tarfile.open(fileobj=pieces, mode="r:") as archive:
            yield archive


class _InPieces:
    """A file of which no more is read at once than `tarfile` needs for what is true."""

    def __init__(self, file: BufferedIOBase) -> None:
        self.seek, self.tell = file.seek, file.tell
        self._file = file

    def read(self, size: int) -> bytes:
        """Read so many bytes.

        Raises:
            tarfile.ReadError: They are too many.
        """
        if not 0 <= size <= _MOST_AT_ONCE:
            raise tarfile.ReadError(f"a name of {size:,} bytes")
        return self._file.read(size)


def _unpack(path: Path, folder: Path, settings: Settings, tell: Tell) -> None:
    """Unpack a backup, and compare all of it with its manifest.

    Raises:
        DataError: It is no whole backup, or one of the other kind of database.
    """
    found: dict[str, str] = {}
    size = 0
    try:
        with _open_archive(path) as archive:
            while (member := archive.next()) is not None:
                archive.members.clear()  # nothing looks back
                tell("copying files", len(found))
                size += member.size
                if (
                    not member.isreg()
                    or member.issparse()
                    or not _NAMES.fullmatch(member.name)
                    or member.name in found
                    or len(found) >= MOST_FILES
                ):
                    raise DataError(
                        f"{path} is damaged, or not a backup: it has {member.name[:80]!r} in it, "
                        "which no store has"
                    )
                insist_on_room(settings.home, member.size, 0, f"the backup ({size:,} bytes)")
                archive.extract(member, folder, filter="data")
                found[member.name] = file_digest(folder / member.name)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise DataError(f"{path} is cut off or damaged: {error}") from error
    manifest = manifest_in(folder, path)
    del found[MANIFEST]
    for key in sorted({*found} | {*manifest["files"]}):
        if found.get(key) != manifest["files"].get(key):
            raise DataError(
                f"{path} is damaged: {key} is not as the backup was made; use another backup"
            )
    if manifest["database"] != (DUMP if settings.store else DATABASE):
        kind = "an SQLite database" if settings.store else "a PostgreSQL"
        raise DataError(
            f"{path} is of {kind}, and is restored into one of that kind: "
            + ("unset ANIMALCAT_STORE" if settings.store else "set ANIMALCAT_STORE")
        )
    if (folder / ACCESS).is_dir():
        (folder / ACCESS).chmod(0o700)


def _finish(stage: Path, settings: Settings) -> Restored:
    """Give everything its name, the database last, without which nothing else is looked at."""
    content, home = stage / _READY, settings.home
    manifest = manifest_in(content, stage)
    if settings.store:
        _fill(content, settings)
    elif (content / DATABASE).exists():
        with closing(SqlStore(f"sqlite:///{content / DATABASE}")) as store:
            _mark(store, settings)
        _place(content, home)
        (content / DATABASE).rename(home / DATABASE)
        sync_folder(home)
    restored = _restore(settings, manifest)
    shutil.rmtree(stage)
    return restored


def _restore(settings: Settings, manifest: Mapping[str, Any]) -> Restored:
    return Restored(
        place_name(settings),
        str(manifest["made"]),
        int(manifest["sessions"]),
        len(manifest["files"]) - 1,
        bool(manifest["keys"]),
        tuple(manifest["damaged"]),
    )


def _place(content: Path, home: Path) -> list[Path]:
    """Move folders to their places, but for what a place has of its own; return them."""
    placed: list[Path] = []
    for folder in sorted(path for path in content.iterdir() if path.is_dir()):
        target = home / folder.name
        with suppress(OSError):
            target.rmdir()  # an empty one
        if not target.exists():
            folder.rename(target)
            placed.append(target)
    return placed


def _fill(content: Path, settings: Settings) -> None:
    """Move files to their places, then load all rows at once; if that fails, remove the files."""
    placed: list[Path] = []
    try:
        placed = _place(content, settings.home)
        words = ("--data-only", "--single-transaction", "--exit-on-error")
        run_postgres("pg_restore", settings.store, *words, str(content / DUMP))
        with closing(SqlStore(settings.store)) as store:
            _mark(store, settings)
    except BaseException:
        for target in placed:
            shutil.rmtree(target, ignore_errors=True)
        raise


def _mark(store: SqlStore, settings: Settings) -> None:
    """Say which database the files belong to."""
    (settings.home / MARK).unlink(missing_ok=True)
    Artefacts(settings.home).set_mark(store.id())


@contextmanager
def _own_store(settings: Settings) -> Generator[None]:
    """Keep servers away from a store, and leave no directory behind that was not there."""
    there = settings.home.exists()
    locked = (settings.home / LOCK_FILE).exists()
    with ExitStack() as stack:
        try:
            stack.callback(DirectoryLock(settings.home).release)
            if settings.store:
                stack.enter_context(closing(SqlStore(settings.store))).hold("data restore")
            yield
        except BaseException:
            if not locked:
                for name in (LOCK_FILE, marks.MARK):
                    (settings.home / name).unlink(missing_ok=True)
            if not there:
                with suppress(OSError):  # something else has come into it
                    settings.home.rmdir()
            raise


def _insist_on_empty(settings: Settings) -> None:
    """Refuse a place in which something is.

    Raises:
        DataError: There is.
    """
    found = ""
    if settings.store or (settings.home / DATABASE).exists():
        with (
            closing(SqlStore.in_directory(settings.home, settings.store)) as store,
            store.snapshot() as snapshot,
        ):
            tables = (schema.sessions, schema.batteries, schema.campaigns, schema.layouts)
            for table in (*tables, schema.audit):
                if number := snapshot.count(table):
                    found = found or f"{number} rows of {table.name}"
    found = found or Artefacts(settings.home).holds(KEPT)
    if found:
        raise DataError(
            f"{place_name(settings)} is not empty: it has {found}. A backup is restored into an "
            "empty place: give another data directory with --data, or move what is there away"
        )
