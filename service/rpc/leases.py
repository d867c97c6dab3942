"""Knows which agents may come back after their connection broke, and by which lease."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple

from animalcat.service.rpc.agent_link import GrpcLink, Lease, lease_lost
from animalcat.values import Session

TOKEN_BYTES: Final = 32
"""Size of the secret by which an agent's process is known again."""


class Seat(NamedTuple):
    """An agent's place in a session.

    Attributes:
        session: Id of the session.
        link: The link to the agent.
        playing: The engine's task that plays with it; its result is the session that is over.
    """

    session: str
    link: GrpcLink
    playing: asyncio.Task[Session]


class Leases:
    """The places to which agents may come back; used on one event loop only."""

    def __init__(self, make_token: Callable[[], bytes] | None = None) -> None:
        """Start without any.

        Args:
            make_token: Makes secrets; None for random ones.
        """
        self._make_token = make_token or (lambda: secrets.token_bytes(TOKEN_BYTES))
        self._seats: dict[bytes, Seat] = {}

    def make(self, seconds: float) -> Lease | None:
        """Return a lease for one agent; None if the session gives none."""
        return Lease(self._make_token(), seconds) if seconds else None

    def keep(self, seat: Seat) -> None:
        """Keep a place while its agent plays, and afterwards for as long as its lease lasts."""
        lease = seat.link.lease
        if lease is None:
            return
        key = _key(lease.token)
        self._seats[key] = seat
        later = asyncio.get_running_loop().call_later
        seat.playing.add_done_callback(lambda _: later(lease.seconds, self._seats.pop, key, None))

    def find(self, session: str, token: bytes, process: str) -> Seat:
        """Return the place of an agent that comes back.

        Args:
            session: Id of the session that it names.
            token: The secret that it shows.
            process: Id of its process.

        Raises:
            ServiceError: There is no such place. The error is the same whatever is wrong.
        """
        seat = self._seats.get(_key(token))
        if seat is None or (seat.session, seat.link.process) != (session, process):
            raise lease_lost()
        return seat


def _key(token: bytes) -> bytes:
    """Return the digest of a secret, by which its place is kept.

    How long a look-up takes depends on the digest alone, so it tells nothing about the secret.
    """
    return sha256(token).digest()
