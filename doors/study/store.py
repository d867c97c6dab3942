"""Keeps what happened to participants, an event a line, and who they are in files apart from it.

A data directory has a folder for each study:

    studies/STUDY/versions/DIGEST.json     the study file with its texts, as it was
    studies/STUDY/participants/ID.jsonl    the events of a participant at one visit
    studies/STUDY/rounds/ID.jsonl          the round that is open, a line a step, until it is over
    studies/STUDY/people/PERSON.json       ids of recruiters, and what the browser is known by
    studies/STUDY/tombstones.jsonl         when somebody withdrew, and nothing else of them

To erase somebody is to remove their files. Whoever still holds them cannot write them again, since
only an arrival makes a file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from animalcat.doors.study.file import Study
from animalcat.doors.study.participant import (
    EVENTS,
    Arrived,
    Event,
    OutOfPlaceError,
    Participant,
    Stage,
    TrialOver,
    after,
    arrive,
    assign,
    replay_participant,
)
from animalcat.machine.files import sync_folder
from animalcat.service.access.private_files import private_folder, write_private

T = TypeVar("T")

STUDIES: Final = "studies"
"""Folder of the studies within a data directory."""
PARTICIPANTS: Final = "participants"
ROUNDS: Final = "rounds"
PEOPLE: Final = "people"
VERSIONS: Final = "versions"
TOMBSTONES: Final = "tombstones.jsonl"
PAUSED: Final = "paused"
"""File that is there while nobody new may come."""
LOCK: Final = "running.lock"
"""File that whoever runs a study has locked."""
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"
_LENGTH: Final = 12


class StudyError(Exception):
    """A study's folder does not allow what was asked for; the message says why."""


class WithdrawnError(StudyError):
    """The participant is not there: nobody of this id came, or they have withdrawn."""


class FullError(StudyError):
    """The study takes nobody else."""


class BegunError(StudyError):
    """Somebody of these ids is already taking part, and nothing shows that it is who comes."""


class TooEarlyError(StudyError):
    """The next visit is still to come."""

    def __init__(self, opens: datetime) -> None:
        super().__init__(f"the next visit opens at {opens:%Y-%m-%d %H:%M} UTC")
        self.opens = opens


@checked(frozen=True, slots=True)
class Person:
    """Who somebody is to their recruiter; it is kept apart from all that they do.

    Ids of participants begin with the random id. Of what their browsers are known by, this keeps
    SHA-256.
    """

    id: str
    ids: Mapping[str, str] = field(default_factory=dict[str, str])
    keys: tuple[str, ...] = ()


@checked(frozen=True, slots=True)
class Tombstone:
    """That a person, of whom the random id is left, has withdrawn.

    It tells the day at midnight UTC, since no time may tell who it was, and the sessions that are
    still to be erased.
    """

    at: datetime
    person: str
    sessions: tuple[str, ...] = ()


_PERSON: Final = TypeAdapter(Person)
_TOMBSTONE: Final = TypeAdapter(Tombstone)


@dataclass(frozen=True, slots=True)
class Chance:
    """Where times with their zone come from, numbers below another, and secrets."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    pick: Callable[[int], int] = secrets.randbelow
    key: Callable[[], str] = lambda: secrets.token_urlsafe(24)


class StudyStore:
    """The participants of a study, whose file new ones begin with; one process may change them."""

    def __init__(self, home: Path, study: Study, chance: Chance | None = None) -> None:
        """Open or make the folder of a study, and read what is there.

        Raises:
            StudyError: What is there cannot be read.
        """
        self.study = study
        self.folder = home / STUDIES / study.study
        self._chance = chance or Chance()
        for part in ("", PARTICIPANTS, ROUNDS, PEOPLE, VERSIONS):
            private_folder(self.folder / part)
        self._lock = -1
        self._versions: dict[str, Study] = {study.digest: study}
        self._people = {person.id: person for person in people_of(self.folder)}
        self._by_key = {key: p.id for p in self._people.values() for key in p.keys}
        self._there = {p.id: p for p in self._read()}
        self._beginning = set[str]()

    def hold(self) -> None:
        """Take the study for this process, until it ends or `close` is called.

        Raises:
            StudyError: Another process has it.
        """
        self._lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StudyError(
                f"the study {self.study.study} is already running in another process; stop that "
                "first"
            ) from None
        path = self.folder / VERSIONS / f"{self.study.digest}.json"
        if not path.exists():
            kept = {**self.study.model_dump(mode="json"), "who": _without_codes(self.study)}
            write_private(path, json.dumps(kept, indent=1).encode())

    def close(self) -> None:
        """Let the study go."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def now(self) -> datetime:
        """The time."""
        return self._chance.now()

    def participants(self) -> list[Participant]:
        """All participants, in the order in which they came."""
        return sorted(self._there.values(), key=lambda p: (p.arrived, p.id))

    def participant(self, participant: str) -> Participant:
        """A participant as they are now.

        Raises:
            WithdrawnError: There is none of this id.
        """
        found = self._there.get(participant)
        if found is None or not self._path(participant).exists():
            self._there.pop(participant, None)
            raise WithdrawnError(f"there is no participant {participant}")
        return found

    def study_of(self, participant: Participant) -> Study:
        """The study as it was when a participant came, which holds for them to the end."""
        if participant.study not in self._versions:
            path = self.folder / VERSIONS / f"{participant.study}.json"
            self._versions[participant.study] = _version(path, self.study.folder)
        return self._versions[participant.study]

    def person_of(self, key: str) -> str | None:
        """Who shows the key of a browser; None for nobody who is known."""
        found = self._by_key.get(_digest(key))
        return found if found in self._people and self._is_there(found) else None

    def latest(self, person: str) -> Participant:
        """The latest visit of a person.

        Raises:
            WithdrawnError: They are not there any more.
        """
        visits = self._visits(person)
        if not visits:
            raise WithdrawnError(f"there is no person {person}")
        return self.participant(max(visits, key=lambda p: p.visit).id)

    def sessions_of(self, participant: Participant) -> list[str]:
        """Ids of the sessions of a person at this visit and all before, in order."""
        visits = sorted(self._visits(participant.person), key=lambda p: p.visit)
        ordered = [*(p for p in visits if p.visit < participant.visit), participant]
        return [session for visit in ordered for session in visit.sessions.values()]

    def _visits(self, person: str) -> list[Participant]:
        return [p for p in self._there.values() if p.person == person]

    def known(self, ids: Mapping[str, str]) -> str | None:
        """Who has these ids. Prolific's SESSION_ID is new at each visit, the others say who."""
        who = {k: v for k, v in ids.items() if k not in ("SESSION_ID", "STUDY_ID")}
        for person in self._people.values() if who else ():
            if all(person.ids.get(k) == v for k, v in who.items()) and self._is_there(person.id):
                return person.id
        return None

    def opens(self, participant: Participant) -> datetime | None:
        """When the next visit of somebody who is done may begin; None if there is none."""
        who = self.study.who
        if participant.stage is not Stage.DONE or participant.visit >= who.visits:
            return None
        return participant.changed + timedelta(days=who.days_between)

    def bound(self, person: str, ids: Mapping[str, str]) -> bool:
        """Whether these are all the ids with which a person came, or a next visit may begin."""
        whole = dict(self._people[person].ids) == dict(ids)
        return whole or self.opens(self.latest(person)) is not None

    def take_place(self, participant: Participant) -> bool:
        """Take a place for somebody who begins to play; False if all are taken."""
        person = participant.person
        most, begun = self.study.who.most, self.begun()
        if most and person not in begun and len(begun) >= most:
            return False
        self._beginning.add(person)
        return True

    def welcome(self, person: str) -> tuple[Participant, str]:
        """Let a browser in whose person is known by their recruiter's ids; see `enter`."""
        key = self._chance.key()
        self._add_key(person, key)
        return self.latest(person), key

    def enter(self, ids: Mapping[str, str], known: str | None = None) -> tuple[Participant, str]:
        """Let somebody in: the same person to where they were, or somebody new to the beginning.

        Who is known by the browser's key is `known`. The second of what is returned is a new key.

        Raises:
            BegunError: Prolific's ids are somebody's whom the browser is not known for.
            FullError: Nobody else may take part.
            TooEarlyError: The next visit is still to come.
        """
        person = known if known is not None and self._same(known, ids) else self.known(ids)
        shown = person == known and person is not None and self.bound(person, ids)
        if person is not None and "PROLIFIC_PID" in ids and not shown:
            raise BegunError(f"{person} is already taking part")
        key = self._chance.key()
        if person is None:
            if not self.room:
                raise FullError(f"the study {self.study.study} takes nobody else at the moment")
            made = self._new_person(ids, key)
            return self._arrive(made, 1), key
        now = self.latest(person)
        if (opens := self.opens(now)) is not None:
            if self._chance.now() < opens:
                raise TooEarlyError(opens)
            now = self._arrive(person, now.visit + 1, now.condition)
            self._keep_person(
                replace(self._people[person], ids={**self._people[person].ids, **ids})
            )
        self._add_key(person, key)
        return now, key

    def append(self, participant: str, event: Event) -> Participant:
        """Store an event, and only then let it have happened; return the participant after it.

        Raises:
            WithdrawnError: The participant is not there any more.
            OutOfPlaceError: The event does not belong here; nothing is stored.
        """
        now = self.participant(participant)
        then = after(self.study_of(now), now, event)
        try:
            _write_line(self._path(participant), EVENTS.dump_json(event, exclude_none=True))
        except FileNotFoundError:
            self._there.pop(participant, None)
            raise WithdrawnError(f"there is no participant {participant}") from None
        self._there[participant] = then
        if isinstance(event, TrialOver):
            self.round_path(participant).unlink(missing_ok=True)
        return then

    def round_path(self, participant: str) -> Path:
        """The file of a participant's open round."""
        return self.folder / ROUNDS / f"{participant}.jsonl"

    def begin_withdrawal(self, person: str) -> Tombstone:
        """Set a tombstone before anything is erased, so that an interrupted withdrawal goes on.

        Raises:
            WithdrawnError: They are not there.
        """
        person = _person(person)
        visits = self._visits(person)
        if not visits and person not in self._people:
            raise WithdrawnError(f"there is no person {person} in the study {self.study.study}")
        sessions = tuple(sorted(s for p in visits for s in p.sessions.values()))
        stone = Tombstone(self._day(), person, sessions)
        self._bury(stone)
        return stone

    def end_withdrawal(self, stone: Tombstone) -> None:
        """Remove the files of a person whose sessions are erased, and say that it is done."""
        self._remove(stone.person)
        self._bury(Tombstone(stone.at, stone.person))

    def unfinished(self) -> list[Tombstone]:
        """Withdrawals that were begun and not ended."""
        return unfinished_withdrawals(self.folder)

    def _read(self) -> Iterator[Participant]:
        for path in participant_files(self.folder):
            events = list(read_events(path))
            if not events:  # the process ended before the arrival was written
                path.unlink()
                continue
            first = events[0]
            assert isinstance(first, Arrived)  # else `read_events` had refused it
            begun = arrive(path.stem, first)
            try:
                yield replay_participant(self.study_of(begun), path.stem, events)
            except OutOfPlaceError as error:
                raise StudyError(f"{path}: {error}") from None

    def _same(self, person: str, ids: Mapping[str, str]) -> bool:
        return not ids or self.known(ids) == person

    def _is_there(self, person: str) -> bool:
        return (self.folder / PEOPLE / f"{person}.json").exists()

    @property
    def paused(self) -> bool:
        """Whether nobody new may come for the time being."""
        return (self.folder / PAUSED).exists()

    def recruit(self, *, pause: bool) -> None:
        """Let nobody new come, or go on with it."""
        path = self.folder / PAUSED
        write_private(path, b"") if pause else path.unlink(missing_ok=True)

    @property
    def room(self) -> bool:
        """Whether somebody new may come."""
        most = self.study.who.most
        return not self.paused and not (most and len(self.begun()) >= most)

    def begun(self) -> set[str]:
        """Who has begun to play, and is done or may still come to it: places are theirs."""
        there = {p.person for p in self._there.values() if self._counts(p)}
        begun = {p.person for p in self._there.values() if p.sessions}
        return (begun | self._beginning) & there

    def _counts(self, one: Participant) -> bool:
        """Whether a participant is done, or may still come to it."""
        silent = self._chance.now() - one.changed
        alive = silent < timedelta(hours=self.study.who.drop_hours)
        return one.stage is Stage.DONE or (one.stage is not Stage.SCREENED and alive)

    def _new_person(self, ids: Mapping[str, str], key: str) -> str:
        while True:
            made = "".join(_LETTERS[self._chance.pick(len(_LETTERS))] for _ in range(_LENGTH))
            if made not in self._people:
                break
        self._keep_person(Person(made, dict(ids), (_digest(key),)))
        return made

    def _add_key(self, person: str, key: str) -> None:
        known = self._people[person]
        # The first is that of the link that was shown at the consent.
        keys = (*known.keys[:1], *known.keys[1:][-9:], _digest(key))
        self._keep_person(Person(person, known.ids, keys))

    def _keep_person(self, person: Person) -> None:
        write_private(self.folder / PEOPLE / f"{person.id}.json", _PERSON.dump_json(person))
        self._people[person.id] = person
        self._by_key |= dict.fromkeys(person.keys, person.id)

    def _arrive(self, person: str, visit: int, condition: str | None = None) -> Participant:
        """Make a participant, in the condition of their visits before."""
        if condition is None:
            counted = (p for p in self._there.values() if p.visit == 1 and self._counts(p))
            filled = Counter(p.condition for p in counted)
            condition = assign(self.study, filled, len(self._there))
        event = Arrived(self._chance.now(), self.study.digest, condition, visit)
        made = arrive(f"{person}-{visit}", event)
        path = self._path(made.id)
        _write_line(path, EVENTS.dump_json(event, exclude_none=True), os.O_CREAT | os.O_EXCL)
        sync_folder(path.parent)
        self._there[made.id] = made
        return made

    def _remove(self, person: str) -> None:
        known = self._people.pop(person, None)
        for key in () if known is None else known.keys:
            self._by_key.pop(key, None)
        for one in self._visits(person):
            del self._there[one.id]
        for part in (PARTICIPANTS, ROUNDS):
            for path in (self.folder / part).glob(f"{person}-*.jsonl"):
                path.unlink()
        (self.folder / PEOPLE / f"{person}.json").unlink(missing_ok=True)
        sync_folder(self.folder / PARTICIPANTS)
        sync_folder(self.folder / PEOPLE)

    def _bury(self, stone: Tombstone) -> None:
        _write_line(self.folder / TOMBSTONES, _TOMBSTONE.dump_json(stone), os.O_CREAT)
        sync_folder(self.folder)

    def _day(self) -> datetime:
        return self._chance.now().astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)

    def _path(self, participant: str) -> Path:
        return self.folder / PARTICIPANTS / f"{participant}.jsonl"


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of a participant; a last line that was cut off never happened.

    Raises:
        StudyError: Another line is no event.
    """
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        event = _parse(EVENTS, line, f"{path}: line {number} is no event")
        if (number == 1) != isinstance(event, Arrived):
            raise StudyError(f"{path}: line {number}: an arrival is the first line, and no other")
        yield event


def participant_files(folder: Path) -> list[Path]:
    """Return the files of a study's participants, which have their ids."""
    return sorted((folder / PARTICIPANTS).glob("*.jsonl"))


def people_of(folder: Path) -> list[Person]:
    """Return who the participants of a study are to their recruiters.

    Raises:
        StudyError: A file cannot be read.
    """
    files = sorted((folder / PEOPLE).glob("*.json"))
    return [_parse(_PERSON, path.read_bytes(), f"{path} is damaged") for path in files]


def tombstones(folder: Path) -> list[Tombstone]:
    """Return the tombstones of a study, in their order.

    Raises:
        StudyError: One cannot be read.
    """
    path = folder / TOMBSTONES
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [_parse(_TOMBSTONE, line, f"{path} is damaged") for line in lines]


def _parse(kind: TypeAdapter[T], content: bytes, problem: str) -> T:
    try:
        return kind.validate_json(content)
    except ValidationError as error:
        raise StudyError(f"{problem}: {error.errors()[0]['msg']}") from None


def unfinished_withdrawals(folder: Path) -> list[Tombstone]:
    """Return withdrawals of a study that were begun and not ended."""
    open_ones = dict[str, Tombstone]()
    for stone in tombstones(folder):
        if stone.sessions or stone.person not in open_ones:
            open_ones[stone.person] = stone
        else:
            open_ones.pop(stone.person, None)
    return list(open_ones.values())


def kept_study(home: Path, name: str, version: str = "") -> Study:
    """Return a study as it is kept, without its file: by a digest, or the latest that ran.

    Raises:
        StudyError: It never ran here.
    """
    folder = home / STUDIES / name / VERSIONS
    found = sorted(folder.glob(f"{version or '*'}.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        there = sorted(p.parent.name for p in (home / STUDIES).glob(f"*/{VERSIONS}"))
        raise StudyError(f"{home} has no study {name}; there are: {', '.join(there) or 'none'}")
    return _version(found[-1], Path())


def _version(path: Path, folder: Path) -> Study:
    try:
        said = {**json.loads(path.read_bytes()), "folder": folder}
        return Study.model_validate(said)
    except (OSError, ValueError) as error:
        raise StudyError(f"{path} cannot be read: {error}") from None


def _without_codes(study: Study) -> dict[str, Any]:
    """Who may come, without the codes, which are somebody's."""
    who = study.who.model_dump(mode="json")
    return {**who, "codes": ["withheld"] if study.who.codes else []}


def _write_line(path: Path, line: bytes, flags: int = 0) -> None:
    """Write a line so that it survives a power cut, in the place of one that was cut off."""
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o600)
    try:
        size = os.fstat(file).st_size
        while size and os.pread(file, 1, size - 1) != b"\n":
            size -= 1
        os.ftruncate(file, size)
        os.write(file, line + b"\n")
        os.fsync(file)
    finally:
        os.close(file)


def _person(participant: str) -> str:
    return participant.partition("-")[0]


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
