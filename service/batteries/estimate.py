"""Adds to progress how long it will still take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

Tick: TypeAlias = Callable[[int, int, str], None]
"""Told of progress: the parts done, all parts (0 if unknown), and what is being done."""

WINDOW: Final = 60.0
"""Seconds of the past that tell how fast it goes."""
SURE: Final = 5.0
"""Seconds after which there is an estimate."""


def with_estimate(tick: Tick, clock: Callable[[], float] = time.monotonic) -> Tick:
    """Tell as well how long a step of the work will still take.

    Args:
        tick: Is told.
        clock: Seconds that pass.
    """
    current = ""
    past: deque[tuple[float, int]] = deque()

    def tell_tick(done: int, total: int, message: str) -> None:
        nonlocal current
        now = clock()
        if message != current:
            current = message
            past.clear()
        past.append((now, done))
        while len(past) > 2 and past[1][0] < now - WINDOW:
            past.popleft()
        since, before = past[0]
        if total and done > before and now - since >= SURE:
            message += (
                f", about {words_of_time((total - done) * (now - since) / (done - before))} left"
            )
        tick(done, total, message)

    return tell_tick


def words_of_time(seconds: float) -> str:
    """A time in words, in steps that do not change all the time: 40 s, 7 min, 2.5 h."""
    if seconds < 55:
        return f"{max(5, 5 * round(seconds / 5))} s"
    if seconds < 5400:
        return f"{max(1, round(seconds / 60))} min"
    return f"{round(seconds / 1800) / 2:g} h"
