"""Looks whether a session's records and recordings are as they were stored."""

from __future__ import annotations

from typing import NamedTuple

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
    """

    problems: tuple[str, ...]
    links: int
    head: str
    uncovered: int


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
    return Intact(tuple(problems), len(links), before, 0 if whole else len(missing))


def _named(what: str) -> str:
    """What a link is about, for people."""
    if "-" in what:
        number, attempt = what.split("-")
        return f"attempt {attempt} at episode {number}"
    return "the specification" if what == BEGINNING else f"the {what}"
