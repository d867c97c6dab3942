"""The calls of a process to itself: messages go to servicers as they are, in memory.

The servicers are those of a server and the stubs those of a client, on one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from functools import partial
from typing import Any, Final

import grpc

from animalcat.errors import AnimalcatError
from animalcat.service.access.callers import MACHINE, Caller, present
from animalcat.service.access.gate import Gate
from animalcat.service.calls import begin_call
from animalcat.service.errors import KINDS, ServiceError, public
from animalcat.service.host.limits import EVALUATE, ServerLimits

_PEER: Final = "unix:"
"""Where its callers are: on this machine, where they reach the sockets of its workers."""


class Calls:
    """Stands for the server to which servicers are added, and for the channel of their stubs."""

    def __init__(
        self,
        limits: ServerLimits,
        gate: Gate,
        refused: Callable[[ServiceError, str], None] = lambda error, peer: None,
    ) -> None:
        """Begin without servicers.

        Args:
            limits: Those of the directory's server as a whole.
            gate: Of the same.
            refused: Is called with each error that a caller is told, and the caller's address.
        """
        self._limits = limits
        self._refused = refused
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
        return partial(self._begin, method, MACHINE, _PEER)

    unary_stream = stream_unary = stream_stream = unary_unary

    def of(self, caller: Caller, peer: str) -> CallsOf:
        """Return what clients take in place of a channel whose calls are another caller's.

        Args:
            caller: Who calls; it may do what it may over the wire, and no more.
            peer: Address of the caller, for the audit log.
        """
        return CallsOf(partial(self._begin, caller=caller, peer=peer))

    async def close(self) -> None:
        """End the calls that are still open."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _begin(
        self, method: str, caller: Caller, peer: str, request: Any = None, **_: object
    ) -> _Call:
        handler = self._handlers[method]
        kind = next(kind for kind in KINDS if getattr(handler, kind) is not None)
        work: Callable[[Any, Any], Coroutine[Any, Any, Any]] = getattr(handler, kind)
        call = _Call()

        async def serve() -> None:
            try:
                begin_call(method, None, peer)
                present.set(caller)
                rule = self._gate.admit(method, caller)
                if method != EVALUATE:  # the gateway checks it
                    await self._limits.check(method, request)
                stream = kind != "unary_unary"
                answer = await self._gate.serve(
                    rule, caller, work, request, _Context(call, peer), stream=stream
                )
                call.answers.put_nowait(answer if kind.endswith("_unary") else grpc.aio.EOF)
            except asyncio.CancelledError:
                call.answers.put_nowait(AnimalcatError("the call was ended", "CANCELLED"))
                raise
            except Exception as error:  # noqa: BLE001  the last place where the caller can be told
                told = public(error)
                self._refused(told, peer)
                call.answers.put_nowait(
                    AnimalcatError(told.message, told.code.value, retry_seconds=told.retry_seconds)
                )

        call.task = self._keep(serve())
        if kind == "stream_unary":
            self._keep(_feed(call, request))
        return call

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        return task


class CallsOf:
    """Stands for the channel of one caller."""

    def __init__(self, begin: Callable[..., _Call]) -> None:
        self._begin = begin

    def unary_unary(self, method: str, **_: object) -> Callable[..., _Call]:
        """See `grpc.aio.Channel`, as for the three below."""

        def call(request: Any = None, **_: object) -> _Call:
            return self._begin(method, request=request)

        return call

    unary_stream = stream_unary = stream_stream = unary_unary

    async def close(self, grace: float | None = None) -> None:
        """Do nothing: what was begun belongs to the server."""


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
        """Wait for an answer; `EOF` after the last. A reader that is cancelled ends the call.

        Raises:
            AnimalcatError: The call failed.
        """
        try:
            answer = await self.answers.get()
        except asyncio.CancelledError:
            self.cancel()
            raise
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
        return self.read().__await__()

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (answer := await self.read()) is not grpc.aio.EOF:
            yield answer


class _Context:
    """One call as its servicer sees it; see `grpc.aio.ServicerContext`."""

    def __init__(self, call: _Call, peer: str) -> None:
        self._call = call
        self._peer = peer

    async def read(self) -> Any:
        """Wait for a request; `EOF` after the last."""
        return await self._call.requests.get()

    async def write(self, answer: Any) -> None:
        """Send one more answer."""
        self._call.answers.put_nowait(answer)

    def peer(self) -> str:
        """Where the caller is."""
        return self._peer


async def _feed(call: _Call, requests: AsyncIterator[Any]) -> None:
    """Send what a caller yields."""
    async for request in requests:
        call.requests.put_nowait(request)
    call.requests.put_nowait(grpc.aio.EOF)
