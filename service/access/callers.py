"""Who calls: the role, the subject and the sessions of the caller of the present call."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from animalcat.values import Session


class Role(StrEnum):
    """What a caller may do."""

    AGENT = "agent"
    """Plays its sessions, and learns nothing else."""
    VIEWER = "viewer"
    """Reads what is its subject's, and changes nothing."""
    RESEARCHER = "researcher"
    """Creates, and sees and changes what is its own."""
    OPERATOR = "operator"
    """Sees everything and keeps it running; deletes only what is its own."""
    ADMINISTRATOR = "administrator"
    """Does everything that the service offers."""

    @property
    def words(self) -> str:
        """The role with its article."""
        return f"{'an' if self.value[0] in 'aeiou' else 'a'} {self.value}"

    @property
    def reads(self) -> bool:
        """Whether it may read what was measured, as all but agents may."""
        return self is not Role.AGENT


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls.

    Attributes:
        id: Stable id, for limits; empty for callers of this machine who need no token.
        role: What it may do.
        agent: An agent's name: it plays the sessions that are for this name. Empty: no name alone
            admits it.
        sessions: Ids of the sessions to which an agent is restricted; empty: not restricted.
        until: When the ticket ends that it shows; None if it shows none.
        subject: Who it is, as an owner; empty for nobody.
        expires: When what an identity provider says of it ends; None if none says anything.
    """

    id: str
    role: Role
    agent: str = ""
    sessions: frozenset[str] = frozenset()
    until: datetime | None = None
    subject: str = ""
    expires: datetime | None = None

    @property
    def words(self) -> str:
        """How it proved who it is, for people."""
        if self.until is not None or self.expires is not None:
            return self.id
        return f"token {self.id}" if self.id else "this machine"

    @property
    def runs(self) -> bool:
        """Whether it runs sessions, and may start their agents."""
        return self.role in (Role.RESEARCHER, Role.OPERATOR, Role.ADMINISTRATOR)

    @property
    def started(self) -> bool:
        """Whether who runs the session plays, or started the agent: for those tickets are made.

        Of these it is believed that the agent's code failed. It helps no agent to say so, as a
        person then says what the episode counts as, and the profile counts that.
        """
        return self.runs or self.until is not None

    def plays(self, session: Session) -> bool:
        """Return whether a session is one that this caller may play.

        An agent's token with a subject plays sessions of that subject alone.
        """
        if self.role in (Role.OPERATOR, Role.ADMINISTRATOR):
            return True
        theirs = self.subject != "" and session.owner == self.subject
        if self.role is not Role.AGENT:
            return self.role is Role.RESEARCHER and theirs
        if self.subject and not theirs:
            return False
        if self.sessions and session.id not in self.sessions:
            return False
        return not self.agent or session.spec.agent == self.agent


MACHINE: Final = Caller("", Role.ADMINISTRATOR)
"""Everyone on this machine, where a server listens there alone and asks for no token."""

present: Final[ContextVar[Caller]] = ContextVar("animalcat_caller")
"""The caller of the call that is being served; set for every call, and for nothing else."""
