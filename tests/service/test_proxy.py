"""Two servers of one PostgreSQL behind nginx with the configuration that is shipped."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from animalcat.service.access.callers import Role
from animalcat.service.access.tokens import Tokens
from animalcat.v1 import sessions_pb2
from tests import postgres
from tests.service.conftest import Service
from tests.service.test_restart import Server, agent, battery, counted, create, finish, wait_for
from tests.service.test_shared_store import paused

SHIPPED = Path(__file__).resolve().parents[2] / "docker" / "proxy" / "nginx.conf"
N = 8


@contextmanager
def nginx(folder: Path, servers: list[str], certificates: Path) -> Generator[str]:
    """Start nginx on loopback for the block; its address.

    What is shipped stays, but for addresses and paths.
    """
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not Path(program).exists():
        pytest.skip("there is no nginx here; on Debian: apt-get install nginx-light")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    text = SHIPPED.read_text()
    for shipped, ours in {
        "10.0.0.11:50051": servers[0],
        "10.0.0.12:50051": servers[1],
        "listen 50050 ": f"listen {address} ",
        "worker_processes auto;": "worker_processes 1;",
        "/etc/nginx/animalcat.pem": f"{certificates}/server.pem",
        "/etc/nginx/animalcat.key": f"{certificates}/server.key",
        "/etc/nginx/animalcat-servers.pem": f"{certificates}/server.pem",
        "http {": f"http {{\n{folders}",
    }.items():
        assert text.count(shipped) == 1, shipped
        text = text.replace(shipped, ours)
    folder.mkdir()
    config = folder / "nginx.conf"
    config.write_text(text)
    options = f"daemon off; pid {folder}/pid;" + (" user root;" if os.geteuid() == 0 else "")
    process = subprocess.Popen([program, "-p", folder, "-c", config, "-g", options])

    def answers() -> bool:
        assert process.poll() is None, "nginx has ended"
        host, port = address.split(":")
        with socket.socket() as trial:
            return trial.connect_ex((host, int(port))) == 0

    try:
        wait_for(answers)
        yield address
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("service")
@pytest.mark.asyncio(loop_scope="session")
async def test_behind_a_proxy_the_other_server_goes_on(
    start: Callable[[Path], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start(tmp_path / "alone") as service:
        session = await create(service, battery(12), N, 1, certify=False)
        whole, _ = await finish(service, session, 1)

    data = tmp_path / "shared"
    with postgres.running() as database, postgres.schema(database) as url:
        variables = {
            "ANIMALCAT_STORE": url,
            "ANIMALCAT_CLAIM_SECONDS": "1.5",
            "ANIMALCAT_SELF_SIGNED": "true",
            "ANIMALCAT_HOST_NAMES": '["animalcat"]',
            "ANIMALCAT_REQUIRE_TOKEN": "true",
            "ANIMALCAT_DIRECT": "false",
        }
        _, token = Tokens(data).create(Role.OPERATOR)
        certificates = data / "access"
        servers = [Server(data, **variables) for _ in range(2)]
        try:
            addresses = [one.address for one in servers]
            monkeypatch.setenv("ANIMALCAT_CA", str(certificates / "server.pem"))
            monkeypatch.setenv("ANIMALCAT_TOKEN", token)
            shown = grpc.composite_channel_credentials(
                grpc.ssl_channel_credentials((certificates / "server.pem").read_bytes()),
                grpc.access_token_call_credentials(token),
            )
            with nginx(tmp_path / "nginx", addresses, certificates) as address:
                async with grpc.aio.secure_channel(address, shown) as channel:
                    running: Any = SimpleNamespace(address=address)
                    service = Service(running, data, channel)
                    assert await create(service, battery(12), N, 1, certify=False) == session
                    playing = agent(address, session)
                    recordings = data / "recordings" / session.split("/")[1]
                    await asyncio.to_thread(wait_for, lambda: any(recordings.glob("3-*.mcap")))

                    async def serves(server: Server) -> bool:
                        async with grpc.aio.secure_channel(server.address, shown) as direct:
                            return not await paused(Service(running, data, direct), session)

                    (heir,) = [s for s in servers if not await serves(s)]
                    (doomed,) = [s for s in servers if s is not heir]
                    acknowledged = counted(await service.list_episodes(session))
                    doomed.stop(signal.SIGKILL)
                    await asyncio.to_thread(playing.wait, 60)
                    # Through the same address: calls go to the server that lives.
                    while await paused(service, session):
                        await asyncio.sleep(0.1)
                    resume = sessions_pb2.ResumeSessionRequest(name=session)
                    await service.sessions.ResumeSession(resume)
                    again, _ = await finish(service, session, 1)
        finally:
            for server in servers:
                if server.process.poll() is None:
                    server.stop(signal.SIGTERM)
    assert counted(again) == counted(whole)
    assert counted(again)[: len(acknowledged)] == acknowledged
