"""Runs the server: one asyncio process that serves the sessions of a data directory."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from animalcat.layouts.inference.fitter import Fitter
from animalcat.service.campaigns.conductor import Conductors
from animalcat.service.errors import ErrorInterceptor
from animalcat.service.host.lock import DirectoryLock
from animalcat.service.host.settings import Settings, exposure
from animalcat.service.library.batteries import BatteryLibrary
from animalcat.service.operations import Operations
from animalcat.service.rpc.batteries import Batteries
from animalcat.service.rpc.campaigns import Campaigns
from animalcat.service.rpc.episodes import Episodes
from animalcat.service.rpc.gateway import Gateway
from animalcat.service.rpc.layouts import Layouts
from animalcat.service.rpc.operations import OperationCalls
from animalcat.service.rpc.profiles import Profiles
from animalcat.service.rpc.requests import Requests
from animalcat.service.rpc.sessions import Sessions
from animalcat.service.session.engines import Engines
from animalcat.service.session.events import EventBus
from animalcat.service.session.parts import Parts
from animalcat.service.session.workers import Workers
from animalcat.service.storage.sql import SqlStore
from animalcat.service.versions import versions
from animalcat.v1 import (
    campaigns_pb2,
    campaigns_pb2_grpc,
    gateway_pb2,
    gateway_pb2_grpc,
    layouts_pb2,
    layouts_pb2_grpc,
    operations_pb2,
    operations_pb2_grpc,
    results_pb2,
    results_pb2_grpc,
    sessions_pb2,
    sessions_pb2_grpc,
)

GRACE_SECONDS: Final = 2.0
"""Seconds that pending calls may still take when the server stops."""


class PortInUseError(OSError):
    """The server cannot listen at its address."""


class RunningServer(NamedTuple):
    """A server that answers calls.

    Attributes:
        address: Host and port at which it listens.
        engines: The engines of its sessions.
    """

    address: str
    engines: Engines


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


@asynccontextmanager
async def create_server(
    settings: Settings, clock: Callable[[], datetime] = utc_now, fitter: Fitter | None = None
) -> AsyncGenerator[RunningServer]:
    """Serve a data directory; leaving the block lets every agent go and stores what is open.

    Args:
        settings: Where to listen, and which directory to serve.
        clock: Returns the current time, for creation times.
        fitter: Runs NUTS and stays open afterwards; None for one of the server's own.

    Yields:
        The server, once it answers calls.

    Raises:
        ExposureError: Other machines could reach the server.
        DirectoryInUseError: Another server uses the directory.
        PortInUseError: The server cannot listen at its address.
        StoreTooNewError: A newer version wrote the directory.
    """
    exposure(settings.host, credentials=False)
    lock = DirectoryLock(settings.home)
    try:
        store = await asyncio.to_thread(SqlStore.in_directory, settings.home)
        runs_nuts = fitter or Fitter(settings.fit_patience.outlast)
        parts = Parts(
            store,
            settings.home,
            Workers(settings.allowed_builds, settings.worker_patience),
            runs_nuts,
            EventBus(),
            versions(),
        )
        engines = Engines(parts)
        conductors = Conductors(engines)
        operations = await asyncio.to_thread(Operations, settings.home / "operations", clock)
        server = await _grpc_server(settings, engines, conductors, operations, clock)
        try:
            address = _bind(server, settings)
            await server.start()
            await conductors.resume()
            lock.publish(address)
            yield RunningServer(address, engines)
        finally:
            await operations.close()
            await conductors.close()
            await engines.close()
            await server.stop(GRACE_SECONDS)
            if fitter is None:
                await runs_nuts.close()
            await asyncio.to_thread(store.close)
    finally:
        lock.release()


async def serve(
    settings: Settings, ready: Callable[[str], None], *, with_stdin: bool = False
) -> None:
    """Serve until SIGTERM or SIGINT arrives.

    Args:
        settings: As for `create_server`.
        ready: Called with the address once calls are answered.
        with_stdin: Whether to stop also when standard input ends, that is, when the process at its
            other end does.

    Raises:
        See `create_server`.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if with_stdin:
        loop.add_reader(sys.stdin.fileno(), stop.set)  # nobody writes: readable means ended
    async with create_server(settings) as server:
        ready(server.address)
        await stop.wait()
    if with_stdin:
        loop.remove_reader(sys.stdin.fileno())


async def _grpc_server(
    settings: Settings,
    engines: Engines,
    conductors: Conductors,
    operations: Operations,
    clock: Callable[[], datetime],
) -> grpc.aio.Server:
    server = grpc.aio.server(
        interceptors=[ErrorInterceptor()],
        options=[
            # Otherwise two servers could share one port, and each would get some of the calls.
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", settings.max_message_bytes),
            # A peer that vanished without a word is noticed within half a minute.
            ("grpc.keepalive_time_ms", 20_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
        ],
    )
    requests = await asyncio.to_thread(Requests, settings.home / "requests.jsonl")
    library = BatteryLibrary(engines.parts.store, engines.battery_folder)
    gateway_pb2_grpc.add_AgentGatewayServicer_to_server(Gateway(engines), server)
    sessions = Sessions(engines, library, requests, clock)
    sessions_pb2_grpc.add_SessionsServicer_to_server(sessions, server)
    campaigns_pb2_grpc.add_CampaignsServicer_to_server(
        Campaigns(engines, sessions, conductors, operations, requests, clock), server
    )
    sessions_pb2_grpc.add_BatteriesServicer_to_server(
        Batteries(library, engines, operations, requests, settings), server
    )
    layouts_pb2_grpc.add_LayoutsServicer_to_server(Layouts(engines.parts.store), server)
    results_pb2_grpc.add_ProfilesServicer_to_server(Profiles(engines), server)
    results_pb2_grpc.add_EpisodesServicer_to_server(Episodes(engines), server)
    operations_pb2_grpc.add_OperationsServicer_to_server(
        OperationCalls(operations, requests), server
    )
    services = [
        service.full_name
        for file in (
            gateway_pb2,
            sessions_pb2,
            campaigns_pb2,
            results_pb2,
            layouts_pb2,
            operations_pb2,
        )
        for service in file.DESCRIPTOR.services_by_name.values()
    ]
    # The type stubs of the health package lack its asyncio half.
    asynchronous: Any = getattr(health, "aio")  # noqa: B009
    checks = asynchronous.HealthServicer()
    register: Any = health_pb2_grpc
    register.add_HealthServicer_to_server(checks, server)
    for name in ("", *services):
        await checks.set(name, health_pb2.HealthCheckResponse.SERVING)
    reflection.enable_server_reflection(
        [*services, health.SERVICE_NAME, reflection.SERVICE_NAME], server
    )
    return server


def _bind(server: grpc.aio.Server, settings: Settings) -> str:
    try:
        _try_address(settings)
        port = server.add_insecure_port(settings.address)
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else "the port is in use"
        raise PortInUseError(
            f"cannot listen at {settings.address} ({why}); choose another with --port, or 0 for "
            "any free one"
        ) from error
    return settings.model_copy(update={"port": port}).address


def _try_address(settings: Settings) -> None:
    """Listen for an instant, because gRPC prints lines of its own and hides why it fails."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trial.bind((settings.host, settings.port))
        trial.listen()
