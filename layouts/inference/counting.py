"""Counts equal outcomes of equal instances once, which makes long sessions cheap.

The likelihood of k equal rows is that of one to the power k. Sums are then made in another order,
so that results differ in their last digits. Few rows, or such of which few are equal, are
left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.growing import Growing

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

FEW: Final = 1000
"""Up to so many rows are never counted together."""
_EQUAL: Final = 4
"""How many rows there must be for each that differs from the others."""


class Counted(NamedTuple):
    """Rows that are counted once.

    Attributes:
        rows: (distinct,), the first of each set of equal rows.
        weights: (distinct,), what the rows of each set count as together.
    """

    rows: Ints
    weights: Floats


class EqualRows:
    """Finds equal rows among those that come one after another."""

    def __init__(self) -> None:
        """Begin without rows."""
        self._ids: dict[bytes, int] = {}
        self._places = Growing(np.int64)
        self._firsts = Growing(np.int64)

    def append(self, row: Floats, outcome: float | Sequence[float] | Floats) -> None:
        """Take in a row and its outcome."""
        key = row.tobytes() + np.asarray(outcome, np.float64).tobytes()
        place = self._ids.setdefault(key, len(self._ids))
        if place == len(self._firsts):
            self._firsts.append(len(self._places))
        self._places.append(place)

    @property
    def firsts(self) -> Ints:
        """The first row of each set of equal ones, (sets,)."""
        return self._firsts.rows

    @property
    def places(self) -> Ints:
        """The set of each row, (rows,)."""
        return self._places.rows

    def pays(self, rows: int) -> bool:
        """Whether to count equal ones of the first rows once."""
        return rows > FEW and rows >= _EQUAL * len(self._firsts)

    def counted(self, weights: Floats) -> Counted:
        """Count the first rows.

        Args:
            weights: (rows,), how many outcomes each of the first rows counts as.
        """
        sums = np.bincount(self.places[: len(weights)], weights).astype(np.float64)
        return Counted(self.firsts[: len(sums)], sums)


def equal_rows(features: Floats, outcomes: Floats, weights: Floats | None) -> Counted | None:
    """Find equal rows; None where it does not pay to count them once.

    Args:
        features: (rows, features).
        outcomes: (rows,) or (rows, outcomes); NaN where one is missing.
        weights: (rows,), how many outcomes each counts as; None for one each.
    """
    if len(features) <= FEW:
        return None
    found = EqualRows()
    for row, outcome in zip(features, outcomes, strict=True):
        found.append(row, outcome)
    if not found.pays(len(features)):
        return None
    return found.counted(np.ones(len(features)) if weights is None else weights)
