"""Moves a session from one store to another under the same id, or a whole database."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sqlalchemy import Table

from animalcat import names
from animalcat.files import sync_folder
from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.batteries.writing import digest_on_disk
from animalcat.service.host.lock import DirectoryLock
from animalcat.service.session.intact import Looker, kept_key
from animalcat.service.storage import schema
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.belonging import check_belonging
from animalcat.service.storage.errors import AlreadyFinishedError, FilledError, InUseError
from animalcat.service.storage.rows import OF_ITEM, OF_SESSION, TABLES, PlainRow, Snapshot, named
from animalcat.service.storage.sql import DATABASE, SqlStore
from animalcat.service.upkeep.bundle import copy, sync_disk
from animalcat.service.upkeep.place import (
    DataError,
    Place,
    Remove,
    Tell,
    insist_on_room,
    said,
    silent,
)
from animalcat.service.upkeep.pruning import Server, has_server, removing
from animalcat.values import SessionState


@dataclass(frozen=True, slots=True)
class Moved:
    """A session that was moved, or copied.

    Attributes:
        session: Its id, the same in both stores.
        files: Number of its files.
        bytes: Bytes of its files.
        head: Digest of the last link of its chain, the same in both stores.
        removed: Whether it is gone from the first store.
        notes: What else is to be known, a sentence each.
    """

    session: str
    files: int
    bytes: int
    head: str
    removed: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MovedDatabase:
    """A database that was moved.

    Attributes:
        sessions: Number of sessions.
        rows: Number of all rows.
        aside: Where the database of before is, which nothing uses any more.
    """

    sessions: int
    rows: int
    aside: str


def move_database(source: Place, url: str, tell: Tell = silent) -> MovedDatabase:
    """Move all rows of an SQLite store into an empty PostgreSQL; its files stay where they are.

    Every row is compared before the database of before is put aside. When this was killed, the same
    call again finishes it.

    Args:
        source: The store, which no server uses.
        url: The PostgreSQL.
        tell: Told how far it is.

    Raises:
        DataError: The store is a PostgreSQL already or in use, or the other one holds something
            else; both keep what they had.
    """
    if source.shared:
        raise DataError(f"{source.name} is in a PostgreSQL already: make a backup, and restore it")
    there = source.settings.model_copy(update={"store": url})
    with said(there, source.home), closing(SqlStore(url)) as target:
        lock = DirectoryLock(source.home)
        try:
            source.store.nobody_plays()
            with source.store.snapshot() as snapshot:

                def rows(table: Table) -> Iterator[PlainRow]:
                    tell(f"storing {table.name}")
                    yield from snapshot.rows(table)

                with suppress(FilledError):  # by an earlier call, perhaps: it is compared below
                    target.fill(rows, source.store.id())
                with target.snapshot() as other:
                    counts = _insist_on_same(snapshot, other, tell)
            source.store.close()  # which writes what is in its log into its file
            aside = source.home / f"{DATABASE}.moved"
            (source.home / DATABASE).rename(aside)
            sync_folder(source.home)
        finally:
            lock.release()
    return MovedDatabase(counts[schema.sessions.name], sum(counts.values()), str(aside))


def _insist_on_same(one: Snapshot, other: Snapshot, tell: Tell) -> dict[str, int]:
    """Count the rows of each table, which have to be the same in two databases.

    Raises:
        DataError: They are not.
    """
    counts: dict[str, int] = {}
    for table in TABLES:
        tell(f"comparing {table.name}")
        (counts[table.name], sums), same = (_summed(place.rows(table)) for place in (one, other))
        if (counts[table.name], sums) != same:
            raise DataError(
                f"the PostgreSQL holds something else: its table {table.name} is not as that of "
                "the store. Give an empty database"
            )
    return counts


def _summed(rows: Iterator[PlainRow]) -> tuple[int, int]:
    """Return the number of rows, and a sum that tells of each; databases order texts otherwise."""
    number = total = 0
    for row in rows:
        digest = sha256(json.dumps(row).encode(errors="surrogatepass")).digest()
        number, total = number + 1, total + int.from_bytes(digest)
    return number, total


def move(
    source: Place,
    target: Place,
    session: str,
    *,
    keep: bool = False,
    server: Server | None = None,
    tell: Tell = silent,
) -> Moved:
    """Move a session with its recordings, fits, layout and arenas.

    It is compared with its chain in the second store before it goes from the first. When this was
    killed, the same call again finishes it.

    Args:
        source: Where it is.
        target: Where it is to be; the store may be in use, and of the other kind of database.
        session: Its id.
        keep: Whether it stays in the first store as well.
        server: The server of the first store's data directory; None where none runs.
        tell: Told how far it is.

    Raises:
        DataError: It is being played, belongs to a campaign, or is not as it was stored; or the
            second store has another session of its id, or no room. Both stores keep what they had.
    """
    if source.store.id() == target.store.id():
        raise DataError("both are the same store")
    with said(target.settings, target.home):
        places = (target.files,)
        if target.settings.artefacts:
            places = (Artefacts(target.home), target.files)
        check_belonging(target.store, *places)
        if source.store.session(session) is None:
            return _moved_before(source, target, session)
        _insist_on_rest(source, session, keep=keep, server=server)
        with removing(source, server) as remove:
            return _moved(source, target, session, tell, None if keep else remove)


def _moved(source: Place, target: Place, session: str, tell: Tell, remove: Remove | None) -> Moved:
    rows, head = _rows(source, session)
    tell(f"comparing {session} with its chain")
    _insist_on_whole(source, session)
    own = named(schema.sessions, rows["sessions"][0])
    digests = _files(source, session)
    there = _head(target, session)
    if there and there != head:
        raise DataError(
            f"{target.name} has another session of the id {session}; delete one of them first"
        )
    notes: list[str] = []
    size = _copy_files(source, target, digests, tell)
    _copy_battery(source, target, own, notes)
    layout = source.store.layout(_layout_digest(source, session))
    if layout is not None:
        target.store.put_layout(layout)
    if not there:
        sync_disk(target.home)
        with suppress(AlreadyFinishedError):  # another call was quicker: it is compared below
            target.store.adopt(rows)
    tell(f"comparing {session} with its chain in {target.name}")
    _insist_on_whole(target, session)
    if _head(target, session) != head:
        raise DataError(f"{session} in {target.name} is another than in {source.name}")
    if remove is not None:

        def unchanged() -> None:
            if _head(source, session) != head:
                raise DataError(
                    f"session {session} was changed while it was copied. It is in both stores now: "
                    f"delete it in {target.name}, and move it again"
                )

        try:
            remove(session, unchanged)
        except InUseError as error:
            raise DataError(f"{error}. The copy in {target.name} is whole") from error
    return Moved(session, len(digests), size, head, remove is not None, tuple(notes))


def _moved_before(source: Place, target: Place, session: str) -> Moved:
    """What is said of a session that an earlier call has moved.

    Raises:
        DataError: Neither store has it, or it is not as it was stored.
    """
    if target.store.session(session) is None:
        raise DataError(f"{source.name} has no session {session}")
    _insist_on_whole(target, session)
    files = _files(target, session)
    size = sum(target.files.fetch(key).stat().st_size for key in files)
    notes = (f"it was in {target.name} already, and no more in {source.name}",)
    return Moved(session, len(files), size, _head(target, session), True, notes)


def _insist_on_rest(source: Place, session: str, *, keep: bool, server: Server | None) -> None:
    """Refuse to move what is being played, or what something else needs."""
    stored = source.store.session(session)
    assert stored is not None, "it was looked at before"
    if stored.state is SessionState.RUNNING and (server is not None or source.shared):
        raise DataError(f"session {session} is being played; cancel it, or wait for its end")
    if not stored.state.over and server is not None and not keep:
        raise DataError(
            f"session {session} is not over, and the server of {source.name} may let its agent "
            "play on: stop that server first, or keep the session there with --copy"
        )
    if server is None and has_server(source) and not keep:
        raise DataError(f"a server has come to {source.name}; try again", "UNAVAILABLE")
    campaign = source.store.campaign_of(session)
    if campaign and not keep:
        raise DataError(
            f"session {session} belongs to campaign {campaign}, which stays: copy it with "
            "--copy, or delete the campaign first"
        )


def _rows(place: Place, session: str) -> tuple[dict[str, Sequence[PlainRow]], str]:
    """Read all rows of a session in one state, and the digest of its last link."""
    table = schema.sessions
    with place.store.snapshot() as snapshot:
        rows: dict[str, Sequence[PlainRow]] = {
            table.name: list(snapshot.rows(table, table.c.id == session))
        }
        for part in OF_SESSION:
            rows[part.name] = list(snapshot.rows(part, part.c.session == session))
        for part in OF_ITEM:
            item = names.session_name(session)
            rows[part.name] = list(snapshot.rows(part, part.c.item == item))
    links = rows[schema.chain.name]
    return rows, str(named(schema.chain, links[-1])["digest"]) if links else ""


def _head(place: Place, session: str) -> str:
    links = place.store.chain(session).links
    return links[-1].digest if links else ""


def _files(place: Place, session: str) -> dict[str, str]:
    """Return the files that a session's chain tells of: their digests by their keys."""
    with place.store.snapshot() as snapshot:
        return {
            kept_key(session, what): digest
            for kept in snapshot.kept(session)
            for what, digest in kept.digests.items()
            if digest
        }


def _insist_on_whole(place: Place, session: str) -> None:
    """Check that a session is as it was stored.

    Raises:
        DataError: It is not.
    """
    problems = Looker(place.store, place.files).look(session).problems
    if problems:
        raise DataError(
            f"session {session} in {place.name} is not as it was stored: {'; '.join(problems[:3])}"
        )


def _copy_files(source: Place, target: Place, digests: dict[str, str], tell: Tell) -> int:
    """Copy files that are not there yet, and return the bytes of all."""
    wanted = {key: d for key, d in digests.items() if target.files.digest(key) != d}
    found = {key: source.files.fetch(key) for key in digests}
    sizes = {key: path.stat().st_size for key, path in found.items()}
    keep = target.settings.spare_disk_bytes
    insist_on_room(target.home, sum(sizes[key] for key in wanted), keep, "the session")
    for k, (key, digest) in enumerate(wanted.items()):
        tell("copying files", k, len(wanted))
        place = target.home / key
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".part-{secrets.token_hex(8)}")
        path = source.files.fetch(key)
        try:
            if copy(path, part)[0] != digest:
                raise DataError(f"{key} was changed while it was copied; move the session again")
            shutil.copystat(path, part)
            if place.exists():  # nothing is written over
                place.rename(place.with_name(f"{place.name}.aside-{secrets.token_hex(4)}"))
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)
        target.files.put(key)
    return sum(sizes.values())


def _copy_battery(source: Place, target: Place, own: dict[str, Any], notes: list[str]) -> None:
    """Bring the arenas along, and their name unless it stands for others there."""
    digest, name = str(own["battery_digest"]), str(own["battery"])
    if not digest:
        return
    key = f"{BATTERIES}/{digest}"
    if not _has_battery(target, digest):
        source.files.fetch_folder(key)
        folder = target.home / key
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = folder.with_name(f".new-{secrets.token_hex(8)}")
        try:
            shutil.copytree(source.home / key, part)
            if digest_on_disk(part) != digest:
                raise DataError(f"battery {name} was changed while it was copied")
            if folder.exists():  # it is damaged, as was found out above
                folder.rename(folder.with_name(f".aside-{secrets.token_hex(8)}"))
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        target.files.put_folder(key)
    record = source.store.battery(name)
    there = target.store.battery(name)
    if there is None and record is not None and record.digest == digest:
        target.store.put_battery(record)
    elif there is None or there.digest != digest:
        short = names.short_digest(digest)
        notes.append(
            f"its arenas (digest {short}) came along without the name {name}, which "
            + ("stands for others there" if there else "stands for others here by now")
        )


def _has_battery(place: Place, digest: str) -> bool:
    key = f"{BATTERIES}/{digest}"
    with suppress(OSError, ValueError):
        place.files.fetch_folder(key)
        return digest_on_disk(place.home / key) == digest
    return False


def _layout_digest(place: Place, session: str) -> str:
    stored = place.store.session(session)
    return "" if stored is None else stored.spec.layout_digest
