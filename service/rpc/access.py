"""Serves tickets, with which the process of an agent plays one session and does nothing else."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from google.protobuf.timestamp_pb2 import Timestamp

from animalcat import names
from animalcat.service.access.tickets import Tickets
from animalcat.service.session.engines import Engines
from animalcat.v1 import access_pb2, access_pb2_grpc


class AccessCalls(access_pb2_grpc.AccessServicer):
    """Servicer of tickets."""

    def __init__(
        self,
        engines: Engines,
        tickets: Tickets,
        local_address: str,
        folder: Path,
    ) -> None:
        """Describe the server.

        Args:
            engines: Has the sessions.
            tickets: Signs tickets.
            local_address: Where agents of this machine play that have no network.
            folder: The data directory.
        """
        self._engines = engines
        self._tickets = tickets
        self._address = local_address
        self._folder = folder

    async def GetTicket(  # noqa: N802
        self, request: access_pb2.GetTicketRequest, context: Any
    ) -> access_pb2.GetTicketResponse:
        """Sign a ticket for a session that exists."""
        session = await self._engines.session(names.parse_session(request.session))
        ticket, ends = self._tickets.issue(session.id)
        time = Timestamp()
        time.FromDatetime(ends)
        here = is_this_machine(context.peer())
        return access_pb2.GetTicketResponse(
            ticket=ticket,
            expire_time=time,
            local_address=self._address if here else "",
            folder=str(self._folder.absolute()) if here else "",
        )


def is_this_machine(peer: str) -> bool:
    """Return whether a peer, as gRPC writes it, calls from an address of this machine."""
    kind, _, rest = peer.partition(":")
    if kind == "unix":
        return True
    family = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}.get(kind)
    if family is None:
        return False
    host = unquote(rest.rpartition(":")[0]).strip("[]").removeprefix("::ffff:")
    if family == socket.AF_INET6 and ":" not in host:  # an IPv4 address mapped into IPv6
        family = socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as trial:
            trial.bind((host, 0))  # the system refuses addresses of others
    except OSError:
        return False
    return True
