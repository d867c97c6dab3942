"""Finds the server that a command is to talk to, and starts a private one where there is none."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from animalcat.service.lock import running_server
from animalcat.service.server import create_server
from animalcat.service.settings import Settings


@contextmanager
def server_for(address: str | None, data: Path | None = None) -> Generator[str]:
    """The address of a server.

    A given address, else the server that works on the data directory, else a private server on a
    free port of this machine. The private one runs in a thread of this process: it dies with the
    process, however that ends, and Ctrl-C reaches the command alone, which leaves this block and
    so lets the server store what is open.

    Args:
        address: Host and port of a server, if one was given.
        data: The data directory; by default that of the settings.

    Raises:
        See `animalcat.service.server.create_server`.
    """
    if address:
        yield address
        return
    settings = Settings() if data is None else Settings(home=data)
    holder = running_server(settings.home)
    if holder is not None and holder.address:
        yield holder.address
        return
    private = _Private(settings.model_copy(update={"host": "127.0.0.1", "port": 0}))
    try:
        yield private.start()
    finally:
        private.stop()


class _Private:
    """A server on an event loop in a thread of its own."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ready = threading.Event()
        self._address = ""
        self._error: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="animalcat server", daemon=True)

    def start(self) -> str:
        """Start it; the address once it answers calls."""
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error
        return self._address

    def stop(self) -> None:
        """Stop it and wait until all is stored; a second Ctrl-C does not wait."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with create_server(self._settings) as server:
            self._address = server.address
            self._ready.set()
            await self._stop.wait()
