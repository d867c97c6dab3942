"""Says which looks go together with the paradigm, so that a battery cannot tell the two apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from animalcat.arena_configs.features import FEATURES
from animalcat.arena_configs.instance import Instance

LOOKS: Final = tuple(
    name for name, feature in FEATURES.items() if feature.group == "look" and feature.high == 255.0
)
"""The colours among the demands, which should not matter to an agent."""
LEAST: Final = 10
"""Instances that a paradigm must have with a look, for what is said of both."""
BINS: Final = 8
"""Parts of equal numbers that a look with more values is divided into."""


class Balance(NamedTuple):
    """How far a look goes together with the paradigm.

    Attributes:
        look: Its name.
        v: Cramer's V of look and paradigm, with the correction for chance of Bergsma (2013, A
            bias-correction for Cramer's V and Tschuprow's T): 0 where every paradigm has it alike,
            1 where it tells the paradigm.
        fixed: Paradigms in which it has one value, although it varies in the battery.
        paradigms: How many paradigms have enough instances with it.
    """

    look: str
    v: float
    fixed: tuple[str, ...]
    paradigms: int

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {**self._asdict(), "fixed": list(self.fixed)}


def balances(instances: Iterable[Instance], looks: Sequence[str] = LOOKS) -> tuple[Balance, ...]:
    """Compare looks with paradigms.

    Args:
        instances: The instances of a battery.
        looks: Names of the looks.

    Returns:
        One for each look that differs between instances and that two paradigms or more have.
    """
    found: list[Balance] = []
    known = list(instances)
    for look in looks:
        by_paradigm: dict[str, list[float]] = {}
        for one in known:
            if look in one.features:
                by_paradigm.setdefault(one.paradigm, []).append(round(one.features[look], 3))
        enough = {name: row for name, row in by_paradigm.items() if len(row) >= LEAST}
        if len(enough) < 2 or len({value for row in enough.values() for value in row}) < 2:
            continue
        fixed = tuple(sorted(name for name, row in enough.items() if len(set(row)) == 1))
        found.append(Balance(look, _cramer(list(enough.values())), fixed, len(enough)))
    return tuple(found)


def _cramer(rows: Sequence[Sequence[float]]) -> float:
    """Cramer's V between the rows and their values, corrected for chance."""
    values = np.concatenate(rows)
    levels = np.unique(values)
    if len(levels) > BINS:
        levels = np.unique(np.quantile(values, np.linspace(0.0, 1.0, BINS + 1)[:-1]))
    table = np.array(
        [
            np.bincount(np.searchsorted(levels, row, side="right") - 1, minlength=len(levels))
            for row in rows
        ],
        np.float64,
    )
    n, (r, k) = float(table.sum()), table.shape
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / n
    chance = (r - 1) * (k - 1) / (n - 1)
    phi = max(0.0, float(((table - expected) ** 2 / expected).sum()) / n - chance)
    most = min(k - (k - 1) ** 2 / (n - 1), r - (r - 1) ** 2 / (n - 1)) - 1
    return math.sqrt(min(1.0, phi / most)) if most > 0.0 else 0.0
