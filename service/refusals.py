"""Counts what a server refuses and ends, and logs it seldom, so that an attack is seen."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

log = logging.getLogger(__name__)

LOG_SECONDS: Final = 60.0
"""After the first time, the log tells of a refusal as often as this."""
MOST_KEPT: Final = 1000
"""Most kinds of refusals and callers that are told apart."""
OTHERS: Final = "others"
"""Stands for all callers beyond those."""


@dataclass(slots=True)
class RefusalCount:
    """What was refused to somebody.

    Attributes:
        what: What was refused or ended: a code of an error, or words.
        who: To whom, in words.
        number: How often since the start.
        last: When it was so for the last time, in seconds since 1970.
        words: What was said of it then.
    """

    what: str
    who: str
    number: int = 0
    last: float = 0.0
    words: str = ""


class Seldom:
    """Says whether it is time to log something again that happens often."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing logged.

        Args:
            now: Returns seconds that never go back.
        """
        self._now = now
        self._logged: dict[object, float] = {}
        self._kept_back: Counter[object] = Counter()

    def due(self, key: object, number: int = 1) -> int:
        """Return how often something has happened since it was logged; 0: not to be logged now.

        Args:
            key: What it is.
            number: How often it has happened now.
        """
        now = self._now()
        self._kept_back[key] += number
        if now - self._logged.get(key, -LOG_SECONDS) < LOG_SECONDS:
            return 0
        if len(self._logged) >= MOST_KEPT and key not in self._logged:
            oldest = min(self._logged, key=self._logged.__getitem__)
            del self._logged[oldest], self._kept_back[oldest]
        self._logged[key] = now
        kept_back = self._kept_back[key]
        self._kept_back[key] = 0
        return kept_back


class Refusals:
    """Counts refusals by what was refused, and to whom; used on one event loop only."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, clock: Callable[[], float] = time.time
    ) -> None:
        """Begin with nothing counted.

        Args:
            now: Returns seconds that never go back.
            clock: Returns the time in seconds since 1970.
        """
        self._clock = clock
        self._seldom = Seldom(now)
        self._counted: dict[tuple[str, str], RefusalCount] = {}

    def count(self, what: str, who: str, words: str, number: int = 1) -> None:
        """Count a refusal, and log it if it is the first or the log told of it long ago.

        Args:
            what: What was refused or ended.
            who: To whom.
            words: What was said of it, for the log.
            number: How often it was so.
        """
        if (what, who) not in self._counted and len(self._counted) >= MOST_KEPT:
            who = OTHERS
        refusal = self._counted.setdefault((what, who), RefusalCount(what, who))
        refusal.number += number
        refusal.last, refusal.words = self._clock(), words
        if since := self._seldom.due((what, who), number):
            times = "" if refusal.number == number else f", {since} times since this was logged"
            log.warning("%s, to %s%s: %s", what, who, times, words)

    def all(self) -> list[RefusalCount]:
        """Return all that was counted, the most frequent first."""
        return sorted(
            self._counted.values(), key=lambda refusal: (-refusal.number, refusal.what, refusal.who)
        )

    def totals(self) -> dict[str, int]:
        """Return how often each thing was refused, to whomever."""
        sums = Counter[str]()
        for refusal in list(self._counted.values()):
            sums[refusal.what] += refusal.number
        return dict(sums)
