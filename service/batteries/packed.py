"""Holds many values in little memory, as bytes that never leave this process."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Other = TypeVar("Other")


class Packed(Generic[T]):
    """Values that are made anew whenever they are asked for: arenas take a tenth of the memory."""

    def __init__(self, values: Iterable[T] = ()) -> None:
        """Hold some values.

        Args:
            values: The first of them.
        """
        self._held: list[bytes] = []
        self._made: Callable[[Any], T] | None = None
        for value in values:
            self.append(value)

    def append(self, value: T) -> None:
        """Hold one more."""
        self._held.append(zlib.compress(pickle.dumps(value, 5), 1))

    def taken(self, places: Sequence[int]) -> Packed[T]:
        """The values at some places, in their order; no bytes are held twice."""
        made: Packed[T] = Packed()
        made._held, made._made = [self._held[place] for place in places], self._made
        return made

    def mapped(self, make: Callable[[T], Other]) -> Packed[Other]:
        """What is made of each value, whenever it is asked for; no bytes are held twice."""
        made: Packed[Other] = Packed()
        made._held, made._made = self._held, make
        return made

    def __len__(self) -> int:
        return len(self._held)

    def __getitem__(self, place: int) -> T:
        # Nobody else can have written these bytes.
        value: Any = pickle.loads(zlib.decompress(self._held[place]))  # noqa: S301
        return value if self._made is None else self._made(value)

    def __iter__(self) -> Iterator[T]:
        return (self[place] for place in range(len(self)))
