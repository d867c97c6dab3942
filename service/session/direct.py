"""Lets an agent come to the worker that simulates its episode, without the server between.

The worker listens at an address of its own for each episode, and lets in whoever shows the ticket.
Its frames are documented in `gateway.proto`.
"""

from __future__ import annotations

import hmac
import os
import secrets
import select
import socket
import struct
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from google.protobuf.message import DecodeError

from animalcat.envs.messages import MessageKind
from animalcat.envs.worker import receive
from animalcat.service.session.link import AgentLeftError
from animalcat.service.session.turns import FrameError
from animalcat.v1 import gateway_pb2
from animalcat.values import Cause

MAX_FRAME: Final = 64 * 1024
"""Most bytes of a frame of the agent."""
MAX_CALLERS: Final = 16
"""Most connections that may stand at the door without having shown the ticket."""
TICKET_SECONDS: Final = 5.0
"""Seconds within which a connection must show the ticket."""
UNIX: Final = "unix:"
"""Beginning of the address of a unix socket."""

_LENGTH: Final = struct.Struct(">I")


class ConnectionBrokeError(Exception):
    """The agent's connection broke, which by itself ends nothing."""


class RecalledError(Exception):
    """The server wants the agent to go on over its stream."""


class PlayStoppedError(Exception):
    """The server ends the play, or is gone.

    Attributes:
        waited: Seconds that the agent has had for the action that is due; below 0 where the worker
            looks at the clock.
    """

    def __init__(self, waited: float = -1.0) -> None:
        self.waited = waited
        super().__init__("the play is stopped")


class Connection:
    """The connection of the agent, once its ticket was seen."""

    def __init__(self, connection: socket.socket, server: socket.socket, early: bytes) -> None:
        self._connection = connection
        self._server = server
        self._buffer = bytearray(early)
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll = select.poll()
        self._poll.register(server, select.POLLIN)
        self._recall = select.poll()
        self._recall.register(server, select.POLLIN)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def read(self, deadline: float) -> gateway_pb2.EvaluateRequest:
        """Wait for the next frame.

        Raises:
            FrameError: It is no frame.
            AgentLeftError: None came in time, or it is too long.
            ConnectionBrokeError: The connection broke.
            RecalledError: The agent is to go on by way of the server.
            StoppedError: The server ends the play.
        """
        while True:
            if self._recall.poll(0):  # also while the agent never lets the worker wait
                raise_recalled(self._server)
            frame = cut_frame(self._buffer)
            if frame is not None:
                return parse_frame(frame)
            try:
                data = self._connection.recv(MAX_FRAME)
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
                continue
            except OSError:
                raise ConnectionBrokeError from None
            if not data:
                raise ConnectionBrokeError
            self._buffer += data

    def send(self, frame: gateway_pb2.EvaluateResponse, deadline: float) -> None:
        """Send a frame.

        Raises:
            AgentLeftError: The agent did not take it in time.
            ConnectionBrokeError: The connection broke.
            RecalledError: The agent is to go on by way of the server.
            StoppedError: The server ends the play.
        """
        data = frame_bytes(frame)
        while data:
            try:
                sent = self._connection.send(data)
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
                continue
            except OSError:
                raise ConnectionBrokeError from None
            data = data[sent:] if sent < len(data) else b""

    def _wait(self, event: int, deadline: float) -> None:
        self._poll.register(self._connection, event)
        ready = self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not ready:
            raise AgentLeftError(Cause.ACTION_TIMEOUT)
        if any(fd == self._server.fileno() for fd, _ in ready):
            raise_recalled(self._server)


class Door:
    """Where connections come in, until one shows the ticket."""

    def __init__(self, listener: socket.socket, server: socket.socket, ticket: bytes) -> None:
        self._listener = listener
        self._server = server
        self._ticket = ticket
        self._callers: dict[int, tuple[socket.socket, bytearray, float]] = {}

    def admit(self, deadline: float) -> Connection:
        """Wait for the agent.

        Raises:
            AgentLeftError: It did not come in time.
            RecalledError: The agent is to go on by way of the server.
            StoppedError: The server ends the play.
        """
        poll = select.poll()
        poll.register(self._server, select.POLLIN)
        poll.register(self._listener, select.POLLIN)
        try:
            while (now := time.monotonic()) < deadline:
                ends = [deadline, *(until for _, _, until in self._callers.values())]
                for fd, _ in poll.poll(max(0.0, min(ends) - now) * 1000 + 1):
                    if fd == self._server.fileno():
                        raise_recalled(self._server)
                    elif fd == self._listener.fileno():
                        self._open(poll)
                    elif (agent := self._hear(fd, poll)) is not None:
                        return agent
                for fd, (_, _, until) in list(self._callers.items()):
                    if until <= time.monotonic():
                        self._turn_away(fd, poll)
            raise AgentLeftError(Cause.ACTION_TIMEOUT)
        finally:
            for connection, _, _ in self._callers.values():
                connection.close()

    def _open(self, poll: select.poll) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has gone again
            return
        if len(self._callers) >= MAX_CALLERS:
            connection.close()
            return
        connection.setblocking(False)
        until = time.monotonic() + TICKET_SECONDS
        self._callers[connection.fileno()] = (connection, bytearray(), until)
        poll.register(connection, select.POLLIN)

    def _hear(self, fd: int, poll: select.poll) -> Connection | None:
        """Read what a caller says; it is the agent if it shows the ticket."""
        connection, buffer, _ = self._callers[fd]
        try:
            data = connection.recv(MAX_FRAME)
            buffer += data
            frame = cut_frame(buffer)
            shown = None if frame is None else parse_frame(frame).ticket.ticket
        except BlockingIOError:
            return None
        except (OSError, FrameError, AgentLeftError):
            data, shown = b"", None
        if shown is not None and hmac.compare_digest(shown, self._ticket):
            del self._callers[fd]
            return Connection(connection, self._server, bytes(buffer))
        if not data or shown is not None:
            self._turn_away(fd, poll)
        return None

    def _turn_away(self, fd: int, poll: select.poll) -> None:
        poll.unregister(fd)
        self._callers.pop(fd)[0].close()


def frame_bytes(frame: gateway_pb2.EvaluateResponse | gateway_pb2.EvaluateRequest) -> bytes:
    """Return a frame as it travels: its length in four bytes, then the frame."""
    data = frame.SerializeToString()
    return _LENGTH.pack(len(data)) + data


def cut_frame(buffer: bytearray) -> bytes | None:
    """Take the first frame out of a buffer; None if it is not complete.

    Raises:
        AgentLeftError: It is too long.
    """
    if len(buffer) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack_from(buffer)
    if length > MAX_FRAME:
        raise AgentLeftError(Cause.BAD_FRAMES)
    end = _LENGTH.size + length
    if len(buffer) < end:
        return None
    frame = bytes(buffer[_LENGTH.size : end])
    del buffer[:end]
    return frame


def parse_frame(data: bytes) -> gateway_pb2.EvaluateRequest:
    """Return the frame of an agent.

    Raises:
        FrameError: It is none.
    """
    try:
        return gateway_pb2.EvaluateRequest.FromString(data)
    except DecodeError:
        raise FrameError("BAD_FRAME", "the frame is no EvaluateRequest") from None


def raise_recalled(server: socket.socket) -> None:
    """Take RECALL or STOP from the server's connection, where nothing else may come now."""
    message = receive(server)
    if message is None or message[0] is MessageKind.STOP:
        raise PlayStoppedError  # None: the server is gone
    raise RecalledError


@contextmanager
def listening(place: str) -> Generator[tuple[socket.socket, str]]:
    """Listen at an address of the network, or in a folder; yields the socket and where it is.

    Raises:
        OSError: One cannot listen there.
    """
    if place.startswith(UNIX):
        path = f"{place.removeprefix(UNIX)}/{secrets.token_hex(8)}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            try:
                os.chmod(path, 0o666)  # also agents that run as another user; the ticket counts
                listener.listen(MAX_CALLERS)
                listener.setblocking(False)
                yield listener, f"{UNIX}{path}"
            finally:
                os.unlink(path)
        return
    family = socket.AF_INET6 if ":" in place else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((place, 0))
        listener.listen(MAX_CALLERS)
        listener.setblocking(False)
        host, port = listener.getsockname()[:2]
        yield listener, f"{host}:{port}"
