"""gRPC over HTTP/2, as much as one call after the other needs, in the thread that calls.

Source: RFC 9113 (frames and windows), RFC 7541 (headers) and gRPC's PROTOCOL-HTTP2. The other side
is grpcio's server in every client. Why not its own client: docs/design/unity.md, section Speed.
"""

from __future__ import annotations

import socket
import struct
from typing import Final, NamedTuple

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD: Final = struct.Struct(">HBBBI")
"""A frame's length in 24 bits, its kind, flags and stream."""
_PREFIX: Final = struct.Struct(">?I")
"""Of a gRPC message: whether it is compressed, and its length."""
_SETTING: Final = struct.Struct(">HI")

_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
_OF_CALLS: Final = (_DATA, _HEADERS, _RESET)
_ACK = _END_STREAM = 1
_END_HEADERS: Final = 4
_PADDED: Final = 8
_ENABLE_PUSH, _INITIAL_WINDOW, _MAX_FRAME_SIZE = 2, 4, 5

_FIRST_WINDOW: Final = 65_535
_FIRST_MAX_FRAME_SIZE: Final = 16_384
"""What holds until a side says otherwise; we leave the size of frames at that."""
_WINDOW: Final = 1 << 30
"""Bytes that the server may send ahead; half of it used up is given back."""
_LAST_STREAM: Final = (1 << 31) - 1


class CallError(ConnectionError):
    """The call or the connection ended without an answer."""


class _Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    body: bytes


class Calls:
    """Unary calls of one method of a server on this machine."""

    def __init__(self, port: int, method: str, seconds: float) -> None:
        """Connect, and hear that the server speaks HTTP/2.

        Args:
            port: Where it listens.
            method: Full name, "/package.Service/Method".
            seconds: How long to wait for either.

        Raises:
            OSError: Nobody is there, or it does not speak.
        """
        fields = {
            ":method": "POST",
            ":scheme": "http",
            ":path": method,
            ":authority": f"localhost:{port}",
            "te": "trailers",
            "content-type": "application/grpc",
        }
        self._headers = b"".join(_literal(*field) for field in fields.items())
        self._port = port
        self._open(seconds)

    def call(self, message: bytes, seconds: float | None = None) -> bytes:
        """The answer to a message.

        Args:
            message: The request, serialised.
            seconds: How long the server may be silent; None: for ever.

        Raises:
            OSError: The server is gone, ends the call (`CallError`) or is silent (`TimeoutError`).
        """
        if self._stream + 2 > _LAST_STREAM:  # after a billion calls
            self.close()
            self._open(seconds)
        self._socket.settimeout(seconds)
        self._stream += 2
        self._call_room = self._first_room
        self._say(_PREFIX.pack(False, len(message)) + message)
        answer = bytearray()
        while True:
            frame = self._hear()
            if not self._is_of_call(frame):
                continue
            if frame.kind == _DATA:
                answer += _unpadded(frame)
            if frame.kind == _RESET or frame.flags & _END_STREAM:
                break
        if not answer.startswith(_PREFIX.pack(False, max(len(answer) - _PREFIX.size, 0))):
            raise CallError("the call ended without an answer")
        return bytes(answer[_PREFIX.size :])

    def fileno(self) -> int:
        """The connection's file descriptor, for those who watch it."""
        return self._socket.fileno()

    def close(self) -> None:
        """Leave; calling it twice is fine."""
        self._reader.close()
        self._socket.close()

    def _open(self, seconds: float | None) -> None:
        self._socket = socket.create_connection(("localhost", self._port), seconds)
        self._reader = self._socket.makefile("rb")
        self._stream = -1  # a client's are odd
        self._max_frame_size = _FIRST_MAX_FRAME_SIZE
        self._first_room = self._room = _FIRST_WINDOW  # of each call, and of all together
        self._call_room = 0
        self._heard = 0
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ours = _SETTING.pack(_ENABLE_PUSH, 0) + _SETTING.pack(_INITIAL_WINDOW, _WINDOW)
            more = _window_update(_WINDOW - _FIRST_WINDOW)
            self._socket.sendall(_PREFACE + _frame(_SETTINGS, 0, 0, ours) + more)
            while self._hear().kind != _SETTINGS:
                pass
        except BaseException:
            self.close()
            raise

    def _say(self, data: bytes) -> None:
        """Send the headers and the data of a call, as the server makes room for it."""
        out = _frame(_HEADERS, _END_HEADERS, self._stream, self._headers)
        start = 0
        while start < len(data):
            room = min(self._room, self._call_room)
            if room <= 0:
                self._socket.sendall(out)
                out = b""
                if self._is_of_call(self._hear()):
                    raise CallError("the call was ended before all of it was sent")
                continue
            part = data[start : start + min(room, self._max_frame_size)]
            start += len(part)
            self._room -= len(part)
            self._call_room -= len(part)
            last = _END_STREAM if start == len(data) else 0
            out += _frame(_DATA, last, self._stream, part)
        self._socket.sendall(out)

    def _hear(self) -> _Frame:
        """The next frame; what concerns the connection is seen to already."""
        high, low, kind, flags, stream = _HEAD.unpack(self._read(_HEAD.size))
        size = high << 8 | low
        if size > _FIRST_MAX_FRAME_SIZE:
            raise CallError(f"a frame of {size} bytes: that is not HTTP/2")
        frame = _Frame(kind, flags, stream, self._read(size))
        if kind == _DATA:
            self._heard += size
            if self._heard > _WINDOW // 2:
                self._socket.sendall(_window_update(self._heard))
                self._heard = 0
        elif kind == _WINDOW_UPDATE:
            more = int.from_bytes(frame.body, "big")
            if stream == 0:
                self._room += more
            elif stream == self._stream:
                self._call_room += more
        elif kind == _SETTINGS and not flags & _ACK:
            self._heed(frame.body)
            self._socket.sendall(_frame(_SETTINGS, _ACK, 0))
        elif kind == _PING and not flags & _ACK:
            self._socket.sendall(_frame(_PING, _ACK, 0, frame.body))
        # GOAWAY needs nothing: the call that is open is answered or reset, then the server closes.
        return frame

    def _heed(self, settings: bytes) -> None:
        for name, value in _SETTING.iter_unpack(settings):
            if name == _INITIAL_WINDOW:
                self._call_room += value - self._first_room
                self._first_room = value
            elif name == _MAX_FRAME_SIZE:
                self._max_frame_size = value

    def _is_of_call(self, frame: _Frame) -> bool:
        return frame.stream == self._stream and frame.kind in _OF_CALLS

    def _read(self, size: int) -> bytes:
        data = self._reader.read(size)
        if len(data) < size:
            raise CallError("the server has closed the connection")
        return data


def _frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    return _HEAD.pack(len(body) >> 8, len(body) & 255, kind, flags, stream) + body


def _window_update(more: int) -> bytes:
    return _frame(_WINDOW_UPDATE, 0, 0, more.to_bytes(4, "big"))


def _unpadded(frame: _Frame) -> bytes:
    return frame.body[1 : -frame.body[0] or None] if frame.flags & _PADDED else frame.body


def _literal(name: str, value: str) -> bytes:
    """A header field that is not to be remembered; both are shorter than 127 bytes."""
    return b"\0" + b"".join(bytes((len(text),)) + text.encode() for text in (name, value))
