"""Looks whether a session's records, recordings and arenas are as they were stored."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.exc import DBAPIError

from animalcat import names
from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.batteries.writing import digest_on_disk
from animalcat.service.errors import ServiceError
from animalcat.service.library.layouts import layout_of
from animalcat.service.measuring.certificates import draws_key
from animalcat.service.measuring.kept_fits import kept_fit_key
from animalcat.service.storage.artefacts import Artefacts, DamagedArchiveError, recording_key
from animalcat.service.storage.chain import (
    BEGINNING,
    CERTIFICATE,
    PROFILE,
    STANDING,
    ChainLink,
    make_link,
)
from animalcat.service.storage.sql import SqlStore
from animalcat.values import Session, SessionState


class IntegrityReport(NamedTuple):
    """Whether a session is as it was stored.

    Attributes:
        problems: What was changed, is gone or cannot be read, one sentence each; empty if nothing.
        links: Number of links in the chain.
        head: Digest of the last link; empty without any.
        notes: What else is to be known and is no change, one sentence each.
    """

    problems: tuple[str, ...]
    links: int
    head: str
    notes: tuple[str, ...] = ()


def look(store: SqlStore, files: Artefacts, session: str) -> IntegrityReport:
    """Compare a session with its chain, and its battery and layout with their digests.

    It goes on to the end whatever it finds, also where something cannot be read.

    Args:
        store: Keeps its records.
        files: Keeps its recordings and batteries.
        session: Its id.

    Raises:
        ArtefactsError: The storage of files does not answer, so that nothing can be said.
    """
    problems = [*store.damage()]
    links, now, damage = store.chain(session)
    problems += damage
    before = ""
    for k, link in enumerate(links):
        if make_link(before, link.what, link.content, link.recording) != link:
            problems.append(f"link {k} ({_named(link.what)}) of the chain was changed")
        before = link.digest
    latest = {link.what: link for link in links}
    if not links:
        problems.append("the chain is gone")
    elif links[0].what != BEGINNING:
        problems.append("the beginning of the chain was removed")
    for what, link in latest.items():
        if what in now:
            if now[what] != link.content:
                problems.append(f"the record of {_named(what)} was changed")
        elif not damage:
            problems.append(f"{_named(what)} was removed")
        if link.recording:
            _compare_file(problems, files, session, link)
    if links:
        added = (what for what in now if what not in latest)
        problems += [f"{_named(what)} was added without a link" for what in added]
    notes: list[str] = []
    with _told(problems, "its record"):
        stored = store.session(session)
        if stored is not None and stored.state is SessionState.UNREADABLE:
            problems.append(f"its record cannot be read: {stored.reason}")
        elif stored is not None:
            _compare_counts(problems, store, session)
            _compare_battery(problems, files, stored)
            _compare_layout(problems, store, stored)
            notes += _notes(store, stored)
    return IntegrityReport(tuple(problems), len(links), before, tuple(notes))


@contextmanager
def _told(problems: list[str], what: str) -> Generator[None]:
    """Add what cannot be read in the block to the problems, and go on."""
    try:
        yield
    except DBAPIError as error:
        problems.append(f"{what} cannot be read: {error.orig}")
    except OSError as error:
        problems.append(f"{what} cannot be read: {error.strerror or type(error).__name__}")
    except (DamagedArchiveError, ServiceError, ValueError) as error:
        problems.append(f"{what} cannot be read: {error}")


def _compare_file(problems: list[str], files: Artefacts, session: str, link: ChainLink) -> None:
    """Compare the file that belongs to what a link is about."""
    what = link.what
    try:
        if what == PROFILE:
            key, called = kept_fit_key(session), "the fit of the profile"
        elif what.startswith(CERTIFICATE):
            n = int(what.removeprefix(CERTIFICATE))
            key, called = draws_key(session, n), f"the draws of {_named(what)}"
        else:
            number, attempt = (int(part) for part in what.split("-"))
            key = recording_key(session, number, attempt)
            called = f"the recording of {_named(what)}"
    except ValueError:  # the link itself was changed
        problems.append(f"the chain tells of a file of {_named(what)}, which has none")
        return
    with _told(problems, called):
        digest = files.digest(key)
        if not digest:
            problems.append(f"{called} is gone" if "draws" not in called else f"{called} are gone")
        elif digest != link.recording:
            changed = "were changed" if "draws" in called else "was changed"
            problems.append(f"{called} {changed}")


def _compare_counts(problems: list[str], store: SqlStore, session: str) -> None:
    """Compare the numbers that lists show of a session with its attempts."""
    kept, counted = store.recount(session)
    for what, is_now, is_so in zip(
        ("episodes", "successes", "practice"), kept, counted, strict=True
    ):
        if is_now != is_so:
            problems.append(f"its number of {what} was changed: it is {is_now}, and not {is_so}")


def _compare_battery(problems: list[str], files: Artefacts, session: Session) -> None:
    """Compare the arenas and demands that a session plays with the digest of its specification."""
    wanted = session.spec.battery_digest
    if not wanted:
        return
    called = f"its battery {session.spec.battery} (digest {names.short_digest(wanted)})"
    with _told(problems, called):
        key = f"{BATTERIES}/{wanted}"
        try:
            files.fetch_folder(key)
            digest = digest_on_disk(files.folder / key)
        except FileNotFoundError as error:
            what = Path(error.filename or key).name
            problems.append(f"{called} is gone, or a part of it: there is no {what}")
            return
        if digest != wanted:
            problems.append(f"{called} was changed: its arenas or their demands are others")


def _compare_layout(problems: list[str], store: SqlStore, session: Session) -> None:
    """Compare the layout that a session uses with the digest of its specification."""
    wanted = session.spec.layout_digest
    if not wanted:
        return
    with _told(problems, f"its layout {session.spec.layout}"):
        if layout_of(session.spec, store).identity != wanted:
            problems.append(f"its layout {session.spec.layout} was changed")


def _notes(store: SqlStore, session: Session) -> tuple[str, ...]:
    """Return a note if the name of the session's battery stands for other arenas by now."""
    if not session.spec.battery_digest:
        return ()
    battery, own = session.spec.battery, session.spec.battery_digest
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
    number, _, attempt = what.partition("-")
    if number.isdecimal() and attempt.isdecimal():
        return f"attempt {attempt} at episode {number}"
    if what == STANDING:
        return "how it stands: its state, reason, agent or capabilities"
    return "the specification" if what == BEGINNING else f"the {what}"
