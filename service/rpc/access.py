"""Serves tickets, to whom things belong, and the audit log."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from google.protobuf.timestamp_pb2 import Timestamp

from animalcat import names
from animalcat.codec import encode
from animalcat.service import calls
from animalcat.service.access.audit import Audit
from animalcat.service.access.gate import Gate
from animalcat.service.access.rules import UNKNOWN
from animalcat.service.errors import Code, ServiceError
from animalcat.service.rpc import paging
from animalcat.service.session.engines import Engines
from animalcat.service.storage.audit import AuditFilter, AuditLog
from animalcat.service.storage.owners import Owners, groups_in
from animalcat.v1 import access_pb2, access_pb2_grpc
from animalcat.values import Ownership


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

    async def Share(  # noqa: N802
        self, request: access_pb2.ShareRequest, context: Any
    ) -> access_pb2.ShareResponse:
        """Share something with groups, or no longer."""
        for group in request.add:
            names.check_label(group, "group")
        owner, _ = await asyncio.to_thread(self._owners.of, request.name)
        items = [request.name]
        items += [
            item
            for item in await self._parts_of(request.name, its_arenas=True)
            if (await asyncio.to_thread(self._owners.of, item))[0] == owner != ""
        ]
        # What is no longer to be seen may still be needed by something else that is shared.
        await self._change(items, self._owners.share, request.add, ())
        sessions = [item for item in items if item.startswith(("sessions/", "campaigns/"))]
        only = [request.name] if request.name not in sessions else sessions
        await self._change(only, self._owners.share, (), request.remove)
        return access_pb2.ShareResponse(ownership=await self._ownership(request.name))

    async def HandOver(  # noqa: N802
        self, request: access_pb2.HandOverRequest, context: Any
    ) -> access_pb2.HandOverResponse:
        """Give something another owner."""
        if request.owner:
            names.check_label(request.owner, "owner")
        items = [request.name, *await self._parts_of(request.name, its_arenas=False)]
        calls.current.get().about = tuple(items)
        await self._change(items, self._owners.hand_over, request.owner)
        return access_pb2.HandOverResponse(ownership=await self._ownership(request.name))

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
        page = paging.stored(request)
        lines = await self._audit.lines(lambda: self._log.lines(wanted, page))
        return access_pb2.ListAuditResponse(lines=map(encode, lines), next_page_token=lines.next)

    async def VerifyAudit(  # noqa: N802
        self, request: access_pb2.VerifyAuditRequest, context: Any
    ) -> access_pb2.VerifyAuditResponse:
        """Look whether the audit log is as it was written."""
        return encode(await self._audit.lines(self._log.verify))

    @property
    def _owners(self) -> Owners:
        return self._engines.parts.store.owners

    @property
    def _log(self) -> AuditLog:
        return self._engines.parts.store.audit

    @property
    def _audit(self) -> Audit:
        assert self._gate.audit is not None, "a server keeps one"
        return self._gate.audit

    async def _change(self, items: Sequence[str], change: Callable[..., None], *to: Any) -> None:
        """Change to whom things belong, and let the engines of sessions know.

        Raises:
            ServiceError: One of them does not exist.
        """
        try:
            await asyncio.to_thread(change, items, *to)
        except KeyError as error:
            kind = items[0].partition("/")[0]
            raise ServiceError(UNKNOWN[kind], f"there is {error.args[0]}") from error
        for item in items:
            if item.startswith("sessions/"):
                await self._engines.owned(names.parse_session(item))

    async def _parts_of(self, item: str, *, its_arenas: bool) -> list[str]:
        """Return what goes with something: a campaign's sessions, and what they are made of.

        Args:
            item: Its resource name.
            its_arenas: Whether its battery and its layout go with it.
        """
        store = self._engines.parts.store
        kind, _, key = item.partition("/")
        parts, spec = list[str](), None
        if kind == "campaigns" and (campaign := await asyncio.to_thread(store.campaign, key)):
            parts, spec = [*map(names.session_name, campaign.sessions)], campaign.spec.session
        if kind == "sessions" and (session := await asyncio.to_thread(store.session, key)):
            spec = session.spec
        if its_arenas and spec is not None and spec.battery and spec.layout_digest:
            battery, layout = spec.battery, spec.layout_digest
            if await asyncio.to_thread(store.battery, battery):
                parts.append(names.battery_name(battery))
            if await asyncio.to_thread(store.layout, layout):
                parts.append(names.layout_name(layout))
        return parts

    async def _ownership(self, item: str) -> access_pb2.Ownership:
        owner, circles = await asyncio.to_thread(self._owners.of, item)
        return encode(Ownership(item, owner, groups_in(circles)))


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
