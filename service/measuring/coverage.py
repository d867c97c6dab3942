"""Which instances of a battery a layout covers, and why not the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

import numpy as np

from animalcat.arena_configs.features import FEATURES
from animalcat.layouts.model.expressions import ONE
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.instance import Instance
from animalcat.service.errors import Code, ServiceError

_ONCE_COVERED: Final = {"aaio": ("01-0[1-9]-*", "01-1[0-7]-*", "07-0[1-6]-*", "navigation-*")}
"""By layout, the names that it covered when batteries had tables of version 1."""


@dataclass(frozen=True)
class Coverage:
    """What a layout covers of a battery.

    Attributes:
        layout: Name of the layout.
        features: Of every covered instance by name, in the layout's order of columns.
        reasons: Why each of the others is not covered, by name.
        advice: What can be done about it; empty where nothing stands out.
    """

    layout: str
    features: Mapping[str, Sequence[float]]
    reasons: Mapping[str, str]
    advice: str = ""

    @property
    def counts(self) -> dict[str, int]:
        """How many instances are not covered for each reason, the most frequent first."""
        return dict(Counter(self.reasons.values()).most_common())

    @property
    def gaps(self) -> str:
        """Reasons with counts, as in "21 of 37: no reward; 16: rewardDistance above 40 m"."""
        total = len(self.features) + len(self.reasons)
        told = [f"{number}: {why}" for why, number in self.counts.items()]
        if told:
            number, _, why = told[0].partition(":")
            told[0] = f"{number} of {total}:{why}"
        return "; ".join(told)


def covered_features(
    layout: Layout, battery: Battery, *, as_once: bool = False
) -> dict[str, Sequence[float]]:
    """Features of the instances that the layout covers, by name, in its order of columns.

    Args:
        layout: The layout.
        battery: The battery.
        as_once: A battery with a table of version 1 is covered as it was then: by names.

    Raises:
        ServiceError: As for `coverage`, or nothing is covered; it says why, and what to do.
    """
    found = coverage(layout, battery, as_once=as_once)
    if not found.features:
        advice = f". {found.advice}" if found.advice else ""
        raise ServiceError(
            Code.NOT_COVERED,
            f"layout {layout.name!r} covers none of the {len(battery.instances)} instances of the "
            f"battery. {found.gaps}{advice}",
        )
    return dict(found.features)


def coverage(layout: Layout, battery: Battery, *, as_once: bool = False) -> Coverage:
    """What a layout covers of a battery, and why not the rest.

    Args:
        layout: The layout.
        battery: The battery.
        as_once: A battery with a table of version 1 is covered as it was then: by names.

    Raises:
        ServiceError: The layout names a feature that nobody knows, or has it in another unit.
    """
    check_units(layout, battery.units)
    reasons: dict[str, str] = {}
    rows: dict[str, list[float]] = {}
    for instance in battery.instances:
        if as_once and not battery.versions:
            why = _once_not_covered(layout, instance.name, instance.features)
        else:
            why = layout.why_not(instance.features, instance.missing) or _unseen(layout, instance)
        if why:
            reasons[instance.name] = why
        else:
            rows[instance.name] = [instance.features.get(f.name, np.nan) for f in layout.features]
    table = np.array(list(rows.values())).reshape(len(rows), len(layout.features))
    checked: list[list[float]] = layout.check_features(table).tolist()
    return Coverage(
        layout.name,
        dict(zip(rows, checked, strict=True)),
        reasons,
        _advice(layout, battery) if reasons else "",
    )


def check_units(layout: Layout, units: Mapping[str, str]) -> None:
    """Insist that a layout has features in the units in which batteries have them.

    Args:
        layout: The layout.
        units: Unit of every feature that a battery has.

    Raises:
        ServiceError: A unit differs, or a condition is about a feature that nobody knows, or can
            never be met, or always is.
    """
    known = {name: feature.unit for name, feature in FEATURES.items()} | dict(units)
    for feature in layout.features:
        _same_unit(layout, feature.name, feature.unit, known.get(feature.name, feature.unit))
    for one in layout.excludes:
        if one.feature not in known:
            raise ServiceError(
                Code.INVALID_REQUEST,
                f"layout {layout.name!r} excludes by {one.feature!r}, which is neither measured "
                f"nor a column of the battery; there are: {', '.join(known)}",
            )
        _same_unit(layout, one.feature, one.unit, known[one.feature])
        measured = FEATURES.get(one.feature)
        if measured is None:
            continue
        for limit in (one.above, one.below):
            if limit is not None and not measured.low <= limit <= measured.high:
                raise ServiceError(
                    Code.INVALID_REQUEST,
                    f"layout {layout.name!r} excludes {one.feature} at {limit:g}, which is out of "
                    f"its range, {measured.low:g} to {measured.high:g}",
                )


def _same_unit(layout: Layout, name: str, wanted: str, there: str) -> None:
    if (wanted or ONE) != (there or ONE):
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"layout {layout.name!r} has {name} in {wanted or ONE!r}, the battery in "
            f"{there or ONE!r}; give both the same unit",
        )


def _unseen(layout: Layout, instance: Instance) -> str:
    """Why none of a layout's outcomes can be observed of an instance; empty where one can."""
    wanted = {one.source for one in layout.outcomes}
    if wanted & instance.task.observes:
        return ""
    return f"its episodes give no {' and no '.join(sorted(wanted))}"


def _once_not_covered(layout: Layout, name: str, features: Mapping[str, float]) -> str:
    """The rule of batteries with tables of version 1: their sessions go on as they began."""
    if not any(fnmatchcase(name, glob) for glob in _ONCE_COVERED.get(layout.name, ("*",))):
        return "measured by an older version"
    return replace(layout, excludes=()).why_not(features, {})


def _advice(layout: Layout, battery: Battery) -> str:
    """What can be done about instances that are not covered."""
    if not battery.versions:
        return "Import or build the battery anew: then all its features are measured"
    own = [
        f.name
        for f in layout.features
        if f.name not in FEATURES and f.name not in battery.units and f.if_missing is None
    ]
    if own:
        return (
            f"What is not measured goes into a table: `animalcat battery import DIR --features "
            f"table.csv`, with columns instance, {', '.join(own)}"
        )
    return "`animalcat battery features NAME` shows what the instances have"
