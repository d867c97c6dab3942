"""Tells how the services are, to everybody, but to nobody at the cost of others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from animalcat.service.errors import Code, ServiceError
from animalcat.service.host.listeners import Listeners

WATCHERS: Final = 256
"""Most streams that watch at once."""
OF_ONE: Final = 16
"""Most of them over one connection."""

LIVENESS: Final = "liveness"
"""Name under which it is told that the process answers, whatever else is the matter."""
READINESS: Final = "readiness"
"""Name under which it is told that the server takes work, as the empty name tells."""

Status = health_pb2.HealthCheckResponse.ServingStatus.ValueType


class Health(health_pb2_grpc.HealthServicer):
    """gRPC's health service.

    The one that comes with gRPC takes a time for each watcher that grows with their number, and
    lets anybody watch as often as they like.
    """

    def __init__(self, services: Sequence[str], listeners: Listeners) -> None:
        """Begin with all well.

        Args:
            services: Full names of the services; the empty name stands for all.
            listeners: Ends the connections of those that ask too often.
        """
        serving = health_pb2.HealthCheckResponse.SERVING
        self._states: dict[str, Status] = dict.fromkeys(services, serving)
        self._listeners = listeners
        self._changed: dict[asyncio.Event, str] = {}
        self._watching = Counter[str]()
        self._ending = False

    async def Check(  # noqa: N802
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> health_pb2.HealthCheckResponse:
        """Say how a service is now."""
        self._ask(context)
        state = self._states.get(request.service)
        if state is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
            raise AssertionError("abort raises")
        return health_pb2.HealthCheckResponse(status=state)

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def Watch(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> None:
        """Say how a service is now, and again whenever that changes."""
        peer = context.peer()
        self._ask(context)
        if len(self._changed) >= WATCHERS or self._watching[peer] >= OF_ONE:
            raise ServiceError(
                Code.BUSY,
                f"at most {WATCHERS} may watch at once, {OF_ONE} over one connection; call Check "
                "instead",
            )
        changed = asyncio.Event()
        self._changed[changed] = request.service
        self._watching[peer] += 1
        last: Status | None = None
        try:
            while True:
                changed.clear()
                unknown = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
                now = self._states.get(request.service, unknown)
                if now != last:
                    last = now
                    await context.write(health_pb2.HealthCheckResponse(status=now))
                await changed.wait()
        finally:
            del self._changed[changed]
            self._watching[peer] -= 1
            if not self._watching[peer]:
                del self._watching[peer]

    def set(self, service: str, *, serving: bool) -> None:
        """Say whether a service serves from now on, unless the server is ending."""
        states = health_pb2.HealthCheckResponse
        state = states.SERVING if serving else states.NOT_SERVING
        if not self._ending and self._states[service] != state:
            self._states[service] = state
            for changed, watched in self._changed.items():
                if watched == service:
                    changed.set()

    def end(self) -> None:
        """Say of all but the process that they do not serve, and never again that they do."""
        for service in self._states:
            if service != LIVENESS:
                self.set(service, serving=False)
        self._ending = True

    def _ask(self, context: Any) -> None:
        """Count a call of somebody who need not prove anything.

        Raises:
            ServiceError: There were too many over this connection.
        """
        if self._listeners.strange(context.peer()):
            raise ServiceError(Code.TOO_MANY_CALLS)
