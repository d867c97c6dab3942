"""Who calls: the role and the sessions of the caller of the present call."""

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
    OPERATOR = "operator"
    """Does everything that the service offers."""
    VIEWER = "viewer"
    """Reads everything and changes nothing."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls.

    Attributes:
        id: Stable id, for quotas; empty for callers of this machine who need no token.
        role: What it may do.
        agent: An agent's name: it plays the sessions that are for this name. Empty: no name alone
            admits it.
        sessions: Ids of the sessions to which an agent is restricted; empty: not restricted.
        until: When the ticket ends that it shows; None if it shows none.
    """

    id: str
    role: Role
    agent: str = ""
    sessions: frozenset[str] = frozenset()
    until: datetime | None = None

    @property
    def words(self) -> str:
        """Who it is, for people."""
        if self.until is not None:
            return self.id
        return f"token {self.id}" if self.id else "this machine"

    @property
    def started(self) -> bool:
        """Whether an operator plays, or started the agent: only for those tickets are made.

        Of these it is believed that the agent's code failed. It helps no agent to say so, as a
        person then says what the episode counts as, and the profile counts that.
        """
        return self.role is Role.OPERATOR or self.until is not None

    def plays(self, session: Session) -> bool:
        """Return whether a session is one that this caller may play."""
        if self.role is not Role.AGENT:
            return self.role is Role.OPERATOR
        if self.sessions and session.id not in self.sessions:
            return False
        return not self.agent or session.spec.agent == self.agent


MACHINE: Final = Caller("", Role.OPERATOR)
"""Everyone on this machine, where a server listens there alone and asks for no token."""

present: Final[ContextVar[Caller]] = ContextVar("animalcat_caller")
"""The caller of the call that is being served; set for every call, and for nothing else."""
