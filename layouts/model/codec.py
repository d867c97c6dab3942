"""Converts frozen dataclasses to and from plain dicts, with errors that name place and choices."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


class SpecificationError(ValueError):
    """A layout's specification is wrong; the message names the node and the valid choices."""


def encode(value: Any) -> dict[str, Any]:
    """Convert a dataclass of numbers, strings and tuples of them to a plain dict."""
    data = {f.name: getattr(value, f.name) for f in fields(value)}
    return {
        name: list(cast("tuple[object, ...]", item)) if isinstance(item, tuple) else item
        for name, item in data.items()
    }


def encode_model(value: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """Like `encode`, but without fields at their defaults and without those in `without`."""
    plain = {f.name for f in fields(value) if getattr(value, f.name) == f.default}
    return {k: v for k, v in encode(value).items() if k not in plain and k not in without}


def decode(cls: type[T], data: object, where: str) -> T:
    """Build a dataclass of numbers, strings and tuples of them from a plain dict.

    Args:
        cls: The dataclass.
        data: Its fields; those with a default may be missing.
        where: What is being read, for error messages, for example "node visualPerformance".

    Raises:
        SpecificationError: A key is unknown or missing, or a value does not fit.
    """
    mapping = as_mapping(data, where)
    hints = _hints(cls)
    known = {f.name: f for f in fields(cast("Any", cls))}
    check_choices(mapping, known, f"{where}: key")
    needed = [
        name
        for name, f in known.items()
        if f.default is MISSING and f.default_factory is MISSING and name not in mapping
    ]
    if needed:
        raise SpecificationError(f"{where}: {', '.join(needed)} missing")
    values = {
        name: _convert(hints[name], value, f"{where}.{name}") for name, value in mapping.items()
    }
    try:
        return cls(**values)
    except ValueError as error:
        raise SpecificationError(f"{where}: {error}") from None


@cache
def _hints(cls: type) -> Mapping[str, Any]:
    """Types of a dataclass's fields; to find them takes longer than to read its values."""
    return get_type_hints(cls)


def as_mapping(data: object, where: str) -> Mapping[str, object]:
    """Require a mapping, and return it with string keys.

    Raises:
        SpecificationError: The data is something else.
    """
    if not isinstance(data, Mapping):
        raise SpecificationError(f"{where}: expected a mapping, not {data!r}")
    return {str(key): value for key, value in cast("Mapping[object, object]", data).items()}


def as_names(data: object, where: str) -> tuple[str, ...]:
    """Require a list of different names.

    Raises:
        SpecificationError: The data is something else.
    """
    names = cast("list[object]", data) if isinstance(data, list) else []
    if not isinstance(data, list) or not all(isinstance(name, str) and name for name in names):
        raise SpecificationError(f"{where}: expected a list of names, not {data!r}")
    told = tuple(map(str, names))
    if len(set(told)) < len(told):
        raise SpecificationError(f"{where}: a name is there twice: {', '.join(told)}")
    return told


def check_choices(names: Mapping[str, object], valid: Mapping[str, object], what: str) -> None:
    """Check that every name is a valid choice.

    Raises:
        SpecificationError: A name is not; the message lists the valid ones.
    """
    for name in names:
        if name not in valid:
            raise SpecificationError(f"{what} {name!r} is unknown; valid: {', '.join(valid)}")


def _convert(hint: Any, value: object, where: str) -> object:
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise SpecificationError(f"{where}: expected a list, not {value!r}")
        item = get_args(hint)[0]
        return tuple(_convert(item, v, where) for v in cast("list[object]", value))
    parts = get_args(hint)
    if get_origin(hint) is UnionType:  # a number, or text, or nothing, in this order
        if value is None and NoneType in parts:
            return None
        number = isinstance(value, int | float)
        return _convert(float if number or str not in parts else str, value, where)
    if hint is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise SpecificationError(f"{where}: expected a number, not {value!r}")
        try:
            parsed = float(value)
        except OverflowError:  # a whole number, too long for a float and to be shown
            parsed = math.inf
        if not math.isfinite(parsed):
            raise SpecificationError(f"{where}: {parsed} is not finite")
        return parsed
    if parts and value not in parts:
        raise SpecificationError(f"{where}: {value!r} is not one of {', '.join(parts)}")
    if not isinstance(value, str):
        raise SpecificationError(f"{where}: expected text, not {value!r} (quote it)")
    return value
