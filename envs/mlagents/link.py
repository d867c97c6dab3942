"""The connection to an ML-Agents client, by request and answer.

Source: reference/animal-ai.md sections 6.1, 6.3 and 6.6.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final, Self

import grpc

from animalcat.envs.mlagents.v1 import communicator_pb2 as pb

METHOD: Final = "/communicator_objects.UnityToExternalProto/Exchange"
CONNECT_SECONDS: Final = 10.0
"""How long to wait for the client, which may be started after the build."""
STOP_SECONDS: Final = 2.0
"""How long a client may take to close after it is told of the end."""

_GOING_ON: Final = 200
_ENDING: Final = 400
_OPTIONS: Final = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.max_receive_message_length", -1),  # the client sets the limit
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class NobodyListensError(ConnectionError):
    """No client answers at the port."""


class ClientGoneError(ConnectionError):
    """The client disappeared without closing its environment."""


class ClientClosed(Exception):  # noqa: N818  an end, not an error
    """The client has closed its environment."""


class ClientConnection:
    """A connection to the client at a port of this machine; a context manager."""

    def __init__(self, port: int) -> None:
        """Prepare to connect.

        Args:
            port: Where the client listens.
        """
        self._port = port
        self._channel = grpc.insecure_channel(f"localhost:{port}", options=_OPTIONS)
        self._call: Any = self._channel.unary_unary(
            METHOD,
            request_serializer=pb.UnityMessage.SerializeToString,
            response_deserializer=pb.UnityMessage.FromString,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def connect(self, seconds: float | None = None) -> None:
        """Wait until the client listens.

        Args:
            seconds: How long to wait; None for `CONNECT_SECONDS`.

        Raises:
            NobodyListensError: The client did not listen in time.
        """
        seconds = CONNECT_SECONDS if seconds is None else seconds
        try:
            grpc.channel_ready_future(self._channel).result(timeout=seconds)
        except grpc.FutureTimeoutError:
            raise NobodyListensError(
                f"nobody listens at localhost:{self._port} (tried for {seconds:g} s): start the "
                "Python client first, or give it the same port (base_port + worker_id)"
            ) from None

    def exchange(self, output: pb.UnityOutput | None) -> pb.UnityInput:
        """Send a message and wait for the answer.

        Args:
            output: The message; None for a bare sign of life.

        Raises:
            ClientClosed: The client answers that it closes its environment.
            ClientGoneError: The client is gone.
        """
        try:
            message: pb.UnityMessage = self._call(_message(_GOING_ON, output))
        except grpc.RpcError as error:
            raise ClientGoneError(_words_of_leaving(error)) from None
        if message.header.status != _GOING_ON:
            raise ClientClosed("the client closed its environment")
        return message.unity_input

    def on_gone(self, call: Callable[[], None]) -> None:
        """Be notified when the connection ends outside an exchange.

        Args:
            call: Called then, from another thread.
        """

        def look(state: grpc.ChannelConnectivity) -> None:
            if state is not grpc.ChannelConnectivity.READY:
                self._channel.unsubscribe(look)
                call()

        self._channel.subscribe(look)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Tell the client that nothing more will come.

        Args:
            seconds: How long to wait for it to close.
        """
        # It is gone or slow to close; neither is an error here.
        with contextlib.suppress(grpc.RpcError):
            self._call(_message(_ENDING, None), timeout=seconds)


def _message(status: int, output: pb.UnityOutput | None) -> pb.UnityMessage:
    return pb.UnityMessage(header=pb.Header(status=status), unity_output=output)


def _words_of_leaving(error: Any) -> str:
    return f"the client went without closing its environment ({error.code().name.lower()})"
