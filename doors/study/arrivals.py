"""Counts what comes from each address within a minute, so that nobody takes all places or codes."""

from __future__ import annotations

import ipaddress
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

SECONDS: Final = 60.0
_MOST_KEPT: Final = 10_000
"""Addresses that are remembered."""


class Arrivals:
    """Takes so many from an address in a minute, and no more."""

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        """Begin with none; so many may come, by a clock in seconds."""
        self._most, self._now = most, now
        self._came: dict[str, deque[float]] = {}

    def room(self, address: str) -> bool:
        """Whether another one may come from an address."""
        came = self._came.get(_network(address), ())
        return sum(self._now() - at < SECONDS for at in came) < self._most

    def count(self, address: str) -> None:
        """Count one that came."""
        network = _network(address)
        came = self._came.pop(network, None) or deque[float](maxlen=self._most)
        came.append(self._now())
        self._came[network] = came  # at the end: who was silent for longest is forgotten first
        if len(self._came) > _MOST_KEPT:
            del self._came[next(iter(self._came))]


def _network(address: str) -> str:
    """What one caller has: an address, or a network of version 6."""
    with suppress(ValueError):
        if isinstance(ipaddress.ip_address(address), ipaddress.IPv6Address):
            return str(ipaddress.ip_network((address, 64), strict=False))
    return address
