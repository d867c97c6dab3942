"""Looks through all of a store, and goes on where it was when it was interrupted."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from animalcat import names
from animalcat.doorways import entries
from animalcat.layouts.library import parse_layout
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.session.intact import Looker
from animalcat.service.storage.artefacts import ASIDE, PERSONS, RECORDINGS, Artefacts
from animalcat.service.storage.damage import REMEDY
from animalcat.service.upkeep.place import DataError, Place, Tell, silent

JOURNAL: Final = "verify.journal"
"""File in a data directory with the digests that a look that was interrupted has found out."""
REPAIR: Final = (
    "put it back from a backup with `animalcat data restore BACKUP --repair`; without a backup the "
    "record stays, and what was played cannot be seen again"
)
_CHANGED: Final = (
    "somebody or something wrote the database past animalcat: restore a backup into another place, "
    "and do not rely on this session"
)


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that is not as it was stored.

    Attributes:
        where: The session, battery, layout or campaign; "database" for all of it.
        what: What is wrong, a sentence.
        remedy: What to do.
    """

    where: str
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What a look through all of a store has found.

    Attributes:
        damage: What is not as it was stored; empty if nothing.
        notes: What else is to be known and is no damage, with where it is.
        sessions: Number of sessions that were looked at.
        batteries: Number of batteries.
        files: Number of files that were read.
        known: Number of files that an interrupted look had read, and that are the same since.
        heads: Digest of the last link of each session's chain.
    """

    damage: tuple[Damage, ...]
    notes: tuple[tuple[str, str], ...]
    sessions: int
    batteries: int
    files: int
    known: int
    heads: dict[str, str]


def verify(place: Place, tell: Tell = silent) -> Verified:
    """Look whether all of a store is as it was stored; it may be in use meanwhile.

    Records are always read. Files that an interrupted look has read are read again only if they
    were written since.

    Args:
        place: The store.
        tell: Told how far it is.

    Raises:
        DataError: Another look through the same store is under way.
        ArtefactsError: The storage of files does not answer.
    """
    damage: list[Damage] = []
    notes: list[tuple[str, str]] = []
    heads: dict[str, str] = {}
    tell("looking through the database")
    damage += [Damage("database", problem, REMEDY) for problem in place.store.damage()]
    tell("looking through the audit log")
    log = place.store.audit.verify()
    damage += [Damage("audit log", problem, _CHANGED) for problem in log.problems]
    with _journal(place.home) as journal:
        digests = _Digests(place.files, journal)
        looker = Looker(place.store, place.files, digests.digest)
        with place.store.snapshot() as snapshot:
            sizes = snapshot.sizes()
            known = {row.session for row in sizes}
        for k, row in enumerate(sizes):
            tell("looking through sessions", k, len(sizes))
            digests.begin(row.session)
            report = looker.look(row.session)
            if report.problems:  # perhaps it was written, or deleted, while it was looked at
                if place.store.session(row.session) is None:
                    continue
                digests.begin(row.session)
                report = looker.look(row.session)
            heads[row.session] = report.head
            damage += [Damage(row.session, said, _remedy(said)) for said in report.problems]
            notes += [(row.session, said) for said in report.notes]
            notes += [
                (row.session, f"{key} was moved aside, as another file of its name came")
                for key in digests.marks
                if f".{ASIDE}-" in key
            ]
            digests.end()
        tell("looking through sessions", len(sizes), len(sizes))
        batteries = _batteries(place, looker, damage)
        _layouts(place, damage)
        _campaigns(place, known, damage)
        for way in entries("looks").values():
            more, told = way.load()(place.home, known)
            damage += more
            notes += told
        notes += _strangers(place, known)
        (place.home / JOURNAL).unlink(missing_ok=True)  # the next look begins anew
        return Verified(
            tuple(damage),
            tuple(notes),
            len(heads),
            batteries,
            len(digests.read),
            len(digests.known),
            heads,
        )


class _Digests:
    """Digests of files, of which those in a journal are known already."""

    def __init__(self, files: Artefacts, journal: IO[str]) -> None:
        self.read: set[str] = set()
        self.known: set[str] = set()
        self.marks: dict[str, str] = {}
        self._files = files
        self._journal = journal
        self._new: list[str] = []
        self._before: dict[str, tuple[str, str]] = {}
        journal.seek(0)
        for line in journal:
            parts = line.rstrip("\n").split("\t")
            if line.endswith("\n") and len(parts) == 3:  # else it was cut off
                self._before[parts[0]] = (parts[1], parts[2])
        journal.seek(0, os.SEEK_END)

    def begin(self, session: str) -> None:
        """Look at how the files of a session stand now."""
        self._new = []
        self.marks = {
            stored.key: stored.mark
            for kind in (RECORDINGS, CERTIFICATES)
            for stored in self._files.walk(f"{kind}/{session}")
        }

    def digest(self, key: str) -> str:
        """Return the digest of a file; empty if there is none."""
        mark = self.marks.get(key, "")
        before = self._before.get(key)
        if mark and before is not None and before[0] == mark:
            self.known.add(key)
            return before[1]
        digest = self._files.digest(key)
        if digest:
            self.read.add(key)
        if mark and digest:
            self._new.append(f"{key}\t{mark}\t{digest}\n")
        return digest

    def end(self) -> None:
        """Keep what was found out of the session, for when this look is interrupted."""
        if self._new:
            self._journal.write("".join(self._new))
            self._journal.flush()


@contextmanager
def _journal(home: Path) -> Generator[IO[str]]:
    """Open the journal of a data directory, and keep others from it."""
    with (home / JOURNAL).open("a+", encoding="utf-8") as journal:
        try:
            fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataError(f"another look through {home} is under way; wait for it") from None
        yield journal


def _remedy(problem: str) -> str:
    if "recording" in problem or "draws" in problem or "the fit of" in problem:
        return REPAIR
    if "battery" in problem:
        return (
            "put it back with `animalcat data restore BACKUP --repair`, or build or import the "
            "battery again: the same content has the same digest"
        )
    if "cannot be read: version" in problem or "newer version" in problem:
        return "update animalcat"
    return _CHANGED


def _batteries(place: Place, looker: Looker, damage: list[Damage]) -> int:
    """Look at all batteries that have a name; those of sessions were looked at with them."""
    records = place.store.batteries()
    for record in records:
        short = names.short_digest(record.digest)
        problems = looker.battery(record.digest, f"battery {record.id} (digest {short})")
        if problems and place.store.battery(record.id) == record:  # it is still there
            where = f"battery {record.id}"
            damage += [Damage(where, problem, _remedy(problem)) for problem in problems]
    return len(records)


def _layouts(place: Place, damage: list[Damage]) -> None:
    for record in place.store.layouts():
        where = f"layout {record.name}"
        try:
            identity = parse_layout(record.text, record.variant).identity
        except (ValueError, RecursionError) as error:
            damage.append(Damage(where, f"its text cannot be read: {error}", _CHANGED))
            continue
        if identity != record.digest:
            damage.append(Damage(where, "its text is another than its digest says", _CHANGED))


def _campaigns(place: Place, known: set[str], damage: list[Damage]) -> None:
    for campaign in place.store.campaigns():
        where = f"campaign {campaign.id}"
        if campaign.unreadable:
            damage.append(Damage(where, f"it is {campaign.unreadable}", _CHANGED))
        damage += [
            Damage(where, f"its session {session} is gone", _CHANGED)
            for session in campaign.sessions
            if session not in known and place.store.session(session) is None
        ]


def _strangers(place: Place, known: set[str]) -> list[tuple[str, str]]:
    """Name folders of sessions and batteries that the database does not know."""
    notes: list[tuple[str, str]] = []
    for kind in (RECORDINGS, CERTIFICATES):
        for name in place.files.names(kind):
            strange = name not in known and not name.startswith((".", PERSONS))
            if strange and place.store.session(name) is None:
                said = "the database knows no such session; `animalcat data prune --leftovers`"
                notes.append((f"{kind}/{name}", f"{said} removes it"))
    return notes
