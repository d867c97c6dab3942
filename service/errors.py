"""Defines errors of callers by stable codes, and converts exceptions to gRPC statuses."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import grpc
from grpc import StatusCode

from animalcat.errors import CODE_METADATA
from animalcat.names import BadNameError
from animalcat.service.storage.base import InUseError, UnreadableError
from animalcat.service.storage.listing import BadPageError

log = logging.getLogger(__name__)

MAX_DETAIL: Final = 3000
"""Most characters of an error's text, because it travels in a trailer of limited size."""


class Code(StrEnum):
    """Codes of errors; they are stable and never reused."""

    INVALID_NAME = "INVALID_NAME"
    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_ARENA = "INVALID_ARENA"
    UNKNOWN_SESSION = "UNKNOWN_SESSION"
    UNKNOWN_CAMPAIGN = "UNKNOWN_CAMPAIGN"
    UNKNOWN_BATTERY = "UNKNOWN_BATTERY"
    UNKNOWN_FAMILY = "UNKNOWN_FAMILY"
    UNKNOWN_LAYOUT = "UNKNOWN_LAYOUT"
    UNKNOWN_EPISODE = "UNKNOWN_EPISODE"
    UNKNOWN_OPERATION = "UNKNOWN_OPERATION"
    OPERATION_ABORTED = "OPERATION_ABORTED"
    OPERATION_CANCELLED = "OPERATION_CANCELLED"
    BAD_PAGE = "BAD_PAGE"
    RECORDING_DAMAGED = "RECORDING_DAMAGED"
    UNKNOWN_BACKEND = "UNKNOWN_BACKEND"
    BUILD_NOT_ALLOWED = "BUILD_NOT_ALLOWED"
    NO_PROFILE = "NO_PROFILE"
    NOT_COVERED = "NOT_COVERED"
    AGENT_MISMATCH = "AGENT_MISMATCH"
    CLIENT_REFUSED = "CLIENT_REFUSED"
    OBSERVATION_MISMATCH = "OBSERVATION_MISMATCH"
    AGENT_CONNECTED = "AGENT_CONNECTED"
    SESSION_OVER = "SESSION_OVER"
    SESSION_FAILED = "SESSION_FAILED"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    IN_USE = "IN_USE"
    UNREADABLE = "UNREADABLE"
    BAD_FRAME = "BAD_FRAME"
    ACTION_OUT_OF_RANGE = "ACTION_OUT_OF_RANGE"
    ACTION_STALE = "ACTION_STALE"
    ACTION_TIMEOUT = "ACTION_TIMEOUT"
    NOTE_TOO_LONG = "NOTE_TOO_LONG"
    TOO_MANY_BAD_FRAMES = "TOO_MANY_BAD_FRAMES"
    TOO_LARGE = "TOO_LARGE"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class Public:
    """What a caller may see of an error: its gRPC status, and a text if there is no better one."""

    status: StatusCode
    text: str


CATALOGUE: Final[dict[Code, Public]] = {
    Code.INVALID_NAME: Public(StatusCode.INVALID_ARGUMENT, "The resource name is malformed."),
    Code.INVALID_REQUEST: Public(StatusCode.INVALID_ARGUMENT, "The request is malformed."),
    Code.INVALID_ARENA: Public(StatusCode.INVALID_ARGUMENT, "An arena cannot be read."),
    Code.UNKNOWN_SESSION: Public(StatusCode.NOT_FOUND, "No such session."),
    Code.UNKNOWN_CAMPAIGN: Public(StatusCode.NOT_FOUND, "No such campaign."),
    Code.UNKNOWN_BATTERY: Public(StatusCode.NOT_FOUND, "No such battery."),
    Code.UNKNOWN_FAMILY: Public(StatusCode.NOT_FOUND, "No such family of arenas."),
    Code.UNKNOWN_LAYOUT: Public(StatusCode.NOT_FOUND, "No such layout."),
    Code.UNKNOWN_EPISODE: Public(StatusCode.NOT_FOUND, "No such episode."),
    Code.UNKNOWN_OPERATION: Public(StatusCode.NOT_FOUND, "No such operation."),
    Code.OPERATION_ABORTED: Public(
        StatusCode.ABORTED, "The server stopped before this was done; ask for it again."
    ),
    Code.OPERATION_CANCELLED: Public(StatusCode.CANCELLED, "It was cancelled."),
    Code.BAD_PAGE: Public(StatusCode.INVALID_ARGUMENT, "There is no such page."),
    Code.RECORDING_DAMAGED: Public(StatusCode.DATA_LOSS, "The recording is damaged."),
    Code.UNKNOWN_BACKEND: Public(StatusCode.NOT_FOUND, "No such backend."),
    Code.BUILD_NOT_ALLOWED: Public(
        StatusCode.PERMISSION_DENIED, "The server may not run that Unity build."
    ),
    Code.NO_PROFILE: Public(StatusCode.FAILED_PRECONDITION, "The session has no profile yet."),
    Code.NOT_COVERED: Public(
        StatusCode.FAILED_PRECONDITION, "The layout covers no instance of the battery."
    ),
    Code.AGENT_MISMATCH: Public(
        StatusCode.FAILED_PRECONDITION, "The session is for another agent."
    ),
    Code.CLIENT_REFUSED: Public(
        StatusCode.FAILED_PRECONDITION, "The client is too old or too new for this server."
    ),
    Code.OBSERVATION_MISMATCH: Public(
        StatusCode.FAILED_PRECONDITION, "The session shows something other than the agent needs."
    ),
    Code.AGENT_CONNECTED: Public(
        StatusCode.ALREADY_EXISTS, "Another agent is connected to the session."
    ),
    Code.SESSION_OVER: Public(StatusCode.FAILED_PRECONDITION, "The session is over."),
    Code.SESSION_FAILED: Public(StatusCode.ABORTED, "The session cannot go on."),
    Code.REQUEST_ID_REUSED: Public(
        StatusCode.ALREADY_EXISTS, "The request id was used for something else."
    ),
    Code.IN_USE: Public(StatusCode.FAILED_PRECONDITION, "It is in use and cannot be deleted."),
    Code.UNREADABLE: Public(
        StatusCode.FAILED_PRECONDITION, "This version of animalcat cannot read its record."
    ),
    Code.BAD_FRAME: Public(StatusCode.INVALID_ARGUMENT, "This frame may not be sent here."),
    Code.ACTION_OUT_OF_RANGE: Public(StatusCode.INVALID_ARGUMENT, "An action is out of range."),
    Code.ACTION_STALE: Public(StatusCode.INVALID_ARGUMENT, "The action answers another step."),
    Code.ACTION_TIMEOUT: Public(StatusCode.DEADLINE_EXCEEDED, "The action came too late."),
    Code.NOTE_TOO_LONG: Public(StatusCode.INVALID_ARGUMENT, "The note is too long."),
    Code.TOO_MANY_BAD_FRAMES: Public(
        StatusCode.INVALID_ARGUMENT, "Too many bad frames came in a row."
    ),
    Code.TOO_LARGE: Public(StatusCode.RESOURCE_EXHAUSTED, "The request is too large."),
    Code.SHUTTING_DOWN: Public(StatusCode.UNAVAILABLE, "The server is shutting down."),
    Code.INTERNAL: Public(
        StatusCode.INTERNAL, "The server failed; its log says how. Nothing stored was lost."
    ),
}


_CODES: Final[dict[type[Exception], Code]] = {
    BadNameError: Code.INVALID_NAME,
    BadPageError: Code.BAD_PAGE,
    InUseError: Code.IN_USE,
    UnreadableError: Code.UNREADABLE,
}
"""Codes of exceptions from other modules whose text was written for the caller."""


class ServiceError(Exception):
    """An error that the caller can understand and act on.

    Attributes:
        code: The kind of error.
        message: What was wrong, where, and what to do.
    """

    def __init__(self, code: Code, message: str = "") -> None:
        self.code = code
        self.message = (message or CATALOGUE[code].text)[:MAX_DETAIL]
        super().__init__(self.message)

    @property
    def status(self) -> StatusCode:
        """The gRPC status of its code."""
        return CATALOGUE[self.code].status


def unknown(code: Code, what: str, name: str, valid: list[str]) -> ServiceError:
    """Return the error for an unknown name, with a list of the names that exist.

    Args:
        code: Code of the error.
        what: What kind of thing was named, for example "layout".
        name: The unknown name.
        valid: The names that exist.
    """
    shown = ", ".join(sorted(valid)[:20]) or "none"
    more = f" and {len(valid) - 20} more" if len(valid) > 20 else ""
    return ServiceError(code, f"no {what} is named {name[:120]!r}; there are: {shown}{more}")


def public(error: Exception) -> ServiceError:
    """Return what a caller may see of an exception; log unforeseen ones and make them INTERNAL."""
    if isinstance(error, ServiceError):
        return error
    for kind, code in _CODES.items():
        if isinstance(error, kind):
            return ServiceError(code, str(error))
    log.error("a request failed", exc_info=error)
    return ServiceError(Code.INTERNAL)


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Turns exceptions of servicers into gRPC statuses; internal details never travel.

    It guards only methods that are coroutines, as all of ours are.
    """

    async def intercept_service(
        self,
        continuation: Callable[
            [grpc.HandlerCallDetails], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]
        ],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Guard the method, whichever of gRPC's four kinds it is."""
        handler = await continuation(handler_call_details)
        if handler is None:  # gRPC itself answers calls of unknown methods
            return None
        for kind, make in _KINDS.items():
            method: Any = getattr(handler, kind)
            if inspect.iscoroutinefunction(method):
                return make(
                    _guard(method), handler.request_deserializer, handler.response_serializer
                )
        return handler


_KINDS: Final[dict[str, Callable[..., grpc.RpcMethodHandler[Any, Any]]]] = {
    "unary_unary": grpc.unary_unary_rpc_method_handler,
    "unary_stream": grpc.unary_stream_rpc_method_handler,
    "stream_unary": grpc.stream_unary_rpc_method_handler,
    "stream_stream": grpc.stream_stream_rpc_method_handler,
}


def _guard(method: Callable[[Any, Any], Awaitable[Any]]) -> Callable[[Any, Any], Awaitable[Any]]:
    async def guarded(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        try:
            return await method(request, context)
        except grpc.aio.AbortError:
            raise
        except Exception as error:  # noqa: BLE001 - the last place where one can become a status
            shown = public(error)
            await context.abort(shown.status, shown.message, ((CODE_METADATA, shown.code.value),))

    return guarded
