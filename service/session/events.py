"""Tells watchers within this process what happens in sessions."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

from animalcat.values import Episode, Session

MAX_BACKLOG: Final = 10_000
"""Events by which a slow watcher may lag behind before it loses the oldest ones."""


class Event(NamedTuple):
    """A change of a session: the session after it, and the attempt that ended, if one did."""

    session: Session
    episode: Episode | None


class EventBus:
    """Passes the events of sessions to those who watch; used on one event loop only.

    It stores nothing. What must not be missed is in the store.
    """

    def __init__(self) -> None:
        self._watchers: defaultdict[str, set[asyncio.Queue[Event]]] = defaultdict(set)
        self._listeners: set[Callable[[Event], None]] = set()

    def publish(self, event: Event) -> None:
        """Pass an event to everyone who watches its session, and to all listeners."""
        for listener in self._listeners:
            listener(event)
        for queue in self._watchers.get(event.session.id, ()):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)

    @contextmanager
    def watch(self, *sessions: str) -> Generator[asyncio.Queue[Event]]:
        """Collect the events of these sessions from now on in one queue."""
        queue: asyncio.Queue[Event] = asyncio.Queue(MAX_BACKLOG)
        for session in sessions:
            self._watchers[session].add(queue)
        try:
            yield queue
        finally:
            for session in sessions:
                self._watchers[session].discard(queue)
                if not self._watchers[session]:
                    del self._watchers[session]

    @contextmanager
    def listen(self, listener: Callable[[Event], None]) -> Generator[None]:
        """Call a function with the events of all sessions during the block."""
        self._listeners.add(listener)
        try:
            yield
        finally:
            self._listeners.discard(listener)
