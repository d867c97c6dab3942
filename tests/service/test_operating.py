"""What a server shows of itself, and how it stops: health, log, status, draining."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from typer.testing import CliRunner

from animalcat.cli import server as status
from animalcat.cli.main import build
from animalcat.layouts.inference.fitter import Fitter
from animalcat.service.host import readiness
from animalcat.service.host.lock import DirectoryLock
from animalcat.service.host.settings import Settings
from animalcat.service.logs import JsonFormatter, about
from animalcat.service.rpc import server
from animalcat.service.rpc.server import SERVICES, create_server
from animalcat.service.session.workers import Workers
from animalcat.service.storage.listing import Listing
from animalcat.v1 import gateway_pb2, types_pb2
from tests.service.conftest import NOW, Service, action, walk


async def health(channel: grpc.aio.Channel, service: str) -> int:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    return (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status


@pytest.mark.asyncio(loop_scope="session")
async def test_a_played_session_is_logged(
    fitter: Fitter, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "animalcat")
    lines: list[dict[str, Any]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(JsonFormatter().format(record)))

    keep = Keep()
    logging.getLogger("animalcat").addHandler(keep)
    try:
        async with (
            create_server(Settings(home=tmp_path, port=0), lambda: NOW, fitter) as running,
            grpc.aio.insecure_channel(running.address) as channel,
        ):
            service = Service(running, tmp_path, channel)
            session = await service.create(5)
            async with service.agent(session) as stream:
                await stream.receive("welcome")
                for _ in range(2):
                    await stream.episode(walk)
    finally:
        logging.getLogger("animalcat").removeHandler(keep)
    ended = [line for line in lines if line["message"].startswith("the episode is over")]
    ids = [(line["session"], line["episode"], line["attempt"]) for line in ended]
    assert ids[:2] == [(session.split("/")[1], 0, 0), (session.split("/")[1], 1, 0)]


@pytest.mark.asyncio(loop_scope="session")
async def test_a_log_line_says_what_it_is_about() -> None:
    record = logging.LogRecord("animalcat.x", logging.ERROR, "", 0, "lost %d", (3,), None)
    with about(session="s"), about(episode=4):
        line = json.loads(await asyncio.to_thread(JsonFormatter().format, record))
    assert (line["session"], line["episode"], line["message"]) == ("s", 4, "lost 3")
    assert line["level"] == "error"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert "session" not in json.loads(JsonFormatter().format(record))


async def test_a_server_that_cannot_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitter, missing = Fitter(), tmp_path / "missing.pem"

    async def engine(*_: Any) -> tuple[Workers, Fitter]:
        await fitter.start()
        return Workers(), fitter

    monkeypatch.setattr(server, "_engine", engine)
    settings = Settings(home=tmp_path, port=0, tls_certificate=missing, tls_key=missing)
    with pytest.raises(FileNotFoundError):
        async with create_server(settings, lambda: NOW):
            pass
    assert fitter.pid is None
    DirectoryLock(tmp_path).release()


@pytest.mark.asyncio(loop_scope="session")
async def test_draining_lets_an_episode_end_and_begins_none(
    start: Callable[[Path], Any], tmp_path: Path
) -> None:
    async with start(tmp_path) as service:
        session = await service.create(5)
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            await stream.receive("episode_start")
            draining = asyncio.create_task(service.running.drain())
            await asyncio.sleep(0.1)
            for name in SERVICES:
                found = await health(service.channel, name)
                assert found == health_pb2.HealthCheckResponse.NOT_SERVING
            await stream.send(action(0, 0))
            while isinstance(frame := await stream.receive(), gateway_pb2.Ask):
                await stream.send(action(frame.step, 0))
            assert isinstance(frame, gateway_pb2.EpisodeEnd)
            await stream.refused("SHUTTING_DOWN")
            await draining
        (only,) = await service.list_episodes(session)
        assert only.outcome in (types_pb2.OUTCOME_SUCCESS, types_pb2.OUTCOME_FAILURE)
    async with start(tmp_path) as service:
        assert (await service.get(session)).episodes == 1
        async with service.agent(session) as stream:
            await stream.receive("welcome")
            assert (await stream.receive("episode_start")).episode == 1


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("noticed", [False, True])
async def test_a_database_that_hangs_is_told(
    start: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, noticed: bool
) -> None:
    """`server status` ends, before the server has noticed and after; health goes and comes back."""
    goes_on, asked = threading.Event(), 0
    down = health_pb2.HealthCheckResponse.NOT_SERVING

    def hanging(*_: Any) -> Any:
        nonlocal asked
        asked += 1
        goes_on.wait(60)
        return Listing([], "")

    monkeypatch.setattr(readiness, "ANSWER_SECONDS", 0.5 if noticed else 60.0)
    monkeypatch.setattr(readiness, "LOOK_SECONDS", 0.05 if noticed else 60.0)
    monkeypatch.setattr(status, "_SECONDS", 0.5)
    async with start(tmp_path) as service:
        try:
            with monkeypatch.context() as changed:
                store = service.running.engines.parts.store  # no other server's
                changed.setattr(store, "count_sessions", hanging)
                changed.setattr(store, "sessions", hanging)
                while noticed and await health(service.channel, SERVICES[0]) != down:
                    await asyncio.sleep(0.02)
                command = ["server", "status", "--server", service.running.address]
                told = await asyncio.to_thread(CliRunner().invoke, build(["server"]), command)
                assert told.exit_code == (4 if noticed else 1)
                assert "database does not answer" in told.output
                assert asked == 1  # a question that hangs holds a thread
        finally:
            goes_on.set()
        while await health(service.channel, "") == down:
            await asyncio.sleep(0.02)


@pytest.mark.slow
def test_status_counts_and_sigterm_ends(tmp_path: Path) -> None:
    def status(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "animalcat", "server", "status", *options],
            capture_output=True,
            text=True,
            check=False,
        )

    nobody = status("--data", str(tmp_path))
    assert nobody.returncode == 4
    assert "animalcat serve" in nobody.stderr
    command = [sys.executable, "-m", "animalcat", "serve", "--port", "0", "--json", "--log", "json"]
    server = subprocess.Popen(
        [*command, "--data", tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert server.stdout is not None
    address = json.loads(server.stdout.readline())["address"]
    found = json.loads(status("--server", address, "--json").stdout)
    assert set(found["services"].values()) == {"serving"}
    assert {f"animalcat.v1.{name}" for name in found["services"]} == set(SERVICES)
    assert (found["sessions"], found["operations"]) == ({}, 0)
    assert (found["engine"], found["workers"], found["backlog"]) == ("local", [], [])
    assert (found["fits"], found["fits_waiting"]) == ([], 0)
    server.send_signal(signal.SIGTERM)
    _, printed = server.communicate(timeout=60)
    assert server.returncode == 0
    messages = [json.loads(line)["message"] for line in printed.decode().splitlines()]
    assert messages[0].startswith("serving ")
    assert messages[-1].startswith("stopping")
