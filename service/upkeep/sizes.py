"""Adds up what takes how much room: by kind, by session and by battery."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from animalcat import names
from animalcat.folders import cache_folder
from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.session.disk import free_bytes
from animalcat.service.storage.artefacts import CACHE, PERSONS, RECORDINGS, StoredFile, found_files
from animalcat.service.storage.sql import DATABASE
from animalcat.service.upkeep.place import Place, Tell, silent
from animalcat.values import SessionState

_KINDS: Final = {
    RECORDINGS: "recordings",
    CERTIFICATES: "fits",
    BATTERIES: "batteries",
    CACHE: "copies of object storage",
    "operations": "operations",
    "access": "tokens and keys",
    "servers": "operations",
    "server.log": "logs",
}
"""What is in a data directory, by the first part of its path."""


@dataclass(frozen=True, slots=True)
class SessionUse:
    """What a session takes.

    Attributes:
        session: Its id.
        agent: Its agent.
        battery: Id of its battery.
        battery_digest: Digest of that.
        state: Its state.
        created: Time of creation.
        changed: When something of it was last written, as far as its files tell.
        episodes: Number of attempts at episodes.
        rows: Bytes of the database, about.
        recordings: Bytes of its recordings.
        fits: Bytes of the draws of its fits.
        files: Number of all these files.
        owner: Subject to whom it belongs; empty for nobody.
    """

    session: str
    agent: str
    battery: str
    battery_digest: str
    state: str
    created: datetime
    changed: datetime
    episodes: int
    rows: int
    recordings: int
    fits: int
    files: int
    owner: str = ""

    @property
    def total(self) -> int:
        """All of its bytes."""
        return self.rows + self.recordings + self.fits

    @property
    def over(self) -> bool:
        """Whether no episode will follow."""
        state = SessionState.__members__.get(self.state.upper())
        return state is not None and state.over


@dataclass(frozen=True, slots=True)
class BatteryUse:
    """What a battery takes, and the sessions on it.

    Attributes:
        digest: Its digest.
        names: The names that stand for it; none for an earlier version of one.
        instances: Number of instances; 0 where no name stands for it.
        sessions: Number of sessions on it.
        episodes: Number of their attempts.
        arenas: Bytes of its own folder.
        of_sessions: Bytes of those sessions.
    """

    digest: str
    names: tuple[str, ...]
    instances: int
    sessions: int
    episodes: int
    arenas: int
    of_sessions: int

    @property
    def total(self) -> int:
        """All of its bytes, with those of its sessions."""
        return self.arenas + self.of_sessions


@dataclass(frozen=True, slots=True)
class Usage:
    """What takes how much.

    Attributes:
        place: The data directory.
        kinds: Bytes by kind, the largest first.
        caches: Bytes by kind of what this user's programs keep to be quicker; all of it may go.
        sessions: The sessions, the largest first.
        batteries: The batteries, the largest first.
        free: Bytes that are free on the disk of the data directory.
    """

    place: str
    kinds: dict[str, int]
    caches: dict[str, int]
    sessions: tuple[SessionUse, ...]
    batteries: tuple[BatteryUse, ...]
    free: int

    @property
    def total(self) -> int:
        """All bytes of the store."""
        return sum(self.kinds.values())


@dataclass(slots=True)
class _Found:
    """Files of a session."""

    recordings: int = 0
    fits: int = 0
    files: int = 0
    changed: float = 0.0


def usage(place: Place, tell: Tell = silent) -> Usage:
    """Add up what a store takes: each file is looked at once, and rows are added by the database.

    Raises:
        ArtefactsError: The storage of files does not answer.
    """
    tell("adding up the database")
    with place.store.snapshot() as snapshot:
        rows = snapshot.sizes()
        database = snapshot.database_bytes()
    kinds: dict[str, int] = defaultdict(int)
    kinds["database"] = database
    files: dict[str, _Found] = defaultdict(_Found)
    arenas: dict[str, int] = defaultdict(int)
    number = 0
    for stored in _all_files(place):
        number += 1
        if not number % 10_000:
            tell("looking at files", number)
        top, _, rest = stored.key.partition("/")
        name = rest.partition("/")[0]
        kind = _KINDS.get(top, "other")
        if top in (RECORDINGS, CERTIFICATES) and not name.startswith(PERSONS):
            found = files[name]
            found.files += 1
            found.changed = max(found.changed, stored.changed)
            if top == RECORDINGS:
                found.recordings += stored.size
            else:
                found.fits += stored.size
        elif top == RECORDINGS:
            kind = "recordings of people"
        elif top == BATTERIES:
            arenas[name.removesuffix(".tar")] += stored.size
        elif top.startswith(DATABASE):
            if not place.shared and top == f"{DATABASE}-wal":
                kinds["database"] += stored.size  # what is not yet in the file itself
            continue
        kinds[kind] += stored.size
    owned = place.store.owners.every()
    sessions = [
        SessionUse(
            row.session,
            row.agent,
            row.battery,
            row.battery_digest,
            row.state.lower(),
            (created := row.created.replace(tzinfo=UTC)),
            max(created, datetime.fromtimestamp(files[row.session].changed, UTC)),
            row.episodes,
            row.row_bytes,
            files[row.session].recordings,
            files[row.session].fits,
            files[row.session].files,
            owned.get(names.session_name(row.session), ""),
        )
        for row in rows
    ]
    return Usage(
        place.name,
        dict(sorted(kinds.items(), key=lambda item: -item[1])),
        _caches(),
        tuple(sorted(sessions, key=lambda session: -session.total)),
        _batteries(place, sessions, arenas),
        free_bytes(place.home),
    )


def _all_files(place: Place) -> Iterator[StoredFile]:
    yield from found_files(place.home)
    if place.settings.artefacts:
        for folder in (RECORDINGS, CERTIFICATES, BATTERIES):
            yield from place.files.walk(folder)


def _caches() -> dict[str, int]:
    """Bytes by kind of what can be worked out again."""
    sizes: dict[str, int] = defaultdict(int)
    for stored in found_files(cache_folder("")):
        sizes[stored.key.partition("/")[0]] += stored.size
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def _batteries(
    place: Place, sessions: list[SessionUse], arenas: dict[str, int]
) -> tuple[BatteryUse, ...]:
    known_as: dict[str, list[str]] = defaultdict(list)
    instances: dict[str, int] = {}
    for record in place.store.batteries():
        known_as[record.digest].append(record.id)
        instances[record.digest] = record.instances
    on_it: dict[str, list[SessionUse]] = defaultdict(list)
    for session in sessions:
        on_it[session.battery_digest].append(session)
    known = {*known_as, *on_it, *(name for name in arenas if not name.startswith("."))} - {""}
    uses = [
        BatteryUse(
            digest,
            tuple(sorted(known_as[digest])),
            instances.get(digest, 0),
            len(on_it[digest]),
            sum(session.episodes for session in on_it[digest]),
            arenas.get(digest, 0),
            sum(session.total for session in on_it[digest]),
        )
        for digest in sorted(known)
    ]
    return tuple(sorted(uses, key=lambda use: -use.total))
