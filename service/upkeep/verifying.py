"""Looks through all of a store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from animalcat.extending.doorways import entries
from animalcat.layouts.library import parse_layout
from animalcat.service.measuring.certificates import CERTIFICATES
from animalcat.service.session.intact import Looker
from animalcat.service.storage.artefacts import ASIDE, PERSONS, RECORDINGS
from animalcat.service.storage.damage import REMEDY
from animalcat.service.upkeep.place import Place, Tell, silent
from animalcat.text import names

REPAIR: Final = (
    "take the file out of a backup, which is a tar, and put it back in its place; without a backup "
    "the record stays, and what was played cannot be seen again"
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
        heads: Digest of the last link of each session's chain.
    """

    damage: tuple[Damage, ...]
    notes: tuple[tuple[str, str], ...]
    sessions: int
    batteries: int
    heads: dict[str, str]


def verify(place: Place, tell: Tell = silent) -> Verified:
    """Look whether all of a store is as it was stored; it may be in use meanwhile.

    Args:
        place: The store.
        tell: Told how far it is.
    """
    damage: list[Damage] = []
    notes: list[tuple[str, str]] = []
    heads: dict[str, str] = {}
    tell("looking through the database")
    damage += [Damage("database", problem, REMEDY) for problem in place.store.damage()]
    looker = Looker(place.store, place.files)
    sessions = place.store.session_ids()
    for k, session in enumerate(sessions):
        tell("looking through sessions", k, len(sessions))
        report = looker.look(session)
        if report.problems:  # perhaps it was written, or deleted, while it was looked at
            if not place.store.has_session(session):
                continue
            report = looker.look(session)
        heads[session] = report.head
        damage += [Damage(session, said, _remedy(said)) for said in report.problems]
        notes += [(session, said) for said in report.notes]
        notes += [
            (session, f"{stored.key} was moved aside, as another file of its name came")
            for kind in (RECORDINGS, CERTIFICATES)
            for stored in place.files.walk(f"{kind}/{session}")
            if f".{ASIDE}-" in stored.key
        ]
    tell("looking through sessions", len(sessions), len(sessions))
    batteries = _batteries(place, looker, damage)
    _layouts(place, damage)
    _campaigns(place, {*sessions}, damage)
    for way in entries("looks").values():
        more, told = way.load()(place.home, {*sessions})
        damage += more
        notes += told
    notes += _strangers(place, {*sessions})
    return Verified(tuple(damage), tuple(notes), len(heads), batteries, heads)


def _remedy(problem: str) -> str:
    if "recording" in problem or "draws" in problem or "the fit of" in problem:
        return REPAIR
    if "battery" in problem:
        return (
            "take it out of a backup, or build or import the battery again: the same content has "
            "the same digest"
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
                notes.append((f"{kind}/{name}", "the database knows no such session"))
    return notes
