"""Sessions on Unity builds: the real server, the real client stack, the stand-in as the build."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from animalcat.layouts.inference.fitter import Fitter
from animalcat.service.host.settings import Settings
from animalcat.service.recording.reader import read_episode
from animalcat.service.recording.verify import verify
from animalcat.service.rpc.server import create_server
from animalcat.v1 import sessions_pb2, types_pb2
from tests.service.conftest import FILES, Service
from tests.unity_builds import STAND_IN, START_SECONDS, build

pytestmark = pytest.mark.asyncio(loop_scope="session")

Serve = Callable[..., Any]


@pytest.fixture
def serve(tmp_path: Path, fitter: Fitter, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Starts a server that may run builds; its workers log into the test's folder."""
    monkeypatch.setenv("ANIMALCAT_UNITY_HOME", str(tmp_path / "unity"))
    monkeypatch.setenv("ANIMALCAT_UNITY_PYTHON", sys.executable)
    monkeypatch.setenv("ANIMALCAT_UNITY_START_SECONDS", str(START_SECONDS))

    @asynccontextmanager
    async def start_one(*builds: Path, name: str = "data") -> AsyncIterator[Service]:
        settings = Settings(home=tmp_path / name, port=0, allowed_builds=builds)
        async with (
            create_server(settings, lambda: datetime(2026, 11, 21, tzinfo=UTC), fitter) as running,
            grpc.aio.insecure_channel(running.address) as channel,
        ):
            yield Service(running, settings.home, channel)

    return start_one


@pytest.mark.slow
async def test_the_same_session_on_simulator_and_build(serve: Serve) -> None:
    played: list[list[Any]] = []
    async with serve(STAND_IN) as service:
        for backend in ("sim", f"unity:{STAND_IN}"):
            session = await service.create(5, backend=backend, seed=7, certify=False)
            await service.play(session)
            played.append(
                [
                    (e.instance, e.outcome, e.episode_return, e.steps, e.ended_by, e.decision)
                    for e in await service.list_episodes(session)
                ]
            )
        assert len(played[0]) == 5
        assert played[0] == played[1]
        assert {outcome for _, outcome, *_ in played[0]} == {
            types_pb2.OUTCOME_SUCCESS,
            types_pb2.OUTCOME_FAILURE,
        }
        folder = service.data / "recordings" / session.removeprefix("sessions/")
        recording = read_episode(folder / "0-0.mcap")
    header = recording.header
    assert header.backend == f"unity:{STAND_IN}"
    assert header.versions["animalai"] == "6.2.0"
    assert header.versions["unity-build"].startswith("animalcat-unity sha256:")
    found = verify(recording)
    assert (found.backend, found.difference) == ("sim", None)
    assert "unity-build" in {name for name, *_ in found.versions}
    assert found.comparison is not None
    assert found.comparison.metres == 0.0
    assert verify(recording, backend=f"unity:{STAND_IN}").difference is None


@pytest.mark.slow
async def test_a_build_that_dies_is_started_again_and_the_episode_repeated(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANIMALCAT_UNITY_BUILDS", "kept")
    dying = build(tmp_path, "dying", once=tmp_path / "died")
    async with serve(dying) as service:
        session = await service.create(2, backend=f"unity:{dying}", certify=False)
        await service.play(session)
        episodes = await service.list_episodes(session)
        folder = service.data / "recordings" / session.removeprefix("sessions/")
        recordings = [read_episode(folder / f"{e.episode}-{e.attempt}.mcap") for e in episodes]
    assert [(e.episode, e.attempt) for e in episodes] == [(0, 0), (0, 1), (1, 0)]
    fault, again, _ = episodes
    assert fault.outcome == types_pb2.OUTCOME_FAULT
    assert "return code 9" in fault.cause
    assert again.instance == fault.instance
    assert again.decision == fault.decision
    # A kept build starts episodes a step late, which the simulator can do too.
    assert all(verify(recording).difference is None for recording in recordings)
    # What another build would have played is told apart, and by how much.
    other = recordings[1]
    other.steps[4].observation.position[0] += 0.5
    found = verify(other)
    assert found.difference is not None
    assert found.comparison is not None
    assert found.comparison.metres == pytest.approx(0.5)


async def test_a_server_runs_only_builds_that_it_was_told_of(serve: Serve, tmp_path: Path) -> None:
    dying = build(tmp_path, "dying")
    async with serve(STAND_IN) as service:
        for backend, code, words in (
            (f"unity:{dying}", "BUILD_NOT_ALLOWED", f"serve --allow-build {dying}"),
            ("unity:/no/such", "UNKNOWN_BACKEND", "there is no such Unity build"),
            ("unity:auto", "UNKNOWN_BACKEND", "animalcat unity setup"),
        ):
            with pytest.raises(grpc.aio.AioRpcError, match=words) as refused:
                await service.create(2, backend=backend)
            assert dict(refused.value.trailing_metadata() or ())["animalcat-code"] == code


async def test_a_stored_session_runs_no_program_that_its_server_was_not_told_of(
    serve: Serve, tmp_path: Path
) -> None:
    """As one that somebody sent, or one from before the build was no longer allowed."""
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    async with serve(program) as service:
        session = await service.create(2, backend=f"unity:{program}")
    async with serve() as service:
        async with service.agent(session) as stream:
            refused = await stream.refused("BUILD_NOT_ALLOWED")
        assert f"serve --allow-build {program}" in refused.message
        assert "trust" in refused.message
        found = await service.get(session)
        assert found.state == sessions_pb2.SESSION_STATE_WAITING  # for one who allows it
    assert not ran.exists()


@pytest.mark.slow
async def test_nothing_is_left_when_the_server_is_killed(tmp_path: Path) -> None:
    """Not even where a build hangs in the middle of a step."""
    hung = tmp_path / "hung"
    hanging = build(tmp_path, "hanging", once=hung)
    arenas = tmp_path / "arenas"
    arenas.mkdir()
    for name, text in FILES[:2]:
        (arenas / name).write_bytes(text)
    environment = {
        **os.environ,
        "ANIMALCAT_UNITY_HOME": str(tmp_path / "unity"),
        "ANIMALCAT_UNITY_PYTHON": sys.executable,
    }
    command = [sys.executable, "-m", "animalcat", "session", "run", "--agent", "builtin:forward"]
    options = ["--battery", str(arenas), "--backend", f"unity:{hanging}", "--no-certify"]
    with subprocess.Popen(
        [*command, *options, "--data", str(tmp_path / "data")],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as running:
        try:
            _wait(hung.exists)
            (server,) = (p for p in _processes(tmp_path) if "serve" in p.cmdline())
            assert any("--mlagents-port" in p.cmdline() for p in _processes(tmp_path))
            server.kill()
            running.wait(60)
        finally:
            running.kill()
    _wait(lambda: not _processes(tmp_path))


def _wait(until: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not until():
        assert time.monotonic() < end
        time.sleep(0.1)


def _processes(folder: Path) -> list[psutil.Process]:
    """Processes whose command line names a folder."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and str(folder) in " ".join(process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found
