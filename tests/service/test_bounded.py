"""What strangers hand over is read within limits, and holds neither a server nor its end."""

from __future__ import annotations

import asyncio
import itertools
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import psutil
import pytest

from animalcat.extending import plugins
from animalcat.service.errors import ServiceError
from animalcat.service.library.bounded import run_bounded
from animalcat.service.operations import StoppedError
from animalcat.service.reporting import session_page
from animalcat.service.rpc import profiles, sessions
from animalcat.service.web import batteries, filming
from animalcat.v1 import results_pb2, sessions_pb2
from tests.service.test_web import serve_it
from tests.test_plugins import pretend_install

PROGRAM = """
import asyncio, sys, time
from pathlib import Path
from animalcat.service.host.settings import Settings
from animalcat.service.rpc import server

def hang():
    while True:
        time.sleep(0.1)

def ready(address, link):
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    if sys.argv[2] == "loop":
        loop.call_soon(hang)
    else:
        loop.run_in_executor(None, hang)

server.END_SECONDS = 2.0
settings = Settings(home=Path(sys.argv[1]), port=0, drain_seconds=0.0)
asyncio.run(server.serve(settings, ready))
"""
POINTS = "[animalcat.exports]\nslow = slow_export:export\n"
SLOW = """
def export(profile, outcomes):
    while True:
        pass
"""
SOON = 30
"""Seconds within which something happens on a machine that has much to do."""


def spin(*_: object, **__: object) -> None:
    while True:
        pass


def hoard(*, tick: Any) -> int:
    return len(bytearray(1 << 40))


def many_steps(seconds: float, *, tick: Any) -> str:
    """Work that takes longer than a step may, in short steps."""
    for step in range(6):
        end = time.process_time() + seconds / 6
        while time.process_time() < end:
            pass
        tick(step, 6, "working")
    return "done"


def children(of: str) -> list[psutil.Process]:
    """The processes of this one whose command has a word."""
    found: list[psutil.Process] = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # it has ended
            if any(of in word for word in child.cmdline()):
                found.append(child)
    return found


def readers() -> list[psutil.Process]:
    """The processes that read for this one."""
    return [child for server in children("forkserver") for child in server.children()]


def films() -> list[psutil.Process]:
    """The processes that draw for this one."""
    return children("spawn_main")


def seen_soon(what: Any) -> bool:
    end = time.monotonic() + SOON
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return bool(found)


def ignore(*_: object) -> None:
    pass


@pytest.mark.parametrize("work", [spin, hoard])
def test_what_takes_too_much_is_given_up(work: Any) -> None:
    with pytest.raises(ServiceError, match="it took more than 1 s of a processor or 4 GiB"):
        run_bounded(work, ignore, 1)
    assert seen_soon(lambda: not readers())


def test_each_step_has_its_own_time() -> None:
    assert run_bounded(partial(many_steps, 2.4), ignore, 1) == "done"


def test_work_that_is_cancelled_ends_although_it_tells_nothing() -> None:
    def stop(*_: object) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        run_bounded(spin, stop)
    assert seen_soon(lambda: not readers())


@pytest.mark.asyncio(loop_scope="session")
async def test_layouts_that_never_end_hold_no_other_caller(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.import_files()
    monkeypatch.setattr(sessions, "own_layout", spin)
    spec = sessions_pb2.SessionSpec(
        agent="slow", battery="batteries/small", layout_definition="name: mine"
    )
    calls = [
        service.sessions.CreateSession(sessions_pb2.CreateSessionRequest(spec=spec), timeout=3)
        for _ in range(12)
    ]
    for call in calls:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await call
        assert error.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await service.sessions.ListSessions(sessions_pb2.ListSessionsRequest(), timeout=SOON)
    assert await asyncio.to_thread(seen_soon, lambda: not readers())


class Table(NamedTuple):
    """A table of outcomes whose rows have no end.

    Attributes:
        read: Tables that are being read.
        left: Those that are read no further.
    """

    read: list[object]
    left: list[object]

    def rows(self, rows: Any, *about: object) -> Any:
        self.read.append(about)
        try:
            yield from itertools.cycle(list(rows(*about)))
        finally:
            self.left.append(about)


@pytest.mark.asyncio(loop_scope="session")
async def test_reports_and_films_of_callers_that_have_gone_end(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_install(tmp_path, "slow-package", POINTS, slow_export=SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    allowed = ("slow-package",)
    # The server that tests share, if it runs by now, allows none, and what all allow counts.
    monkeypatch.setattr(plugins._process, "limits", [])
    async with serve_it(start, tmp_path, allowed_plugins=allowed) as (service, browser):
        await browser.enter()
        session = await service.create(1)
        await service.play(session)
        at = f"/{session}/episodes/0/film/0"
        monkeypatch.setattr(filming, "IDLE_SECONDS", 1.0)
        assert (await browser.get(at, timeout=None)).status_code == 200
        assert films()
        assert await asyncio.to_thread(seen_soon, lambda: not films())
        monkeypatch.setattr(batteries, "LEFT_SECONDS", 1.0)
        monkeypatch.setattr(batteries, "_sheet", spin)
        monkeypatch.setattr(session_page, "session_page", spin)
        monkeypatch.setattr(profiles, "write_posterior", spin)
        page = asyncio.create_task(browser.get(f"/{session}/report"))
        assert "is being made" in (await browser.get("/batteries/small/sheet")).text
        wanted: list[dict[str, Any]] = [
            {"format": results_pb2.PROFILE_FORMAT_HTML},
            {"format": results_pb2.PROFILE_FORMAT_NETCDF},
            {"plugin": "slow"},
        ]
        profile = f"{session}/profile"

        def export(**how: Any) -> Any:
            request = results_pb2.ExportProfileRequest(name=profile, **how)
            return service.profiles.ExportProfile(request)

        calls = [export(**how) for how in wanted * 4]
        assert await asyncio.to_thread(seen_soon, readers)
        await service.sessions.ListSessions(sessions_pb2.ListSessionsRequest(), timeout=SOON)
        page.cancel()
        for call in calls:
            call.cancel()
        assert await asyncio.to_thread(seen_soon, lambda: not readers())

        calls = [export(plugin="slow")]  # alone, so that it is this that runs
        assert await asyncio.to_thread(seen_soon, readers)
        calls[0].cancel()
        assert await asyncio.to_thread(seen_soon, lambda: not readers())

        table = Table([], [])
        monkeypatch.setattr(profiles, "outcome_rows", partial(table.rows, profiles.outcome_rows))
        tables = [
            results_pb2.PROFILE_FORMAT_OUTCOMES_CSV,
            results_pb2.PROFILE_FORMAT_OUTCOMES_PARQUET,
        ]
        calls = [export(**how) for how in [*wanted, *({"format": form} for form in tables)]]
        assert await asyncio.to_thread(seen_soon, lambda: len(table.read) == len(calls))
        assert not table.left
        for call in calls:
            call.cancel()
        assert await asyncio.to_thread(seen_soon, lambda: len(table.left) == len(calls))


@pytest.mark.parametrize("what", ["thread", "loop"])
def test_sigterm_ends_a_server_that_hangs(what: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, tmp_path / "data", what]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            time.sleep(0.2)
            server.send_signal(signal.SIGTERM)
            _, said = server.communicate(timeout=SOON)
        finally:
            server.kill()
    assert server.returncode == 1
    assert "in hang" in said  # where it hung
