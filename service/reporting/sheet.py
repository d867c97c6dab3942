"""The contact sheet: which arenas of a battery are shown by a map, and what is said of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from animalcat.layouts.model.spec import Layout
from animalcat.service.reporting.demands import LOOK, DemandTable, Floats
from animalcat.service.reporting.kinship import kinship

MAPS: Final = 360
"""Most maps on a sheet."""
MAPS_EACH: Final = 12
"""Most maps of one paradigm."""
_SAID: Final = 4
"""Number of demands that are said of an instance."""
_ALWAYS: Final = (("wayLength", "rewardDistance"), ("goalSize", "rewardSize"))
"""Demands that are said of every instance without a layout, the first that is measured of each."""
_FAR: Final = 0.25
"""Least distance of a paradigm's mean rank from 0.5 by which it stands out."""


class SheetRow(NamedTuple):
    """One instance on the sheet.

    Attributes:
        name: Its name.
        demands: Its main demands, in their units.
        shown: Whether it has a map.
    """

    name: str
    demands: dict[str, float]
    shown: bool


class StandsOut(NamedTuple):
    """A demand by which a paradigm differs from the rest of its battery.

    Attributes:
        demand: The demand.
        median: Its median in the paradigm.
        others: Its median in the other paradigms.
    """

    demand: str
    median: float
    others: float


class SheetPart(NamedTuple):
    """One paradigm on the sheet.

    Attributes:
        paradigm: Its name.
        stands_out: By what it differs from the others, most first.
        rows: Its instances by name.
    """

    paradigm: str
    stands_out: tuple[StandsOut, ...]
    rows: tuple[SheetRow, ...]


def sheet(table: DemandTable, layout: Layout | None = None, maps: int = MAPS) -> list[SheetPart]:
    """Lay out the contact sheet, paradigm by paradigm.

    Every paradigm gets the same number of maps, at most `MAPS_EACH`. The first is of its most
    typical instance, by ranks of all demands. Each further one is of the instance that differs most
    from those that are shown already.

    Args:
        table: The demands.
        layout: A layout, whose demands are said of every instance.
        maps: Most maps in all; the first paradigms have one each if there are more paradigms.
    """
    parts = list(table.by_paradigm())
    each = min(MAPS_EACH, max(1, maps // max(1, len(parts))))
    judged = [n for n in table.varying if table.demands[table.index[n]].group != LOOK]
    ranks = table.ranks[:, [table.index[name] for name in judged]]
    made: list[SheetPart] = []
    for number, (paradigm, rows) in enumerate(parts):
        shown = set(_spaced(ranks, rows, each if number < maps else 0))
        made.append(
            SheetPart(
                paradigm,
                tuple(_stands_out(table, judged, ranks, rows)),
                tuple(
                    SheetRow(table.names[i], _main(table, layout, judged, ranks, i), i in shown)
                    for i in rows
                ),
            )
        )
    return made


def _spaced(ranks: Floats, rows: Sequence[int], count: int) -> Iterator[int]:
    """A typical row, then always the one that is farthest from those before."""
    if count >= len(rows):
        yield from rows
        return
    own = ranks[list(rows)]
    apart = np.abs(own - np.median(own, axis=0)).sum(axis=1)
    at = int(np.argmin(apart))
    nearest = np.full(len(rows), np.inf)
    for _ in range(count):
        yield rows[at]
        nearest = np.minimum(nearest, np.abs(own - own[at]).sum(axis=1))
        at = int(np.argmax(nearest))


def _main(
    table: DemandTable, layout: Layout | None, judged: Sequence[str], ranks: Floats, row: int
) -> dict[str, float]:
    """The demands that are said of an instance: the layout's; or way, size, and what is extreme."""
    values = table.values[row]

    def known(name: str) -> bool:
        return name in table.index and bool(np.isfinite(values[table.index[name]]))

    chosen: list[str] = []
    if layout is not None:
        chosen = [n for n in layout.feature_names if known(n)][: 2 * _SAID]
    if not chosen:
        chosen = [next(filter(known, names), "") for names in _ALWAYS]
        chosen = [name for name in chosen if name]
        extreme = sorted(range(len(judged)), key=lambda k: -abs(ranks[row, k] - 0.5))
        for k in extreme:
            name = judged[k]
            if len(chosen) >= _SAID:
                break
            if known(name) and not any(n == name or kinship(n, name) for n in chosen):
                chosen.append(name)
    return {name: float(values[table.index[name]]) for name in chosen}


def _stands_out(
    table: DemandTable, judged: Sequence[str], ranks: Floats, rows: Sequence[int]
) -> Iterator[StandsOut]:
    """The two demands whose mean rank in a paradigm is farthest from the middle."""
    inside = np.zeros(len(table.names), np.bool_)
    inside[list(rows)] = True
    if inside.all():
        return
    far = np.abs(ranks[inside].mean(axis=0) - 0.5) if len(judged) else np.empty(0)
    told: list[str] = []
    for k in sorted(range(len(judged)), key=lambda k: -far[k]):
        name, column = judged[k], table.column(judged[k])
        own, others = (column[m & np.isfinite(column)] for m in (inside, ~inside))
        if far[k] < _FAR or len(told) == 2:
            return
        if not len(own) or not len(others) or any(kinship(name, one) for one in told):
            continue
        if np.median(own) == np.median(others):
            continue
        told.append(name)
        yield StandsOut(name, float(np.median(own)), float(np.median(others)))
