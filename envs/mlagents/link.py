"""The connection to an ML-Agents client: one exchange after the other.

Source: reference/animal-ai.md sections 6.1, 6.3 and 6.6.
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections.abc import Callable
from typing import Final, Self

from animalcat.envs.mlagents.http2 import Calls
from animalcat.envs.mlagents.v1 import communicator_pb2 as pb

METHOD: Final = "/communicator_objects.UnityToExternalProto/Exchange"
CONNECT_SECONDS: Final = 10.0
"""How long to look for the client: it may be started after the build."""
STOP_SECONDS: Final = 2.0
"""How long a client that is told of the end may take to close."""

_GOING_ON: Final = 200
_ENDING: Final = 400
_RETRY_SECONDS: Final = 0.1
_HUNG_UP: Final = getattr(select, "POLLRDHUP", select.POLLHUP)


class NobodyListensError(ConnectionError):
    """No client answers at the port."""


class ClientGoneError(ConnectionError):
    """The client went without closing."""


class ClientClosed(Exception):  # noqa: N818  an end, not an error
    """The client has closed its environment."""


class Link:
    """A client at a port of this machine. A context manager."""

    def __init__(self, port: int) -> None:
        """Prepare to connect.

        Args:
            port: Where the client listens.
        """
        self._port = port
        self._calls: Calls | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._calls is not None:
            self._calls.close()

    def connect(self, seconds: float | None = None) -> None:
        """Wait until the client is there.

        Args:
            seconds: How long; None for `CONNECT_SECONDS`.

        Raises:
            NobodyListensError: It was not.
        """
        seconds = CONNECT_SECONDS if seconds is None else seconds
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                self._calls = Calls(self._port, METHOD, left)
                return
            except OSError:
                time.sleep(min(_RETRY_SECONDS, left))
        raise NobodyListensError(
            f"nobody listens at localhost:{self._port} (tried for {seconds:g} s): start the "
            "Python client first, or give it the same port (base_port + worker_id)"
        )

    def exchange(self, output: pb.UnityOutput | None) -> pb.UnityInput:
        """Say something and wait for the answer.

        Args:
            output: What to say; None for a bare sign of life.

        Raises:
            ClientClosed: The answer is that the client closes.
            ClientGoneError: There is no client any more.
        """
        try:
            message = self._call(_GOING_ON, output)
        except OSError as error:
            raise ClientGoneError(
                f"the client went without closing its environment ({error})"
            ) from None
        if message.header.status != _GOING_ON:
            raise ClientClosed("the client closed its environment")
        return message.unity_input

    def on_gone(self, call: Callable[[], None]) -> None:
        """Learn from now on that the connection has ended, without an exchange.

        Args:
            call: What to call then, from another thread.
        """

        def watch() -> None:
            poll = select.poll()
            poll.register(self._connected(), _HUNG_UP)
            poll.poll()
            call()

        threading.Thread(target=watch, daemon=True).start()

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Tell the client that there is nothing more to come.

        Args:
            seconds: How long to wait for it to close.
        """
        # It has gone, or takes its time: both are its affair.
        with contextlib.suppress(OSError):
            self._call(_ENDING, None, seconds)

    def _call(
        self, status: int, output: pb.UnityOutput | None, seconds: float | None = None
    ) -> pb.UnityMessage:
        message = pb.UnityMessage(header=pb.Header(status=status), unity_output=output)
        answer = self._connected().call(message.SerializeToString(), seconds)
        return pb.UnityMessage.FromString(answer)

    def _connected(self) -> Calls:
        assert self._calls is not None, "connect first"
        return self._calls
