"""Reads what callers ask for, and refuses what cannot be."""

from __future__ import annotations

from typing import Final

from animalcat.service.errors import Code, ServiceError
from animalcat.text import names
from animalcat.v1 import sessions_pb2
from animalcat.values import SessionSpec, SessionState
from animalcat.wire.codec import WireError, decode, word

MAX_REQUEST_ID: Final = 200
"""Most characters of a request id."""


def asked_spec(message: sessions_pb2.SessionSpec) -> SessionSpec:
    """Return the session that is asked for, with defaults for what is left out.

    The text of a caller's own layout is not part of it; the caller of this function takes it from
    the message.

    Raises:
        ServiceError: A value is out of its range; the message says which, and what is allowed.
        animalcat.text.names.BadNameError: The battery's name cannot be parsed.
    """
    names.check_label(message.agent, "agent")
    names.parse_battery(message.battery)
    try:
        return decode(SessionSpec, message, strict=True)
    except WireError as error:
        raise ServiceError(Code.INVALID_REQUEST, str(error)) from error


def state_of(number: int) -> SessionState:
    """Return the session state that a number of the wire stands for.

    Raises:
        ServiceError: The number stands for no state.
    """
    try:
        return SessionState(word(sessions_pb2.SessionState, number))
    except ValueError as error:
        raise ServiceError(Code.INVALID_REQUEST, f"there is no state {number}") from error


def checked_id(request_id: str) -> str:
    """Return a call's request id, which may be empty, after checking its length.

    Raises:
        ServiceError: The id is too long.
    """
    if len(request_id) > MAX_REQUEST_ID:
        raise ServiceError(
            Code.INVALID_REQUEST, f"request_id has more than {MAX_REQUEST_ID} characters"
        )
    return request_id
