"""Restores a backup into an empty place, or puts back what a store has lost."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tarfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

from sqlalchemy import Table

from animalcat.files import replace_file, sync_folder
from animalcat.service.access.tokens import FOLDER as ACCESS
from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.batteries.writing import digest_on_disk
from animalcat.service.host.lock import LOCK_FILE, DirectoryLock
from animalcat.service.host.settings import Settings
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.session.intact import kept_key
from animalcat.service.storage import schema
from animalcat.service.storage.artefacts import MARK, RECORDINGS, Artefacts, artefacts_for
from animalcat.service.storage.belonging import KEPT
from animalcat.service.storage.rows import PlainRow
from animalcat.service.storage.sql import DATABASE, SqlStore
from animalcat.service.upkeep.backup import OTHERS
from animalcat.service.upkeep.bundle import Source, reading, sync_disk
from animalcat.service.upkeep.place import (
    DataError,
    Place,
    Tell,
    insist_on_room,
    place_name,
    said,
    silent,
)

_STAGE: Final = ".restoring-"
"""Begins the name of the folder within a data directory in which a backup is put together."""
_READY: Final = "ready"
"""File in that folder once all is in it, and only names have to be changed: what it is."""
_KEYS: Final = re.compile(
    rf"(?:{RECORDINGS}|{CERTIFICATES})/[^/.][^/]*/[^/.][^/]*|{BATTERIES}/[0-9a-f]{{64}}\.tar"
    rf"|(?:{'|'.join(OTHERS)})(?:/[^/.][^/]*)+"
)
"""What a file of a backup may be called, since a backup may come from anywhere."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored.

    Attributes:
        place: Where.
        made: When the backup was made, ISO 8601.
        sessions: Number of sessions.
        episodes: Number of their attempts.
        files: Number of files.
        damaged: What was wrong already when the backup was made, a sentence each.
    """

    place: str
    made: str
    sessions: int
    episodes: int
    files: int
    damaged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was put back.

    Attributes:
        files: Keys of files that are now as they were stored.
        missing: Keys of files that the backup does not have either.
    """

    files: tuple[str, ...]
    missing: tuple[str, ...]


def restore(path: Path, settings: Settings, tell: Tell = silent) -> Restored:
    """Restore a backup into an empty place, which may be of the other kind of database.

    Everything is put together aside and compared with its digests, and appears at once at the end.
    The database gets an id of its own, since the store that was backed up may go on.

    Args:
        path: The backup.
        settings: Where to: a data directory, and a database and object storage if they are set.
        tell: Told how far it is.

    Raises:
        DataError: The place is not empty or is in use, the backup is no whole one, or the disk is
            full. The place is as it was.
    """
    home = settings.home
    with said(settings, home), _own(settings):
        finished = _finish_earlier(settings)
        if finished is not None and finished[0] == str(path.resolve()):
            return finished[1]
        _insist_on_empty(settings)
        with _stage(home) as stage, reading(path, stage / "unpacked") as source:
            return _restore(path, source, settings, stage, tell)


def _restore(path: Path, source: Source, settings: Settings, stage: Path, tell: Tell) -> Restored:
    manifest = source.manifest
    if manifest["schema"] != schema.REVISION:
        raise DataError(
            f"the backup is of schema {manifest['schema']}, and this animalcat has "
            f"{schema.REVISION}; restore it with the animalcat that made it "
            f"({manifest['animalcat']}), and update then"
        )
    insist_on_room(settings.home, int(manifest["files"]["bytes"]), 0, "the backup")
    content = stage / "content"
    content.mkdir()
    number = int(manifest["files"]["rows"])
    for k, (key, digest, _, changed) in enumerate(source.lines(manifest["files"]["object"])):
        if not k % 100:
            tell("copying files", k, number)
        _insist_on_key(key)
        target = content / key
        source.deliver(digest, target)
        if key.startswith(f"{ACCESS}/"):
            target.parent.chmod(0o700)
            target.chmod(0o600)
        if changed:
            os.utime(target, (changed, changed))
        if key.startswith(f"{BATTERIES}/"):
            _unpack_battery(target)
    tables = manifest["tables"]
    restored = Restored(
        place_name(settings),
        str(manifest["made"]),
        int(tables["sessions"]["rows"]),
        int(tables["episodes"]["rows"]),
        number,
        tuple(manifest["damaged"]),
    )

    def rows(table: Table) -> Iterator[PlainRow]:
        tell(f"storing {table.name}")
        yield from source.lines(tables[table.name]["object"])

    if settings.store:
        _commit_shared(settings, content, rows)
    else:
        _build(content / DATABASE, rows)
        shutil.rmtree(stage / "unpacked", ignore_errors=True)
        tell("making it safe on the disk")
        sync_disk(stage)
        told = json.dumps([str(path.resolve()), asdict(restored)])
        replace_file(stage / _READY, told.encode())
        _move_in(settings, stage)
    return restored


def _build(file: Path, rows: Any) -> None:
    """Build an SQLite database out of the way."""
    store = SqlStore(f"sqlite:///{file}")
    try:
        store.fill(rows)
        store.id()
    finally:
        store.close()  # which writes what is in the log of the database into its file


def _move_in(settings: Settings, stage: Path) -> None:
    """Give everything its name; the database last, without which nothing else is looked at.

    When it was killed, it is done again: what has its name already is left out.
    """
    home, content = settings.home, stage / "content"
    _set_marks(settings, content / DATABASE if (content / DATABASE).exists() else home / DATABASE)
    if settings.artefacts:
        _send(settings, content)
    for entry in sorted(content.iterdir(), key=lambda path: (path.name == DATABASE, path.name)):
        target = home / entry.name
        if entry.name == DATABASE:
            for ending in ("-wal", "-shm"):
                (home / f"{DATABASE}{ending}").unlink(missing_ok=True)
            entry.replace(target)
        elif entry.name in OTHERS and target.exists() and any(target.iterdir()):
            shutil.rmtree(entry)  # this place has tokens and keys of its own
        else:
            with suppress(OSError):
                target.rmdir()  # an empty one
            entry.rename(target)
    sync_folder(home)
    (stage / _READY).unlink()


def _set_marks(settings: Settings, database: Path) -> None:
    """Say which database the files belong to."""
    store = SqlStore(settings.store or f"sqlite:///{database}")
    try:
        mark = store.id()
    finally:
        store.close()
    (settings.home / MARK).unlink(missing_ok=True)
    for place in _places(settings):
        place.set_mark(mark)


def _places(settings: Settings) -> list[Artefacts]:
    own = Artefacts(settings.home)
    if not settings.artefacts:
        return [own]
    return [own, artefacts_for(settings.home, settings.artefacts, settings.cache_bytes)]


def _send(settings: Settings, content: Path) -> None:
    """Put files into object storage, from the folder in which they were put together."""
    files = artefacts_for(content, settings.artefacts, settings.cache_bytes)
    for folder in (RECORDINGS, CERTIFICATES):
        for path in sorted((content / folder).glob("*/*")):
            files.put(f"{folder}/{path.parent.name}/{path.name}")
        shutil.rmtree(content / folder, ignore_errors=True)
    for path in sorted((content / BATTERIES).glob("*")):
        files.put_folder(f"{BATTERIES}/{path.name}")
    shutil.rmtree(content / "cache", ignore_errors=True)


def _commit_shared(settings: Settings, content: Path, rows: Any) -> None:
    """Move files to their places, then store all rows at once; if that fails, remove the files."""
    placed: list[Path] = []
    store = SqlStore(settings.store)
    try:
        mark = store.id()
        if settings.artefacts:
            _send(settings, content)
        sync_disk(content)
        for entry in sorted(content.iterdir()):
            target = settings.home / entry.name
            if entry.name in OTHERS and target.exists() and any(target.iterdir()):
                continue
            with suppress(OSError):
                target.rmdir()
            entry.rename(target)
            placed.append(target)
        store.fill(rows)
        (settings.home / MARK).unlink(missing_ok=True)
        for place in _places(settings):
            place.set_mark(mark)
    except BaseException:
        for target in placed:
            shutil.rmtree(target, ignore_errors=True)
        if settings.artefacts:
            for folder in KEPT:
                _places(settings)[-1].remove(folder)
        raise
    finally:
        store.close()


@contextmanager
def _own(settings: Settings) -> Generator[None]:
    """Keep servers away from a data directory, and leave none behind that was not there."""
    there = settings.home.exists()
    locked = (settings.home / LOCK_FILE).exists()
    with ExitStack() as stack:
        if settings.store:
            settings.home.mkdir(parents=True, exist_ok=True)
        else:
            stack.callback(DirectoryLock(settings.home).release)
        try:
            yield
        except BaseException:
            if not locked and not settings.store:
                (settings.home / LOCK_FILE).unlink(missing_ok=True)
            if not there:
                with suppress(OSError):  # something else has come into it
                    settings.home.rmdir()
            raise


def _finish_earlier(settings: Settings) -> tuple[str, Restored] | None:
    """Finish what was killed while names were changed, and remove what was killed before that.

    Returns:
        The backup of what was finished, and what that was; None if nothing was.
    """
    finished: tuple[str, Restored] | None = None
    for stage in settings.home.glob(f"{_STAGE}*"):
        if (stage / _READY).exists():
            path, told = cast(
                "tuple[str, dict[str, Any]]", json.loads((stage / _READY).read_text())
            )
            told["damaged"] = tuple(told["damaged"])
            _move_in(settings, stage)
            finished = path, Restored(**told)
        shutil.rmtree(stage)
    return finished


def _insist_on_empty(settings: Settings) -> None:
    """Refuse a place in which something is.

    Raises:
        DataError: There is.
    """
    name = place_name(settings)
    found = ""
    if settings.store or (settings.home / DATABASE).exists():
        store = SqlStore(settings.store or f"sqlite:///{settings.home / DATABASE}")
        try:
            with store.snapshot() as snapshot:
                for table, what in (
                    (schema.sessions, "sessions"),
                    (schema.batteries, "batteries"),
                    (schema.campaigns, "campaigns"),
                    (schema.layouts, "layouts"),
                    (schema.audit, "lines of an audit log"),
                ):
                    if number := snapshot.count(table):
                        found = f"{number} {what}"
                        break
        finally:
            store.close()
    for place in _places(settings):
        found = found or place.holds(KEPT)
    if found:
        raise DataError(
            f"{name} is not empty: it has {found}. A backup is restored into an empty place: give "
            "another data directory with --data, or move what is there away"
        )


@contextmanager
def _stage(home: Path) -> Generator[Path]:
    """A folder in which a backup is put together, on the disk on which it will be."""
    stage = home / f"{_STAGE}{secrets.token_hex(8)}"
    stage.mkdir(mode=0o700)
    try:
        yield stage
    finally:
        if not (stage / _READY).exists():  # else the next call finishes it
            shutil.rmtree(stage, ignore_errors=True)


def _insist_on_key(key: Any) -> None:
    if not isinstance(key, str) or not _KEYS.fullmatch(key):
        raise DataError(f"the backup has a file {str(key)[:80]!r}, which no store has")


def _unpack_battery(packed: Path) -> None:
    """Turn the archive of a battery into its folder, which has to have its digest."""
    folder = packed.with_suffix("")
    try:
        with tarfile.open(packed) as archive:
            archive.extractall(folder, filter="data")
    except tarfile.TarError as error:
        raise DataError(f"the backup is damaged: {packed.name} cannot be unpacked") from error
    packed.unlink()


def repair(place: Place, path: Path, tell: Tell = silent) -> Repaired:
    """Put back the files of a store that are gone or were changed, as far as a backup has them.

    Only what has the digest that the store's own records say is taken. Records are left alone.

    Args:
        place: The store, which may be in use.
        path: A backup of it, however old.
        tell: Told how far it is.

    Raises:
        DataError: It is no whole backup.
    """
    with (
        said(place.settings),
        _stage(place.home) as stage,
        reading(path, stage / "unpacked") as source,
    ):
        wanted = list(_lost(place, tell))
        packed = {row[0]: row[1] for row in source.lines(source.manifest["files"]["object"])}
        done: list[str] = []
        for key, digest in wanted:
            held = digest or packed.get(f"{key}.tar", "")
            if not held or not source.holds(held):
                continue
            fresh = stage / "fresh" / key
            source.deliver(held, fresh.with_name(f"{fresh.name}.tar") if not digest else fresh)
            if not digest:
                _unpack_battery(fresh.with_name(f"{fresh.name}.tar"))
                if digest_on_disk(fresh) != fresh.name:
                    continue
            _put_back(place, key, fresh)
            done.append(key)
    missing = {key for key, _ in wanted} - {*done}
    return Repaired(tuple(done), tuple(sorted(missing)))


def _put_back(place: Place, key: str, fresh: Path) -> None:
    target = place.home / key
    place.files.remove(key)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh.rename(target)
    if target.is_dir():
        place.files.put_folder(key)
    else:
        place.files.put(key)


def _lost(place: Place, tell: Tell) -> Iterator[tuple[str, str]]:
    """Yield keys and digests of files that are not as they were stored; batteries without one."""
    with place.store.snapshot() as snapshot:
        kept = list(snapshot.kept())
        digests = snapshot.column(schema.sessions.c.battery_digest)
        digests |= snapshot.column(schema.batteries.c.digest)
    for k, (session, files) in enumerate(kept):
        tell("looking for what is lost", k, len(kept))
        for what, digest in files.items():
            with suppress(ValueError):
                key = kept_key(session, what)
                if digest and place.files.digest(key) != digest:
                    yield key, digest
    for digest in sorted(digests - {""}):
        key = f"{BATTERIES}/{digest}"
        try:
            place.files.fetch_folder(key)
            whole = digest_on_disk(place.home / key) == digest
        except (OSError, ValueError):
            whole = False
        if not whole:
            yield key, ""
