"""Serves calls on what the server does: long-running operations, and where simulators are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from google.protobuf.timestamp_pb2 import Timestamp

from animalcat import names
from animalcat.service.converters import operation_to_proto
from animalcat.service.host.limits import Limits
from animalcat.service.model import SessionState
from animalcat.service.operations import Operations
from animalcat.service.refusals import Refusal, Refusals
from animalcat.service.rpc.paging import paged
from animalcat.service.rpc.requests import Requests
from animalcat.service.session.engines import Engines
from animalcat.service.storage.listing import Page, SessionFilter
from animalcat.v1 import operations_pb2, operations_pb2_grpc

MOST_WAITING: Final = 1000
"""Most sessions of which a call tells for what they wait."""
MOST_REFUSALS: Final = 100
"""Most refusals of which a call tells."""


class OperationCalls(operations_pb2_grpc.OperationsServicer):
    """Servicer of long-running operations."""

    def __init__(
        self,
        engines: Engines,
        operations: Operations,
        requests: Requests,
        limits: Limits,
        refusals: Refusals,
    ) -> None:
        self._engines = engines
        self._operations = operations
        self._requests = requests
        self._limits = limits
        self._refusals = refusals

    async def GetOperation(  # noqa: N802
        self, request: operations_pb2.GetOperationRequest, context: Any
    ) -> operations_pb2.GetOperationResponse:
        """Return one operation."""
        found = self._operations.get(names.parse_operation(request.name))
        return operations_pb2.GetOperationResponse(operation=operation_to_proto(found))

    async def ListOperations(  # noqa: N802
        self, request: operations_pb2.ListOperationsRequest, context: Any
    ) -> operations_pb2.ListOperationsResponse:
        """List the operations of this server, newest first."""
        found = [
            one
            for one in self._operations.all()
            if not request.states or int(one.state) in request.states
        ]
        page = paged(found, lambda one: one.id, request)
        return operations_pb2.ListOperationsResponse(
            operations=map(operation_to_proto, page), next_page_token=page.next
        )

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def WatchOperation(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request: operations_pb2.WatchOperationRequest, context: Any
    ) -> None:
        """Stream an operation as it proceeds, until it is over."""
        async for found in self._operations.watch(names.parse_operation(request.name)):
            message = operation_to_proto(found)
            await context.write(operations_pb2.WatchOperationResponse(operation=message))

    async def CancelOperation(  # noqa: N802
        self, request: operations_pb2.CancelOperationRequest, context: Any
    ) -> operations_pb2.CancelOperationResponse:
        """Ask an operation to stop."""
        operation = names.parse_operation(request.name)

        async def cancel() -> None:
            self._operations.cancel(operation)

        await self._requests.once(request, cancel)
        found = self._operations.get(operation)
        return operations_pb2.CancelOperationResponse(operation=operation_to_proto(found))

    async def GetPlacement(  # noqa: N802
        self, request: operations_pb2.GetPlacementRequest, context: Any
    ) -> operations_pb2.GetPlacementResponse:
        """Say who starts simulators and fits, where they are, and what sessions wait for."""
        going_on = SessionFilter(states=(SessionState.WAITING, SessionState.RUNNING))
        sessions = await self._engines.sessions(going_on, Page(MOST_WAITING))
        placement = self._engines.parts.workers.status()
        fits = self._engines.parts.fitter.fitting()
        return operations_pb2.GetPlacementResponse(
            engine=placement.engine,
            workers=[
                operations_pb2.PlacedWorker(
                    session=names.session_name(session) if session else "", node=node
                )
                for session, node in placement.workers
            ],
            max_workers=placement.most,
            campaign_workers=placement.quota,
            backlog=[
                operations_pb2.WaitingSession(
                    session=names.session_name(session.id), waits_for=session.waits_for
                )
                for session in sessions
                if session.waits_for
            ],
            fits=[operations_pb2.PlacedFit(node=node, busy=busy) for node, busy in fits.processes],
            fits_waiting=fits.waiting,
            lacks=await self._limits.lacks(),
            refusals=map(_refusal_to_proto, self._refusals.all()[:MOST_REFUSALS]),
        )


def _refusal_to_proto(refusal: Refusal) -> operations_pb2.Refusal:
    last = Timestamp()
    last.FromDatetime(datetime.fromtimestamp(refusal.last, UTC))
    return operations_pb2.Refusal(
        what=refusal.what,
        who=refusal.who,
        number=refusal.number,
        last_time=last,
        words=refusal.words,
    )
