"""Limits of a server as a whole: a call beyond them is refused, and told when to come again.

Each agent has a simulator process of its own, so the limit on agents is one on such processes too.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final

import grpc

from animalcat.service.errors import KINDS, Code, ServiceError
from animalcat.service.host.settings import Settings
from animalcat.service.memory import SpareMemory
from animalcat.service.operations import Operations
from animalcat.service.session.disk import Disk
from animalcat.service.storage.sql import SqlStore
from animalcat.v1 import campaigns_pb2
from animalcat.values import SessionState

AGENT_RETRY_SECONDS: Final = 15.0
"""When to come again as an agent: episodes last seconds, sessions minutes."""
RETRY_SECONDS: Final = 5.0
"""When to come again with anything else."""

EVALUATE: Final = "/animalcat.v1.AgentGateway/Evaluate"
"""The call with which agents come."""
_SESSIONS: Final = frozenset(
    {"/animalcat.v1.Sessions/CreateSession", "/animalcat.v1.Campaigns/CreateCampaign"}
)
_IMPORT: Final = "/animalcat.v1.Batteries/ImportBattery"
_BATTERIES: Final = frozenset({_IMPORT, "/animalcat.v1.Batteries/BuildBattery"})


class ServerLimits:
    """Counts what is under way on a server; used on one event loop only."""

    def __init__(
        self,
        settings: Settings,
        store: SqlStore,
        operations: Operations,
        memory: SpareMemory | None = None,
        disk: Disk | None = None,
    ) -> None:
        """Begin with nothing under way.

        Args:
            settings: Has the limits.
            store: Has the sessions.
            operations: Has the operations.
            memory: Says whether there is memory; None to ask the system.
            disk: Says whether the disk has room; None where it need not.
        """
        self._settings = settings
        self._store = store
        self._operations = operations
        self._disk = disk or Disk()
        self._memory = memory or SpareMemory(settings.spare_memory_bytes)
        self._open = Counter[bool]()
        self._uploads = 0

    async def check(self, method: str, request: Any = None) -> None:
        """Check that a call may begin.

        Args:
            method: Its full name.
            request: What it asks for.

        Raises:
            ServiceError: The server is at a limit; the error says at which, and when to come again.
        """
        settings = self._settings
        makes = method in _SESSIONS or method in _BATTERIES
        if (makes or method == EVALUATE) and (lacks := self._memory.short()):
            raise ServiceError(Code.NO_MEMORY, lacks, retry_seconds=AGENT_RETRY_SECONDS)
        if makes and (lacks := await self._disk.short()):  # who comes to play waits for room
            raise ServiceError(Code.DISK_FULL, lacks, retry_seconds=60.0)
        if method in _SESSIONS:
            of_campaign = isinstance(request, campaigns_pb2.CreateCampaignRequest)
            await self._check_sessions(len(request.spec.agents) if of_campaign else 1)
        if method in _BATTERIES:
            busy = self._uploads + sum(
                not operation.state.over for operation in self._operations.all()
            )
            if busy >= settings.max_operations:
                raise ServiceError(
                    Code.BUSY,
                    f"{busy} batteries are being uploaded or made, and this server allows "
                    f"{settings.max_operations} at once",
                    retry_seconds=RETRY_SECONDS,
                )

    def open(self, method: str) -> None:
        """Count a stream as open.

        Raises:
            ServiceError: As many are open as may be.
        """
        plays = method == EVALUATE
        most = self._settings.max_agents if plays else self._settings.max_streams
        if self._open[plays] >= most:
            what = "agents that play" if plays else "open streams"
            raise ServiceError(
                Code.BUSY,
                f"this server allows at most {most} {what} at once",
                retry_seconds=AGENT_RETRY_SECONDS if plays else RETRY_SECONDS,
            )
        self._open[plays] += 1
        self._uploads += method == _IMPORT

    def close(self, method: str) -> None:
        """Count a stream as closed."""
        self._open[method == EVALUATE] -= 1
        self._uploads -= method == _IMPORT

    async def lacks(self) -> list[str]:
        """Say what the server lacks, so that nothing new begins, in words."""
        return [lack for lack in (await self._disk.short(), self._memory.short()) if lack]

    async def _check_sessions(self, wanted: int) -> None:
        by_state = await asyncio.to_thread(self._store.count_sessions)
        going_on = sum(by_state.get(s.name, 0) for s in SessionState if not s.over)
        most = self._settings.max_open_sessions
        if going_on + wanted > most:
            raise ServiceError(
                Code.BUSY,
                f"this server allows at most {most} sessions that are not over, and has "
                f"{going_on}; cancel some that nobody plays",
                retry_seconds=60.0,
            )


class LimitsInterceptor(grpc.aio.ServerInterceptor):
    """Refuses calls beyond the limits; the last of the interceptors, after the caller is known."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Guard the method, whichever of gRPC's four kinds it is."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not method.startswith("/animalcat."):
            return handler
        kind = next(kind for kind in KINDS if getattr(handler, kind) is not None)
        work, limits = getattr(handler, kind), self._limits
        if not inspect.iscoroutinefunction(work):
            return handler

        async def count_call(request: Any, context: Any) -> Any:
            if method != EVALUATE:  # the gateway checks it: who comes back has its place already
                await limits.check(method, request)
            if kind == "unary_unary":
                return await work(request, context)
            limits.open(method)
            try:
                return await work(request, context)
            finally:
                limits.close(method)

        return KINDS[kind](count_call, handler.request_deserializer, handler.response_serializer)
