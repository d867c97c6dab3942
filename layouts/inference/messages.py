"""JSON with raw arrays in one message, for other processes and for disk, without pickle.

A message consists of the length of the JSON (4 bytes), the length of the arrays (8 bytes), the
JSON, and the arrays in C order one after the other; numbers are little-endian. The JSON's key
"arrays" lists the name, dtype and shape of each array.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

HEADER: Final = struct.Struct("<IQ")
_LIMIT: Final = 1 << 32
_DTYPES: Final = ("<f8", "<f4", "<i8", "|u1")


class MessageError(ValueError):
    """The bytes are not a valid message."""


def pack(message: Mapping[str, Any], arrays: Arrays | None = None) -> bytes:
    """Make a message of a JSON object and named arrays of float64, float32, int64 or uint8."""
    listing: list[dict[str, Any]] = []
    payload: list[bytes] = []
    for name, array in (arrays or {}).items():
        if array.dtype.str not in _DTYPES:
            raise TypeError(f"array {name} is {array.dtype}; messages hold {', '.join(_DTYPES)}")
        listing.append({"name": name, "dtype": array.dtype.str, "shape": list(array.shape)})
        payload.append(np.ascontiguousarray(array).tobytes())
    text = json.dumps({**message, "arrays": listing}, separators=(",", ":")).encode()
    size = sum(len(part) for part in payload)
    return b"".join([HEADER.pack(len(text), size), text, *payload])


def lengths(header: bytes) -> tuple[int, int]:
    """Read the lengths of the JSON and of the arrays from a message's 12-byte header.

    Raises:
        MessageError: The header is too short or claims too much.
    """
    if len(header) != HEADER.size:
        raise MessageError("cut in its header")
    text, payload = HEADER.unpack(header)
    if text + payload > _LIMIT:
        raise MessageError(f"claims {text + payload} bytes")
    return text, payload


def unpack(text: bytes, payload: bytes) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Split a message's body into the JSON object and copies of the arrays.

    Raises:
        MessageError: The parts do not fit each other.
    """
    try:
        message: dict[str, Any] = json.loads(text)
        arrays: dict[str, npt.NDArray[Any]] = {}
        at = 0
        for entry in message.pop("arrays"):
            if entry["dtype"] not in _DTYPES:
                raise MessageError(f"dtype {entry['dtype']!r}")
            dtype = np.dtype(entry["dtype"])
            shape = tuple(int(n) for n in entry["shape"])
            size = math.prod(shape) * dtype.itemsize
            part = payload[at : at + size]
            arrays[entry["name"]] = np.frombuffer(part, dtype).reshape(shape).copy()
            at += size
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise MessageError(f"malformed: {error}") from None
    if at != len(payload):
        raise MessageError(f"{len(payload)} bytes of arrays, {at} named")
    return message, arrays


def read(
    source: Callable[[int], bytes],
) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]] | None:
    """Read one message.

    Args:
        source: Reads exactly n bytes, or fewer at the end of the stream.

    Returns:
        The JSON object and the arrays, or None at a clean end.

    Raises:
        MessageError: The message is cut or malformed.
    """
    header = source(HEADER.size)
    if not header:
        return None
    text_size, payload_size = lengths(header)
    text, payload = source(text_size), source(payload_size)
    if len(text) != text_size or len(payload) != payload_size:
        raise MessageError("cut")
    return unpack(text, payload)
