"""Runs the server: one asyncio process that serves the sessions of a data directory."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from sqlalchemy.exc import DBAPIError

from animalcat.envs.starting import Starter
from animalcat.extending import plugins
from animalcat.extending.doorways import entries
from animalcat.layouts.inference.fitter import Fits, Fitter
from animalcat.service.access.audit import STOPPED, Audit
from animalcat.service.access.belongings import Belongings
from animalcat.service.access.callers import Caller, present
from animalcat.service.access.gate import AccessInterceptor, Gate
from animalcat.service.access.oidc import IdentityProvider
from animalcat.service.access.secret import ServerSecret
from animalcat.service.errors import Code, DeniedError, ErrorInterceptor, ServiceError
from animalcat.service.host.limits import EVALUATE, LimitsInterceptor, ServerLimits
from animalcat.service.host.listeners import (
    Budget,
    Listeners,
    all_descriptors,
    descriptors,
    host_of,
)
from animalcat.service.host.local import LocalAddress
from animalcat.service.host.lock import DirectoryLock
from animalcat.service.host.readiness import DRAINING, Readiness
from animalcat.service.host.serving import read_identity
from animalcat.service.host.settings import Settings, check_exposure, check_provider, check_tls
from animalcat.service.host.standing import Standing
from animalcat.service.library.batteries import BatteryLibrary
from animalcat.service.memory import SpareMemory
from animalcat.service.operations import Operations
from animalcat.service.own_calls import Calls
from animalcat.service.refusals import Refusals
from animalcat.service.rpc.access import AccessCalls
from animalcat.service.rpc.batteries import Batteries
from animalcat.service.rpc.campaigns import Campaigns
from animalcat.service.rpc.episodes import Episodes
from animalcat.service.rpc.gateway import Gateway
from animalcat.service.rpc.health import LIVENESS, READINESS, Health
from animalcat.service.rpc.layouts import Layouts
from animalcat.service.rpc.operations import OperationCalls
from animalcat.service.rpc.profiles import Profiles
from animalcat.service.rpc.requests import Requests
from animalcat.service.rpc.sessions import Sessions
from animalcat.service.session.disk import Disk
from animalcat.service.session.engines import Engines
from animalcat.service.session.events import EventBus
from animalcat.service.session.parts import Parts
from animalcat.service.session.room import Room
from animalcat.service.session.workers import EngineError, Workers
from animalcat.service.storage.artefacts import Artefacts
from animalcat.service.storage.belonging import StrayPartsError, check_belonging
from animalcat.service.storage.errors import StoreInUseError
from animalcat.service.storage.sql import DATABASE, SqlStore
from animalcat.service.versions import versions
from animalcat.v1 import (
    access_pb2,
    access_pb2_grpc,
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
from animalcat.wire.protocol import version

log = logging.getLogger(__name__)

GRACE_SECONDS: Final = 2.0
"""Seconds that pending calls may still take when the server stops."""
END_SECONDS: Final = 12.0
"""How long it may take to stop when no episode is waited for; what still hangs then is left."""
HANDSHAKE_MILLISECONDS: Final = 10_000
"""Time within which a connection has to become one of gRPC."""
_REFUSALS: Final = frozenset(
    {
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)
"""Statuses that are counted as refusals."""
_REFUSED: Final = frozenset({Code.TOO_MANY_BAD_FRAMES, Code.AGENT_CHANGED, Code.LEASE_LOST})
"""What else is counted: what an honest agent seldom meets."""
SERVICES: Final = tuple(
    service.full_name
    for file in (
        gateway_pb2,
        access_pb2,
        sessions_pb2,
        campaigns_pb2,
        results_pb2,
        layouts_pb2,
        operations_pb2,
    )
    for service in file.DESCRIPTOR.services_by_name.values()
)
"""Full names of all services."""
OPERATIONS: Final = "animalcat.v1.Operations"
LOCK_SECONDS: Final = 2.0
"""How often the server looks whether its lock file is still there."""


class PortInUseError(OSError):
    """The server cannot listen at its address."""


class RunningServer(NamedTuple):
    """A server that answers calls.

    Attributes:
        address: Host and port at which it listens.
        engines: The engines of its sessions.
        drain: Refuses new agents and waits until the episodes that are played are over.
        standing: How it is.
        audit: Its audit log.
        link: Address of its web pages, with a ticket that lets one browser in; empty for none.
    """

    address: str
    engines: Engines
    drain: Callable[[], Awaitable[None]]
    standing: Standing
    audit: Audit
    link: str = ""


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class Inside(NamedTuple):
    """What serves a data directory, before it has a door.

    Attributes:
        settings: How it is served.
        clock: Returns the current time.
        name: Of this run of the server, which no other has.
        lock: Keeps other servers away.
        engines: The engines of its sessions.
        operations: What takes long.
        gate: Says who may do what.
        limits: Those of the server as a whole.
        refusals: Counts what was refused.
        standing: How the server is.
    """

    settings: Settings
    clock: Callable[[], datetime]
    name: str
    lock: DirectoryLock
    engines: Engines
    operations: Operations
    gate: Gate
    limits: ServerLimits
    refusals: Refusals
    standing: Standing

    def gateway(self, folder: str) -> Gateway:
        """Return the servicer to which agents come.

        Args:
            folder: Where unix sockets may be for agents that play with workers.
        """
        settings = self.settings
        return Gateway(
            self.engines,
            self.gate,
            direct=settings.direct,
            folder=folder,
            networks=settings.direct_networks if settings.engine == "ray" else "",
            most_agents=settings.max_agents,
            check=partial(self.limits.check, EVALUATE),
            refused=self.refusals.count,
        )

    async def stop(self) -> None:
        """Let every agent go, and store what is open."""
        await self.operations.close()
        await self.engines.close()


@asynccontextmanager
async def compose_server(
    settings: Settings,
    clock: Callable[[], datetime] = utc_now,
    fitter: Fits | None = None,
    starter: Starter | None = None,
) -> AsyncGenerator[Inside]:
    """Take a data directory, and compose what serves it; the block ends after `Inside.stop`.

    Args and errors are those of `create_server`, but for what has to do with its address.
    """
    lock = DirectoryLock(settings.home)
    opened = AsyncExitStack()
    try:
        opened.enter_context(plugins.only(settings.allowed_plugins))
        name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        fresh = not settings.store and not (settings.home / DATABASE).exists()
        store = await asyncio.to_thread(SqlStore.in_directory, settings.home, settings.store)
        opened.push_async_callback(asyncio.to_thread, store.close)
        await asyncio.to_thread(store.hold, name)
        await asyncio.to_thread(store.nobody_plays)
        here = versions()
        workers, fits = await _engine(settings, here, starter)
        opened.push_async_callback(fits.close)
        # Nodes of a cluster know the directory by its absolute path.
        home = settings.home if settings.engine == "local" else settings.home.absolute()
        files = Artefacts(home)
        try:
            await asyncio.to_thread(check_belonging, store, files)
        except StrayPartsError:
            await asyncio.to_thread(_forget, settings, store, fresh)
            raise
        disk = Disk(home, settings.spare_disk_bytes)
        memory = SpareMemory(settings.spare_memory_bytes)
        bus = EventBus()
        parts = Parts(
            store,
            home,
            files,
            workers,
            fitter or fits,
            bus,
            here,
            disk=disk,
            memory=memory,
            unused_seconds=settings.unused_seconds,
            unused_bytes=settings.unused_bytes,
        )
        engines = Engines(parts)
        operations = await asyncio.to_thread(Operations, settings.home / "operations", clock)
        where = f"{socket.gethostname()}:{settings.port}"
        audit = Audit(store.audit, where, clock, host_of)
        opened.push_async_callback(audit.close)
        writing = asyncio.create_task(audit.run())
        opened.callback(writing.cancel)
        gate = await asyncio.to_thread(
            partial(
                Gate,
                settings.home,
                engines,
                owners=Belongings(store, operations),
                audit=audit,
                provider=IdentityProvider(settings) if settings.oidc_issuer else None,
            )
        )
        limits = ServerLimits(settings, store, operations, memory, disk)
        readiness = Readiness(store, limits, note=audit.tell)
        standing = Standing(settings, readiness)
        yield Inside(
            settings,
            clock,
            name,
            lock,
            engines,
            operations,
            gate,
            limits,
            Refusals(),
            standing,
        )
    finally:
        try:
            await opened.aclose()
        finally:
            lock.release()


@asynccontextmanager
async def create_server(
    settings: Settings,
    clock: Callable[[], datetime] = utc_now,
    fitter: Fits | None = None,
    starter: Starter | None = None,
) -> AsyncGenerator[RunningServer]:
    """Serve a data directory; leaving the block lets every agent go and stores what is open.

    Args:
        settings: Where to listen, and which directory to serve.
        clock: Returns the current time, for creation times.
        fitter: Runs NUTS and stays open afterwards; None for what the engine of the settings has.
        starter: Starts simulators and stays open afterwards; None for what that engine has.

    Yields:
        The server, once it answers calls.

    Raises:
        ExposureError: Other machines could reach the server without credentials.
        CertificateError: The server's certificate cannot be made.
        DirectoryInUseError: Another server uses the directory.
        StoreInUseError: Another server uses the database.
        PortInUseError: The server cannot listen at its address.
        StoreVersionError: Another version wrote the directory, and this one cannot use it.
        StrayPartsError: The database and the files beside it do not belong together.
        ClusterError: The Ray cluster of the settings cannot be used.
        PluginError: No plugin comes with a package of the settings.
    """
    check_exposure(settings.host, credentials=settings.tls)
    check_tls(settings)
    check_provider(settings)
    async with compose_server(settings, clock, fitter, starter) as inside:
        engines, refusals, lock = inside.engines, inside.refusals, inside.lock
        standing, audit = inside.standing, inside.gate.audit
        assert audit is not None, "a server keeps one"
        budget = Budget.of(descriptors(), settings.max_strangers)
        listeners = Listeners(budget, refusals)
        limiting = LimitsInterceptor(inside.limits)
        identity = await asyncio.to_thread(read_identity, settings)
        tasks: list[asyncio.Task[None]] = []
        doors: list[grpc.aio.Server] = []
        opened = AsyncExitStack()
        local = LocalAddress()
        # Where the port asks for a token or TLS, commands on the directory come in by another.
        own = None if settings.open_to_machine else LocalAddress()
        try:
            note_refusal = partial(_count_refusals, refusals, listeners, inside.gate)

            def make_door(
                connections: int, recognise: Callable[[str | None], Awaitable[Caller]]
            ) -> grpc.aio.Server:
                guards = [
                    ErrorInterceptor(note_refusal),
                    AccessInterceptor(inside.gate, listeners, recognise),
                    limiting,
                ]
                return _empty_server(settings, guards, connections)

            recognise = partial(inside.gate.recognise, open_to_machine=settings.open_to_machine)
            server = make_door(budget.connections, recognise)
            doors += [server, make_door(budget.local, inside.gate.recognise_agent)]
            doors[1].add_insecure_port(local.address)
            if own is not None:
                doors.append(make_door(budget.local, recognise))
                doors[2].add_insecure_port(own.address)
            checks = Health(("", LIVENESS, READINESS, *SERVICES), listeners)
            standing.readiness.told = partial(_tell_health, checks)
            servicers = await servicers_of(inside, local)
            for door in doors:
                _add_services(door, servicers, checks)
            address = _bind(server, settings, identity and identity.credentials)
            listeners.ports.add(int(address.rpartition(":")[2]))
            listeners.doors.add(local.address.removeprefix("unix:"))
            if own is not None:
                listeners.doors.add(own.address.removeprefix("unix:"))
            tasks.append(asyncio.create_task(listeners.watch()))
            tasks.append(asyncio.create_task(standing.readiness.watch()))
            tasks.append(asyncio.create_task(engines.keep_spare()))
            for door in doors:
                await door.start()
            local.publish()
            link = web = ""
            if settings.web:
                # These are needed only then.
                from animalcat.service.web.serving import offer_pages
                from animalcat.service.web.site import Served

                calls = Calls(inside.limits, inside.gate, note_refusal)
                opened.push_async_callback(calls.close)
                for add, servicer in servicers:
                    add(servicer, calls)
                served = Served(settings, inside.gate, calls, engines)
                pages = await opened.enter_async_context(
                    offer_pages(served, identity and identity.context, listeners)
                )
                link, web = pages.link(), pages.url
            lock.publish(address, "" if own is None else own.address, web)
            tasks.append(asyncio.create_task(_keep_locks(inside)))
            log.info("serving %s at %s", settings.home, address)

            async def drain() -> None:
                standing.readiness.drain()
                checks.end()
                await engines.drain()

            await audit.begin_server(version())
            try:
                yield RunningServer(address, engines, drain, standing, audit, link)
            finally:
                audit.tell(STOPPED, "")
        finally:
            log.info("stopping: agents are let go, and what is open is stored")
            for task in tasks:
                task.cancel()
            await opened.aclose()
            await inside.stop()
            await asyncio.gather(*(door.stop(GRACE_SECONDS) for door in doors))
            for folder in (local, *([own] if own else ())):
                folder.close()


async def _engine(
    settings: Settings, here: Mapping[str, str], starter: Starter | None
) -> tuple[Workers, Fits]:
    """What starts simulators and fits."""
    if settings.engine == "local":
        fits = Fitter(settings.fit_patience.outlast)
        room = Room(settings.max_workers, settings.campaign_workers)
        patience, forked = settings.worker_patience, settings.fork_workers
        builds = settings.allowed_builds
        return Workers(builds, patience, room, forked=forked, starter=starter), fits
    way = entries("engines").get(settings.engine)
    if way is None:
        raise EngineError(f"the engine {settings.engine} is a door, which was taken away")
    return await way.load()(settings, settings.home.absolute(), here)


def _forget(settings: Settings, store: SqlStore, fresh: bool) -> None:
    """Remove the database that this start has made, in place of one that was lost."""
    store.close()
    if fresh:
        for ending in ("", "-wal", "-shm"):
            (settings.home / f"{DATABASE}{ending}").unlink(missing_ok=True)


async def _keep_locks(inside: Inside) -> None:
    """Write the lock file again whenever it was deleted, and hold a database that was restarted."""
    while True:
        await asyncio.sleep(LOCK_SECONDS)
        with suppress(OSError):  # a full disk, say: the lock itself is held in any case
            inside.lock.restore()
        with suppress(DBAPIError):  # the database may come back
            try:
                await asyncio.to_thread(inside.engines.parts.store.hold, inside.name)
            except StoreInUseError as error:
                log.error("this server writes nothing any more: %s", error)
                return


async def serve(
    settings: Settings,
    ready: Callable[[str, str], None],
    *,
    with_stdin: bool = False,
) -> None:
    """Serve until SIGTERM or SIGINT arrives.

    SIGTERM lets the episodes that are played come to their end, for `settings.drain_seconds` at
    most; SIGINT, or a second SIGTERM, stops at once. Neither loses anything. The process ends
    `END_SECONDS` after that, whatever its threads do: what was acknowledged is on disk. Tokens
    are read again whenever they change.

    Args:
        settings: As for `create_server`.
        ready: Called with the address, and the link to the web pages (empty for none), once calls
            are answered.
        with_stdin: Whether to stop also when standard input ends, that is, when the process at its
            other end does.

    Raises:
        See `create_server`.
    """
    all_descriptors()
    stop, hurry = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    asked: list[float] = []

    def end_in(seconds: float, *events: asyncio.Event) -> None:
        if asked and asked[-1] <= seconds:
            return
        asked.append(seconds)
        # It needs neither the loop nor the interpreter's lock, and says where each thread hangs.
        faulthandler.dump_traceback_later(seconds + END_SECONDS, exit=True, file=2)
        with suppress(RuntimeError):  # the loop is closed: it has ended but for its threads
            for event in events:
                loop.call_soon_threadsafe(event.set)

    def interrupt(*_: object) -> None:
        end_in(0.0, hurry, stop)

    def terminate(*_: object) -> None:
        if asked:
            interrupt()
        else:
            end_in(settings.drain_seconds, stop)

    # By `signal`, not by the loop, which may hang.
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, terminate)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # `nohup` has it ignored
        signal.signal(signal.SIGHUP, interrupt)  # the terminal was closed
    if with_stdin:
        loop.add_reader(sys.stdin.fileno(), interrupt)  # nobody writes: readable means ended
    async with create_server(settings) as server:
        ready(server.address, server.link)
        await stop.wait()
        if not hurry.is_set():
            log.warning(
                "SIGTERM: nothing new begins, and what is played may end within %g s",
                settings.drain_seconds,
            )
        await _drain(server, settings.drain_seconds, hurry)
    if with_stdin:
        loop.remove_reader(sys.stdin.fileno())


def _tell_health(checks: Health, now: Readiness) -> None:
    """Tell by gRPC how the server is: as a whole, and each service of it.

    A service serves as long as its database answers, so that room can be made on a full disk.
    """
    for name in ("", READINESS):
        checks.set(name, serving=now.ready)
    for name in SERVICES:
        if name != OPERATIONS:
            checks.set(name, serving=now.answers and DRAINING not in now.reasons)


async def _drain(server: RunningServer, seconds: float, hurry: asyncio.Event) -> None:
    """Let open episodes end, for a time or until somebody is in a hurry."""
    if hurry.is_set() or not seconds:
        return
    draining = asyncio.ensure_future(server.drain())
    hurrying = asyncio.ensure_future(hurry.wait())
    both = (draining, hurrying)
    await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in both:
        task.cancel()
    await asyncio.gather(*both, return_exceptions=True)


def _count_refusals(
    refusals: Refusals, listeners: Listeners, gate: Gate, error: ServiceError, peer: str
) -> None:
    """Count calls that were refused, and calls of strangers, and have refusals audited."""
    caller = present.get(None)
    if caller is None and error.code is not Code.TOO_MANY_CALLS:  # else it was counted before
        listeners.strange(peer)
    if error.status in _REFUSALS or error.code in _REFUSED or isinstance(error, DeniedError):
        refusals.count(error.code, _who(caller, peer), error.message)
    if (error.status in _REFUSALS or isinstance(error, DeniedError)) and gate.audit is not None:
        gate.audit.refused(caller, error)


def _who(caller: Caller | None, peer: str) -> str:
    """Return who called, in words."""
    if caller is None:
        return f"no good token, from {host_of(peer) or 'this machine'}"
    return caller.words


def _empty_server(
    settings: Settings, guards: Sequence[grpc.aio.ServerInterceptor], connections: int
) -> grpc.aio.Server:
    """Return a server without services.

    Args:
        settings: Has the sizes of messages.
        guards: What every call goes through.
        connections: Most connections at once.
    """
    return grpc.aio.server(
        interceptors=guards,
        options=[
            ("grpc.max_allowed_incoming_connections", connections),
            ("grpc.server_handshake_timeout_ms", HANDSHAKE_MILLISECONDS),
            # Otherwise two servers could share one port, and each would get some of the calls.
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", settings.max_message_bytes),
            # A peer that vanished without a word is noticed within half a minute.
            ("grpc.keepalive_time_ms", 20_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
        ],
    )


Servicers: TypeAlias = Sequence[tuple[Callable[[Any, Any], None], Any]]
"""Servicers, each after the generated function that adds it to a server."""


async def servicers_of(inside: Inside, local: LocalAddress) -> Servicers:
    """Return the servicers of a data directory.

    Args:
        inside: What they are of.
        local: Where agents of this machine play.
    """
    settings, engines, operations = inside.settings, inside.engines, inside.operations
    clock = inside.clock
    requests = await asyncio.to_thread(Requests, settings.home / "requests.jsonl")
    library = BatteryLibrary(engines.parts.store, engines.parts.files)
    secret = await asyncio.to_thread(ServerSecret, settings.home, settings.secret)
    sessions = Sessions(engines, library, requests, clock, secret, inside.gate.audit)
    calls = AccessCalls(engines, inside.gate, local.address, settings.home)
    return [
        (
            gateway_pb2_grpc.add_AgentGatewayServicer_to_server,
            inside.gateway(str(local.folder)),
        ),
        (access_pb2_grpc.add_AccessServicer_to_server, calls),
        (sessions_pb2_grpc.add_SessionsServicer_to_server, sessions),
        (
            campaigns_pb2_grpc.add_CampaignsServicer_to_server,
            Campaigns(engines, sessions, requests, clock, secret),
        ),
        (
            sessions_pb2_grpc.add_BatteriesServicer_to_server,
            Batteries(library, engines, operations, requests, settings, inside.gate),
        ),
        (layouts_pb2_grpc.add_LayoutsServicer_to_server, Layouts(engines.parts.store)),
        (results_pb2_grpc.add_ProfilesServicer_to_server, Profiles(engines)),
        (results_pb2_grpc.add_EpisodesServicer_to_server, Episodes(engines)),
        (
            operations_pb2_grpc.add_OperationsServicer_to_server,
            OperationCalls(
                engines, operations, requests, inside.limits, inside.refusals, inside.standing
            ),
        ),
    ]


def _add_services(server: grpc.aio.Server, servicers: Servicers, checks: Health) -> None:
    """Add servicers to a server, with those by which gRPC looks at it."""
    for add, servicer in servicers:
        add(servicer, server)
    register: Any = health_pb2_grpc
    register.add_HealthServicer_to_server(checks, server)
    reflection.enable_server_reflection(
        [*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME], server
    )


def _bind(
    server: grpc.aio.Server, settings: Settings, credentials: grpc.ServerCredentials | None
) -> str:
    try:
        _try_address(settings)
        if credentials is None:
            port = server.add_insecure_port(settings.address)
        else:
            port = server.add_secure_port(settings.address, credentials)
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
