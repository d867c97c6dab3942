"""A server without a hand on it: its settings, what is read again, what others see of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sqlalchemy.exc import OperationalError
from typer.testing import CliRunner

import animalcat
from animalcat.cli.main import build
from animalcat.client.evaluation import EvaluationSummary
from animalcat.client.staying import LONGEST_PAUSE, Pauses, Stay
from animalcat.errors import AnimalcatError
from animalcat.layouts.inference.fit import FitRequest, FitResult
from animalcat.layouts.inference.fitter import Fitter
from animalcat.service.access.certificates import CertificateError
from animalcat.service.host import owning, readiness
from animalcat.service.host.owning import OtherOwnerError, check_owner, own
from animalcat.service.host.settings import Settings, table_of
from animalcat.service.memory import PAUSES, Memory, SpareMemory
from animalcat.service.rpc.health import LIVENESS, READINESS
from animalcat.service.rpc.server import create_server
from animalcat.v1 import sessions_pb2
from tests.service.conftest import NOW, Helpers

SERVING = health_pb2.HealthCheckResponse.SERVING
FINISHED = sessions_pb2.SESSION_STATE_FINISHED


def certificate(folder: Path, days: float, name: str = "server") -> tuple[Path, Path]:
    """A certificate of localhost that lasts so long, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    whose = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(whose)
        .issuer_name(whose)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = folder / f"{name}.pem", folder / f"{name}.key"
    form = serialization.PrivateFormat.PKCS8
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    )
    return files


def command(*words: str) -> tuple[int, str]:
    answer = CliRunner().invoke(build(list(words)), words)
    return answer.exit_code, answer.output


def test_options_come_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANIMALCAT_PORT", "8")
    monkeypatch.setenv("ANIMALCAT_HOST_NAMES", '["a"]')
    monkeypatch.setenv("ANIMALCAT_STORE", "postgresql://u:p@h/d")
    found = Settings(port=9)
    assert (found.port, found.host_names) == (9, ("a",))
    rows = {row["key"]: (row["value"], row["from"]) for row in table_of(found, {"port": 9})}
    assert rows["port"] == (9, "option")
    assert rows["store"] == ("postgresql://u:***@h/d", "ANIMALCAT_STORE")
    assert rows["max_streams"] == (1000, "default")
    monkeypatch.setenv("ANIMALCAT_SECRET", "hush")
    code, printed = command("serve", "--check", "--json")
    assert code == 0
    assert "hush" not in printed


def test_certificates_are_checked_before_a_server_starts(tmp_path: Path) -> None:
    pem, key = (str(file) for file in certificate(tmp_path, 90))
    other = str(certificate(tmp_path, 90, "other")[1])
    given = ("serve", "--check", "--host", "0.0.0.0", "--tls-certificate", pem, "--tls-key")
    assert command(*given, key)[0] == 0
    code, said = command(*given, other)
    assert code == 2
    assert "is not the private key of" in said
    assert "needs credentials" in command("serve", "--check", "--host", "0.0.0.0")[1]


@pytest.mark.asyncio(loop_scope="session")
async def test_ready_is_who_takes_work_and_alive_who_answers(
    fitter: Helpers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "LOOK_SECONDS", 0.02)
    settings = Settings(home=tmp_path, port=0)
    async with (
        create_server(settings, lambda: NOW, fitter, fitter.simulators) as running,
        grpc.aio.insecure_channel(running.address) as channel,
    ):
        stub: Any = health_pb2_grpc.HealthStub(channel)

        async def well(name: str) -> bool:
            request = health_pb2.HealthCheckRequest(service=name)
            return (await stub.Check(request)).status == SERVING

        async def until(ready: bool) -> None:
            while await well(READINESS) is not ready:
                await asyncio.sleep(0.01)

        await until(True)
        store, disk = running.engines.parts.store, running.engines.parts.disk
        with monkeypatch.context() as broken:

            def read_only() -> None:
                raise OperationalError(
                    "UPDATE", {}, Exception("attempt to write a readonly database")
                )

            broken.setattr(store, "try_to_write", read_only)
            await until(False)
            assert not await well("")
            assert await well("animalcat.v1.Sessions")  # it can be read, and cleared up
            assert any("readonly database" in one for one in running.standing.told().reasons)
            assert await well(LIVENESS)
        await until(True)
        with monkeypatch.context() as full:
            full.setattr(disk, "_spare", 1 << 60)
            await until(False)
            async with animalcat.aconnect(running.address) as client:
                standing = (await client.placement()).standing
            assert not standing.ready
            assert standing.reasons[0].startswith("the disk of")
            assert standing.disk_bytes >= standing.disk_free_bytes > 0
        await until(True)
        await running.drain()
        assert not await well(READINESS)
        assert await well(LIVENESS)


def test_what_a_server_writes_is_its_users_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        data = tmp_path / "data"
        (data / "recordings" / "s").mkdir(parents=True)
        (data / "recordings" / "s" / "0-0.mcap").write_bytes(b"x")
        (data / "animalcat.sqlite").write_bytes(b"")
        (data / "notes.txt").write_bytes(b"mine")  # nothing of ours
        own(data)
        (data / "new").mkdir()
        (data / "new" / "file").write_bytes(b"")
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode)
        for path in [data, *data.rglob("*")]
    }
    assert modes.pop("data/notes.txt") == 0o644
    folders = {name for name, mode in modes.items() if mode == 0o700}
    assert folders == {"data", "data/recordings", "data/recordings/s", "data/new"}
    assert {mode for name, mode in modes.items() if name not in folders} == {0o600}


def test_another_users_directory_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.lock").write_bytes(b"")
    check_owner(tmp_path)
    mine = tmp_path.stat().st_uid
    monkeypatch.setattr(owning.os, "geteuid", lambda: mine + 1)
    with pytest.raises(OtherOwnerError, match="Do it as that user"):
        check_owner(tmp_path)
    (tmp_path / "server.lock").unlink()
    check_owner(tmp_path)  # a volume that is shared by its group


@pytest.mark.parametrize("version", [1, 2])
def test_memory_is_that_of_the_tightest_group(tmp_path: Path, version: int) -> None:
    """Also one above the process's own, as a service's within a slice."""
    mounts = tmp_path / "cgroup"
    top = mounts / "memory" if version == 1 else mounts
    slice_, unit = top / "lab.slice", top / "lab.slice" / "animalcat.service"
    unit.mkdir(parents=True)
    groups = tmp_path / "self"
    path = "/lab.slice/animalcat.service"
    groups.write_text(f"4:memory:{path}\n0::/\n" if version == 1 else f"0::{path}\n")
    (tmp_path / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")

    def limit(folder: Path, most: str, used: int, cached: int, kills: int) -> None:
        if version == 2:
            (folder / "memory.max").write_text(f"{most}\n")
            (folder / "memory.current").write_text(f"{used}\n")
            (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\n")
            (folder / "memory.events").write_text(f"oom 9\noom_kill {kills}\n")
            return
        (folder / "memory.limit_in_bytes").write_text(most.replace("max", str(1 << 62)) + "\n")
        (folder / "memory.usage_in_bytes").write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"inactive_file 1\ntotal_inactive_file {cached}\n")
        (folder / "memory.oom_control").write_text(f"under_oom 0\noom_kill {kills}\n")

    memory = Memory(mounts, groups, tmp_path / "meminfo")
    assert memory.available() == 8000 * 1024
    limit(unit, "max", 100, 0, 1)
    limit(slice_, "1000000", 600_000, 100_000, 3)
    assert (memory.available(), memory.kills()) == (500_000, 3)
    limit(unit, "400000", 100_000, 0, 1)
    assert memory.available() == 300_000
    groups.write_text(groups.read_text().replace(path, "/of/the/host"))  # in a container
    limit(top, "700000", 600_000, 0, 4)
    assert (memory.available(), memory.kills()) == (100_000, 4)


class Starving(Fitter):
    """Its process is killed at the first fits, as by the kernel."""

    def __init__(self, deaths: int) -> None:
        super().__init__()
        self.deaths = self.kills = 0
        self.most = deaths

    async def fit(self, request: FitRequest) -> FitResult:
        if self.deaths == self.most:
            return await super().fit(request)
        self.deaths += 1
        await self.start()
        asked = asyncio.create_task(super().fit(request))
        while not self.fitting().processes[0][1]:
            await asyncio.sleep(0)
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL)
        self.kills += 1
        return await asked


@pytest.mark.asyncio(loop_scope="session")
async def test_a_fit_that_dies_for_want_of_memory_is_waited_for(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    starving, waited = Starving(2), list[tuple[float, str]]()
    async with start(tmp_path, starving) as service:
        session = await service.create(3, certify=False)

        async def sleep(seconds: float) -> None:
            waited.append((seconds, (await service.get(session)).waits_for))

        memory = service.running.engines.parts.memory
        memory._kills, memory._sleep = (lambda: starving.kills), sleep
        memory._known = 0
        end = await service.play(session)
        assert end.state == FINISHED
        assert [seconds for seconds, _ in waited] == list(PAUSES[:2])
        assert waited[1][1] == "memory for its fit, which ran out of it 2 times"
    await starving.close()


@pytest.mark.asyncio(loop_scope="session")
async def test_a_session_that_stops_for_want_of_memory_says_so_and_goes_on(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    starving = Starving(len(PAUSES) + 1)
    async with start(tmp_path, starving) as service:
        session = await service.create(3, certify=False)
        memory = service.running.engines.parts.memory
        memory._kills, memory._known = (lambda: starving.kills), 0

        async def sleep(seconds: float) -> None:
            pass

        memory._sleep = sleep
        with pytest.raises(AssertionError, match="SESSION_FAILED"):
            await service.play(session)
        await service.settled(session, "WAITING", asyncio.sleep)
        assert "ran out of memory" in (await service.get(session)).reason
        end = await service.play(session)  # it has what it needs by now
        assert (end.state, end.episodes) == (FINISHED, 3)
    await starving.close()


def test_who_died_for_want_of_memory_is_told_from_who_was_killed() -> None:
    now, kills = 0.0, 0
    memory = SpareMemory(100, lambda: 50, lambda: kills, lambda: now)
    assert "MiB of memory left" in memory.short()
    assert not memory.was_it("kill")  # a person may have killed it
    kills = 2
    assert memory.was_it("kill")
    now = 30.0
    assert memory.was_it("kill")  # the other one of the two
    now = 100.0
    assert not memory.was_it("kill")
    assert memory.was_it("memory")
    assert not memory.was_it("")
    assert SpareMemory(0, lambda: None, lambda: None).was_it("kill")


class Clock:
    """Time that goes by only where somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_an_agent_stays_with_growing_pauses() -> None:
    clock, told = Clock(), list[str]()
    summary = EvaluationSummary("sessions/s", "finished", 3, ())
    answers: list[Any] = [
        *[AnimalcatError("lost the server", "UNAVAILABLE")] * 8,
        AnimalcatError("full", "BUSY", retry_seconds=90.0),
        None,
        summary,
        AnimalcatError("stopping", "SHUTTING_DOWN"),
        AnimalcatError("the token was revoked", "BAD_TOKEN"),
    ]

    def play() -> EvaluationSummary | None:
        answer = answers.pop(0)
        if isinstance(answer, AnimalcatError):
            raise answer
        return answer

    stay = Stay(play, lambda words, _: told.append(words), Pauses(lambda: 1.0), clock.sleep)
    stay.now = lambda: clock.now
    assert stay.one() is summary
    assert clock.slept == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 90.0, LONGEST_PAUSE]
    assert told[-1] == "no session waits for this agent"
    with pytest.raises(AnimalcatError, match="revoked"):
        stay.one()
    assert clock.slept[-1] == 1.0  # all went well in between
    assert not answers
    assert Pauses(lambda: 0.0).take() == 0.5  # no two agents come at once


@pytest.mark.slow
def test_an_agent_that_stays_outlives_the_server(tmp_path: Path) -> None:
    """The server is killed in mid-session and started again; the agent finishes its session."""
    environment = {**os.environ, "ANIMALCAT_HOME": str(tmp_path)}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"

    def run(*words: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "animalcat", *words],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def serve_it() -> subprocess.Popen[str]:
        server = run("serve", "--port", str(port), "--json")
        assert server.stdout is not None
        assert json.loads(server.stdout.readline())["address"] == address
        return server

    agent = run("agent", "run", "--connect", address, "--agent", "builtin:random", "--stay")
    server = serve_it()
    try:
        with animalcat.connect(address) as client:
            session = client.create_session(
                agent="builtin:random", battery="navigation", max_episodes=12, certify=False
            )
            for _ in client.watch_session(session):
                if client.get_session(session).episodes >= 3:
                    break
        server.kill()
        server.wait()
        server = serve_it()
        with animalcat.connect(address) as client:
            while not (found := client.get_session(session)).over:
                threading.Event().wait(0.2)
            assert (found.state, found.episodes) == ("finished", 12)
        agent.send_signal(signal.SIGTERM)
        said = agent.communicate(timeout=30)
        assert agent.returncode == 130
        assert "12 episodes counted" in said[0]
        assert "coming again in" in said[1]
    finally:
        for process in (agent, server):
            process.kill()
            process.communicate()


def test_a_wrong_certificate_is_refused_at_the_start(tmp_path: Path) -> None:
    from animalcat.service.host.serving import read_identity

    pem, _ = certificate(tmp_path, 1)
    with pytest.raises(CertificateError, match="is not the private key"):
        read_identity(Settings(tls_certificate=pem, tls_key=pem))
