"""The socket over which an agent plays one episode with the worker that simulates it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import struct
from typing import Final

from google.protobuf.message import DecodeError

from animalcat.machine.networks import VARIABLE, parse_networks, within
from animalcat.v1 import gateway_pb2

OPEN_SECONDS: Final = 10.0
"""How long the worker may take to answer the ticket; otherwise the episode goes over the stream."""
_MOST: Final = 64 * 1024 * 1024
_LENGTH: Final = struct.Struct(">I")


class DirectError(Exception):
    """The worker cannot be reached from here."""


class DirectPlay(asyncio.BufferedProtocol):
    """A connection to a worker.

    It is a buffered protocol rather than asyncio's streams, which halves what a step costs here.
    """

    def __init__(self) -> None:
        self._buffer = bytearray(1 << 15)
        self._filled = 0
        self._frames: list[gateway_pb2.EvaluateResponse] = []
        self._waiting: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, offer: gateway_pb2.Direct) -> DirectPlay:
        """Connect and show the ticket.

        Args:
            offer: Where the episode can be played, and the ticket.

        Raises:
            DirectError: Nobody there takes the ticket.
        """
        host, _, port = offer.address.rpartition(":")
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                if host == "unix":
                    _, self = await loop.create_unix_connection(cls, port)
                elif _is_reachable(host) and port.isdecimal():
                    _, self = await loop.create_connection(cls, host.strip("[]"), int(port))
                else:
                    raise DirectError(
                        f"{offer.address} is neither on this machine nor in {VARIABLE}"
                    )
        except (OSError, TimeoutError) as error:
            raise DirectError(str(error)) from error
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                ticket = gateway_pb2.Ticket(ticket=offer.ticket)
                self.send(gateway_pb2.EvaluateRequest(ticket=ticket))
                # It shows the first observation once more.
                if (first := await self.receive()) is None or not first.HasField("ask"):
                    raise DirectError(f"what listens at {offer.address} does not take the ticket")
        except (DirectError, TimeoutError) as error:
            self.close()
            raise DirectError(str(error)) from error
        except BaseException:
            self.close()
            raise
        return self

    def send(self, frame: gateway_pb2.EvaluateRequest) -> None:
        """Send a frame; nothing happens where the connection is gone, and `receive` says so."""
        if self._transport is not None:
            data = frame.SerializeToString()
            self._transport.write(_LENGTH.pack(len(data)) + data)

    async def receive(self) -> gateway_pb2.EvaluateResponse | None:
        """The next frame; None when the worker has closed the connection."""
        while not self._frames:
            if self._transport is None:
                return None
            self._waiting = self._loop.create_future()
            await self._waiting
        return self._frames.pop(0)

    def close(self) -> None:
        """Close the connection; calling it twice is fine."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport; asyncio calls it."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to put what comes; asyncio calls it."""
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Cut frames out of what has come; asyncio calls it."""
        self._filled += nbytes
        while self._filled >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if length > _MOST:
                self.close()
                return
            if end > len(self._buffer):
                self._buffer = self._buffer[: self._filled] + bytes(end - self._filled)
            if self._filled < end:
                return
            data = bytes(memoryview(self._buffer)[_LENGTH.size : end])
            self._filled -= end
            if self._filled:
                self._buffer[: self._filled] = self._buffer[end : end + self._filled]
            try:
                self._frames.append(gateway_pb2.EvaluateResponse.FromString(data))
            except DecodeError:
                self.close()
                return
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Notice the end of the connection; asyncio calls it."""
        self._transport = None
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def _is_reachable(host: str) -> bool:
    """Whether frames may go to an address without encryption."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host.strip("[]")).is_loopback:
            return True
    try:
        networks = parse_networks(os.environ.get(VARIABLE, ""))
    except ValueError as error:
        raise DirectError(str(error)) from error
    return within(host, networks)
