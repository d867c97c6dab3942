"""What the present call is: its id, what was called, about what, and from where."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from animalcat.errors import REQUEST_METADATA

_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,100}", re.ASCII)


@dataclass(slots=True)
class Call:
    """One call of a client.

    Attributes:
        id: Its id, as the caller gave it, or else one that was made.
        method: The full name of what was called, as gRPC has it.
        peer: Address of the caller, as gRPC writes it.
        about: Resource names of what it is about, as far as that is known.
        subject: To whom what it makes belongs; empty for nobody.
        written: Whether the audit log says already what came of it.
        words: What the audit log is to say of it beside that; empty for nothing.
    """

    id: str
    method: str = ""
    peer: str = ""
    about: tuple[str, ...] = ()
    subject: str = ""
    written: bool = False
    words: str = ""

    @property
    def action(self) -> str:
        """What was called, without its service."""
        return self.method.rpartition("/")[2]


current: Final[ContextVar[Call]] = ContextVar("animalcat_call")
"""The call that is being served; set for every call."""


def owner_of_new() -> str:
    """Return to whom something belongs that the present call makes; empty for nobody."""
    call = current.get(None)
    return "" if call is None else call.subject


def begin_call(method: str, metadata: Iterable[tuple[str, str | bytes]] | None, peer: str) -> Call:
    """Return a call that has just come, and make it the present one.

    Args:
        method: The full name of what is called.
        metadata: What came with it; None for nothing.
        peer: Address of the caller.
    """
    given = next((value for key, value in metadata or () if key == REQUEST_METADATA), "")
    known = isinstance(given, str) and _ID.fullmatch(given) is not None
    call = Call(str(given) if known else secrets.token_hex(8), method, peer)
    current.set(call)
    return call
