"""Makes a backup of a store while it is in use."""

from __future__ import annotations

import secrets
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from animalcat.protocol import version
from animalcat.service.access.tokens import FOLDER as ACCESS
from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.session.intact import kept_key
from animalcat.service.storage import schema
from animalcat.service.storage.artefacts import PERSONS, RECORDINGS
from animalcat.service.storage.rows import TABLES, Snapshot
from animalcat.service.upkeep.bundle import (
    FORM,
    MANIFEST,
    PART,
    Writer,
    file_digest,
    is_archive,
    sealed,
    write_lines,
    writing,
)
from animalcat.service.upkeep.place import DataError, Place, Tell, insist_on_room, said, silent

OTHERS: Final = (ACCESS, "calibrations", "outcomes", "profiles", "studies")
"""Folders of a data directory that belong to no session: keys, calibrated layouts, tables, and who
took part in studies."""
_TRIES: Final = 5
"""How often rows are read again because sessions were deleted while their files were copied."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A backup that was made.

    Attributes:
        path: Where it is.
        sessions: Number of its sessions.
        episodes: Number of their attempts.
        files: Number of its files.
        bytes: Bytes of its files.
        fresh: Bytes of files that were not there before.
        damaged: Files that are gone from the store or are not as they were stored, a sentence each.
    """

    path: Path
    sessions: int
    episodes: int
    files: int
    bytes: int
    fresh: int
    damaged: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Copied:
    digest: str
    size: int
    changed: float


def back_up(place: Place, path: Path, tell: Tell = silent) -> BackedUp:
    """Make a backup of all of a store: its rows, and the files to which they refer.

    Files are copied first, and then the rows of one state of the database with what that state
    needs besides. So the store may be in use, and whatever is acknowledged before this begins is in
    the backup.

    Args:
        place: The store.
        path: A folder, in which an earlier backup may be, or an archive (`bundle.ENDINGS`).
        tell: Told how far it is.

    Raises:
        DataError: The disk is full, or there is something else at the path. The store and an
            earlier backup are as they were.
    """
    _check_target(place, path)
    with said(place.settings, path), writing(path) as writer:
        around = path.parent if is_archive(path) else path
        with tempfile.TemporaryDirectory(prefix=PART, dir=around) as aside:
            run = _Backup(place, writer, Path(aside), tell)
            return run.make(path)


class _Backup:
    """One backup that is being made."""

    def __init__(self, place: Place, writer: Writer, aside: Path, tell: Tell) -> None:
        self._place = place
        self._writer = writer
        self._aside = aside
        self._tell = tell
        self._copied: dict[str, _Copied] = {}
        self._gone: set[str] = set()
        self._fresh = 0

    def make(self, path: Path) -> BackedUp:
        """Copy everything, and finish it."""
        with self._place.store.snapshot() as snapshot:
            wanted = list(_wanted(snapshot))
        self._copy_all(wanted)
        self._batteries()
        self._others()
        for _ in range(_TRIES):
            with self._place.store.snapshot() as snapshot:
                wanted = list(_wanted(snapshot))
                self._copy_all(wanted)
                if self._was_deleted(wanted):
                    continue
                self._batteries(snapshot)
                return self._finish(path, snapshot, wanted)
        raise DataError(
            "sessions are being deleted faster than they can be copied; make the backup later"
        )

    def _copy_all(self, wanted: list[tuple[str, str]]) -> None:
        for k, (key, digest) in enumerate(wanted):
            if not k % 100:
                self._tell("copying files", k, len(wanted))
            known = self._copied.get(key)
            if known is None or known.digest != digest:
                self._copy(key, digest)

    def _copy(self, key: str, wanted: str) -> None:
        there = self._writer.holds(wanted)
        try:
            path = self._place.files.fetch(key) if not there else self._place.files.folder / key
            changed = path.stat().st_mtime if path.exists() else 0.0
            digest, size = self._writer.put(path, wanted)
        except FileNotFoundError:
            self._gone.add(key)
            return
        self._gone.discard(key)
        self._fresh += 0 if there else size
        self._copied[key] = _Copied(digest, size, changed)

    def _was_deleted(self, wanted: list[tuple[str, str]]) -> bool:
        """Whether a file is gone because its session was deleted since the rows were read."""
        sessions = {key.split("/")[1] for key, _ in wanted if key in self._gone}
        return any(self._place.store.session(session) is None for session in sessions)

    def _batteries(self, snapshot: Snapshot | None = None) -> None:
        """Pack the arenas of every battery that has a name or a session."""
        if snapshot is None:
            with self._place.store.snapshot() as fresh:
                digests = _battery_digests(fresh)
        else:
            digests = _battery_digests(snapshot)
        for k, digest in enumerate(digests):
            self._tell("copying batteries", k, len(digests))
            key = f"{BATTERIES}/{digest}.tar"
            if key in self._copied:
                continue
            try:
                self._place.files.fetch_folder(f"{BATTERIES}/{digest}")
                packed = self._packed(self._place.files.folder / BATTERIES / digest)
            except FileNotFoundError:
                self._gone.add(key)
                continue
            self._gone.discard(key)
            self._take(key, packed)
            packed.unlink()

    def _packed(self, folder: Path) -> Path:
        """Pack a folder, so that the same content gives the same bytes."""
        if not folder.is_dir():
            raise FileNotFoundError(folder)
        packed = self._aside / f"{secrets.token_hex(8)}.tar"
        with tarfile.open(packed, "w", format=tarfile.PAX_FORMAT) as archive:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and not path.name.startswith("."):
                    info = archive.gettarinfo(str(path), path.relative_to(folder).as_posix())
                    info.uid = info.gid = info.mtime = 0
                    info.uname = info.gname = ""
                    info.mode = 0o644
                    with path.open("rb") as file:
                        archive.addfile(info, file)
        return packed

    def _others(self) -> None:
        """Take what belongs to no session, and what people have played."""
        home = self._place.home
        people = [f"{RECORDINGS}/{name}" for name in self._names(RECORDINGS, PERSONS)]
        for folder in (*OTHERS, *people):
            for path in sorted((home / folder).rglob("*")):
                key = path.relative_to(home).as_posix()
                if path.is_file() and "/." not in key:
                    self._take(key, path)

    def _names(self, folder: str, start: str) -> list[str]:
        path = self._place.home / folder
        names = [entry.name for entry in path.iterdir()] if path.is_dir() else []
        return sorted(name for name in names if name.startswith(start))

    def _take(self, key: str, path: Path) -> None:
        """Put a file whose digest nobody has noted."""
        there = self._writer.holds(file_digest(path))
        digest, size = self._writer.put(path)
        self._fresh += 0 if there else size
        self._copied[key] = _Copied(digest, size, path.stat().st_mtime)

    def _finish(self, path: Path, snapshot: Snapshot, wanted: list[tuple[str, str]]) -> BackedUp:
        """Write rows, the list of files and the manifest."""
        tables: dict[str, Any] = {}
        for table in TABLES:
            self._tell(f"writing {table.name}")
            tables[table.name] = self._put_lines(lambda file, t=table: snapshot.rows(t), table.name)
        of_sessions = dict(wanted)
        keys = sorted(key for key in self._copied if key in of_sessions or not _is_of_session(key))
        listed = ([key, *_plain(self._copied[key])] for key in keys)
        files = self._put_lines(lambda _: listed, "files")
        size = sum(self._copied[key].size for key in keys)
        damaged = [*(f"{key} is gone" for key in sorted(self._gone))]
        damaged += [
            f"{key} is not as it was stored, and was copied as it is"
            for key, digest in wanted
            if key in self._copied and self._copied[key].digest != digest
        ]
        manifest = {
            "form": FORM,
            "animalcat": version(),
            "schema": schema.REVISION,
            "made": datetime.now(UTC).isoformat(),
            "store": self._place.store.id(),
            "tables": tables,
            "files": {**files, "bytes": size},
            "damaged": damaged,
        }
        self._tell("making it safe on the disk")
        self._writer.finish(sealed(manifest))
        rows = {name: told["rows"] for name, told in tables.items()}
        return BackedUp(
            path,
            rows["sessions"],
            rows["episodes"],
            len(keys),
            size,
            self._fresh,
            tuple(damaged),
        )

    def _put_lines(self, rows: Callable[[str], Iterator[list[Any]]], name: str) -> dict[str, Any]:
        path = self._aside / f"{name}.jsonl.zst"
        number = write_lines(path, rows(name))
        digest, size = self._writer.put(path)
        path.unlink()
        return {"object": digest, "rows": number, "size": size}


def _plain(copied: _Copied) -> tuple[str, int, float]:
    return copied.digest, copied.size, copied.changed


def _is_of_session(key: str) -> bool:
    top, _, rest = key.partition("/")
    return top == CERTIFICATES or (top == RECORDINGS and not rest.startswith(PERSONS))


def _wanted(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield keys and digests of the files to which a state of the database refers."""
    for kept in snapshot.kept():
        for what, digest in kept.digests.items():
            with suppress(ValueError):  # a link that was changed: `verify` tells of it
                if digest:
                    yield kept_key(kept.session, what), digest


def _battery_digests(snapshot: Snapshot) -> list[str]:
    found: set[str] = set()
    for table, column in (
        (schema.batteries, "digest"),
        (schema.sessions, "battery_digest"),
        (schema.campaigns, "battery_digest"),
    ):
        found.update(snapshot.column(table.c[column]))
    return sorted(found - {""})


def _check_target(place: Place, path: Path) -> None:
    """Refuse to write into the store itself, or over something else.

    Raises:
        DataError: It would.
    """
    home = place.home.resolve()
    if path.resolve() == home or home in path.resolve().parents:
        raise DataError(f"{path} is within the store itself; give a place outside {place.home}")
    if is_archive(path):
        if path.exists():
            raise DataError(f"{path} is there already; give another name")
    elif path.exists():
        if not path.is_dir():
            raise DataError(
                f"{path} is a file; give a folder, or a name that ends in .tar.zst, .tar.gz or .zip"
            )
        strange = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}
        if strange - {MANIFEST, "objects"} or (strange and "objects" not in strange):
            raise DataError(f"{path} has something else in it; give an empty folder or a new one")
    _check_room(place, path)


def _check_room(place: Place, path: Path) -> None:
    """Refuse at once what cannot fit.

    Raises:
        DataError: It cannot.
    """
    sizes = (
        stored.size for folder in (RECORDINGS, CERTIFICATES) for stored in place.files.walk(folder)
    )
    wanted = sum(sizes)
    there = path / "objects"
    if there.is_dir():
        wanted -= sum(file.stat().st_size for file in there.glob("*/*"))
    around = path
    while not around.exists():
        around = around.parent
    same = around.stat().st_dev == place.home.stat().st_dev
    keep = place.settings.spare_disk_bytes if same else 0
    insist_on_room(around, max(0, wanted), keep, "the backup")
