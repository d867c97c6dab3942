"""Calls against grpcio's own server, and against frames that it seldom sends."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import grpc
import pytest

from animalcat.envs.mlagents.http2 import CallError, Calls

METHOD = "/tests.Echo/Say"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
ACK = END_STREAM = 1
END_HEADERS = 4
PADDED = 8

Answer = Callable[[bytes, Any], bytes]


@contextmanager
def serving(answer: Answer) -> Iterator[tuple[int, grpc.Server]]:
    """A grpcio server of one method, as ML-Agents' clients have, and its port."""
    options = [("grpc.max_receive_message_length", -1)]
    server = grpc.server(ThreadPoolExecutor(2), options=options)
    handlers = {"Say": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_registered_method_handlers("tests.Echo", handlers)
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield port, server
    finally:
        server.stop(None).wait()


def echo(message: bytes, context: Any) -> bytes:
    return message


@pytest.mark.parametrize("size", [0, 1, 16_379, 16_380, 65_531, 3_000_000])
def test_messages_of_any_size_go_there_and_back(size: int) -> None:
    message = bytes(range(256)) * (size // 256) + bytes(size % 256)
    with serving(echo) as (port, _), closing(Calls(port, METHOD, 5)) as calls:
        for _ in range(3):
            assert calls.call(message) == message
        assert calls.call(b"and on") == b"and on"


def test_many_calls_use_no_window_up() -> None:
    with serving(echo) as (port, _), closing(Calls(port, METHOD, 5)) as calls:
        for number in range(300):
            message = number.to_bytes(2, "big") * 1_000
            assert calls.call(message) == message


def test_a_call_that_the_server_refuses_has_no_answer() -> None:
    def refuse(message: bytes, context: grpc.ServicerContext) -> bytes:
        context.abort(grpc.StatusCode.INTERNAL, "no")

    with (
        serving(refuse) as (port, _),
        closing(Calls(port, METHOD, 5)) as calls,
        pytest.raises(CallError, match="without an answer"),
    ):
        calls.call(b"?")


def test_a_method_that_does_not_exist_has_no_answer() -> None:
    with (
        serving(echo) as (port, _),
        closing(Calls(port, "/tests.Echo/Sing", 5)) as calls,
        pytest.raises(CallError),
    ):
        calls.call(b"?" * 1_000_000)


def test_a_server_that_stops_in_a_call_ends_it() -> None:
    asked, done = threading.Event(), threading.Event()

    def wait(message: bytes, context: Any) -> bytes:
        asked.set()
        done.wait(20)
        return b""

    with (
        serving(wait) as (port, server),
        closing(Calls(port, METHOD, 5)) as calls,
        ThreadPoolExecutor(1) as thread,
    ):
        call = thread.submit(calls.call, b"?")
        assert asked.wait(20)
        server.stop(None)
        with pytest.raises(ConnectionError):
            call.result(20)
        done.set()


def test_a_silent_server_is_waited_for_as_long_as_asked() -> None:
    done = threading.Event()

    def wait(message: bytes, context: Any) -> bytes:
        done.wait(20)
        return b""

    with serving(wait) as (port, _), closing(Calls(port, METHOD, 5)) as calls:
        with pytest.raises(TimeoutError):
            calls.call(b"?", 0.05)
        done.set()


def test_nobody_there_is_an_error() -> None:
    with socket.socket() as bound:
        bound.bind(("localhost", 0))
        with pytest.raises(OSError, match="refused"):
            Calls(bound.getsockname()[1], METHOD, 1)


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


class Scripted:
    """The server's side of a connection, byte by byte."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._reader = connection.makefile("rb")

    def greeted(self, settings: bytes = b"") -> None:
        assert self._reader.read(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        self.say(frame(SETTINGS, 0, 0, settings))

    def say(self, *frames: bytes) -> None:
        self.connection.sendall(b"".join(frames))

    def hear(self, kind: int) -> tuple[int, int, bytes]:
        """Flags, stream and body of the next frame of a kind."""
        while True:
            head = self._reader.read(9)
            size, (found, flags, stream) = head[:3], struct.unpack(">BBI", head[3:])
            body = self._reader.read(int.from_bytes(size, "big"))
            if found == kind:
                return flags, stream, body

    def hear_call(self) -> tuple[int, bytes]:
        """Stream and data of the next call."""
        whole = b""
        while True:
            flags, stream, body = self.hear(DATA)
            whole += body
            if flags & END_STREAM:
                return stream, whole

    def answer(self, stream: int, message: bytes) -> None:
        data = struct.pack(">?I", False, len(message)) + message
        self.say(
            frame(HEADERS, END_HEADERS, stream, b"\x88"),
            frame(DATA, 0, stream, data),
            frame(HEADERS, END_HEADERS | END_STREAM, stream),
        )


@contextmanager
def scripted(*scripts: Callable[[Scripted], None]) -> Iterator[int]:
    """A port where each connection in turn meets a script; fails where one does."""

    def run(listener: socket.socket) -> None:
        for script in scripts:
            connection, _ = listener.accept()
            connection.settimeout(20)
            with connection:
                script(Scripted(connection))

    with (
        socket.create_server(("localhost", 0), family=_family()) as listener,
        ThreadPoolExecutor(1) as thread,
    ):
        played = thread.submit(run, listener)
        yield int(listener.getsockname()[1])
        played.result(20)


def _family() -> socket.AddressFamily:
    return socket.getaddrinfo("localhost", 0)[0][0]


def test_what_is_no_http2_is_an_error() -> None:
    def script(server: Scripted) -> None:
        server.say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        server.connection.recv(1000)

    with scripted(script) as port, pytest.raises(CallError, match="not HTTP/2"):
        Calls(port, METHOD, 5)


def test_pings_are_answered_and_padding_is_taken_off() -> None:
    def script(server: Scripted) -> None:
        server.greeted()
        stream, _ = server.hear_call()
        server.say(frame(PING, 0, 0, b"8 bytes!"), frame(PING, ACK, 0, bytes(8)))
        assert server.hear(PING)[2] == b"8 bytes!"
        message = struct.pack(">?I", False, 3) + b"yes"
        server.say(
            frame(HEADERS, END_HEADERS, stream, b"\x88"),
            frame(DATA, PADDED, stream, b"\x04" + message[:6] + bytes(4)),
            frame(DATA, PADDED | END_STREAM, stream, b"\x00" + message[6:]),
        )

    with scripted(script) as port, closing(Calls(port, METHOD, 5)) as calls:
        assert calls.call(b"?") == b"yes"


def test_no_more_is_sent_than_there_is_room_for() -> None:
    def script(server: Scripted) -> None:
        server.greeted(struct.pack(">HIHI", 4, 10, 5, 20_000))
        server.hear(HEADERS)
        # 5 bytes of prefix and 5 of the message fit; then the window is made smaller yet.
        assert len(server.hear(DATA)[2]) == 10
        server.say(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 4)))
        server.say(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 8)))
        assert len(server.hear(DATA)[2]) == 2
        server.say(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 1_000_000)))
        sizes = [20_000, 20_000, 20_000, 5_523]  # up to the 65,535 of the connection
        assert [len(server.hear(DATA)[2]) for _ in sizes] == sizes
        server.say(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1_000_000)))
        flags, stream, body = server.hear(DATA)
        assert (flags, len(body)) == (END_STREAM, 14_470)
        server.answer(stream, b"all")

    with scripted(script) as port, closing(Calls(port, METHOD, 5)) as calls:
        assert calls.call(bytes(80_000)) == b"all"


def test_a_call_that_is_reset_while_it_waits_for_room_ends() -> None:
    def script(server: Scripted) -> None:
        server.greeted(struct.pack(">HI", 4, 0))
        _, stream, _ = server.hear(HEADERS)
        server.say(frame(RESET, 0, stream, bytes(4)))

    with (
        scripted(script) as port,
        closing(Calls(port, METHOD, 5)) as calls,
        pytest.raises(CallError, match="before all of it"),
    ):
        calls.call(b"?")


def test_when_the_numbers_of_calls_are_used_up_there_is_another_connection() -> None:
    def last(server: Scripted) -> None:
        server.greeted()
        stream, _ = server.hear_call()
        assert stream == 2**31 - 1
        server.answer(stream, b"last")

    def first(server: Scripted) -> None:
        server.greeted()
        stream, _ = server.hear_call()
        assert stream == 1
        server.answer(stream, b"first")

    with scripted(last, first) as port, closing(Calls(port, METHOD, 5)) as calls:
        calls._stream = 2**31 - 3
        assert calls.call(b"?") == b"last"
        assert calls.call(b"?") == b"first"


def test_the_servers_window_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("animalcat.envs.mlagents.http2._WINDOW", 100_000)

    def script(server: Scripted) -> None:
        server.greeted()
        assert server.hear(WINDOW_UPDATE)[2] == struct.pack(">I", 100_000 - 65_535)
        for _ in range(6):
            server.answer(server.hear_call()[0], bytes(9_995))
        assert server.hear(WINDOW_UPDATE)[1:] == (0, struct.pack(">I", 60_000))

    with scripted(script) as port, closing(Calls(port, METHOD, 5)) as calls:
        for _ in range(6):
            assert calls.call(b"?") == bytes(9_995)
