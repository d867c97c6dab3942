"""Looks whether a session's records and recordings are as they were stored."""

from __future__ import annotations

from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple

from animalcat.service.session.play import recording_path
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


def recording_digest(data: Path, session: str, number: int, attempt: int) -> str:
    """Return the SHA-256 of an attempt's recording; empty if there is none."""
    try:
        with recording_path(data, session, number, attempt).open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def look(store: SessionStore, data: Path, session: str) -> Intact:
    """Compare a session with its chain.

    Args:
        store: Keeps its records.
        data: The data directory, which has its recordings.
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
            found = recording_digest(data, session, number, attempt)
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
