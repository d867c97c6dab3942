"""A real server on a free port, with a small battery."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import animalcat
from animalcat.service.host.private import server_for

MakeSession = Callable[..., animalcat.values.Session]


class Server(NamedTuple):
    """Where a server listens, and its data directory."""

    address: str
    home: Path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("home")
    with server_for(None, home) as address:
        with animalcat.connect(address) as client:
            client.build_battery("navigation", 12, seed=1, name="navigation", replace=True)
        yield Server(address, home)


@pytest.fixture
def client(server: Server) -> Iterator[animalcat.Client]:
    with animalcat.connect(server.address) as client:
        yield client


@pytest.fixture
def make_session(client: animalcat.Client, request: pytest.FixtureRequest) -> MakeSession:
    """Makes sessions of few episodes; each test has agents, and so sessions, of its own."""

    def make(**fields: object) -> animalcat.values.Session:
        spec = {"battery": "navigation", "max_episodes": 2, "certify": False, **fields}
        spec.setdefault("agent", request.node.name)
        return client.create_session(**spec)  # pyright: ignore[reportArgumentType]

    return make


@pytest.fixture
def heeded() -> Iterator[None]:
    """SIGINT interrupts, also where the shell had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_next_call(client: animalcat.Client) -> None:
    """Have the next call that waits interrupted, as by Ctrl-C; to be used with `heeded`."""
    caller = threading.get_ident()

    async def later() -> None:
        # The client's loop turns only while a call waits.
        loop = asyncio.get_running_loop()
        loop.call_later(0.01, signal.pthread_kill, caller, signal.SIGINT)

    client.run(later())
