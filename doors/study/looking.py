"""Looks through what studies have stored."""

from __future__ import annotations

from pathlib import Path

from animalcat.doors.study.participant import SessionMade
from animalcat.doors.study.store import (
    STUDIES,
    StudyError,
    participant_files,
    people_of,
    read_events,
    tombstones,
    unfinished_withdrawals,
)
from animalcat.service.upkeep.verifying import REPAIR, Damage


def look(home: Path, known: set[str]) -> tuple[list[Damage], list[tuple[str, str]]]:
    """Return what studies have not as it was stored, and what else is to be known, with places.

    Whoever has a tombstone has withdrawn: nothing of them may be there, and nothing is missed.
    """
    damage, notes = list[Damage](), list[tuple[str, str]]()
    for folder in sorted((home / STUDIES).glob("*")):
        where = f"study {folder.name}"
        try:
            there = {path.stem: list(read_events(path)) for path in participant_files(folder)}
            people = {person.id for person in people_of(folder)}
            stones = tombstones(folder)
            begun = {stone.person for stone in unfinished_withdrawals(folder)}
        except StudyError as error:
            damage.append(Damage(where, str(error), REPAIR))
            continue
        for participant, events in there.items():
            for event in events:
                if isinstance(event, SessionMade) and event.session not in known:
                    lost = f"session {event.session} of participant {participant} is gone"
                    damage.append(Damage(where, lost, REPAIR))
        for person in begun:
            words = f"the withdrawal of {person} was interrupted"
            remedy = f"say animalcat study withdraw {folder.name} {person} again"
            damage.append(Damage(where, words, remedy))
        gone = {stone.person for stone in stones} - begun
        erased = {session for stone in stones for session in stone.sessions}
        for person in gone & ({name.partition("-")[0] for name in there} | people):
            words = f"{person} has withdrawn, and a backup brought them back"
            remedy = f"say animalcat study withdraw {folder.name} {person}"
            damage.append(Damage(where, words, remedy))
        for session in erased & known:
            if not begun:
                words = f"session {session} is of somebody who has withdrawn"
                damage.append(Damage(where, words, f"say animalcat delete {session} --yes"))
        if gone:
            notes.append((where, f"{len(gone)} withdrew, and nothing of them is missed"))
    return damage, notes
