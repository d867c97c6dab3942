"""A gRPC channel that ordinary, blocking code can use; also inside a running event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import grpc

from animalcat.errors import AnimalcatError, from_rpc

_T = TypeVar("_T")

CONNECT_SECONDS: Final = 10.0
"""How long a server may take to say that it is well."""

_MAX_MESSAGE: Final = 64 * 1024 * 1024
_SERVING: Final = b"\x08\x01"
# HealthCheckResponse{status: SERVING}; by hand, because its package is not in the base install.


class Connection:
    """A channel and the private event loop that it lives in; for one thread at a time.

    grpc.aio on a loop that runs only while a call waits costs about half of what gRPC's
    synchronous API costs for each message: that one hands messages between threads.
    """

    def __init__(self, address: str, *, wait_seconds: float = 0.0) -> None:
        """Connect, and ask the server whether it is well.

        Args:
            address: "host:port".
            wait_seconds: How long to wait for a server that is still starting.

        Raises:
            AnimalcatError: Nothing listens there, or what listens is no animalcat server.
        """
        self.address = address
        self._loop = asyncio.new_event_loop()
        self._thread: ThreadPoolExecutor | None = None
        self.channel = self.run(self._open())
        try:
            self.run(self._check(wait_seconds))
        except BaseException:
            self.close()
            raise

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Wait for a coroutine.

        Raises:
            AnimalcatError: A call in it failed.
        """
        try:
            if asyncio._get_running_loop() is None:  # get_running_loop() would raise
                return self._loop.run_until_complete(coroutine)
            # In a notebook: a thread may run only one loop at a time.
            self._thread = self._thread or ThreadPoolExecutor(1)
            return self._thread.submit(self._loop.run_until_complete, coroutine).result()
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error, self.address) from None

    def iterate(self, method: Callable[[Any], AsyncIterable[_T]], request: Any) -> Iterator[_T]:
        """The messages with which a method answers a request, as they come."""

        async def call() -> AsyncIterator[_T]:
            # On the loop: gRPC asks which one runs when a call is made.
            return aiter(method(request))

        iterator = self.run(call())
        while True:
            try:
                yield self.run(_next(iterator))
            except _Exhausted:
                return

    def close(self) -> None:
        """Close the channel; open calls are cancelled. Calling it twice is fine."""
        if self._loop.is_closed():
            return
        self.run(self._shut())
        self._loop.close()
        if self._thread is not None:
            self._thread.shutdown()

    async def _open(self) -> grpc.aio.Channel:
        options: list[tuple[str, Any]] = [
            ("grpc.max_receive_message_length", _MAX_MESSAGE),
            ("grpc.max_send_message_length", _MAX_MESSAGE),
        ]
        host = self.address.rpartition(":")[0].strip("[]")
        if host in ("localhost", "::1") or host.startswith("127."):
            options.append(("grpc.enable_http_proxy", 0))
        return grpc.aio.insecure_channel(self.address, options=options)

    async def _check(self, wait_seconds: float) -> None:
        check: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(
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
                    f"what listens at {self.address} is no animalcat server", "UNIMPLEMENTED"
                ) from None
            port = self.address.rpartition(":")[2]
            raise AnimalcatError(
                f"no animalcat server answers at {self.address}; start one there with "
                f"`animalcat serve --port {port}`, or name another address",
                "UNAVAILABLE",
            ) from None
        if answer != _SERVING:
            raise AnimalcatError(
                f"the server at {self.address} is starting or shutting down; try again",
                "UNAVAILABLE",
            )

    async def _shut(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.channel.close()


class _Exhausted(Exception):  # noqa: N818  no error: StopAsyncIteration may not leave a coroutine
    """The stream is over."""


async def _next(iterator: Any) -> Any:
    try:
        return await anext(iterator)
    except StopAsyncIteration:
        raise _Exhausted from None
