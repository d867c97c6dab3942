"""Makes tickets: what the process of an agent shows to play one session and do nothing else.

A ticket is signed and not stored. Whoever runs an agent gets one for it, so that the process never
holds the token of a person.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from animalcat.service.access.callers import MACHINE, Caller, Role
from animalcat.service.access.tokens import (
    FOLDER,
    kept_key,
    utc_now,
)

PREFIX: Final = "acat-ticket"
LOCAL: Final = "acat-local"
DAYS: Final = 7
"""Days after which a ticket ends. A session that lasts longer goes on by `session resume`."""
LOCAL_DAYS: Final = 30
"""Days after which a pass of this machine's commands ends; each command makes one of its own."""


class Tickets:
    """Signs tickets with a key of the data directory.

    Whoever can read the key can read everything else in the directory, too. So commands that work
    on a data directory sign a pass with it, by which its server takes them for an operator.
    """

    def __init__(self, data: Path, clock: Callable[[], datetime] = utc_now) -> None:
        """Read the key, or make it.

        Args:
            data: The data directory.
            clock: Returns the current time with time zone.

        Raises:
            TokenError: The file holds no such key; the message says what to do.
        """
        self._clock = clock
        self._key = kept_key(
            data / FOLDER / "ticket.key",
            "passes could be forged",
            "agents that play get new tickets by `session resume`",
        )

    def issue(self, session: str) -> tuple[str, datetime]:
        """Return a ticket for a session, and when it ends."""
        return self._sign(f"{PREFIX}.{session}", DAYS)

    def local_pass(self) -> str:
        """Return what a command shows that works on the data directory."""
        return self._sign(LOCAL, LOCAL_DAYS)[0]

    def key_for(self, purpose: str) -> bytes:
        """Return a key that follows from this one, for another purpose."""
        return hmac.digest(self._key, f"key for {purpose}".encode(), "sha256")

    def _sign(self, what: str, days: int) -> tuple[str, datetime]:
        ends = (self._clock() + timedelta(days=days)).replace(microsecond=0)
        said = f"{what}.{int(ends.timestamp())}"
        return f"{said}.{self._signature(said)}", ends

    def caller(self, text: str) -> Caller | None:
        """Return who shows a ticket; None if the text is none, or one that has ended."""
        said, _, signature = text.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(said).encode()):
            return None
        what, _, ends = said.rpartition(".")
        with suppress(ValueError, OverflowError):
            until = datetime.fromtimestamp(int(ends), UTC)
            if until > self._clock():
                if what == LOCAL:
                    return MACHINE
                session = what.removeprefix(f"{PREFIX}.")
                only = frozenset([session])
                return Caller(f"ticket of {session}", Role.AGENT, sessions=only, until=until)
        return None

    def now(self) -> datetime:
        """Return the current time, by which tickets end."""
        return self._clock()

    def _signature(self, said: str) -> str:
        digest = hmac.digest(self._key, said.encode(errors="surrogatepass"), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")
