"""Makes a backup of a store while it is in use.

A backup is a tar with a copy of the database, as SQLite's own backup or `pg_dump` makes it, the
files to which its rows refer, and last of all a manifest with the digest of each.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import make_url

from animalcat.machine.files import sync_folder
from animalcat.machine.marks import mark
from animalcat.service.access.tokens import FOLDER as ACCESS
from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.session.intact import kept_key
from animalcat.service.storage import schema
from animalcat.service.storage.artefacts import PERSONS, RECORDINGS
from animalcat.service.storage.rows import Snapshot
from animalcat.service.storage.sql import DATABASE, SqlStore
from animalcat.service.upkeep.place import (
    DataError,
    Place,
    Tell,
    insist_on_room,
    say_errors,
    silent,
)
from animalcat.text.json_text import read_json
from animalcat.wire.protocol import version

FORM: Final = 2
"""Version of the form of backups."""
MANIFEST: Final = "manifest.json"
DUMP: Final = "animalcat.dump"
"""Name of the copy of a PostgreSQL in a backup; that of an SQLite is called as in its folder."""
ENDINGS: Final = (".tar", ".tar.gz")
OTHERS: Final = ("calibrations", "profiles", "studies")
"""Folders of a data directory that belong to no session: calibrated layouts, profiles, and who took
part in studies."""
KEY_SUFFIX: Final = ".key"
"""How the names of files with keys end, also of those of studies."""
_MARKS: Final = (schema.meta, schema.alembic_version)
"""Tables that each database has of its own."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A backup that was made.

    Attributes:
        path: Where it is.
        sessions: Number of its sessions.
        files: Number of its files.
        bytes: Bytes of its files.
        keys: Whether tokens and keys are in it.
        damaged: Files that are gone from the store or are not as they were stored, a sentence each.
    """

    path: Path
    sessions: int
    files: int
    bytes: int
    keys: bool
    damaged: tuple[str, ...]


def back_up(place: Place, path: Path, *, with_keys: bool = False, tell: Tell = silent) -> BackedUp:
    """Make a backup of all of a store: its database, and the files to which its rows refer.

    The database is copied first, as it is at one time. So the store may be in use, and whatever is
    acknowledged before this begins is in the backup. A file that such a row names never changes.

    Args:
        place: The store.
        path: The archive, whose name ends in .tar or .tar.gz; only its owner may read it.
        with_keys: Whether tokens and keys are in it too.
        tell: Told how far it is.

    Raises:
        DataError: The disk is full, or something is at the path. The store is as it was.
    """
    home = place.home.resolve()
    if home in path.resolve().parents:
        raise DataError(f"{path} is within the store itself; give a place outside {place.home}")
    if not path.name.endswith(ENDINGS):
        raise DataError(f"{path}: give a name that ends in .tar or .tar.gz")
    if path.exists():
        raise DataError(f"{path} exists already; give another name")
    with say_errors(place.settings, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = (file for kind in (RECORDINGS, CERTIFICATES) for file in place.files.walk(kind))
        insist_on_room(path.parent, sum(file.size for file in stored), 0, "the backup")
        with (
            tempfile.TemporaryDirectory(prefix=".backup-", dir=path.parent) as aside,
            _archive(path) as archive,
        ):
            return _Backup(place, archive, tell).make(path, Path(aside), with_keys=with_keys)


class _Backup:
    """A backup that is being made."""

    def __init__(self, place: Place, archive: tarfile.TarFile, tell: Tell) -> None:
        self._place = place
        self._archive = archive
        self._tell = tell
        self._digests: dict[str, str] = {}
        self._bytes = 0
        self._damaged: list[str] = []

    def make(self, path: Path, aside: Path, *, with_keys: bool) -> BackedUp:
        """Copy everything, and the manifest last."""
        self._tell("copying the database")
        with _copy_database(self._place, aside) as (database, snapshot):
            sessions = snapshot.count(schema.sessions)
            wanted = dict(_files_of(snapshot))
            batteries = _batteries_of(snapshot)
        self._add(database.name, database)
        for k, (key, digest) in enumerate(sorted(wanted.items())):
            self._tell("copying files", k, len(wanted))
            self._add_kept(key, digest)
        for k, digest in enumerate(batteries):
            self._tell("copying batteries", k, len(batteries))
            self._add_battery(digest)
        home = self._place.home
        people = (home / RECORDINGS).glob(f"{PERSONS}*")
        others = [home / folder for folder in (*OTHERS, *([ACCESS] if with_keys else []))]
        for folder in (*others, *people):
            self._add_folder(folder, with_keys=with_keys)
        manifest = {
            "form": FORM,
            "animalcat": version(),
            "schema": schema.REVISION,
            "made": datetime.now(UTC).isoformat(),
            "database": database.name,
            "sessions": sessions,
            "keys": with_keys,
            "damaged": self._damaged,
            "files": self._digests,
        }
        text = json.dumps(manifest, indent=1).encode()
        member = _member(MANIFEST, len(text), 0.0)
        self._archive.addfile(member, io.BytesIO(text))
        number, damaged = len(self._digests) - 1, tuple(self._damaged)
        return BackedUp(path, sessions, number, self._bytes, with_keys, damaged)

    def _add(self, key: str, path: Path) -> str:
        """Add a file; return its digest.

        Raises:
            FileNotFoundError: There is none.
        """
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
            file.seek(0)
            self._archive.addfile(_member(key, size, path.stat().st_mtime), file)
        self._digests[key] = digest
        self._bytes += size
        return digest

    def _add_kept(self, key: str, digest: str) -> None:
        try:
            copied = self._add(key, self._place.files.fetch(key))
        except FileNotFoundError:
            self._damaged.append(f"{key} is gone")
            return
        if copied != digest:
            self._damaged.append(f"{key} is not as it was stored, and was copied as it is")

    def _add_battery(self, digest: str) -> None:
        key = f"{BATTERIES}/{digest}"
        if not (self._place.home / key).is_dir():
            self._damaged.append(f"{key} is gone")
        self._add_folder(self._place.home / key)

    def _add_folder(self, folder: Path, *, with_keys: bool = False) -> None:
        for path in sorted(folder.rglob("*")):
            key = path.relative_to(self._place.home).as_posix()
            is_key = path.suffix == KEY_SUFFIX
            if path.is_file() and "/." not in key and (with_keys or not is_key):
                self._add(key, path)


@contextmanager
def _archive(path: Path) -> Generator[tarfile.TarFile]:
    """Open an archive for the block, which has its name once it is whole and safe on the disk."""
    part = path.with_name(f".{path.name}.part-{secrets.token_hex(4)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            mode = "w:gz" if path.name.endswith(".gz") else "w:"
            with tarfile.open(fileobj=file, mode=mode) as archive:
                yield archive
            file.flush()
            os.fsync(file.fileno())
        mark(path.parent)
        part.rename(path)
        sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def _member(key: str, size: int, changed: float) -> tarfile.TarInfo:
    info = tarfile.TarInfo(key)
    info.size, info.mode, info.mtime = size, 0o600, changed
    return info


@contextmanager
def _copy_database(place: Place, aside: Path) -> Generator[tuple[Path, Snapshot]]:
    """Copy the database into a folder; yield the copy, and a look at the state that it has."""
    if place.settings.store:
        copy = aside / DUMP
        with place.store.snapshot() as snapshot:
            tables = [f"--exclude-table-data={table.name}" for table in _MARKS]
            run_postgres(
                "pg_dump",
                place.settings.store,
                *("--format=custom", "--data-only", f"--snapshot={snapshot.exported()}"),
                *(f"--schema={snapshot.schema()}", *tables, f"--file={copy}"),
            )
            yield copy, snapshot
        return
    copy = aside / DATABASE
    with (
        closing(sqlite3.connect(place.home / DATABASE)) as source,
        closing(sqlite3.connect(copy)) as target,
    ):
        source.backup(target)
    with closing(SqlStore(f"sqlite:///{copy}")) as store:
        store.forget_marks()
        with store.snapshot() as snapshot:
            yield copy, snapshot


def run_postgres(program: str, url: str, *words: str) -> None:
    """Run a program of PostgreSQL on a database, without its password on the command line.

    Raises:
        DataError: It is not installed, or fails.
    """
    database = make_url(url).set(drivername="postgresql")
    password = {"PGPASSWORD": str(database.password)} if database.password else {}
    shown = database.set(password=None).render_as_string()
    try:
        done = subprocess.run(
            [program, *words, f"--dbname={shown}"],
            env=os.environ | password,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise DataError(
            f"{program} is not installed, which copies a PostgreSQL; on Debian: "
            "apt-get install postgresql-client"
        ) from None
    if done.returncode:
        raise DataError(f"{program} fails: {done.stderr.strip()[-500:]}")


def _files_of(snapshot: Snapshot) -> Iterable[tuple[str, str]]:
    """Yield keys and digests of the files to which rows refer."""
    for kept in snapshot.kept():
        for what, digest in kept.digests.items():
            with suppress(ValueError):  # a link that was changed: `verify` tells of it
                if digest:
                    yield kept_key(kept.session, what), digest


def _batteries_of(snapshot: Snapshot) -> list[str]:
    tables = schema.batteries.c.digest, schema.sessions.c.battery_digest
    found = {digest for column in tables for digest in snapshot.column(column)}
    found |= snapshot.column(schema.campaigns.c.battery_digest)
    return sorted(found - {""})


def manifest_in(folder: Path, where: Path) -> Mapping[str, Any]:
    """Return the manifest of a backup that was unpacked.

    Raises:
        DataError: It is no whole backup, or of another version.
    """
    try:
        manifest: dict[str, Any] = read_json((folder / MANIFEST).read_bytes())
        form, revision, made_by = (manifest[key] for key in ("form", "schema", "animalcat"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{where} is not a complete backup: it has no {MANIFEST}") from error
    if (form, revision) != (FORM, schema.REVISION):
        raise DataError(
            f"{where} is of form {form} and schema {revision}, and this animalcat has {FORM} and "
            f"{schema.REVISION}; restore it with animalcat {made_by}, which made it"
        )
    return manifest
