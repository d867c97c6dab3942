"""A TCP proxy that cuts connections, at once or as the next bytes pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Literal

Way = Literal["now", "up", "down"]
"""When to cut: at once, or instead of passing on the next bytes to the server, or from it."""


class Cutter:
    """Passes on what comes, to one address.

    Attributes:
        address: Where to connect.
        cuts: How often connections were cut.
        down: Whether it accepts connections only to cut them.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host.strip("[]"), int(port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._armed: Way | None = None
        self.cuts = 0
        self.down = False
        self.address = ""

    def cut(self, way: Way = "now") -> None:
        """Cut all connections, now or as soon as bytes pass that way."""
        if way != "now":
            self._armed = way
            return
        self._armed = None
        self.cuts += 1
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.down:
            writer.transport.abort()
            return
        try:
            other, onward = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, onward}
        try:
            await asyncio.gather(
                self._pass(reader, onward, "up"), self._pass(other, writer, "down")
            )
        finally:
            for one in (writer, onward):
                one.close()
                self._writers.discard(one)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                if self._armed == way:
                    self.cut()
                    return
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def cutting(target: str) -> AsyncGenerator[Cutter]:
    """A proxy before an address, for the block."""
    cutter = Cutter(target)
    server = await asyncio.start_server(cutter._serve, "127.0.0.1", 0)  # pyright: ignore[reportPrivateUsage]
    cutter.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield cutter
    finally:
        server.close()
        cutter.cut()
