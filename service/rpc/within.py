"""Answers the calls of its own process: a data directory without a port, a socket or a channel.

The servicers are those of a server and the stubs those of a client. A message goes from one to the
other as it is, in memory and on one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import grpc

from animalcat.errors import AnimalcatError
from animalcat.layouts.inference.fitter import Fits
from animalcat.service.access.callers import MACHINE
from animalcat.service.access.gate import Gate
from animalcat.service.access.rules import RULES
from animalcat.service.calls import begun
from animalcat.service.errors import KINDS, public
from animalcat.service.host.limits import EVALUATE, ServerLimits
from animalcat.service.host.local import LocalAddress
from animalcat.service.host.settings import Settings
from animalcat.service.rpc.server import Starter, composed, servicers_of

_PEER: Final = "unix:"
"""Where its callers are: on this machine, where they reach the sockets of its workers."""


@asynccontextmanager
async def serve_within(
    settings: Settings, fitter: Fits | None = None, starter: Starter | None = None
) -> AsyncGenerator[Calls]:
    """Serve a data directory to callers on the running event loop.

    Leaving the block stores what is open, and lets the directory go.

    Args:
        settings: Which directory, and how it is served.
        fitter: Runs NUTS and stays open afterwards; None for one of its own.
        starter: Starts simulators and stays open afterwards; None for one of its own.

    Yields:
        What clients take in place of a channel.

    Raises:
        DirectoryInUseError: A server uses the directory, or another such block.
        Exception: What else keeps `create_server` from starting.
    """
    async with composed(settings, fitter=fitter, starter=starter) as inside:
        local = LocalAddress()
        calls = Calls(inside.limits, inside.gate)
        try:
            for add, servicer in await servicers_of(inside, local):
                add(servicer, calls)
            yield calls
        finally:
            await inside.stop()
            await calls.close()
            local.close()


class Calls:
    """Stands for the server to which servicers are added, and for the channel of their stubs."""

    def __init__(self, limits: ServerLimits, gate: Gate) -> None:
        """Begin without servicers.

        Args:
            limits: Those of the directory's server as a whole.
            gate: Of the same.
        """
        self._limits = limits
        self._gate = gate
        self._handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
        self._open: set[asyncio.Task[None]] = set()

    def add_registered_method_handlers(
        self, service: str, handlers: dict[str, grpc.RpcMethodHandler[Any, Any]]
    ) -> None:
        """Take the methods of a service; see `grpc.Server`."""
        self._handlers |= {f"/{service}/{name}": handler for name, handler in handlers.items()}

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Do nothing: every method is registered by its name as well."""

    def unary_unary(self, method: str, **_: object) -> Callable[..., _Call]:
        """See `grpc.aio.Channel`, as for the three below."""
        return partial(self._begin, method)

    unary_stream = stream_unary = stream_stream = unary_unary

    async def close(self) -> None:
        """End the calls that are still open."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _begin(self, method: str, request: Any = None, **_: object) -> _Call:
        handler = self._handlers[method]
        kind = next(kind for kind in KINDS if getattr(handler, kind) is not None)
        work: Callable[[Any, Any], Coroutine[Any, Any, Any]] = getattr(handler, kind)
        call = _Call()

        async def serve() -> None:
            try:
                begun(method, None, _PEER)
                if method != EVALUATE:  # the gateway checks it
                    await self._limits.check(method, request)
                stream = kind != "unary_unary"
                answer = await self._gate.serve(
                    RULES[method], method, MACHINE, work, request, _Context(call), stream=stream
                )
                call.answers.put_nowait(answer if kind.endswith("_unary") else grpc.aio.EOF)
            except asyncio.CancelledError:
                call.answers.put_nowait(AnimalcatError("the call was ended", "CANCELLED"))
                raise
            except Exception as error:  # noqa: BLE001  the last place where the caller can be told
                told = public(error)
                call.answers.put_nowait(
                    AnimalcatError(told.message, told.code.value, retry_seconds=told.retry_seconds)
                )

        call.task = self._kept(serve())
        if kind == "stream_unary":
            self._kept(_feed(call, request))
        return call

    def _kept(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        return task


class _Call:
    """One call as its caller sees it; see `grpc.aio.Call`.

    Attributes:
        requests: What the caller has sent, and nobody has read.
        answers: What it is answered; the end and errors too.
        task: Does the work.
    """

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.requests = asyncio.Queue[Any]()
        self.answers = asyncio.Queue[Any]()

    async def write(self, request: Any) -> None:
        """Send one more request."""
        self.requests.put_nowait(request)

    async def read(self) -> Any:
        """Wait for an answer; `EOF` after the last.

        Raises:
            AnimalcatError: The call failed.
        """
        answer = await self.answers.get()
        if isinstance(answer, AnimalcatError):
            self.answers.put_nowait(answer)
            raise answer
        if answer is grpc.aio.EOF:
            self.answers.put_nowait(answer)
        return answer

    def cancel(self) -> bool:
        """End the call."""
        return self.task.cancel()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer().__await__()

    async def _answer(self) -> Any:
        try:
            return await self.read()
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (answer := await self.read()) is not grpc.aio.EOF:
            yield answer


class _Context:
    """One call as its servicer sees it; see `grpc.aio.ServicerContext`."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    async def read(self) -> Any:
        """Wait for a request; `EOF` after the last."""
        return await self._call.requests.get()

    async def write(self, answer: Any) -> None:
        """Send one more answer."""
        self._call.answers.put_nowait(answer)

    def peer(self) -> str:
        """Where the caller is."""
        return _PEER


async def _feed(call: _Call, requests: AsyncIterator[Any]) -> None:
    """Send what a caller yields."""
    async for request in requests:
        call.requests.put_nowait(request)
    call.requests.put_nowait(grpc.aio.EOF)
