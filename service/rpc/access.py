"""Serves tickets, with which the process of an agent plays one session and does nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
        folder: Path | None,
        open: bool,
    ) -> None:
        """Describe the server.

        Args:
            engines: Has the sessions.
            tickets: Signs tickets.
            local_address: Where agents of this machine play that have no network; empty for
                nowhere.
            folder: The data directory, where only this machine can reach the server; else None.
            open: Whether callers of this machine need no token.
        """
        self._engines = engines
        self._tickets = tickets
        self._address = local_address
        self._folder = folder
        self._open = open

    async def GetTicket(  # noqa: N802
        self, request: access_pb2.GetTicketRequest, context: Any
    ) -> access_pb2.GetTicketResponse:
        """Sign a ticket for a session that exists."""
        session = await self._engines.session(names.parse_session(request.session))
        ticket, ends = self._tickets.issue(session.id)
        time = Timestamp()
        time.FromDatetime(ends)
        return access_pb2.GetTicketResponse(
            ticket=ticket,
            expire_time=time,
            local_address=self._address,
            open=self._open,
            folder="" if self._folder is None else str(self._folder.absolute()),
        )
