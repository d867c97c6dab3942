"""Arrays that grow by rows, each append at the cost of its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Generic, TypeVar, cast

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
        self._kept = np.empty((_FIRST,) if width is None else (_FIRST, width), kind)
        self._length = 0

    @classmethod
    def of(cls, rows: npt.NDArray[Scalar]) -> Growing[Scalar]:
        """Begin with some rows."""
        grown = cls(rows.dtype.type, rows.shape[1] if rows.ndim > 1 else None)
        grown._kept, grown._length = np.concatenate([rows, grown._kept]), len(rows)
        return grown

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> npt.NDArray[Scalar]:
        """All rows, (rows,) or (rows, width); not to be written to."""
        return cast("npt.NDArray[Scalar]", self._kept[: self._length])

    def append(self, row: float | bool | Sequence[float] | npt.NDArray[Any]) -> None:
        """Append one row."""
        if self._length == len(self._kept):
            grown = np.empty((2 * self._length, *self._kept.shape[1:]), self._kept.dtype)
            grown[: self._length] = self._kept
            self._kept = grown
        self._kept[self._length] = row
        self._length += 1
