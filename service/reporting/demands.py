"""The demands of a battery's instances: what each asks for, and for which of them it is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.features.registry import FEATURES
from animalcat.service.batteries.battery import Battery

Floats: TypeAlias = npt.NDArray[np.float64]

OWN: Final = "your own"
"""Group of the demands that come from a user's table."""


class Demand(NamedTuple):
    """One demand of a battery.

    Attributes:
        name: Its name.
        unit: Its unit; empty for counts, codes and shares.
        about: What it means; empty where nobody said.
        group: What it is about.
        measured: Number of instances for which it is measured.
        missing: Why it is not measured for the others, with numbers, most frequent first.
        quantiles: Least, quarter, middle, three quarters and greatest value; empty without any.
        distinct: Number of different values.
    """

    name: str
    unit: str
    about: str
    group: str
    measured: int
    missing: Mapping[str, int]
    quantiles: tuple[float, ...]
    distinct: int


def demands_of(battery: Battery) -> tuple[Demand, ...]:
    """Describe the demands of a battery: those of the registry in its order, then the user's."""
    known = [name for name in FEATURES if name in battery.units]
    own = sorted(set(battery.units).difference(known))
    return tuple(_demand(battery, name) for name in (*known, *own))


def _demand(battery: Battery, name: str) -> Demand:
    feature = FEATURES.get(name)
    rows = [instance.features for instance in battery.instances]
    values = np.array([row[name] for row in rows if name in row], np.float64)
    missing = Counter(
        instance.missing.get(name, "no value given")
        for instance in battery.instances
        if name not in instance.features
    )
    quantiles: list[float] = []
    if len(values):
        quantiles = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return Demand(
        name,
        battery.units[name] if feature is None else feature.unit,
        "" if feature is None else feature.description,
        OWN if feature is None else feature.group,
        len(values),
        dict(missing.most_common()),
        tuple(quantiles),
        len(np.unique(values)),
    )
