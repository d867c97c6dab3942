"""Looks whether a session's records, recordings and arenas are as they were stored."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy.exc import DBAPIError

from animalcat.service.batteries.battery import BATTERIES
from animalcat.service.batteries.writing import digest_on_disk
from animalcat.service.errors import ServiceError
from animalcat.service.library.layouts import layout_of
from animalcat.service.measuring.certificates import draws_key
from animalcat.service.measuring.kept_fits import kept_fit_key
from animalcat.service.storage.artefacts import Artefacts, recording_key
from animalcat.service.storage.chain import (
    BEGINNING,
    CERTIFICATE,
    PROFILE,
    STANDING,
    ChainLink,
    make_link,
)
from animalcat.service.storage.sql import SqlStore
from animalcat.text import names
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

    It goes on to the end whatever it finds, also where something cannot be read. All that it tells
    of is read. The pages of the whole database are looked at only if something is wrong, to say
    more: that takes the longer, the more other sessions there are (`data verify` does so).

    Args:
        store: Keeps its records.
        files: Keeps its recordings and batteries.
        session: Its id.
    """
    report = Looker(store, files).look(session)
    damage = store.damage() if report.problems else ()
    return report._replace(problems=(*damage, *report.problems))


class Looker:
    """Looks at one session after another; what several share is looked at once."""

    def __init__(self, store: SqlStore, files: Artefacts) -> None:
        """Look at nothing yet.

        Args:
            store: Keeps records.
            files: Keeps recordings and batteries.
        """
        self._store = store
        self._files = files
        self._batteries: dict[str, tuple[str, ...]] = {}
        self._layouts: dict[tuple[str, bool], tuple[str, ...]] = {}

    def look(self, session: str) -> IntegrityReport:
        """Compare a session with its chain, and what it rests on; see `look`.

        The pages of the database are looked at by `SqlStore.damage`.
        """
        links, now, damage = self._store.chain(session)
        problems = [*damage]
        before = ""
        for k, link in enumerate(links):
            if make_link(before, link.what, link.content, link.recording) != link:
                problems.append(f"link {k} ({_name_of_link(link.what)}) of the chain was changed")
            before = link.digest
        latest = {link.what: link for link in links}
        if not links:
            problems.append("the chain is gone")
        elif links[0].what != BEGINNING:
            problems.append("the beginning of the chain was removed")
        for what, link in latest.items():
            if what in now:
                if now[what] != link.content:
                    problems.append(f"the record of {_name_of_link(what)} was changed")
            elif not damage:
                problems.append(f"{_name_of_link(what)} was removed")
            if link.recording:
                self._compare_file(problems, session, link)
        if links:
            added = (what for what in now if what not in latest)
            problems += [f"{_name_of_link(what)} was added without a link" for what in added]
        notes: tuple[str, ...] = ()
        with _collect_problem(problems, "its record"):
            stored = self._store.session(session)
            if stored is not None and stored.state is SessionState.UNREADABLE:
                problems.append(f"its record cannot be read: {stored.reason}")
            elif stored is not None:
                _compare_counts(problems, self._store, session)
                problems += self._of_battery(stored)
                problems += self._of_layout(stored)
                notes += _notes(self._store, stored)
        return IntegrityReport(tuple(problems), len(links), before, notes)

    def battery(self, digest: str, called: str) -> tuple[str, ...]:
        """Compare the arenas and demands of a battery with its digest; what is wrong.

        Args:
            digest: What it should have.
            called: What the battery is called.
        """
        if digest not in self._batteries:
            problems: list[str] = []
            _compare_battery(problems, self._files, digest)
            self._batteries[digest] = tuple(problems)
        return tuple(f"{called} {problem}" for problem in self._batteries[digest])

    def _of_battery(self, session: Session) -> tuple[str, ...]:
        digest = session.spec.battery_digest
        if not digest:
            return ()
        short = names.short_digest(digest)
        return self.battery(digest, f"its battery {session.spec.battery} (digest {short})")

    def _of_layout(self, session: Session) -> tuple[str, ...]:
        digest = session.spec.layout_digest
        if not digest:
            return ()
        which = digest, session.spec.observation_spec.privileged
        if which not in self._layouts:
            problems: list[str] = []
            _compare_layout(problems, self._store, session)
            self._layouts[which] = tuple(problems)
        return self._layouts[which]

    def _compare_file(self, problems: list[str], session: str, link: ChainLink) -> None:
        """Compare the file that belongs to what a link is about."""
        called = file_named(link.what)
        try:
            key = kept_key(session, link.what)
        except ValueError:  # the link itself was changed
            problems.append(
                f"the chain tells of a file of {_name_of_link(link.what)}, which has none"
            )
            return
        with _collect_problem(problems, called):
            digest = self._files.digest(key)
            many = "draws" in called
            if not digest:
                problems.append(f"{called} {'are' if many else 'is'} gone")
            elif digest != link.recording:
                problems.append(f"{called} {'were' if many else 'was'} changed")


def kept_key(session: str, what: str) -> str:
    """Return the key of the file that belongs to what a link is about.

    Raises:
        ValueError: No file belongs to that.
    """
    if what == PROFILE:
        return kept_fit_key(session)
    if what.startswith(CERTIFICATE):
        return draws_key(session, int(what.removeprefix(CERTIFICATE)))
    number, attempt = (int(part) for part in what.split("-"))
    return recording_key(session, number, attempt)


def file_named(what: str) -> str:
    """Return what the file is called that belongs to what a link is about."""
    if what == PROFILE:
        return "the fit of the profile"
    kind = "draws" if what.startswith(CERTIFICATE) else "recording"
    return f"the {kind} of {_name_of_link(what)}"


@contextmanager
def _collect_problem(problems: list[str], what: str) -> Generator[None]:
    """Add what cannot be read in the block to the problems, and go on."""
    try:
        yield
    except DBAPIError as error:
        problems.append(f"{what} cannot be read: {error.orig}")
    except OSError as error:
        problems.append(f"{what} cannot be read: {error.strerror or type(error).__name__}")
    except (ServiceError, ValueError) as error:
        problems.append(f"{what} cannot be read: {error}")


def _compare_counts(problems: list[str], store: SqlStore, session: str) -> None:
    """Compare the numbers that lists show of a session with its attempts."""
    kept, counted = store.recount(session)
    for what, is_now, is_so in zip(
        ("episodes", "successes", "practice"), kept[:3], counted[:3], strict=True
    ):
        if is_now != is_so:
            problems.append(f"its number of {what} was changed: it is {is_now}, and not {is_so}")
    if not kept.spent.is_close(counted.spent):
        problems.append(
            f"what its agent spent was changed: it is {kept.spent}, and not {counted.spent}"
        )


def _compare_battery(problems: list[str], files: Artefacts, wanted: str) -> None:
    """Compare the arenas and demands of a battery with its digest."""
    try:
        key = f"{BATTERIES}/{wanted}"
        try:
            digest = digest_on_disk(files.folder / key)
        except FileNotFoundError as error:
            what = Path(error.filename or key).name
            problems.append(f"is gone, or a part of it: there is no {what}")
            return
        if digest != wanted:
            problems.append("was changed: its arenas or their demands are others")
    except OSError as error:
        problems.append(f"cannot be read: {error.strerror or type(error).__name__}")
    except (ServiceError, ValueError) as error:
        problems.append(f"cannot be read: {error}")


def _compare_layout(problems: list[str], store: SqlStore, session: Session) -> None:
    """Compare the layout that a session uses with the digest of its specification."""
    wanted = session.spec.layout_digest
    if not wanted:
        return
    with _collect_problem(problems, f"its layout {session.spec.layout}"):
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
        f"that name now stands for digest {names.short_digest(now.digest)}"
        if now is not None
        else "no battery has that name now"
    )
    return (
        f"it was played on an older version of battery {battery} (digest "
        f"{names.short_digest(own)}); {stands}. Its own arenas are kept, so this is no change",
    )


def _name_of_link(what: str) -> str:
    """What a link is about, for people."""
    number, _, attempt = what.partition("-")
    if number.isdecimal() and attempt.isdecimal():
        return f"attempt {attempt} at episode {number}"
    if what == STANDING:
        return "how it stands: its state, reason, agent or capabilities"
    return "the specification" if what == BEGINNING else f"the {what}"
