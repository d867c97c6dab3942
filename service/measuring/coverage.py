"""Tells which instances of a battery a layout covers, and why not the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.instance import Instance
from animalcat.layouts.library import CALIBRATED, CALIBRATIONS, load_layout
from animalcat.layouts.model.expressions import ONE
from animalcat.layouts.model.instances import assumed_values, left_out, told_gaps
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.marks import UNPASSABLE
from animalcat.service.errors import Code, ServiceError

SAME_ARENA: Final = (
    "the same arena as another under another name, which would be a repeat and not new evidence"
)
"""Why all but the first of equal arenas are left out."""
_KNOWN: Final = 0.9
"""Share of the covered arenas that a shipped calibration has to know, to be taken."""


@dataclass(frozen=True)
class Coverage:
    """What a layout covers of a battery.

    Attributes:
        layout: Name of the layout.
        features: Features of every covered instance, by its name, in the order of the layout's
            columns; NaN where a feature counts what an agent has played before.
        reasons: Why each of the other instances is not covered, by its name.
        advice: What the user can do about it; empty if nothing stands out.
        unpassable: Number of covered instances that no play can pass; they are covered only if they
            were asked for.
        cannot_fail: Number of covered instances that every play passes.
        assumed: What the layout fills in by itself, with how often, in sentences without ends.
    """

    layout: str
    features: Mapping[str, Sequence[float]]
    reasons: Mapping[str, str]
    advice: str = ""
    unpassable: int = 0
    cannot_fail: int = 0
    assumed: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Number of uncovered instances by reason, the most frequent reason first."""
        return left_out(self.reasons.values())

    def to_dict(self) -> dict[str, Any]:
        """Return how many instances are covered, of how many, and why the others are not."""
        total = len(self.features) + len(self.reasons)
        return {
            "covered": len(self.features),
            "of": total,
            "left_out": self.counts,
            "unpassable": self.unpassable,
            "cannot_fail": self.cannot_fail,
        }

    @property
    def gaps(self) -> str:
        """Reasons with counts, as in "21 of 37: no reward; 16: rewardDistance above 40 m"."""
        return told_gaps(self.counts, len(self.features) + len(self.reasons))


def covered_features(
    layout: Layout, battery: Battery, *, keep_unpassable: bool = False
) -> dict[str, Sequence[float]]:
    """Return the features of the covered instances by name, in the order of the layout's columns.

    Arguments and errors are those of `some_coverage`.
    """
    covered = some_coverage(layout, battery, keep_unpassable=keep_unpassable)
    return dict(covered.features)


def some_coverage(layout: Layout, battery: Battery, *, keep_unpassable: bool = False) -> Coverage:
    """Return what a layout covers of a battery, which has to be something.

    Args:
        layout: The layout.
        battery: The battery.
        keep_unpassable: Whether instances that no play can pass are covered too.

    Raises:
        ServiceError: As for `coverage`; or no instance is covered, and the message says why and
            what to do.
    """
    covered = coverage(layout, battery, keep_unpassable=keep_unpassable)
    if not covered.features:
        advice = f". {covered.advice}" if covered.advice else ""
        raise ServiceError(
            Code.NOT_COVERED,
            f"layout {layout.name!r} covers none of the {len(battery.instances)} instances of the "
            f"battery. {covered.gaps}{advice}",
        )
    return covered


def coverage(layout: Layout, battery: Battery, *, keep_unpassable: bool = False) -> Coverage:
    """Return what a layout covers of a battery, and why it leaves out the rest.

    Args:
        layout: The layout.
        battery: The battery.
        keep_unpassable: Whether instances that no play can pass are covered too.

    Raises:
        ServiceError: The units or conditions of the layout do not fit the battery; see
            `check_units`.
    """
    check_units(layout, battery.units)
    reasons: dict[str, str] = {}
    rows: dict[str, list[float]] = {}
    aside = {} if keep_unpassable else battery.marks.unpassable
    first_names: dict[str, str] = {}
    for instance in battery.instances:
        if instance.name in aside:
            why = UNPASSABLE
        else:
            why = layout.why_not(instance.features, instance.missing) or _unseen(layout, instance)
        first = battery.same_arena.get(instance.name, instance.name)
        if not why and first_names.setdefault(first, instance.name) != instance.name:
            why = SAME_ARENA
        if why:
            reasons[instance.name] = why
        else:
            rows[instance.name] = layout.row(instance.name, instance.features)
    table = np.array(list(rows.values())).reshape(len(rows), len(layout.features))
    checked: list[list[float]] = layout.check_features(table, played=False).tolist()
    return Coverage(
        layout.name,
        dict(zip(rows, checked, strict=True)),
        reasons,
        _advice(layout, battery, reasons.values()) if reasons else "",
        len(battery.marks.unpassable.keys() & rows),
        len(battery.marks.sure.keys() & rows),
        tuple(assumed_values(layout, table)),
    )


def check_units(layout: Layout, units: Mapping[str, str]) -> None:
    """Check that a layout and a battery measure features in the same units.

    Args:
        layout: The layout.
        units: Unit by feature, for every feature of the battery.

    Raises:
        ServiceError: Units differ, or the layout excludes by a feature that is unknown or by a
            limit outside the feature's range.
    """
    known = {name: feature.unit for name, feature in FEATURES.items()} | dict(units)
    for feature in layout.features:
        _same_unit(layout, feature.name, feature.unit, known.get(feature.name, feature.unit))
    for exclusion in layout.excludes:
        if exclusion.feature not in known:
            raise ServiceError(
                Code.INVALID_REQUEST,
                f"layout {layout.name!r} excludes instances by {exclusion.feature!r}, which is "
                "neither measured nor a column of the battery; these are known: "
                f"{', '.join(known)}",
            )
        _same_unit(layout, exclusion.feature, exclusion.unit, known[exclusion.feature])
        measured = FEATURES.get(exclusion.feature)
        if measured is None:
            continue
        for limit in (exclusion.above, exclusion.below):
            if limit is not None and not measured.low <= limit <= measured.high:
                raise ServiceError(
                    Code.INVALID_REQUEST,
                    f"layout {layout.name!r} excludes instances by {exclusion.feature} at "
                    f"{limit:g}, which is out of its range, {measured.low:g} to {measured.high:g}",
                )


def _same_unit(layout: Layout, name: str, wanted: str, there: str) -> None:
    if (wanted or ONE) != (there or ONE):
        raise ServiceError(
            Code.INVALID_REQUEST,
            f"layout {layout.name!r} has {name} in {wanted or ONE!r}, the battery in "
            f"{there or ONE!r}; give both the same unit",
        )


def _unseen(layout: Layout, instance: Instance) -> str:
    """Say why an instance shows none of the layout's outcomes; empty if it shows one."""
    wanted = {outcome.source for outcome in layout.outcomes}
    if wanted & instance.task.observes:
        return ""
    return f"its episodes give no {' and no '.join(sorted(wanted))}"


def _advice(layout: Layout, battery: Battery, reasons: Iterable[str]) -> str:
    """Say what the user can do about instances that are not covered."""
    if set(reasons) == {UNPASSABLE}:
        return (
            "Correct the pass marks (0 where the goal is to be reached), or play these arenas "
            "anyway with --keep-unpassable (keep_unpassable=True)"
        )
    own = [
        f.name
        for f in layout.features
        if f.name not in FEATURES
        and f.name not in battery.units
        and f.if_missing is None
        and not f.counts
    ]
    if own:
        return (
            f"Give what is not measured in a table: `animalcat battery import DIR --features "
            f"table.csv`, with columns instance, {', '.join(own)}"
        )
    return "`animalcat battery export NAME -o FOLDER` writes what each arena demands"


def taught_layout(battery: Battery, layout: Layout) -> Layout:
    """Return a shipped layout as earlier agents taught it the arenas of a battery, else as it is.

    An arena is known by its name and its demands, and nine tenths of those that the layout covers
    have to be.
    """
    if layout.name not in CALIBRATIONS or layout.calibration:
        return layout
    calibrated = load_layout(layout.name, CALIBRATED)
    taught = calibrated.calibration
    assert taught is not None  # the shipped ones are
    made_of_it = taught.base == (layout.name, layout.variant, layout.digest)
    if not (made_of_it and set(battery.index) & set(taught.by_name)):
        return layout
    covered = coverage(calibrated, battery).features
    known = sum(calibrated.known_of(*one) is not None for one in covered.items())
    return calibrated if known >= _KNOWN * len(covered) else layout


def calibration_hint(battery: Battery, layout: Layout) -> str:
    """Say whether what earlier agents taught of these arenas is used; empty where none is known."""
    taught = taught_layout(battery, layout)
    if taught.calibration is None or taught.variant != CALIBRATED:
        return ""
    agents = f"{len(taught.calibration.agents)} earlier agents"
    if layout.calibration:
        return (
            f"The layout {layout.name} is used as {agents} taught it arenas, in its variant "
            f"{CALIBRATED}; --calibration none leaves that out."
        )
    return (
        f"What {agents} taught of these arenas is known and not used: the layout was asked for as "
        "it is written, or the agent is one of them."
    )
