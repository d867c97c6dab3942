"""Offers the pages: on the event loop of a server, or for as long as a command runs."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import uvicorn

from animalcat.service.access.tokens import FOLDER
from animalcat.service.host.listeners import Budget, Listeners, descriptors
from animalcat.service.refusals import Refusals
from animalcat.service.web.application import MakePart, create_app
from animalcat.service.web.guard import Door, own_hosts
from animalcat.service.web.parts import all_parts
from animalcat.service.web.site import Served, Site
from animalcat.service.web.visits import PURPOSE, UsedHere, UsedOnDisk, Visits, link_to

if TYPE_CHECKING:
    from starlette.types import ASGIApp

log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 1000
"""Most connections of browsers at once; further ones are told to come again."""
_WAITING: Final = 2048
"""Connections that may wait to be taken, as many as uvicorn lets wait."""
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
    listener = _listener(host, port)
    used = UsedOnDisk(settings.home / FOLDER)
    visits = Visits(gate.tickets.key_for(PURPOSE), used, gate.tokens)
    names = settings.host_names
    hosts = own_hosts(host, listener.getsockname()[1], names)
    door = Door(hosts, settings.web_url, settings.tls)
    listeners.ports.add(listener.getsockname()[1])
    site = Site(visits, door, served, listeners)
    async with _running(create_app(site, all_parts()), listener, site, tls):
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
    listener = _listener(*address)
    door = Door(own_hosts(address[0], listener.getsockname()[1]), url)
    listeners = Listeners(Budget.of(descriptors(), MOST_CONNECTIONS), Refusals())
    listeners.ports.add(listener.getsockname()[1])
    site = Site(visits, door, listeners=listeners)
    watching = asyncio.create_task(listeners.watch())
    try:
        async with _running(create_app(site, parts), listener, site):
            yield Pages(_url(listener, door), visits.ticket)
    finally:
        watching.cancel()


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
    config = uvicorn.Config(
        app,
        access_log=False,
        date_header=False,
        h11_max_incomplete_event_size=64 * 1024,
        lifespan="off",
        limit_concurrency=MOST_CONNECTIONS,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_SECONDS,
        timeout_keep_alive=30,
        ws="websockets-sansio",
        ws_max_size=64 * 1024,
        ws_per_message_deflate=False,  # pictures are packed already
    )
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


def _listener(host: str, port: int) -> socket.socket:
    """Listen at an address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        # Whoever comes before the pages are served waits; nobody is refused.
        listener.listen(_WAITING)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        error.filename = f"{host}:{port}"
        raise
    return listener


def _url(listener: socket.socket, door: Door) -> str:
    if door.url:
        return door.url
    name, port = listener.getsockname()[:2]
    host = socket.gethostname() if name in ("0.0.0.0", "::") else str(name)
    host = f"[{host}]" if ":" in host else host
    return f"{'https' if door.secure else 'http'}://{host}:{port}"
