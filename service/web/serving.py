"""Offers pages and other applications: on a server's event loop, or while a command runs."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import uvicorn
from starlette.responses import PlainTextResponse

from animalcat.service.access.tokens import FOLDER
from animalcat.service.host.listeners import (
    BEGIN_SECONDS,
    KEPT_SECONDS,
    MOST_OF_AGENT,
    Budget,
    Listeners,
    descriptors,
)
from animalcat.service.refusals import Refusals
from animalcat.service.web.application import MakePart, create_app
from animalcat.service.web.guard import Door, own_hosts
from animalcat.service.web.parts import all_parts
from animalcat.service.web.site import Served, Site
from animalcat.service.web.visits import PURPOSE, UsedHere, UsedOnDisk, Visits, link_to

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

MOST_STRANGERS: Final = 1000
"""Most connections to a command's port over which nobody shows that they may come in."""
MOST_BODY: Final = 256 * 1024
"""Most bytes of a request."""
TAKEN_SECONDS: Final = 30.0
"""Within this time a piece of an answer has to be taken."""
STOP_SECONDS: Final = 1
"""Seconds that answers may still take when the server stops."""


class Pages(NamedTuple):
    """Pages that are offered.

    Attributes:
        url: Their address, without a slash at its end.
        ticket: Makes a ticket that lets one browser in.
        serve: Serves them until it is interrupted; for commands.
        stop: Makes `serve` return, from any thread.
    """

    url: str
    ticket: Callable[[], str]
    serve: Callable[[], None] = lambda: None
    stop: Callable[[], None] = lambda: None

    def link(self, path: str = "") -> str:
        """Return an address that lets one browser in, once.

        Args:
            path: The page that it leads to, such as "/sessions/mine-1a2b3c4d"; the first one if
                empty.
        """
        return link_to(self.url, self.ticket(), path)


@asynccontextmanager
async def offer_pages(
    served: Served, tls: ssl.SSLContext | None, listeners: Listeners
) -> AsyncGenerator[Pages]:
    """Offer the pages of a data directory for the duration of the block.

    Args:
        served: What serves the directory.
        tls: What the server shows of itself; None for one without TLS.
        listeners: Guards the port.

    Raises:
        OSError: One cannot listen at the address of the settings; its file name says where.
    """
    settings, gate = served.settings, served.gate
    host, port = settings.web_at
    listener = listeners.listen(host, port)
    used = UsedOnDisk(settings.home / FOLDER)
    visits = Visits(gate.tickets.key_for(PURPOSE), used, gate.tokens)
    names = settings.host_names
    hosts = own_hosts(host, listener.getsockname()[1], names)
    door = Door(hosts, settings.web_url, settings.tls)
    site = Site(visits, door, served)
    app = guard_requests(create_app(site, all_parts()), listeners, site.whose)
    async with _running(app, listener, site, tls):
        yield Pages(_url(listener, door), visits.ticket)


@contextmanager
def show_pages(parts: Sequence[MakePart], port: int = 0) -> Generator[Pages]:
    """Make pages of a command, on this machine alone; `Pages.serve` serves them.

    Args:
        parts: What they show.
        port: Their port; 0 for any free one.

    Raises:
        OSError: The port is taken.
    """
    visits, ended = Visits(secrets.token_bytes(32), UsedHere()), asyncio.Event()
    with asyncio.Runner() as runner:
        loop, offer = runner.get_loop(), show_pages_at(parts, visits, ("127.0.0.1", port))
        pages = runner.run(offer.__aenter__())
        try:
            yield pages._replace(
                serve=lambda: runner.run(ended.wait()) and None,
                stop=lambda: loop.call_soon_threadsafe(ended.set) and None,
            )
        finally:
            runner.run(offer.__aexit__(None, None, None))


@asynccontextmanager
async def show_pages_at(
    parts: Sequence[MakePart], visits: Visits, address: tuple[str, int], url: str = ""
) -> AsyncGenerator[Pages]:
    """Offer pages of a command for the duration of the block, to other machines by a proxy.

    Args:
        parts: What they show.
        visits: Who looks.
        address: Host and port to listen at.
        url: The public address without a slash at its end; empty where browsers come directly.

    Raises:
        OSError: The port is taken; its file name says which.
    """
    async with _watching() as listeners:
        listener = listeners.listen(*address)
        door = Door(own_hosts(address[0], listener.getsockname()[1]), url)
        site = Site(visits, door)
        app = guard_requests(create_app(site, parts), listeners, site.whose)
        async with _running(app, listener, site):
            yield Pages(_url(listener, door), visits.ticket)


def serve_app(app: ASGIApp, host: str, port: int, path: str = "/") -> None:
    """Serve an application of its own until it is interrupted, by the rule of all ports.

    Args:
        app: The application.
        host: Address to listen at.
        port: Port to listen at.
        path: Who asks for another path is a stranger; all others are told apart by their hosts.

    Raises:
        OSError: The port is taken; its file name says which.
    """

    def whose(scope: Scope) -> tuple[str | None, int]:
        return (scope["client"][0] if scope["path"].startswith(path) else None), MOST_OF_AGENT

    async def serve() -> None:
        async with _watching() as listeners:
            listener = listeners.listen(host, port)
            config = _config(guard_requests(app, listeners, whose), lifespan="on")
            await uvicorn.Server(config).serve([listener])

    asyncio.run(serve())


@asynccontextmanager
async def _watching() -> AsyncGenerator[Listeners]:
    """Guard the ports of a command for the duration of the block."""
    listeners = Listeners(Budget.of(descriptors(), MOST_STRANGERS), Refusals())
    watching = asyncio.create_task(listeners.watch())
    try:
        yield listeners
    finally:
        watching.cancel()


def guard_requests(
    app: ASGIApp, listeners: Listeners, whose: Callable[[Scope], tuple[str | None, int]]
) -> ASGIApp:
    """Return an application that is given whole requests, and whose answers are taken in time.

    Args:
        app: Answers the requests.
        listeners: Guards its port.
        whose: Returns who asks, None for a stranger, and the most connections they may have.
    """

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        come: list[Message] = []
        size = 0
        # A connection is in use only once all is there, so whoever is slow has no more time.
        while scope["type"] == "http" and (not come or come[-1]["more_body"]):
            come.append(await receive())
            if come[-1]["type"] == "http.disconnect":
                return
            size += len(come[-1]["body"])
            if size > MOST_BODY:
                answer = PlainTextResponse(f"at most {MOST_BODY} bytes\n", 413)
                await answer(scope, receive, send)
                return

        async def receive_on() -> Message:
            return come.pop(0) if come else await receive()

        async def send_on(message: Message) -> None:
            late = loop.call_later(TAKEN_SECONDS, listeners.end, peer, "an answer was not taken")
            try:
                await send(message)
            finally:
                late.cancel()

        loop, peer = asyncio.get_running_loop(), tuple(scope["client"])
        caller, most = whose(scope)
        if caller is None:
            listeners.strange(peer)
        # The next request has the same time as the first one, once uvicorn has waited for it.
        with listeners.admitted(peer, caller, most, KEPT_SECONDS + BEGIN_SECONDS):
            await app(scope, receive_on, send_on)

    return guarded


class _Server(uvicorn.Server):
    """One that leaves signals to whoever runs the event loop."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture none."""
        yield


@asynccontextmanager
async def _running(
    app: ASGIApp, listener: socket.socket, site: Site, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[None]:
    config = _config(app, lifespan="off")
    config.load()
    config.ssl = tls
    server = _Server(config)
    serving = asyncio.create_task(server.serve([listener]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.005)
    try:
        yield
    finally:
        site.stop()
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)


def _config(app: ASGIApp, lifespan: Literal["on", "off"]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        access_log=False,
        backlog=1,  # connections that are taken at a time; see `Listening`
        date_header=False,
        h11_max_incomplete_event_size=64 * 1024,
        http="h11",
        lifespan=lifespan,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
        timeout_keep_alive=KEPT_SECONDS,
        ws="websockets-sansio",
        ws_max_size=64 * 1024,
        ws_per_message_deflate=False,  # pictures are packed already
    )


def _url(listener: socket.socket, door: Door) -> str:
    if door.url:
        return door.url
    name, port = listener.getsockname()[:2]
    host = socket.gethostname() if name in ("0.0.0.0", "::") else str(name)
    host = f"[{host}]" if ":" in host else host
    return f"{'https' if door.secure else 'http'}://{host}:{port}"
