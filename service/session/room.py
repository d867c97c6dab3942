"""Hands out the places for workers: a fair turn for every campaign, and no more than there are."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class _Waiter:
    """One that waits for a place.

    Attributes:
        group: The campaign, or a session that belongs to none.
        admitted: Done when it has its place.
    """

    group: str
    admitted: asyncio.Future[None]


class Room:
    """Places for workers; used on one event loop only.

    A place that comes free goes to the campaign that holds fewest. Within a campaign, and among
    campaigns that hold as many, it goes to the one that waits longest.
    """

    def __init__(self, most: int = 0, quota: int = 0, abreast: int = 0) -> None:
        """Describe the room; nobody has a place yet.

        Args:
            most: Most places; 0 for no limit.
            quota: Most places of one campaign; 0 for no limit.
            abreast: Most that have a place and have not arrived there; 0 for no limit.
        """
        self.most = most
        self.quota = quota
        self._abreast = abreast
        self._held: Counter[str] = Counter()
        self._coming = 0
        self._waiting: list[_Waiter] = []

    @property
    def waited_for(self) -> bool:
        """Whether somebody waits for a place."""
        return bool(self._waiting)

    @property
    def waiting(self) -> int:
        """Number of those that wait for a place."""
        return len(self._waiting)

    @property
    def coming(self) -> int:
        """Number of those that have a place and have not arrived there."""
        return self._coming

    def at_quota(self, group: str) -> bool:
        """Whether a campaign has all places that it may have."""
        return bool(self.quota) and self._held[group] >= self.quota

    def hindrance(self, group: str) -> str:
        """What one of a group would wait for now; empty if for nothing."""
        if self.at_quota(group):
            return f"one of the {self.quota} simulators of its campaign"
        if self.most and self._held.total() >= self.most:
            return f"one of the {self.most} simulators of the server"
        if self._waiting or (self._abreast and self._coming >= self._abreast):
            return "its turn for a simulator"
        return ""

    def held(self, group: str) -> int:
        """Number of places of a group."""
        return self._held[group]

    async def enter(self, group: str) -> None:
        """Wait for a place and take it; `arrive` or `leave` must follow."""
        waiter = _Waiter(group, asyncio.get_running_loop().create_future())
        self._waiting.append(waiter)
        self._admit()
        try:
            await waiter.admitted
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:
                self.leave(group, arrived=False)
            raise

    def arrive(self) -> None:
        """Say that one that was let in has arrived."""
        self._coming -= 1
        self._admit()

    def leave(self, group: str, *, arrived: bool = True) -> None:
        """Give back a place.

        Args:
            group: Whose it was.
            arrived: Whether its holder had arrived there.
        """
        self._held[group] -= 1
        self._coming -= not arrived
        self._admit()

    def _admit(self) -> None:
        while (waiter := self._next()) is not None:
            self._waiting.remove(waiter)
            self._held[waiter.group] += 1
            self._coming += 1
            waiter.admitted.set_result(None)

    def _next(self) -> _Waiter | None:
        """Return the one that may enter now and comes first; None if nobody may."""
        full = self.most and self._held.total() >= self.most
        if full or (self._abreast and self._coming >= self._abreast):
            return None
        may = [
            waiter
            for waiter in self._waiting
            if not waiter.admitted.cancelled() and not self.at_quota(waiter.group)
        ]
        return min(may, key=lambda waiter: self._held[waiter.group], default=None)
