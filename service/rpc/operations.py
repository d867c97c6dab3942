"""Serves calls on what the server does: long-running operations, and where simulators are."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

from animalcat import values
from animalcat.service.access.belongings import whose_filter
from animalcat.service.host.limits import ServerLimits
from animalcat.service.host.standing import Standing
from animalcat.service.operations import Operations
from animalcat.service.refusals import RefusalCount, Refusals
from animalcat.service.rpc.paging import page_of_list
from animalcat.service.rpc.requests import Requests
from animalcat.service.session.engines import Engines
from animalcat.text import names
from animalcat.v1 import operations_pb2, operations_pb2_grpc
from animalcat.values import PlacedFit, PlacedWorker, ProcessPlacement
from animalcat.wire.codec import encode, word

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
        limits: ServerLimits,
        refusals: Refusals,
        standing: Standing,
    ) -> None:
        self._engines = engines
        self._operations = operations
        self._requests = requests
        self._limits = limits
        self._refusals = refusals
        self._standing = standing

    async def GetOperation(  # noqa: N802
        self, request: operations_pb2.GetOperationRequest, context: Any
    ) -> operations_pb2.GetOperationResponse:
        """Return one operation."""
        operation = self._operations.get(names.parse_operation(request.name))
        return operations_pb2.GetOperationResponse(operation=encode(operation))

    async def ListOperations(  # noqa: N802
        self, request: operations_pb2.ListOperationsRequest, context: Any
    ) -> operations_pb2.ListOperationsResponse:
        """List the operations of this server, newest first."""
        states = [word(operations_pb2.OperationState, number) for number in request.states]
        whose = whose_filter(request)
        operations = [
            operation
            for operation in self._operations.all()
            if (not states or operation.state in states)
            and whose.takes(operation.owner, common=False)
        ]
        page = page_of_list(operations, lambda operation: operation.id, request)
        return operations_pb2.ListOperationsResponse(
            operations=map(encode, page), next_page_token=page.next
        )

    # The stub of the generated code knows generators only; gRPC takes coroutines as well.
    async def WatchOperation(  # noqa: N802  # pyright: ignore[reportIncompatibleMethodOverride]
        self, request: operations_pb2.WatchOperationRequest, context: Any
    ) -> None:
        """Stream an operation as it proceeds, until it is over."""
        async for operation in self._operations.watch(names.parse_operation(request.name)):
            message = encode(operation)
            await context.write(operations_pb2.WatchOperationResponse(operation=message))

    async def CancelOperation(  # noqa: N802
        self, request: operations_pb2.CancelOperationRequest, context: Any
    ) -> operations_pb2.CancelOperationResponse:
        """Ask an operation to stop."""
        operation = names.parse_operation(request.name)

        async def cancel() -> None:
            self._operations.cancel(operation)

        await self._requests.once(request, cancel)
        current = self._operations.get(operation)
        return operations_pb2.CancelOperationResponse(operation=encode(current))

    async def GetPlacement(  # noqa: N802
        self, request: operations_pb2.GetPlacementRequest, context: Any
    ) -> operations_pb2.GetPlacementResponse:
        """Say who starts simulators and fits, where they are, and what sessions wait for."""
        # Where the database does not answer, what is known without it is told all the same.
        answers = self._standing.readiness.answers
        backlog, counted = dict[str, str](), {}
        if answers:
            backlog = await self._engines.backlog(MOST_WAITING)
            counted = await asyncio.to_thread(self._engines.parts.store.count_sessions)
        placement = self._engines.parts.workers.status()
        fits = self._engines.parts.fitter.fitting()
        return encode(
            ProcessPlacement(
                engine=placement.engine,
                workers=tuple(PlacedWorker(*worker) for worker in placement.workers),
                max_workers=placement.most,
                campaign_workers=placement.quota,
                backlog=backlog,
                fits=tuple(PlacedFit(*process) for process in fits.processes),
                fits_waiting=fits.waiting,
                lacks=tuple(await self._limits.lacks()),
                refusals=tuple(map(_refusal_value, self._refusals.all()[:MOST_REFUSALS])),
                standing=await asyncio.to_thread(self._standing.told),
                sessions={name.lower(): number for name, number in sorted(counted.items())},
            )
        )


def _refusal_value(refusal: RefusalCount) -> values.Refusal:
    last = datetime.fromtimestamp(refusal.last, UTC)
    return values.Refusal(refusal.what, refusal.who, refusal.number, last, refusal.words)
