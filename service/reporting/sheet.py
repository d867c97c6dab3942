"""The contact sheet: which arenas of a battery are shown by a map, and what is said of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
"""Least distance of a heading's mean rank from 0.5 by which it stands out."""


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
    """A demand by which the instances of a heading differ from the rest of their battery.

    Attributes:
        demand: The demand.
        median: Its median under the heading.
        others: Its median under the other headings.
    """

    demand: str
    median: float
    others: float


class SheetPart(NamedTuple):
    """One heading of the sheet with its instances.

    Attributes:
        heading: A paradigm, or what the names of several have in common.
        stands_out: By what it differs from the others, most first.
        rows: Its instances by name.
    """

    heading: str
    stands_out: tuple[StandsOut, ...]
    rows: tuple[SheetRow, ...]


def sheet(table: DemandTable, layout: Layout | None = None, maps: int = MAPS) -> list[SheetPart]:
    """Lay out the contact sheet, heading by heading.

    Every paradigm gets the same number of maps, at most `MAPS_EACH`. The first is of its most
    typical instance, by ranks of all demands. Each further one is of the instance that differs most
    from those that are shown already.

    Args:
        table: The demands.
        layout: A layout, whose demands are said of every instance.
        maps: Most maps in all; if there are more paradigms, the first have one each.
    """
    judged = [n for n in table.varying if table.demands[table.index[n]].group != LOOK]
    ranks = table.ranks[:, [table.index[name] for name in judged]]
    shown = set(_shown(ranks, _by(table.paradigms), maps))
    return [
        SheetPart(
            heading,
            tuple(_stands_out(table, judged, ranks, rows)),
            tuple(
                SheetRow(table.names[i], _main(table, layout, judged, ranks, i), i in shown)
                for i in rows
            ),
        )
        for heading, rows in _by(table.headings).items()
    ]


def _by(groups: Sequence[str]) -> dict[str, list[int]]:
    """Rows by group, in order of the groups' names."""
    rows: dict[str, list[int]] = {name: [] for name in sorted(set(groups))}
    for i, name in enumerate(groups):
        rows[name].append(i)
    return rows


def _shown(ranks: Floats, paradigms: Mapping[str, Sequence[int]], maps: int) -> Iterator[int]:
    """Rows that have a map."""
    sizes = [len(rows) for rows in paradigms.values()]
    fits = [k for k in range(1, MAPS_EACH + 1) if sum(min(k, n) for n in sizes) <= maps]
    for number, rows in enumerate(paradigms.values()):
        yield from _spaced(ranks, rows, max(fits, default=int(number < maps)))


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
        nearest[at] = -1.0  # equal ones differ by 0
        at = int(np.argmax(nearest))


def _main(
    table: DemandTable, layout: Layout | None, judged: Sequence[str], ranks: Floats, row: int
) -> dict[str, float]:
    """The demands that are said of an instance.

    These are the layout's, without counts and codes that are 0. Without a layout they are the way,
    the size of the goal, and those by which the instance is most extreme in its battery.
    """
    values = table.values[row]

    def known(name: str) -> bool:
        return name in table.index and bool(np.isfinite(values[table.index[name]]))

    def asked(name: str) -> bool:
        return table.step(name) is None or values[table.index[name]] != 0.0

    chosen: list[str] = []
    if layout is not None:
        chosen = [name for name in layout.feature_names if known(name) and asked(name)]
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
    """The two demands whose mean rank under a heading is farthest from the middle."""
    inside = np.zeros(len(table.names), np.bool_)
    inside[list(rows)] = True
    if inside.all():
        return
    far = np.abs(ranks[inside].mean(axis=0) - 0.5) if len(judged) else np.empty(0)
    named: list[str] = []
    for k in sorted(range(len(judged)), key=lambda k: -far[k]):
        name, column = judged[k], table.column(judged[k])
        own, others = (column[m & np.isfinite(column)] for m in (inside, ~inside))
        if far[k] < _FAR or len(named) == 2:
            return
        if not len(own) or not len(others) or any(kinship(name, earlier) for earlier in named):
            continue
        if np.median(own) == np.median(others):
            continue
        named.append(name)
        yield StandsOut(name, float(np.median(own)), float(np.median(others)))
