"""To whom things on a server belong, and who did what there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class OwnerFilter:
    """Which of the things that one may see a list is to show; an empty field accepts all.

    Attributes:
        owner: Only what belongs to this subject.
        mine: Only what belongs to the caller; of batteries and layouts, also what belongs to
            nobody. All for a caller without a subject, as on a server that asks for no token.
    """

    owner: str = ""
    mine: bool = False


@dataclass(frozen=True, slots=True)
class Ownership:
    """To whom something belongs.

    Attributes:
        name: Its resource name.
        owner: Subject of its owner; empty for nobody.
    """

    name: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One line of the audit log.

    Attributes:
        created: When it was written, with time zone.
        request: Id of the call.
        subject: Subject of the caller; empty where it has none.
        caller: How the caller proved who it is, in words.
        role: Role of the caller; empty where it is not known.
        action: What was called, such as "CancelSession".
        object: Resource names of what it was about, with a space between them.
        result: "begun", "done", or the code of the error.
        words: What was said of it; never a secret.
        peer: Address from which the call came.
        server: The server that wrote it.
        times: How often it happened since the line before this one of the same kind and caller.
        seq: Number in the log, from 1; 0 until it is written.
    """

    created: datetime
    request: str
    subject: str
    caller: str
    role: str
    action: str
    object: str = ""
    result: str = "done"
    words: str = ""
    peer: str = ""
    server: str = ""
    times: int = 1
    seq: int = 0
