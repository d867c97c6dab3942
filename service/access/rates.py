"""Says how often and how much a caller may ask for, and when to come again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from animalcat.service.errors import Code, ServiceError
from animalcat.service.session.notes import Purse

CALLS_PER_SECOND: Final = 50.0
"""Calls a second of a caller in the long run; twice as many may come at once."""
STREAMS: Final = 64
"""Streams of a caller that may be open at the same time: one for each slot of a session."""
NOTE_BYTES: Final = 256 * 1024 * 1024
"""Bytes of a caller's notes a day in the long run; as many may come at once."""
STREAM_RETRY_SECONDS: Final = 5.0
"""When to come again to open a stream if too many are open."""
DAY_SECONDS: Final = 86_400.0
"""The time in which a budget of notes is full again."""
_MOST_KEPT: Final = 10_000
"""Callers whose rates are remembered."""


@dataclass(slots=True)
class _Bucket:
    """What is left of a rate, and when that was so."""

    left: float
    at: float


class Rates:
    """Counts calls and open streams by caller; used on one event loop only."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing counted.

        Args:
            now: Returns seconds that never go back.
        """
        self._now = now
        self._buckets: dict[str, _Bucket] = {}
        self._notes: dict[str, _Bucket] = {}
        self._streams = Counter[str]()

    def call(self, caller: str) -> None:
        """Count a call.

        Raises:
            ServiceError: The caller calls too often.
        """
        rate = CALLS_PER_SECOND
        bucket = self._refill(self._buckets, caller, rate, 2 * rate)
        if bucket.left < 1:
            raise ServiceError(
                Code.TOO_MANY_CALLS,
                f"this token may make {rate:g} calls a second",
                retry_seconds=(1 - bucket.left) / rate,
            )
        bucket.left -= 1

    def purse(self, caller: str) -> Purse:
        """Return the budget of a caller's notes, which all its agents share."""
        most = NOTE_BYTES
        find = partial(self._refill, self._notes, caller, most / DAY_SECONDS, most)

        def spend(size: int) -> None:
            find().left -= size

        return Purse(lambda: find().left, spend, f"{most:,} bytes a day")

    def _refill(
        self, buckets: dict[str, _Bucket], caller: str, rate: float, most: float
    ) -> _Bucket:
        """Return what a caller has left by now of a rate, of which so much may come at once."""
        now = self._now()
        bucket = buckets.pop(caller, None) or _Bucket(most, now)
        bucket.left = min(most, bucket.left + (now - bucket.at) * rate)
        bucket.at = now
        buckets[caller] = bucket  # last in order
        while len(buckets) > _MOST_KEPT:
            del buckets[next(iter(buckets))]
        return bucket

    @contextmanager
    def stream(self, caller: str) -> Generator[None]:
        """Count a stream as open for the duration of the block.

        Raises:
            ServiceError: The caller has too many open already.
        """
        if self._streams[caller] >= STREAMS:
            raise ServiceError(
                Code.TOO_MANY_CALLS,
                f"this token may have {STREAMS} streams open at once; close one",
                retry_seconds=STREAM_RETRY_SECONDS,
            )
        self._streams[caller] += 1
        try:
            yield
        finally:
            self._streams[caller] -= 1
            if not self._streams[caller]:
                del self._streams[caller]
