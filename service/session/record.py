"""The session as it stands: a change is stored first, then shown here, then told to watchers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import NamedTuple

from animalcat.service.errors import Code, ServiceError
from animalcat.service.measuring.report import Report
from animalcat.service.model import CapabilityStatus, Episode, Session, SessionState
from animalcat.service.session.events import Event, EventBus
from animalcat.service.storage.base import SessionStore


class Progress(NamedTuple):
    """What follows from the outcomes of a session.

    Attributes:
        episodes: How many count.
        successes: How many of them passed.
        capabilities: How well each capability is known.
        misfit: Where the layout's predictions fail, as the alarm has it; empty: nowhere.
    """

    episodes: int
    successes: int
    capabilities: tuple[CapabilityStatus, ...]
    misfit: str


class SessionRecord:
    """Keeps the row of one session; its only writer.

    Attributes:
        session: The session as it stands.
    """

    def __init__(self, session: Session, store: SessionStore, bus: EventBus) -> None:
        self.session = session
        self._store = store
        self._bus = bus

    def check_goes_on(self) -> None:
        """Refuse what only a session that is not over can do.

        Raises:
            ServiceError: The session is over.
        """
        if self.session.state.over:
            raise ServiceError(
                Code.SESSION_OVER,
                f"session {self.session.id} is {self.session.state.name.lower()} already",
            )

    async def set_state(self, state: SessionState) -> None:
        """Change where the session stands."""
        stored = await asyncio.to_thread(self._store.set_state, self.session.id, state)
        self.session = replace(self.session, state=stored.state, reason=stored.reason)
        self.tell(None)

    async def set_paused(self, paused: bool) -> None:
        """Pause the session, or let it go on.

        Raises:
            ServiceError: The session is over.
        """
        self.check_goes_on()
        stored = await asyncio.to_thread(self._store.pause, self.session.id, paused)
        self.session = replace(self.session, paused=stored.paused)
        self.tell(None)

    def show(self, progress: Progress) -> None:
        """Show what follows from the outcomes that are stored."""
        self.session = replace(self.session, **progress._asdict())

    def show_capabilities(self, capabilities: tuple[CapabilityStatus, ...]) -> None:
        """Show how well each capability is known, and tell the watchers, unless all is over."""
        if not self.session.state.over:
            self.session = replace(self.session, capabilities=capabilities)
            self.tell(None)

    def allow(self, episodes: int) -> None:
        """Show how many episodes a campaign lets begin in all, as is stored already."""
        self.session = replace(self.session, allowed=episodes)

    async def end(self, state: SessionState, reason: str, report: Report, misfit: str) -> None:
        """Store the profile and that the session is over."""
        self.session = await asyncio.to_thread(
            self._store.finish_session,
            self.session.id,
            state,
            reason,
            report.profile,
            report.capabilities,
            misfit,
        )
        self.tell(None)

    def tell(self, ended: Episode | None) -> None:
        """Tell the watchers how the session stands, and which attempt ended."""
        self._bus.publish(Event(self.session, ended))
