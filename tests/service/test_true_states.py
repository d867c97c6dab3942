"""Where the machine lacks something: errors say what, states stay true, and play goes on."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DatabaseError, OperationalError
from typer.testing import CliRunner

from animalcat.cli.main import build
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.codec import SpecificationError
from animalcat.service.batteries.battery import ArenaFile
from animalcat.service.batteries.spool import Spool
from animalcat.service.errors import Code, ServiceError, public, system_code
from animalcat.service.host.limits import ServerLimits
from animalcat.service.host.lock import (
    LOCK_FILE,
    DirectoryInUseError,
    DirectoryLock,
    running_server,
)
from animalcat.service.host.settings import Settings
from animalcat.service.library.layouts import own_layout
from animalcat.service.memory import SpareMemory
from animalcat.service.operations import Operations
from animalcat.service.storage.sql import SqlStore
from animalcat.text.formulas import FormulaError, parse_formula
from animalcat.v1 import campaigns_pb2, types_pb2
from animalcat.values import OperationKind, SessionSpec, SessionState

from .conftest import NOW, Service, action, walk


@pytest.mark.asyncio(loop_scope="session")
async def test_a_full_disk_is_named_and_play_goes_on_when_it_is_not_full(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    session = await service.create(3, agent="tests:full")
    monkeypatch.setattr(os, "pwrite", full)  # by which a recording takes its room
    async with service.agent(session, agent="tests:full") as stream:
        await stream.receive("welcome")
        error = await stream.receive()
        while not isinstance(error, types_pb2.Error):
            await stream.send(action(getattr(error, "step", 0), 3))
            error = await stream.receive()
        assert (error.code, error.fatal) == ("DISK_FULL", True)
        assert "disk is full" in error.message
        with pytest.raises(grpc.aio.AioRpcError) as status:
            await stream.call.read()
        assert status.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        told = dict(status.value.trailing_metadata() or ())
        assert float(told["animalcat-retry-seconds"]) > 0
    await service.settled(session, "WAITING", asyncio.sleep)
    monkeypatch.undo()
    async with service.agent(session, agent="tests:full") as stream:
        await stream.receive("welcome")
        assert (await stream.episode(walk)).episode == 0
    first, second, *_ = await service.list_episodes(session)
    assert "the server failed" in first.cause  # it did not stop
    assert (second.episode, second.attempt, second.cause) == (0, 1, "")


@pytest.mark.asyncio(loop_scope="session")
async def test_a_message_that_is_none_is_an_error_of_the_catalogue(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    call = service.channel.unary_unary("/animalcat.v1.Sessions/GetSession")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call(b"\xff\xff\xff")
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert dict(refused.value.trailing_metadata())["animalcat-code"] == "BAD_MESSAGE"
    stream = service.channel.stream_stream("/animalcat.v1.AgentGateway/Evaluate")()
    await stream.write(b"\xff\xff\xff")
    await stream.read()  # the same error, as a frame
    assert await stream.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert dict(await stream.trailing_metadata())["animalcat-code"] == "BAD_FRAME"
    assert not [record for record in caplog.records if record.exc_info]


def test_a_damaged_database_is_told_as_such(tmp_path: Path) -> None:
    """No comfort, no traceback: what it is, and what can be done."""
    file = tmp_path / "animalcat.sqlite"
    file.write_bytes(b"no database" * 1000)
    with pytest.raises(DatabaseError) as damaged:
        SqlStore(f"sqlite:///{file}")
    shown = public(damaged.value)
    assert (shown.code, shown.retry_seconds) == (Code.STORE_DAMAGED, None)
    assert "restore a backup" in shown.message
    words = ["serve", "--data", str(tmp_path), "--port", "0"]
    done = CliRunner().invoke(build(words), words)
    assert done.exit_code == 2
    assert f"database in {tmp_path} is damaged (file is not a database), so nothing was" in (
        done.stderr
    )


def test_a_database_says_that_it_is_full_or_locked(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'small.sqlite'}"
    engine = create_engine(url, connect_args={"timeout": 0.01})
    with engine.begin() as db:
        db.execute(text("CREATE TABLE t (x TEXT)"))
        db.execute(text("PRAGMA max_page_count = 4"))
        with pytest.raises(OperationalError) as full:
            db.execute(text("INSERT INTO t VALUES (:x)"), {"x": "x" * 50_000})
    assert system_code(full.value) is Code.DISK_FULL
    other = create_engine(url, connect_args={"timeout": 0.01})
    with engine.connect() as db, other.connect() as second:
        db.execute(text("BEGIN IMMEDIATE"))
        with pytest.raises(OperationalError) as locked:
            second.execute(text("BEGIN IMMEDIATE"))
    shown = public(locked.value)
    assert shown.code is Code.STORE_BUSY
    assert shown.retry_seconds
    engine.dispose()
    other.dispose()


def test_what_the_machine_lacks_is_told_by_its_number() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = list[int]()
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 8, hard))
    try:
        with pytest.raises(OSError) as none_left:
            opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(100))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for file in opened:
            os.close(file)
    assert system_code(none_left.value) is Code.NO_DESCRIPTORS
    failed = ServiceError(Code.SESSION_FAILED, "a worker failed")
    failed.__cause__ = OSError(errno.ENOSPC, "no space")
    assert public(failed).code is Code.DISK_FULL
    assert system_code(MemoryError()) is Code.NO_MEMORY
    assert system_code(ValueError()) is None


def test_a_deleted_lock_file_admits_no_second_server(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.publish("127.0.0.1:1")
    (tmp_path / LOCK_FILE).unlink()
    with pytest.raises(DirectoryInUseError):
        DirectoryLock(tmp_path)
    (tmp_path / LOCK_FILE).unlink()
    assert running_server(tmp_path) is not None
    lock.restore()
    holder = running_server(tmp_path)
    assert holder is not None
    assert holder.address == "127.0.0.1:1"
    lock.restore()
    assert running_server(tmp_path) == holder
    lock.release()
    assert running_server(tmp_path) is None
    DirectoryLock(tmp_path).release()


@pytest.mark.asyncio(loop_scope="session")
async def test_limits_refuse_and_say_when_to_come_again(tmp_path: Path) -> None:
    free = [10 << 20]
    settings = Settings(
        home=tmp_path,
        max_agents=1,
        max_open_sessions=1,
        max_operations=1,
        spare_memory_bytes=20 << 20,
    )
    store, operations = SqlStore.in_directory(tmp_path), Operations(tmp_path, lambda: NOW)
    limits = ServerLimits(
        settings, store, operations, SpareMemory(settings.spare_memory_bytes, lambda: free[0])
    )
    evaluate, build = "/animalcat.v1.AgentGateway/Evaluate", "/animalcat.v1.Batteries/BuildBattery"
    create = "/animalcat.v1.Sessions/CreateSession"

    async def catch_refusal(method: str) -> ServiceError:
        with pytest.raises(ServiceError) as error:
            await limits.check(method)
        assert error.value.status is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert error.value.retry_seconds
        return error.value

    assert (await catch_refusal(evaluate)).code is Code.NO_MEMORY
    await limits.check("/animalcat.v1.Sessions/GetSession")
    free[0] = 30 << 20
    limits = ServerLimits(
        settings, store, operations, SpareMemory(settings.spare_memory_bytes, lambda: free[0])
    )
    await limits.check(create)
    campaign = campaigns_pb2.CreateCampaignRequest(spec=campaigns_pb2.CampaignSpec(agents="ab"))
    with pytest.raises(ServiceError, match="at most 1 sessions that"):
        await limits.check("/animalcat.v1.Campaigns/CreateCampaign", campaign)
    store.create_session("one", SessionSpec("a", "b"), NOW, "")
    assert (await catch_refusal(create)).code is Code.BUSY
    store.set_state("one", SessionState.CANCELLED)
    await limits.check(create)
    limits.open(evaluate)
    with pytest.raises(ServiceError, match="at most 1 agents that play"):
        limits.open(evaluate)
    limits.open("/animalcat.v1.Sessions/WatchSession")
    limits.close(evaluate)
    limits.open(evaluate)
    going_on = asyncio.Event()

    async def work(tick: Callable[[int, int, str], None]) -> str:
        await going_on.wait()
        return "batteries/x"

    await limits.check(build)
    operations.begin(OperationKind.BUILD_BATTERY, "batteries/x", work)
    assert "1 at once" in (await catch_refusal(build)).message
    going_on.set()
    await operations.close()
    store.close()


@pytest.mark.parametrize("formula", ["9" * 900, "-" + "9" * 900, "1e999"])
def test_a_number_that_is_too_large_is_an_error_of_the_formula(formula: str) -> None:
    with pytest.raises(FormulaError, match="too large"):
        parse_formula(formula)


@pytest.mark.parametrize("text", ["[" * 5000, "a: " + "{b: " * 5000, "- " * 5000])
def test_a_layout_of_many_brackets_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="layout:2: nested deeper than 32 levels"):
        own_layout("# deep\n" + text)
    (tmp_path / "deep.yaml").write_text("# deep\n" + text)
    with pytest.raises(SpecificationError, match=r"deep\.yaml:2: nested deeper"):
        load_layout(tmp_path / "deep.yaml")


def test_a_layout_that_would_overflow_the_stack_is_refused() -> None:
    code = "from animalcat.layouts.library import parse_layout; parse_layout('[' * 500_000)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "SpecificationError: layout:1: nested deeper" in done.stderr


def test_what_is_uploaded_waits_on_disk_in_order(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for path in ("b.yaml", "a.yaml", "c/a.yaml"):
        spool.add(ArenaFile(path, f"é {path}"))
    for _ in range(2):
        assert list(spool) == [ArenaFile(p, f"é {p}") for p in ("a.yaml", "b.yaml", "c/a.yaml")]
    assert len(spool) == 3
    assert list((tmp_path / "uploads").iterdir()) == []  # nothing is left if the server is killed
    spool.close()
    spool.close()
