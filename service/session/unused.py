"""Keeps in memory what may be used again: by what it weighs, and for how long nobody used it."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, Generic, TypeVar, cast
from weakref import WeakValueDictionary

import numpy as np

T = TypeVar("T")

_ALL: Final = 24
"""Most items of a collection that are all weighed; of a larger one as many stand for all."""
_SHARED: Final = (
    *(type, ModuleType, FunctionType, BuiltinFunctionType, MethodType),
    *(asyncio.AbstractEventLoop, asyncio.Future, logging.Logger),
)
"""What nobody owns alone, and so weighs nothing."""


@dataclass(slots=True)
class _Kept(Generic[T]):
    """Something that is kept.

    Attributes:
        value: The value.
        used: When it was last used, in seconds.
        uses: How often it was used by then, as it says itself.
        weight: Its bytes; None if it has to be weighed.
    """

    value: T
    used: float
    uses: int = 0
    weight: int | None = None


class Unused(Generic[T]):
    """Values by key; those that nobody uses leave after a while, or once they weigh too much.

    A value that somebody holds stays in memory, so it is found and there are never two.

    Args:
        clock: Seconds.
        idle: Says of a value whether nobody uses it now, so that it may leave.
        weigh: Returns the bytes of a value.
        uses: Says how often a value was used by those who hold it.
        empty: Empties a value that leaves; it fills itself again if it is used all the same.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        idle: Callable[[T], bool],
        weigh: Callable[[T], int],
        uses: Callable[[T], int] = lambda _: 0,
        empty: Callable[[T], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._uses = uses
        self._empty = empty
        self._idle = idle
        self._weigh = weigh
        self._kept: dict[str, _Kept[T]] = {}
        self._held: WeakValueDictionary[str, T] = WeakValueDictionary()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._held.keys()))

    def values(self) -> list[T]:
        """Return all values that are in memory, also those that somebody else holds."""
        return list(self._held.values())

    def look(self, key: str) -> T | None:
        """Return a value that is in memory, without using it."""
        return self._held.get(key)

    def get(self, key: str) -> T | None:
        """Use a value; None if there is none."""
        value = self._held.get(key)
        if value is not None:
            self.put(key, value)
        return value

    def put(self, key: str, value: T) -> None:
        """Keep a value, which is used now."""
        self._kept[key] = _Kept(value, self._clock())
        self._held[key] = value

    def pop(self, key: str) -> T | None:
        """Forget a value, whoever holds it, and return it; None if there is none."""
        value = self._held.pop(key, None)
        self._kept.pop(key, None)
        return value

    def idle(self) -> dict[str, int]:
        """Return what those weigh that nobody uses, in bytes by key, the longest unused first.

        One that somebody uses counts as used now.
        """
        for key, value in list(self._held.items()):
            if key not in self._kept and not self._idle(value):  # it had just left as it was taken
                self.put(key, value)
        found: dict[str, int] = {}
        for key, kept in sorted(self._kept.items(), key=lambda item: item[1].used):
            uses = self._uses(kept.value)
            if not self._idle(kept.value) or uses != kept.uses:
                kept.used, kept.uses, kept.weight = self._clock(), uses, None
            if self._idle(kept.value):
                if kept.weight is None:
                    kept.weight = self._weigh(kept.value)
                found[key] = kept.weight
        return found

    def unused_for(self, key: str) -> float:
        """Return for how many seconds nobody used a value that has not left."""
        return self._clock() - self._kept[key].used

    def leave(self, key: str) -> None:
        """Let a value leave memory: it is emptied, and goes once nobody holds it."""
        self._empty(self._kept.pop(key).value)


def spare(kept: Sequence[Unused[Any]], seconds: float, most: int) -> int:
    """Let leave what nobody has used for long, and what weighs too much, the longest unused first.

    Args:
        kept: What is kept.
        seconds: For how long a value stays that nobody uses.
        most: How many bytes the values may weigh together that nobody uses.

    Returns:
        How many bytes have left.
    """
    waiting = sorted(
        (-each.unused_for(key), k, key, weight)
        for k, each in enumerate(kept)
        for key, weight in each.idle().items()
    )
    total, left = sum(weight for *_, weight in waiting), 0
    for unused, k, key, weight in waiting:
        if -unused >= seconds or total - left > most:
            kept[k].leave(key)
            left += weight
    return left


def give_back() -> None:
    """Give memory back to the system that was freed, which glibc else keeps for later."""
    with suppress(OSError, AttributeError):  # another libc
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def bytes_of(*roots: object, without: Sequence[object] = ()) -> int:
    """Return about how many bytes values take with all that they hold.

    Of a large collection some items are weighed, evenly spaced, and stand for all. Functions,
    classes, modules and what belongs to an event loop weigh nothing.

    Args:
        *roots: The values.
        without: What is not theirs alone, and is left out with what it holds.
    """
    return _Scale(without).weigh(roots)


class _Scale:
    """Weighs every object once."""

    def __init__(self, without: Sequence[object]) -> None:
        self._seen = {id(one) for one in without}

    def weigh(self, roots: Sequence[object]) -> int:
        """Return the bytes of values with all that they hold and that was not weighed yet."""
        total, waiting = 0.0, [(root, 1.0) for root in roots]
        while waiting:
            one, times = waiting.pop()
            if one is None or isinstance(one, _SHARED) or id(one) in self._seen:
                continue
            self._seen.add(id(one))
            total += times * sys.getsizeof(one)
            parts, share = _parts(one)
            waiting += [(part, times / share) for part in parts]
        return round(total)


def _parts(one: object) -> tuple[Sequence[object], float]:
    """What an object holds, or as much of it as is weighed, and which share that is.

    Nothing is made for it: what is freed again would be taken for what has its place later.
    """
    if isinstance(one, str | bytes | int | float):
        return (), 1.0
    if isinstance(one, np.ndarray):
        return (() if one.base is None else (one.base,)), 1.0  # ours hold numbers
    if isinstance(one, dict):
        known = cast("dict[object, object]", one)
        keys, share = _sample_rows(list(known))
        return [part for key in keys for part in (key, known[key])], share
    if isinstance(one, list | tuple | set | frozenset):
        return _sample_rows(list(cast("Sequence[object]", one)))
    return gc.get_referents(one), 1.0


def _sample_rows(items: Sequence[object]) -> tuple[Sequence[object], float]:
    if len(items) <= _ALL:
        return list(items), 1.0
    step = len(items) / _ALL
    return [items[int(k * step)] for k in range(_ALL)], _ALL / len(items)
