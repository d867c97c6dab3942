"""Arrays that grow by rows, each append at the cost of its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", np.float64, np.int64, np.bool_)

_FIRST: Final = 64
"""Rows for which there is room at first."""


class Growing(Generic[Scalar]):
    """Rows in the order in which they were appended.

    What `rows` returned is never changed by a later append.
    """

    def __init__(self, kind: type[Scalar], width: int | None = None) -> None:
        """Begin without rows.

        Args:
            kind: Type of the numbers.
            width: Numbers of a row; None where a row is a single number.
        """
        shape = (_FIRST,) if width is None else (_FIRST, width)
        self._kept: npt.NDArray[Scalar] = np.empty(shape, kind)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> npt.NDArray[Scalar]:
        """All rows, (rows,) or (rows, width); not to be written to."""
        return self._kept[: self._length]

    def append(self, row: float | bool | Sequence[float] | npt.NDArray[Any]) -> None:
        """Append one row."""
        if self._length == len(self._kept):
            grown = np.empty((2 * self._length, *self._kept.shape[1:]), self._kept.dtype)
            grown[: self._length] = self._kept
            self._kept = grown
        self._kept[self._length] = row
        self._length += 1

    def extend(self, rows: npt.NDArray[Scalar]) -> None:
        """Append some rows."""
        end = self._length + len(rows)
        if end > len(self._kept):
            self._kept = np.concatenate([self._kept[: self._length], rows, self._kept])
        self._kept[self._length : end] = rows
        self._length = end
