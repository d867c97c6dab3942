"""The one error that the client raises for what the server, or the way to it, says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import grpc

CODE_METADATA: Final = "animalcat-code"
"""Key of the trailing metadata in which the server sends the stable code of an error."""
REQUEST_METADATA: Final = "animalcat-request-id"
"""Key of the metadata in which a caller may say the id of a call, and the server says it again in
the trailing metadata of an error: under it, its log and its audit log have the call."""
RETRY_METADATA: Final = "animalcat-retry-seconds"
"""Key of the trailing metadata in which the server says when to come again."""

_LARGER: Final = re.compile(r"message larger than max \((\d+) vs\. (\d+)\)")
"""What gRPC says of a message that one side does not take."""
_BROKEN: Final = ("UNAVAILABLE", "CANCELLED", "INTERNAL", "UNKNOWN")


class AnimalcatError(Exception):
    """Something did not work; the text is a sentence for people.

    Attributes:
        code: Stable name of the kind of error, such as "UNKNOWN_SESSION"; the name of the gRPC
            status where the server gave no code of its own.
        retry_seconds: When to try again, if the server said so; else None.
        request_id: Id of the call that failed, as the server's logs have it; empty if it is none.
    """

    def __init__(
        self,
        message: str,
        code: str = "",
        *,
        retry_seconds: float | None = None,
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retry_seconds = retry_seconds
        self.request_id = request_id


class MissingExtraError(AnimalcatError, ModuleNotFoundError):
    """What was asked for needs an extra that is not installed; the text has the command.

    Attributes:
        name: The module that is missing.
    """

    def __init__(self, message: str, name: str | None) -> None:
        super().__init__(message, "MISSING_EXTRA")
        self.name = name


def from_rpc(error: grpc.aio.AioRpcError, address: str) -> AnimalcatError:
    """What a failed call means.

    Args:
        error: How the call failed.
        address: Of the server.
    """
    status = error.code()
    sentence = error.details() or status.name
    told = dict(error.trailing_metadata() or ())
    code = told.get(CODE_METADATA)
    if isinstance(code, str):
        retry, request = _seconds(told.get(RETRY_METADATA)), told.get(REQUEST_METADATA, "")
        return AnimalcatError(sentence, code, retry_seconds=retry, request_id=str(request))
    # The server sends a code with every error of its own; this one is gRPC's.
    if found := _LARGER.search(sentence):
        size, most = (int(number) for number in found.groups())
        return AnimalcatError(
            f"what was to be sent has {size:,} bytes, and the server at {address} takes at most "
            f"{most:,} at once: send less, or let who runs it set ANIMALCAT_MAX_MESSAGE_BYTES",
            "TOO_LARGE",
        )
    if status.name in _BROKEN:
        return AnimalcatError(f"lost the server at {address}: {sentence}", "UNAVAILABLE")
    if status.name == "UNIMPLEMENTED":
        sentence = f"the server at {address} is not an animalcat server of this version: {sentence}"
    return AnimalcatError(sentence, status.name)


def is_broken(error: grpc.aio.AioRpcError) -> bool:
    """Whether a call failed because its connection did, and not because the server says so."""
    told = dict(error.trailing_metadata() or ())
    return error.code().name in _BROKEN and CODE_METADATA not in told


def may_try_again(error: grpc.aio.AioRpcError) -> bool:
    """Whether the server said when to come again."""
    return RETRY_METADATA in dict(error.trailing_metadata() or ())


def _seconds(text: str | bytes | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
