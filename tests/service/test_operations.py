"""What takes long is begun, told of, cancelled, remembered, and begun once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest

from animalcat.service.batteries.battery import Tick
from animalcat.service.errors import Code, ServiceError
from animalcat.service.operations import Operations
from animalcat.v1 import operations_pb2, sessions_pb2
from animalcat.values import Operation, OperationKind, OperationState

from .conftest import Service

pytestmark = pytest.mark.asyncio(loop_scope="session")

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DONE = operations_pb2.OPERATION_STATE_DONE
CANCELLED = operations_pb2.OPERATION_STATE_CANCELLED


def operations(folder: Path) -> Operations:
    return Operations(folder, lambda: NOW)


async def ending_of(of: Operations, operation: Operation) -> list[Operation]:
    """All that a watcher is told."""
    return [told async for told in of.watch(operation.id)]


async def three(tick: Tick) -> str:
    """Work of three parts, in another thread, as batteries are built."""

    def work() -> None:
        for part in (1, 2, 3):
            tick(part, 3, "doing")

    await asyncio.to_thread(work)
    return "batteries/b"


async def until_cancelled(tick: Tick) -> str:
    while True:
        tick(1, 2, "waiting")
        await asyncio.sleep(0.001)


async def test_progress_and_result_are_told(tmp_path: Path) -> None:
    ours = operations(tmp_path)
    begun = ours.begin(OperationKind.BUILD_BATTERY, "batteries/b", three)
    assert (begun.state, begun.subject, begun.created) == (
        OperationState.RUNNING,
        "batteries/b",
        NOW,
    )
    told = await ending_of(ours, begun)
    assert [one.done for one in told] == sorted(one.done for one in told)
    last = told[-1]
    assert (last.state, last.resource) == (OperationState.DONE, "batteries/b")
    assert (last.done, last.total, last.message, last.ended) == (3, 3, "doing", NOW)
    assert await ending_of(ours, begun) == [last]


async def test_a_request_id_begins_one_operation(tmp_path: Path) -> None:
    ours = operations(tmp_path)
    first = ours.begin(OperationKind.BUILD_BATTERY, "batteries/b", three, "id", "this")
    assert (
        ours.begin(OperationKind.BUILD_BATTERY, "batteries/b", three, "id", "this").id == first.id
    )
    await ending_of(ours, first)
    for kind, asked in (
        (OperationKind.BUILD_BATTERY, "that"),
        (OperationKind.IMPORT_BATTERY, "this"),
    ):
        with pytest.raises(ServiceError, match="used for operations/build-battery-000001") as error:
            ours.begin(kind, "batteries/b", three, "id", asked)
        assert error.value.code is Code.REQUEST_ID_REUSED
    # Also where the server was started anew between.
    again = operations(tmp_path)
    assert (
        again.begin(OperationKind.BUILD_BATTERY, "batteries/b", three, "id", "this").state
        is OperationState.DONE
    )
    assert (
        again.begin(OperationKind.BUILD_BATTERY, "batteries/b", three).id == "build-battery-000002"
    )
    await again.close()


async def test_what_is_cancelled_ends(tmp_path: Path) -> None:
    ours = operations(tmp_path)
    begun = ours.begin(OperationKind.IMPORT_BATTERY, "batteries/b", until_cancelled)
    ours.cancel(begun.id)
    last = (await ending_of(ours, begun))[-1]
    assert (last.state, last.error_code) == (OperationState.CANCELLED, "OPERATION_CANCELLED")
    assert ours.cancel(begun.id) == last


async def test_a_failure_says_why(tmp_path: Path) -> None:
    async def fail(tick: Tick) -> str:
        raise ServiceError(Code.INVALID_ARENA, "a.yaml: no agent")

    ours = operations(tmp_path)
    last = (await ending_of(ours, ours.begin(OperationKind.IMPORT_BATTERY, "batteries/b", fail)))[
        -1
    ]
    assert (last.state, last.error_code) == (OperationState.FAILED, "INVALID_ARENA")
    assert last.error == "a.yaml: no agent"


@pytest.mark.parametrize("orderly", [True, False], ids=["closed", "killed"])
async def test_what_the_server_left_is_aborted(tmp_path: Path, orderly: bool) -> None:
    ours = operations(tmp_path)
    begun = ours.begin(OperationKind.IMPORT_BATTERY, "batteries/b", until_cancelled)
    if orderly:
        await ours.close()
    (tmp_path / "import-battery-000007.json").write_text("{")
    (found,) = operations(tmp_path).all()
    assert (found.id, found.state, found.error_code) == (
        begun.id,
        OperationState.ABORTED,
        "OPERATION_ABORTED",
    )
    await ours.close()


async def test_a_battery_is_built_over_the_wire(service: Service) -> None:
    request = sessions_pb2.BuildBatteryRequest(
        family="navigation", instances=40, seed=3, name="forty", request_id="forty"
    )
    begun = (await service.batteries.BuildBattery(request)).operation
    told = [
        event.operation
        async for event in service.operations.WatchOperation(
            operations_pb2.WatchOperationRequest(name=begun.name)
        )
    ]
    last = told[-1]
    assert (last.state, last.resource) == (DONE, "batteries/forty")
    assert (last.progress.done, last.progress.total) == (40, 40)
    assert last.HasField("end_time")
    assert last.WhichOneof("result") == "resource"
    assert (await service.batteries.BuildBattery(request)).operation == last
    got = await service.operations.GetOperation(operations_pb2.GetOperationRequest(name=begun.name))
    assert got.operation == last

    stop = operations_pb2.CancelOperationRequest(name=begun.name)
    assert (await service.operations.CancelOperation(stop)).operation == last
    request.instances = 41
    with pytest.raises(grpc.aio.AioRpcError, match="request id 'forty' was used"):
        await service.batteries.BuildBattery(request)
