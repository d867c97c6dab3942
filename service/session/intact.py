"""Looks whether a session's records and recordings are as they were stored."""

from __future__ import annotations

from typing import NamedTuple

from animalcat import names
from animalcat.service.session.play import recording_key
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.base import SessionStore
from animalcat.service.storage.chain import BEGINNING, make_link


class Intact(NamedTuple):
    """What was found.

    Attributes:
        problems: What was changed, one sentence each; empty if nothing was.
        links: Number of links in the chain.
        head: Digest of the last link; empty without any.
        uncovered: Number of records that were stored before there were chains.
        notes: What else is to be known and is no change, one sentence each.
    """

    problems: tuple[str, ...]
    links: int
    head: str
    uncovered: int
    notes: tuple[str, ...] = ()


def look(store: SessionStore, files: Artefacts, session: str) -> Intact:
    """Compare a session with its chain.

    Args:
        store: Keeps its records.
        files: Keeps its recordings.
        session: Its id.
    """
    links, now = store.chain(session)
    problems: list[str] = []
    before = ""
    for k, link in enumerate(links):
        if make_link(before, link.what, link.content, link.recording) != link:
            problems.append(f"link {k} ({_named(link.what)}) of the chain was changed")
        before = link.digest
    latest = {link.what: link for link in links}
    whole = bool(links) and links[0].what == BEGINNING
    if not whole and BEGINNING in latest:
        problems.append("the beginning of the chain was removed")
    for what, link in latest.items():
        if what not in now:
            problems.append(f"{_named(what)} was removed")
        elif now[what] != link.content:
            problems.append(f"the record of {_named(what)} was changed")
        if link.recording:
            number, attempt = (int(part) for part in what.split("-"))
            found = files.digest(recording_key(session, number, attempt))
            if not found:
                problems.append(f"the recording of {_named(what)} is gone")
            elif found != link.recording:
                problems.append(f"the recording of {_named(what)} was changed")
    missing = [what for what in now if what not in latest]
    if whole:
        problems += [f"{_named(what)} was added without a link" for what in missing]
    uncovered = 0 if whole else len(missing)
    return Intact(tuple(problems), len(links), before, uncovered, _notes(store, session))


def _notes(store: SessionStore, session: str) -> tuple[str, ...]:
    """Say that the name of the session's battery stands for other arenas by now."""
    found = store.session(session)
    if found is None or not found.spec.battery_digest:
        return ()
    battery, own = found.spec.battery, found.spec.battery_digest
    now = store.battery(battery)
    if now is not None and now.digest == own:
        return ()
    stands = (
        f"that name stands for digest {names.short_digest(now.digest)} by now"
        if now is not None
        else "no battery has that name by now"
    )
    return (
        f"it was played on an older version of battery {battery} (digest "
        f"{names.short_digest(own)}); {stands}. Its own arenas are kept, so this is no change",
    )


def _named(what: str) -> str:
    """What a link is about, for people."""
    if "-" in what:
        number, attempt = what.split("-")
        return f"attempt {attempt} at episode {number}"
    return "the specification" if what == BEGINNING else f"the {what}"
