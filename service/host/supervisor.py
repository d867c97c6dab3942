"""Tells a supervisor such as systemd how the server is, over the socket that it names."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

SOCKET: Final = "NOTIFY_SOCKET"
"""Variable of the environment that names the socket; systemd sets it with Type=notify."""
WATCHDOG: Final = "WATCHDOG_USEC"
"""Variable with the microseconds within which it wants to hear that all is well."""


class Supervisor:
    """The protocol of sd_notify(3); without a supervisor, nothing is said."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        """Read where the supervisor listens.

        Args:
            environment: The variables of the environment.
        """
        self._path = environment.get(SOCKET, "")
        with suppress(ValueError):
            mine = int(environment.get("WATCHDOG_PID", os.getpid())) == os.getpid()
            self._every = int(environment.get(WATCHDOG, "0")) / 2e6 if mine else 0.0

    def tell(self, *lines: str) -> None:
        """Send lines such as READY=1; who does not listen is not waited for."""
        if not self._path:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            # A name that begins with @ is an abstract one.
            out.connect("\0" + self._path[1:] if self._path[0] == "@" else self._path)
            out.send("\n".join(lines).encode())

    def ready(self, address: str) -> None:
        """Say that calls are answered."""
        self.tell("READY=1", f"STATUS=serving at {address}")

    def reloading(self) -> None:
        """Say that the settings are being read again; `ready` follows."""
        self.tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Say that episodes are played to their end, and then the server stops."""
        self.tell("STOPPING=1", "STATUS=draining")

    async def feed(self, well: Callable[[], bool]) -> None:
        """Feed the watchdog for as long as this event loop runs and all is well.

        Args:
            well: Whether what cannot be seen from here is well.
        """
        while self._every:
            if well():
                self.tell("WATCHDOG=1")
            await asyncio.sleep(self._every)
