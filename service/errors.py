"""Defines errors of callers by stable codes, and converts exceptions to gRPC statuses."""

from __future__ import annotations

import errno
import inspect
import logging
import math
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError
from grpc import StatusCode
from sqlalchemy.exc import DBAPIError, OperationalError

from animalcat.errors import CODE_METADATA, REQUEST_METADATA, RETRY_METADATA
from animalcat.extending.plugins import PluginError, PluginNotAllowedError
from animalcat.service import calls
from animalcat.service.logs import about
from animalcat.service.refusals import Seldom
from animalcat.service.storage.damage import REMEDY, damage_of
from animalcat.service.storage.errors import InUseError, StoreInUseError, UnreadableError
from animalcat.service.storage.listing import BadPageError
from animalcat.text.names import BadNameError

log = logging.getLogger(__name__)
_seldom = Seldom()

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
    PLUGIN_NOT_ALLOWED = "PLUGIN_NOT_ALLOWED"
    PLUGIN_CHANGED = "PLUGIN_CHANGED"
    PLUGIN_BROKEN = "PLUGIN_BROKEN"
    NO_PROFILE = "NO_PROFILE"
    NOT_COVERED = "NOT_COVERED"
    AGENT_MISMATCH = "AGENT_MISMATCH"
    AGENT_CHANGED = "AGENT_CHANGED"
    SIMULATOR_CHANGED = "SIMULATOR_CHANGED"
    CLIENT_REFUSED = "CLIENT_REFUSED"
    OBSERVATION_MISMATCH = "OBSERVATION_MISMATCH"
    AGENT_CONNECTED = "AGENT_CONNECTED"
    SESSION_OVER = "SESSION_OVER"
    SESSION_FAILED = "SESSION_FAILED"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    IN_USE = "IN_USE"
    NAME_TAKEN = "NAME_TAKEN"
    UNREADABLE = "UNREADABLE"
    BAD_FRAME = "BAD_FRAME"
    ACTION_OUT_OF_RANGE = "ACTION_OUT_OF_RANGE"
    ACTION_STALE = "ACTION_STALE"
    ACTION_TIMEOUT = "ACTION_TIMEOUT"
    LEASE_LOST = "LEASE_LOST"
    NOTE_TOO_LONG = "NOTE_TOO_LONG"
    NOTES_USED_UP = "NOTES_USED_UP"
    TOO_MANY_BAD_FRAMES = "TOO_MANY_BAD_FRAMES"
    DISMISSED = "DISMISSED"
    UNJUDGED = "UNJUDGED"
    TOO_LARGE = "TOO_LARGE"
    BAD_MESSAGE = "BAD_MESSAGE"
    NO_TOKEN = "NO_TOKEN"
    BAD_TOKEN = "BAD_TOKEN"
    FORBIDDEN = "FORBIDDEN"
    ACCESS_CLOSED = "ACCESS_CLOSED"
    AUDIT_CLOSED = "AUDIT_CLOSED"
    TOO_MANY_CALLS = "TOO_MANY_CALLS"
    BUSY = "BUSY"
    DISK_FULL = "DISK_FULL"
    STORE_BUSY = "STORE_BUSY"
    NO_DESCRIPTORS = "NO_DESCRIPTORS"
    NO_MEMORY = "NO_MEMORY"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    STORE_DAMAGED = "STORE_DAMAGED"
    BATTERY_GONE = "BATTERY_GONE"
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
    Code.PLUGIN_NOT_ALLOWED: Public(
        StatusCode.PERMISSION_DENIED, "The server may not run that plugin's code."
    ),
    Code.PLUGIN_CHANGED: Public(
        StatusCode.FAILED_PRECONDITION, "A plugin is not the one that the session began with."
    ),
    Code.PLUGIN_BROKEN: Public(StatusCode.FAILED_PRECONDITION, "A plugin cannot be used."),
    Code.NO_PROFILE: Public(StatusCode.FAILED_PRECONDITION, "The session has no profile yet."),
    Code.NOT_COVERED: Public(
        StatusCode.FAILED_PRECONDITION, "The layout covers no instance of the battery."
    ),
    Code.AGENT_MISMATCH: Public(
        StatusCode.FAILED_PRECONDITION, "The session is for another agent."
    ),
    Code.AGENT_CHANGED: Public(
        StatusCode.FAILED_PRECONDITION, "The agent is not the one that began the session."
    ),
    Code.SIMULATOR_CHANGED: Public(
        StatusCode.FAILED_PRECONDITION, "The simulator is not the one that began the session."
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
    Code.NAME_TAKEN: Public(
        StatusCode.ALREADY_EXISTS, "The name stands for something else already."
    ),
    Code.UNREADABLE: Public(
        StatusCode.FAILED_PRECONDITION, "This version of animalcat cannot read its record."
    ),
    Code.BAD_FRAME: Public(StatusCode.INVALID_ARGUMENT, "This frame may not be sent here."),
    Code.ACTION_OUT_OF_RANGE: Public(StatusCode.INVALID_ARGUMENT, "An action is out of range."),
    Code.ACTION_STALE: Public(StatusCode.INVALID_ARGUMENT, "The action answers another step."),
    Code.ACTION_TIMEOUT: Public(StatusCode.DEADLINE_EXCEEDED, "The action came too late."),
    Code.LEASE_LOST: Public(StatusCode.FAILED_PRECONDITION, "This lease has nothing to return to."),
    Code.NOTE_TOO_LONG: Public(StatusCode.INVALID_ARGUMENT, "The note is too long."),
    Code.NOTES_USED_UP: Public(
        StatusCode.RESOURCE_EXHAUSTED, "The notes have used all the bytes that they may have."
    ),
    Code.TOO_MANY_BAD_FRAMES: Public(
        StatusCode.INVALID_ARGUMENT, "Too many bad frames came in a row."
    ),
    Code.DISMISSED: Public(
        StatusCode.ABORTED,
        "The agent's operator withdrew it; the episode counts against nobody.",
    ),
    Code.UNJUDGED: Public(
        StatusCode.FAILED_PRECONDITION,
        "The agent's code failed in an episode, and nobody has said yet what that counts as.",
    ),
    Code.TOO_LARGE: Public(StatusCode.RESOURCE_EXHAUSTED, "The request is too large."),
    Code.BAD_MESSAGE: Public(
        StatusCode.INVALID_ARGUMENT,
        "The message is not the protobuf message of this call; use the protos of this version.",
    ),
    Code.NO_TOKEN: Public(StatusCode.UNAUTHENTICATED, "This server asks for a token."),
    Code.BAD_TOKEN: Public(StatusCode.UNAUTHENTICATED, "The token is not valid."),
    Code.FORBIDDEN: Public(StatusCode.PERMISSION_DENIED, "The token does not permit this call."),
    Code.ACCESS_CLOSED: Public(
        StatusCode.UNAVAILABLE,
        "The server cannot read its tokens and accepts none; its log says why.",
    ),
    Code.AUDIT_CLOSED: Public(
        StatusCode.UNAVAILABLE,
        "The server cannot write its audit log, so it does nothing that has to be logged. What "
        "is being played goes on.",
    ),
    Code.TOO_MANY_CALLS: Public(StatusCode.RESOURCE_EXHAUSTED, "Too many calls."),
    Code.BUSY: Public(StatusCode.RESOURCE_EXHAUSTED, "The server is at its limit."),
    Code.DISK_FULL: Public(
        StatusCode.RESOURCE_EXHAUSTED,
        "The server's disk is full. Everything acknowledged is kept: free space on it, then "
        "try again.",
    ),
    Code.STORE_BUSY: Public(
        StatusCode.UNAVAILABLE,
        "The server's database does not answer: another program holds its lock, or it is out of "
        "reach. Everything acknowledged is kept: try again.",
    ),
    Code.NO_DESCRIPTORS: Public(
        StatusCode.RESOURCE_EXHAUSTED,
        "The server has no file descriptors left. Everything acknowledged is kept: try again "
        "when fewer agents play, or start it with a higher limit (ulimit -n).",
    ),
    Code.NO_MEMORY: Public(
        StatusCode.RESOURCE_EXHAUSTED,
        "The server has no memory left for this. Everything acknowledged is kept: try again "
        "when fewer agents play.",
    ),
    Code.SHUTTING_DOWN: Public(StatusCode.UNAVAILABLE, "The server is shutting down."),
    Code.STORE_DAMAGED: Public(
        StatusCode.DATA_LOSS,
        "The database is damaged: it holds what it did not write. " + REMEDY + ".",
    ),
    Code.BATTERY_GONE: Public(
        StatusCode.DATA_LOSS, "The arenas of a battery are gone from where they are stored."
    ),
    Code.INTERNAL: Public(
        StatusCode.INTERNAL,
        "The server failed, and its log says how. Whether the request was carried out is unknown: "
        "check before you ask again. `session show --verify` says whether what a session has "
        "stored is whole.",
    ),
}


_CODES: Final[dict[type[Exception], Code]] = {
    BadNameError: Code.INVALID_NAME,
    BadPageError: Code.BAD_PAGE,
    InUseError: Code.IN_USE,
    UnreadableError: Code.UNREADABLE,
    StoreInUseError: Code.STORE_BUSY,
    PluginNotAllowedError: Code.PLUGIN_NOT_ALLOWED,
    PluginError: Code.PLUGIN_BROKEN,
}
"""Codes of exceptions from other modules whose text was written for the caller."""

_SYSTEM: Final = {
    errno.ENOSPC: Code.DISK_FULL,
    errno.EDQUOT: Code.DISK_FULL,
    errno.EMFILE: Code.NO_DESCRIPTORS,
    errno.ENFILE: Code.NO_DESCRIPTORS,
    errno.ENOMEM: Code.NO_MEMORY,
}
"""Codes of the operating system's errors that pass when their cause does."""
RETRY_SECONDS: Final = 10.0
"""When to come again after such an error."""


class ServiceError(Exception):
    """An error that the caller can understand and act on.

    Attributes:
        code: The kind of error.
        message: What was wrong, where, and what to do.
        retry_seconds: When it is worth to try again; None if the same call would fail again.
    """

    def __init__(
        self, code: Code, message: str = "", *, retry_seconds: float | None = None
    ) -> None:
        self.code = code
        self.message = (message or CATALOGUE[code].text)[:MAX_DETAIL]
        self.retry_seconds = retry_seconds
        if retry_seconds is not None and message:
            # Rounded up: who comes at the time that was said is not refused again.
            self.message += f"; try again in {math.ceil(retry_seconds * 10) / 10:g} s"
        super().__init__(self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        """What pickles it, for another process."""
        return type(self), (self.code, self.message), {"retry_seconds": self.retry_seconds}

    @property
    def status(self) -> StatusCode:
        """The gRPC status of its code."""
        return CATALOGUE[self.code].status


class DeniedError(ServiceError):
    """The caller may not do what it asks for; the audit log tells of it."""


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
    if isinstance(error, ServiceError) and error.code is not Code.SESSION_FAILED:
        return error
    if any(isinstance(cause, DBAPIError) and damage_of(cause) for cause in _causes(error)):
        log.error("the database is damaged", exc_info=error)
        return ServiceError(Code.STORE_DAMAGED)
    code = system_code(error)
    if code is not None:
        if times := _seldom.due(code):
            again = f", {times} times since this was logged" if times > 1 else ""
            log.warning("%s: %s%s", code.value, error, again)
        return ServiceError(code, retry_seconds=RETRY_SECONDS)
    if isinstance(error, ServiceError):
        return error
    for kind, known in _CODES.items():
        if isinstance(error, kind):
            return ServiceError(known, str(error))
    call = calls.current.get(None)
    log.error("a request failed%s", f" ({call.action} {call.id})" if call else "", exc_info=error)
    return ServiceError(Code.INTERNAL)


def system_code(error: BaseException) -> Code | None:
    """Return the code of what the machine lacks, if that is why something failed; else None."""
    for cause in _causes(error):
        if isinstance(cause, MemoryError):
            return Code.NO_MEMORY
        if isinstance(cause, OSError) and cause.errno in _SYSTEM:
            return _SYSTEM[cause.errno]
        if isinstance(cause, DBAPIError):
            return _code_of_database(cause)
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that led to it."""
    cause: BaseException | None = error
    for _ in range(20):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _code_of_database(error: DBAPIError) -> Code | None:
    text = str(error.orig).lower()
    if "disk is full" in text or "no space left" in text or "could not extend" in text:
        return Code.DISK_FULL
    if "too many open files" in text or ("unable to open" in text and not _descriptors_left()):
        return Code.NO_DESCRIPTORS
    if isinstance(error, OperationalError) or error.connection_invalidated:
        return Code.STORE_BUSY
    return None


def _descriptors_left() -> bool:
    """Return whether a file can be opened: SQLite says only that one of its own could not be."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        return False
    return True


class ErrorInterceptor(grpc.aio.ServerInterceptor):
    """Turns exceptions of servicers into gRPC statuses; internal details never travel.

    It guards only methods that are coroutines, as all of ours are. A message that is no message of
    the call becomes an error of the catalogue as well.
    """

    def __init__(
        self, on_refusal: Callable[[ServiceError, str], None] = lambda error, peer: None
    ) -> None:
        """Guard methods.

        Args:
            on_refusal: Is called with each error that a caller is told, and the caller's address,
                within the call's own context.
        """
        self._told = on_refusal

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
        for kind, make in KINDS.items():
            method: Any = getattr(handler, kind)
            if inspect.iscoroutinefunction(method):
                reads = _tolerant(handler.request_deserializer, stream=kind.startswith("stream"))
                guarded = _guard(method, self._told, handler_call_details)
                return make(guarded, reads, handler.response_serializer)
        return handler


KINDS: Final[dict[str, Callable[..., grpc.RpcMethodHandler[Any, Any]]]] = {
    "unary_unary": grpc.unary_unary_rpc_method_handler,
    "unary_stream": grpc.unary_stream_rpc_method_handler,
    "stream_unary": grpc.stream_unary_rpc_method_handler,
    "stream_stream": grpc.stream_stream_rpc_method_handler,
}
"""What makes a handler of each of gRPC's kinds."""


def _metadata(details: grpc.HandlerCallDetails) -> Any:
    return details.invocation_metadata


class _Malformed:
    """Stands for a request that could not be read."""


def _tolerant(reads: Callable[[bytes], Any] | None, *, stream: bool) -> Callable[[bytes], Any]:
    """Return a reader that raises nothing: gRPC would log a traceback and hide the reason.

    A frame of a stream that cannot be read becomes an empty one, which no servicer takes.
    """

    def read(data: bytes) -> Any:
        if reads is None:
            return data
        try:
            return reads(data)
        except DecodeError:
            return reads(b"") if stream else _Malformed()

    return read


def _guard(
    method: Callable[[Any, Any], Awaitable[Any]],
    on_refusal: Callable[[ServiceError, str], None],
    details: grpc.HandlerCallDetails,
) -> Callable[[Any, Any], Awaitable[Any]]:
    async def guard_call(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        call = calls.begin_call(details.method, _metadata(details), context.peer())
        try:
            with about(request=call.id):
                if isinstance(request, _Malformed):
                    raise ServiceError(Code.BAD_MESSAGE)
                return await method(request, context)
        except grpc.aio.AbortError:
            raise
        except Exception as error:  # noqa: BLE001 - the last place where one can become a status
            shown = public(error)
            on_refusal(shown, context.peer())
            trailers = [(CODE_METADATA, shown.code.value), (REQUEST_METADATA, call.id)]
            if shown.retry_seconds is not None:
                trailers.append((RETRY_METADATA, f"{shown.retry_seconds:.3f}"))
            await context.abort(shown.status, shown.message, tuple(trailers))

    return guard_call
