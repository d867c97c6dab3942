"""Tells watchers within this process what happens in sessions."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

from animalcat.service.model import Episode, Session

MAX_BACKLOG: Final = 10_000
"""Events that a slow watcher may lag behind before it loses the oldest."""


class Event(NamedTuple):
    """Something happened: the session after it, and the attempt that ended, if one did."""

    session: Session
    episode: Episode | None


class EventBus:
    """Events of sessions, to those that watch now. Used on one event loop only.

    It keeps nothing: what must not be missed is in the store.
    """

    def __init__(self) -> None:
        self._watchers: defaultdict[str, set[asyncio.Queue[Event]]] = defaultdict(set)

    def publish(self, event: Event) -> None:
        """Tell everyone who watches the session."""
        for queue in self._watchers.get(event.session.id, ()):
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(event)

    @contextmanager
    def watch(self, *sessions: str) -> Generator[asyncio.Queue[Event]]:
        """The events of sessions from now on, in one queue."""
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
