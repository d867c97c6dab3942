"""Serves tickets, to whom things belong, and the audit log."""

from __future__ import annotations

import asyncio
import socket
from datetime import UTC
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from google.protobuf.timestamp_pb2 import Timestamp

from animalcat.service import calls
from animalcat.service.access.audit import Audit
from animalcat.service.access.gate import Gate
from animalcat.service.access.rules import UNKNOWN
from animalcat.service.errors import Code, ServiceError
from animalcat.service.rpc import paging
from animalcat.service.session.engines import Engines
from animalcat.service.storage.audit import AuditFilter, AuditLog
from animalcat.text import names
from animalcat.v1 import access_pb2, access_pb2_grpc
from animalcat.values import Ownership
from animalcat.wire.codec import encode


class AccessCalls(access_pb2_grpc.AccessServicer):
    """Servicer of tickets, owners and the audit log."""

    def __init__(
        self,
        engines: Engines,
        gate: Gate,
        local_address: str,
        folder: Path,
    ) -> None:
        """Describe the server.

        Args:
            engines: Has the sessions.
            gate: Has what signs tickets, and the audit log.
            local_address: Where agents of this machine play that have no network.
            folder: The data directory.
        """
        self._engines = engines
        self._gate = gate
        self._address = local_address
        self._folder = folder

    async def GetTicket(  # noqa: N802
        self, request: access_pb2.GetTicketRequest, context: Any
    ) -> access_pb2.GetTicketResponse:
        """Sign a ticket for a session that exists."""
        session = await self._engines.session(names.parse_session(request.session))
        ticket, ends = self._gate.tickets.issue(session.id)
        time = Timestamp()
        time.FromDatetime(ends)
        here = is_this_machine(context.peer())
        return access_pb2.GetTicketResponse(
            ticket=ticket,
            expire_time=time,
            local_address=self._address if here else "",
            folder=str(self._folder.absolute()) if here else "",
        )

    async def HandOver(  # noqa: N802
        self, request: access_pb2.HandOverRequest, context: Any
    ) -> access_pb2.HandOverResponse:
        """Give something another owner."""
        if request.owner:
            names.check_label(request.owner, "owner")
        kind, _, key = request.name.partition("/")
        items = [request.name]
        if kind == "campaigns":
            campaign = await asyncio.to_thread(self._engines.parts.store.campaign, key)
            items += map(names.session_name, () if campaign is None else campaign.sessions)
        calls.current.get().about = tuple(items)
        try:
            await asyncio.to_thread(
                self._engines.parts.store.owners.hand_over, items, request.owner
            )
        except KeyError as error:
            raise ServiceError(UNKNOWN[kind], f"there is {error.args[0]}") from error
        for item in items:
            if item.startswith("sessions/"):
                await self._engines.owned(names.parse_session(item))
        return access_pb2.HandOverResponse(ownership=encode(Ownership(request.name, request.owner)))

    async def ListAudit(  # noqa: N802
        self, request: access_pb2.ListAuditRequest, context: Any
    ) -> access_pb2.ListAuditResponse:
        """List who did what, newest first."""
        try:
            since = request.since.ToDatetime(UTC) if request.HasField("since") else None
        except (ValueError, OverflowError) as error:
            raise ServiceError(
                Code.INVALID_REQUEST, f"since: {error}; give a time of the years 1 to 9999"
            ) from error
        wanted = AuditFilter(request.subject, request.action, request.object, since)
        page = paging.stored_page(request)
        lines = await self._audit.lines(lambda: self._log.lines(wanted, page))
        return access_pb2.ListAuditResponse(lines=map(encode, lines), next_page_token=lines.next)

    @property
    def _log(self) -> AuditLog:
        return self._engines.parts.store.audit

    @property
    def _audit(self) -> Audit:
        assert self._gate.audit is not None, "a server keeps one"
        return self._gate.audit


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
