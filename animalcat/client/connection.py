"""A channel to a server, and how blocking code waits for what happens on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Generator, Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import grpc

from animalcat.errors import AnimalcatError, from_rpc

_T = TypeVar("_T")

CONNECT_SECONDS: Final = 10.0
"""How long a server may take to say that it is well."""

_MAX_MESSAGE: Final = 64 * 1024 * 1024
_SERVING: Final = b"\x08\x01"
# HealthCheckResponse{status: SERVING}; by hand, because its package is not in the base install.


async def open_channel(address: str, wait_seconds: float = 0.0) -> grpc.aio.Channel:
    """A channel to a server that says that it is well; it lives in the running event loop.

    Args:
        address: "host:port".
        wait_seconds: How long to wait for a server that is still starting.

    Raises:
        AnimalcatError: Nothing listens there, or what listens is no animalcat server.
    """
    options: list[tuple[str, Any]] = [
        ("grpc.max_receive_message_length", _MAX_MESSAGE),
        ("grpc.max_send_message_length", _MAX_MESSAGE),
    ]
    host = address.rpartition(":")[0].strip("[]")
    if host in ("localhost", "::1") or host.startswith("127."):
        options.append(("grpc.enable_http_proxy", 0))
    channel = grpc.aio.insecure_channel(address, options=options)
    try:
        await _check(channel, address, wait_seconds)
    except BaseException:
        await channel.close()
        raise
    return channel


@contextmanager
def translated_errors(address: str) -> Generator[None]:
    """Turn what gRPC raises in the block into an `AnimalcatError`.

    Args:
        address: Of the server.
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
        self._thread = self._thread or futures.ThreadPoolExecutor(1, "animalcat")
        waiting = self._thread.submit(self._wait, task)
        try:
            return waiting.result()
        except BaseException:
            if not task.done():
                self._loop.call_soon_threadsafe(task.cancel)
                futures.wait([waiting])
            raise

    def iterate(self, source: AsyncGenerator[_T]) -> Iterator[_T]:
        """What an asynchronous generator yields, as it comes."""
        try:
            while True:
                try:
                    yield self.run(_next(source))
                except _Exhausted:
                    return
        finally:
            # Ends the call on the server where the caller leaves early. An iterator may also be
            # collected while the loop runs or is gone; then there is nothing to wait with.
            if not self._loop.is_running() and not self._loop.is_closed():
                self.run(source.aclose())

    def close(self, last: Coroutine[Any, Any, None] | None = None) -> None:
        """Cancel what still waits, and close the loop.

        Args:
            last: What is to be done in it before.
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


async def _check(channel: grpc.aio.Channel, address: str, wait_seconds: float) -> None:
    check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
        "/grpc.health.v1.Health/Check"
    )
    try:
        answer = await check(
            b"",
            timeout=max(wait_seconds, CONNECT_SECONDS),
            wait_for_ready=wait_seconds > 0,
        )
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise AnimalcatError(
                f"what listens at {address} is no animalcat server", "UNIMPLEMENTED"
            ) from None
        port = address.rpartition(":")[2]
        raise AnimalcatError(
            f"no animalcat server answers at {address}; start one there with "
            f"`animalcat serve --port {port}`, or name another address",
            "UNAVAILABLE",
        ) from None
    if answer != _SERVING:
        raise AnimalcatError(
            f"the server at {address} is starting or shutting down; try again", "UNAVAILABLE"
        )


class _Exhausted(Exception):  # noqa: N818  no error: StopAsyncIteration may not leave a coroutine
    """The generator is over."""


async def _next(source: AsyncGenerator[_T]) -> _T:
    try:
        return await anext(source)
    except StopAsyncIteration:
        raise _Exhausted from None
