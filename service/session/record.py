"""Keeps the present state of a session: a change is stored first, then shown, then announced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from animalcat.service.errors import Code, ServiceError
from animalcat.service.measuring.report import Report
from animalcat.service.session.events import Event, EventBus
from animalcat.service.storage.sql import SqlStore
from animalcat.values import (
    CapabilityStatus,
    Episode,
    Identity,
    Session,
    SessionState,
    episodes_words,
)

log = logging.getLogger(__name__)


class Progress(NamedTuple):
    """What the outcomes of a session amount to.

    Attributes:
        episodes: Number of episodes that count.
        successes: Number of those that passed.
        capabilities: How well each capability is known.
        misfit: Where the alarm found that the layout's predictions fail; empty if nowhere.
        practised: Number of practice episodes that are over.
    """

    episodes: int
    successes: int
    capabilities: tuple[CapabilityStatus, ...]
    misfit: str
    practised: int


class SessionRecord:
    """The row of one session, and its only writer.

    Attributes:
        session: The session as it stands.
    """

    def __init__(self, session: Session, store: SqlStore, bus: EventBus) -> None:
        self.session = session
        self._store = store
        self._bus = bus
        self._moving = asyncio.Lock()
        self._hindrances: dict[object, str] = {}

    def check_goes_on(self) -> None:
        """Check that the session is not over.

        Raises:
            ServiceError: The session is over.
        """
        if self.session.state.over:
            raise ServiceError(
                Code.SESSION_OVER,
                f"session {self.session.id} is {self.session.state.name.lower()} already",
            )

    def check_judged(self) -> None:
        """Check that no episode waits for a person to say what it counts as.

        Raises:
            ServiceError: One does.
        """
        if self.session.unjudged and not self.session.state.over:
            where = f"{episodes_words(self.session.unjudged)} of session {self.session.id}"
            raise ServiceError(
                Code.UNJUDGED,
                f"the agent's code failed in {where}; say first what that counts as: animalcat "
                f"session resume {self.session.id} --as repeat, failure or fault",
            )

    def await_ruling(self, *numbers: int) -> None:
        """Show which episodes a person has to judge; the store has them already."""
        self.session = replace(self.session, unjudged=tuple(sorted(set(numbers))))

    async def set_state(self, state: SessionState, reason: str = "") -> None:
        """Store and announce a new state of the session, unless it has ended meanwhile.

        The reason says why it waits for an agent, where it stopped by itself. If nobody plays any
        more and that cannot be stored, it is shown all the same, as it is true.
        """
        async with self._moving:
            if self.session.state.over:
                return
            try:
                stored = await asyncio.to_thread(
                    self._store.set_state, self.session.id, state, reason
                )
            except Exception:
                if state is SessionState.WAITING:
                    self.session = replace(self.session, state=state, reason=reason)
                    self.tell(None)
                raise
            self.session = replace(self.session, state=stored.state, reason=stored.reason)
            self.tell(None)

    async def set_paused(self, paused: bool) -> None:
        """Store and announce that the session is paused, or goes on.

        Raises:
            ServiceError: The session is over.
        """
        self.check_goes_on()
        stored = await asyncio.to_thread(self._store.pause, self.session.id, paused)
        self.session = replace(self.session, paused=stored.paused)
        self.tell(None)

    async def identify(self, identity: Identity) -> None:
        """Store and announce who plays the session."""
        await asyncio.to_thread(self._store.identify, self.session.id, identity)
        self.session = replace(self.session, identity=identity)
        self.tell(None)

    def wait_for(self, who: object, what: str, first: bool = False) -> None:
        """Show and announce what the session waits for; of several, what has been longest.

        Args:
            who: What waits.
            what: For what, in words; empty: it waits for nothing any more.
            first: Whether it is shown rather than what has been longer.
        """
        if what:
            log.info("session %s waits for %s", self.session.id, what)
            if first:
                self._hindrances = {who: what, **self._hindrances}
            self._hindrances[who] = what
        else:
            self._hindrances.pop(who, None)
        longest = next(iter(self._hindrances.values()), "")
        self.session = replace(self.session, hindrance=longest)
        self.tell(None)

    @contextmanager
    def waiting(self, what: str, first: bool = False) -> Generator[None]:
        """Show for the block that the session waits for something; see `wait_for`."""
        who = object()
        self.wait_for(who, what, first)
        try:
            yield
        finally:
            self.wait_for(who, "")

    def show(self, progress: Progress) -> None:
        """Show what the stored outcomes amount to."""
        self.session = replace(self.session, **progress._asdict())

    def show_capabilities(self, capabilities: tuple[CapabilityStatus, ...]) -> None:
        """Show and announce how well each capability is known, unless the session is over."""
        if not self.session.state.over:
            self.session = replace(self.session, capabilities=capabilities)
            self.tell(None)

    async def end(
        self, state: SessionState, reason: str, report: Report, misfit: str, fit: str = ""
    ) -> None:
        """Store the profile and the end of the session, and announce it.

        Args:
            state: How it ended.
            reason: Why.
            report: What is known.
            misfit: What its alarm found.
            fit: SHA-256 of the file of the fit that the profile rests on; empty without one.
        """
        async with self._moving:
            self.session = await asyncio.to_thread(
                self._store.finish_session,
                self.session.id,
                state,
                reason,
                report.profile,
                report.capabilities,
                misfit,
                fit,
            )
            self.tell(None)

    def tell(self, ended: Episode | None) -> None:
        """Announce the present session, and the attempt that ended if one did."""
        self._bus.publish(Event(self.session, ended))
