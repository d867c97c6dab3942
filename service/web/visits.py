"""Who looks at the pages: a one-time ticket lets a browser in, and a cookie keeps it in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from animalcat.service.access.callers import MACHINE, Caller, Role
from animalcat.service.access.private_files import keep_owner, private_folder
from animalcat.service.access.tickets import Tickets
from animalcat.service.access.tokens import FOLDER, Tokens

TICKET_SECONDS: Final = 15 * 60.0
"""For how long a ticket lets in."""
VISIT_SECONDS: Final = 12 * 3600.0
"""For how long a browser stays in that a ticket or a token has let in."""
USED: Final = "web-tickets"
"""Folder beside the tokens with a file for each ticket that was used."""


class UsedHere:
    """Remembers which tickets were used, as long as the process lives."""

    def __init__(self) -> None:
        """Remember none yet."""
        self._used = set[str]()

    def use(self, number: str) -> bool:
        """Use a ticket; False if it was used before."""
        first = number not in self._used
        self._used.add(number)
        return first


class UsedOnDisk(UsedHere):
    """Remembers them over restarts, and for all servers of a data directory."""

    def __init__(self, folder: Path) -> None:
        """Remember in a folder, that of tokens."""
        self._folder = folder / USED

    def use(self, number: str) -> bool:
        """Use a ticket; False if it was used before."""
        private_folder(self._folder)
        for old in self._folder.iterdir():
            if time.time() - old.stat().st_mtime > 2 * TICKET_SECONDS:
                old.unlink(missing_ok=True)
        mark = self._folder / hashlib.sha256(number.encode()).hexdigest()
        try:
            mark.touch(0o600, exist_ok=False)
        except FileExistsError:
            return False
        keep_owner(mark)
        return True


ENTER: Final = "/enter"
"""The page on which tickets are exchanged."""
PURPOSE: Final = "web pages"
"""For what the key of a data directory is used here."""
_CALLER: Final = TypeAdapter(Caller)


def visits_of(data: Path) -> Visits:
    """Return the visits of a data directory, also where no server runs in this process.

    Raises:
        TokenError: The key of the directory cannot be used.
        OSError: It cannot be read.
    """
    key = Tickets(data).key_for(PURPOSE)
    return Visits(key, UsedOnDisk(data / FOLDER), Tokens(data))


def link_to(url: str, ticket: str, path: str = "") -> str:
    """Return an address that lets one browser in, once.

    Args:
        url: Address of the pages.
        ticket: A ticket.
        path: The page that it leads to, such as "/sessions/mine-1a2b3c4d"; empty: the first one.
    """
    then = f"?then={path}" if path else ""
    return f"{url}{ENTER}{then}#{ticket}"


class Visits:
    """Signs tickets and cookies, and reads them; used on one event loop only.

    Nothing of it is stored but which tickets were used, so a browser stays in when the server is
    started again.
    """

    def __init__(
        self,
        key: bytes,
        used: UsedHere,
        tokens: Tokens | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Begin.

        Args:
            key: Signs; a secret of the data directory.
            used: Remembers which tickets were used.
            tokens: The tokens of the server; None where there are none.
            clock: Returns the seconds since 1970.
        """
        self._key = key
        self._used = used
        self._tokens = tokens
        self._clock = clock
        self.mark: Final = hashlib.sha256(b"mark" + key).hexdigest()[:8]

    def cookie_name(self, what: str) -> str:
        """Return the name of one of our cookies; other servers of the machine have others."""
        return f"animalcat-{what}-{self.mark}"

    def ticket(self, who: str = "") -> str:
        """Make a ticket that lets one browser in, once.

        Args:
            who: Id of the token as whose owner it is let in; empty for this machine's own user.
        """
        return self.sign("ticket", {"who": who, "number": secrets.token_hex(16)}, TICKET_SECONDS)

    def redeem(self, ticket: str) -> Caller | None:
        """Return whom a ticket lets in, and use it up; None if it is not good (any more)."""
        said = self.read("ticket", ticket)
        if said is None or not self._used.use(said["number"]):
            return None
        return self._of(said["who"])

    def cookie(self, caller: Caller) -> str:
        """Return what a browser shows that belongs to a caller."""
        if caller.expires is None:
            return self.sign("visit", {"who": caller.id}, VISIT_SECONDS)
        # An identity provider's word, which we keep for its time.
        lasts = min(VISIT_SECONDS, caller.expires.timestamp() - self._clock())
        return self.sign("visit", {"caller": _CALLER.dump_python(caller, mode="json")}, lasts)

    def caller(self, cookie: str) -> Caller | None:
        """Return who shows a cookie; None if it is not good (any more)."""
        said = self.read("visit", cookie)
        if said is None:
            return None
        return (
            _CALLER.validate_python(said["caller"]) if "caller" in said else self._of(said["who"])
        )

    def sign(self, kind: str, said: dict[str, Any], seconds: float) -> str:
        """Return something that only this server can have said, for a time.

        Args:
            kind: What it is for; what is signed for one purpose is no good for another.
            said: What it says, as JSON has it.
            seconds: How long it holds.
        """
        text = json.dumps({**said, "until": round(self._clock() + seconds, 3)}).encode()
        body = base64.urlsafe_b64encode(text).decode().rstrip("=")
        return f"{body}.{self.digest(kind, body)}"

    def read(self, kind: str, text: str) -> dict[str, Any] | None:
        """Return what `sign` has signed; None if it is not that, or does not hold any more."""
        body, _, signature = text.rpartition(".")
        wanted = self.digest(kind, body)
        if not hmac.compare_digest(signature.encode(errors="replace"), wanted.encode()):
            return None
        said = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return said if said["until"] > self._clock() else None

    def digest(self, kind: str, text: str) -> str:
        """Return the signature of a text for a purpose."""
        said = f"{kind}\0{text}".encode(errors="surrogatepass")
        return base64.urlsafe_b64encode(hmac.digest(self._key, said, "sha256")).decode().rstrip("=")

    def _of(self, identity: str) -> Caller | None:
        if not identity:
            return MACHINE
        known = None if self._tokens is None else self._tokens.known(identity)
        return None if known is None or known.role is Role.AGENT else known.caller
