"""A channel to a server, and how blocking code waits for what happens on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, Self, TypeVar

import grpc

from animalcat.client.credentials import Credentials, credentials, is_local
from animalcat.errors import CODE_METADATA, AnimalcatError, from_rpc

_T = TypeVar("_T")

CONNECT_SECONDS: Final = 10.0
"""How long a server may take to answer that it serves."""

_MAX_MESSAGE: Final = 64 * 1024 * 1024
_SERVICE: Final = b"animalcat.v1.AgentGateway"
_ASKED: Final = bytes((0x0A, len(_SERVICE))) + _SERVICE
# HealthCheckRequest{service}: of a service, which serves also while the disk has no room.
_SERVING: Final = b"\x08\x01"
# HealthCheckResponse{status: SERVING}; by hand, because its package is not in the base install.


async def open_channel(
    address: str, wait_seconds: float = 0.0, shown: Credentials | None = None
) -> grpc.aio.Channel:
    """Open a channel to a server that serves; it belongs to the running event loop.

    Args:
        address: "host:port", or "unix:PATH".
        wait_seconds: How long to wait for a server that is still starting.
        shown: What to show to the server, and how it is known; None: what the environment says.

    Raises:
        AnimalcatError: Nothing listens there, or what listens is no animalcat server.
    """
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", _MAX_MESSAGE),
        ("grpc.max_send_message_length", _MAX_MESSAGE),
        # An agent whose connection broke has to be back within its lease.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2_000),
    ]
    if is_local(address):
        options.append(("grpc.enable_http_proxy", 0))
    shown = credentials() if shown is None else shown
    if shown.speaks_tls(address):
        # In a thread: it may ask the server for its certificate.
        secured = await asyncio.to_thread(shown.channel, address)
        channel = grpc.aio.secure_channel(address, secured, options=options)
    else:
        channel = grpc.aio.insecure_channel(address, options=options)
    if metadata := shown.metadata():
        channel = AuthorisedChannel(channel, metadata)
    try:
        await _check(channel, address, wait_seconds)
    except BaseException:
        await channel.close()
        raise
    return channel


class AuthorisedChannel(grpc.aio.Channel):
    """A channel that sends the same metadata with every call.

    gRPC's own interceptors could do that too, but they would also handle every frame of a stream.
    """

    def __init__(self, channel: grpc.aio.Channel, metadata: tuple[tuple[str, str], ...]) -> None:
        """Wrap a channel.

        Args:
            channel: The channel; closed with this one.
            metadata: What to send.
        """
        self._channel: Any = channel
        self._metadata = metadata

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Close the channel."""
        await self._channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """See `grpc.aio.Channel`."""
        return self._channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """See `grpc.aio.Channel`."""
        await self._channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """See `grpc.aio.Channel`."""
        await self._channel.channel_ready()

    def unary_unary(self, *arguments: Any, **named: Any) -> Any:
        """See `grpc.aio.Channel`."""
        return self._with(self._channel.unary_unary(*arguments, **named))

    def unary_stream(self, *arguments: Any, **named: Any) -> Any:
        """See `grpc.aio.Channel`."""
        return self._with(self._channel.unary_stream(*arguments, **named))

    def stream_unary(self, *arguments: Any, **named: Any) -> Any:
        """See `grpc.aio.Channel`."""
        return self._with(self._channel.stream_unary(*arguments, **named))

    def stream_stream(self, *arguments: Any, **named: Any) -> Any:
        """See `grpc.aio.Channel`."""
        return self._with(self._channel.stream_stream(*arguments, **named))

    def _with(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return partial(call, metadata=self._metadata)


@contextmanager
def translated_errors(address: str) -> Generator[None]:
    """Turn what gRPC raises in the block into an `AnimalcatError`.

    Args:
        address: The server's address.
    """
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise from_rpc(error, address) from None


class PrivateLoop:
    """An event loop for blocking code, also where another loop runs; for one thread at a time.

    grpc.aio on a loop that runs only while a call waits costs about half of what gRPC's
    synchronous API costs for each message: that one hands messages between threads.
    """

    def __init__(self) -> None:
        """Make the loop, which `close` closes."""
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(_log_failure)
        self._thread: futures.ThreadPoolExecutor | None = None

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._loop.is_closed()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Wait for a coroutine; whoever interrupts the wait cancels it.

        Raises:
            AnimalcatError: The loop is closed, or is busy with another call.
        """
        if self._loop.is_closed() or self._loop.is_running():
            coroutine.close()
            raise AnimalcatError(
                "the connection is closed: connect again"
                if self.closed
                else "this connection waits for another call: make calls from within an agent, "
                "from callbacks and from other threads over a connection of their own"
            )
        task = self._loop.create_task(coroutine)
        if asyncio._get_running_loop() is None:  # get_running_loop() would raise
            return self._wait(task)
        # In a notebook: a thread may run only one loop at a time.
        try:
            self._thread = self._thread or futures.ThreadPoolExecutor(1, "animalcat")
            return self._thread.submit(self._wait, task).result()
        except BaseException:
            if not task.done():
                self._loop.call_soon_threadsafe(task.cancel)
                if self._thread is not None:
                    # An interrupt may have come while the thread took the call: nobody holds its
                    # future then. What a single thread is given next comes after it.
                    futures.wait([self._thread.submit(_nothing)])
            raise

    def iterate(self, source: AsyncGenerator[_T]) -> Iterator[_T]:
        """Iterate over an asynchronous generator."""
        try:
            while True:
                try:
                    yield self.run(_next(source))
                except _IterationEnd:
                    return
        finally:
            # Ends the call on the server where the caller leaves early. An iterator may also be
            # collected while the loop runs or is gone; then there is nothing to wait with.
            if not self._loop.is_running() and not self._loop.is_closed():
                self.run(source.aclose())

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """Cancel what still waits, and close the loop.

        Args:
            last: A coroutine to run in the loop first.
        """
        self.run(self._end(last))
        self._loop.close()
        if self._thread is not None:
            self._thread.shutdown()

    def _wait(self, task: asyncio.Task[_T]) -> _T:
        try:
            return self._loop.run_until_complete(task)
        except BaseException:
            if not task.done():  # Ctrl-C while nothing happened
                task.cancel()
                with suppress(Exception, asyncio.CancelledError):
                    self._loop.run_until_complete(task)
            raise

    async def _end(self, last: Coroutine[Any, Any, None] | None) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        if last is not None:
            await last


def _nothing() -> None:
    pass


def _log_failure(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say what went wrong in a loop, but that the last events of another one came too late.

    All loops of a process share the queue of gRPC's events, and each hands out what it finds. What
    it finds for a loop that was closed meanwhile concerns nobody.
    """
    if "PollerCompletionQueue" in repr(context.get("handle")) and "closed" in str(
        context.get("exception")
    ):
        return
    loop.default_exception_handler(context)


async def _check(channel: grpc.aio.Channel, address: str, wait_seconds: float) -> None:
    check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
        "/grpc.health.v1.Health/Check"
    )
    try:
        answer = await check(
            _ASKED,
            timeout=max(wait_seconds, CONNECT_SECONDS),
            wait_for_ready=wait_seconds > 0,
        )
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise AnimalcatError(
                f"what listens at {address} is not an animalcat server", "UNIMPLEMENTED"
            ) from None
        told = from_rpc(error, address)
        if CODE_METADATA in dict(error.trailing_metadata() or ()):  # it answers, and says why not
            raise told from None
        raise AnimalcatError(_unreachable(address, error.details() or ""), "UNAVAILABLE") from None
    if answer != _SERVING:
        raise AnimalcatError(
            f"the server at {address} is starting or shutting down, or its database does not "
            "answer; try again",
            "UNAVAILABLE",
        )


def _unreachable(address: str, details: str) -> str:
    """What to say where no server answered, by what gRPC says of the handshake."""
    port = address.rpartition(":")[2]
    if "CERTIFICATE_VERIFY_FAILED" in details or "Hostname" in details or "Peer name" in details:
        return (
            f"you do not trust the certificate of the server at {address}: set "
            "ANIMALCAT_CA (ca= in Python) to the server's certificate or its fingerprint, as the "
            f"server prints them ({details[:200]})"
        )
    if "handshake" in details.lower() or "SSL" in details or "TSI" in details:
        return (
            f"no TLS connection to {address} could be made: the server there does not speak TLS "
            f"({details[:200]})"
        )
    return (
        f"no animalcat server answers at {address}; start one there with "
        f"`animalcat serve --port {port}`, or name another address. One that speaks TLS needs "
        "ANIMALCAT_CA (ca= in Python)"
        if is_local(address)
        else f"no animalcat server answers at {address}; start one there with "
        f"`animalcat serve --host ADDRESS --port {port} --self-signed`, or name another address"
    )


class _IterationEnd(Exception):  # noqa: N818  no error: StopAsyncIteration may not leave a coroutine
    """The generator is over."""


async def _next(source: AsyncGenerator[_T]) -> _T:
    try:
        return await anext(source)
    except StopAsyncIteration:
        raise _IterationEnd from None
