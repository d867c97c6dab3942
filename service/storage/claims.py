"""Says which of several servers owns a session, by leases in the database that they share.

A server claims a session before it makes an engine for it, and renews its claims as long as it
lives. When it dies, its claims run out, and the next server that is asked takes the session over.
A server that was only slow, and has lost a claim meanwhile, cannot write any more: every write of a
session looks at the claim in the same transaction (`SqlStore`), and all times are the database's.
The sessions of a campaign are claimed together, since one server hands out episodes to all of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, Engine, delete, insert, select, text, update

from animalcat.service.storage import schema
from animalcat.values import SessionState

_TABLE: Final = schema.claims


class NotOwnerError(Exception):
    """Another server owns the session now, so this one may not write it."""


class Owner(NamedTuple):
    """A server.

    Attributes:
        id: Unique to this run of the server.
        address: Host and port at which it listens.
    """

    id: str
    address: str


class Claims:
    """The claims of one server.

    Attributes:
        owner: The server.
    """

    def __init__(self, engine: Engine, owner: str, seconds: float) -> None:
        """Claim nothing yet.

        Args:
            engine: The database.
            owner: Id of the server, unique to this run.
            seconds: How long a claim holds without being renewed.
        """
        self.owner = Owner(owner, "")
        self.seconds = seconds
        self._engine = engine

    def listen_at(self, address: str) -> None:
        """Tell others, from now on, where this server listens."""
        self.owner = self.owner._replace(address=address)

    def claim(self, session: str, campaign: Sequence[str] = ()) -> Owner | None:
        """Own a session, unless another server does.

        Args:
            session: The session.
            campaign: All sessions of its campaign. Those that are not over are owned together with
                it, unless it is over itself; if another server owns one of them, none is.

        Returns:
            The other server; None if the session is this server's now.
        """
        with self._engine.begin() as db:
            now = _now(db)
            wanted = _not_over(db, campaign)
            if session not in wanted:
                wanted = {session}
            rows = db.execute(select(_TABLE).where(_TABLE.c.session.in_(wanted))).all()
            for row in rows:
                if row.owner != self.owner.id and row.until >= now:
                    return Owner(row.owner, row.address)
            db.execute(delete(_TABLE).where(_TABLE.c.session.in_(wanted)))
            values = {
                "owner": self.owner.id,
                "address": self.owner.address,
                "until": now + self.seconds,
            }
            db.execute(insert(_TABLE), [{"session": owned, **values} for owned in sorted(wanted)])
        return None

    def renew(self) -> frozenset[str]:
        """Let this server's claims hold longer, and return the sessions that it owns."""
        mine = _TABLE.c.owner == self.owner.id
        with self._engine.begin() as db:
            db.execute(update(_TABLE).where(mine).values(until=_now(db) + self.seconds))
            return frozenset(db.scalars(select(_TABLE.c.session).where(mine)))

    def release(self, *sessions: str) -> None:
        """Give up sessions, or all if none is named, so that another server may have them."""
        mine = _TABLE.c.owner == self.owner.id
        if sessions:
            mine &= _TABLE.c.session.in_(sessions)
        with self._engine.begin() as db:
            db.execute(delete(_TABLE).where(mine))


def check_owner(db: Connection, session: str, owner: str) -> None:
    """Check within a transaction that a server may write a session.

    Raises:
        NotOwnerError: It does not own it.
    """
    holder = db.scalar(select(_TABLE.c.owner).where(_TABLE.c.session == session))
    if holder != owner:
        raise NotOwnerError(f"another server owns session {session} now")


def _not_over(db: Connection, sessions: Sequence[str]) -> set[str]:
    table = schema.sessions
    states = [state.name for state in SessionState if not state.over]
    these = table.c.id.in_(sessions) & table.c.state.in_(states)
    return set(db.scalars(select(table.c.id).where(these)))


def _now(db: Connection) -> float:
    """Return the time in seconds, by the clock of the database where several servers share it."""
    if db.dialect.name == "postgresql":
        return float(db.scalar(text("SELECT extract(epoch FROM clock_timestamp())")) or 0.0)
    return time.time()
