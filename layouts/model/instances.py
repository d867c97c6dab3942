"""Tables of instances with their meta-features, and of the agents' outcomes on them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.bool_] | Sequence[int]

_UNIT = re.compile(r"\s*\[[^\[\]]*\]\s*$")
"""A unit after the name of a column."""


class TableError(ValueError):
    """A table cannot be read or lacks a column; the message says which."""


@dataclass(frozen=True, eq=False)
class Instances:
    """Instances with their meta-features: those that a layout uses, and any others.

    Attributes:
        columns: Names of the meta-features.
        values: (instances, columns), in the units of the meta-features.
        paradigms: The kind of test that each instance is; empty if unknown.
        names: A name for each instance; empty if they have none.
    """

    columns: tuple[str, ...]
    values: Floats
    paradigms: tuple[str, ...] = ()
    names: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.columns):
            raise TableError(
                f"values have shape {self.values.shape}; {len(self.columns)} columns are named"
            )
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise TableError(f"column {twice[0]} is there {self.columns.count(twice[0])} times")
        for what, given in (("paradigms", self.paradigms), ("names", self.names)):
            if given and len(given) != len(self.values):
                raise TableError(f"{len(given)} {what} for {len(self.values)} instances")

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def column(self, name: str) -> Floats:
        """One meta-feature, (instances,).

        Raises:
            TableError: There is no such column.
        """
        return self.values[:, self._place(name)]

    def select(self, columns: Iterable[str]) -> Floats:
        """Select meta-features, (instances, columns), in the order asked for.

        Raises:
            TableError: A column is absent.
        """
        return self.values[:, [self._place(name) for name in columns]]

    def features(self, layout: Layout) -> Floats:
        """The features that a layout uses, checked: (instances, features).

        An absent column counts as missing everywhere if the layout has a rule for missing values.
        What a calibrated layout knows of an instance is found by the instance's name.

        Raises:
            ValueError: A column is absent, or a value is missing or out of range.
        """
        unknown = np.full(len(self), np.nan)
        values = [
            unknown
            if feature.if_missing is not None and feature.name not in self
            else self.column(feature.name)
            for feature in layout.features
        ]
        table = np.stack(values, axis=1)
        if layout.calibration is not None and self.names:
            known = layout.feature_names
            table = np.array(
                [
                    layout.row(name, dict(zip(known, row, strict=True)))
                    for name, row in zip(self.names, table.tolist(), strict=True)
                ]
            ).reshape(table.shape)
        return layout.check_features(table)

    def rows(self, rows: Rows) -> Instances:
        """Select instances, by index or by mask."""
        picked: list[int] = np.arange(len(self))[np.asarray(rows)].tolist()
        return Instances(
            self.columns,
            self.values[picked],
            tuple(self.paradigms[i] for i in picked) if self.paradigms else (),
            tuple(self.names[i] for i in picked) if self.names else (),
        )

    def _place(self, name: str) -> int:
        try:
            return self.columns.index(name)
        except ValueError:
            raise TableError(f"no column {name!r}; columns: {', '.join(self.columns)}") from None


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """Outcomes of agents on instances.

    Attributes:
        instances: The instances.
        agents: Names of the agents.
        outcomes: (agents, instances): success 1, failure 0, or a score; NaN where not played.
        weights: (instances,): how many outcomes each counts as; None for one each.
        notes: What was merged or weighted down, in sentences.
    """

    instances: Instances
    agents: tuple[str, ...]
    outcomes: Floats
    weights: Floats | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.outcomes.shape != (len(self.agents), len(self.instances)):
            raise TableError(
                f"outcomes have shape {self.outcomes.shape}; {len(self.agents)} agents and "
                f"{len(self.instances)} instances are given"
            )

    def of(self, agent: str) -> tuple[Instances, Floats]:
        """Return the instances that an agent played, and its outcomes on them.

        Raises:
            TableError: There is no such agent.
        """
        outcomes = self._row(agent)
        played = np.isfinite(outcomes)
        return self.instances.rows(played), outcomes[played]

    def weights_of(self, agent: str) -> Floats | None:
        """How many outcomes each that `of` returns counts as; None for one each.

        Raises:
            TableError: There is no such agent.
        """
        played = np.isfinite(self._row(agent))
        return None if self.weights is None else self.weights[played]

    def _row(self, agent: str) -> Floats:
        if agent not in self.agents:
            raise TableError(f"no agent {agent!r}; agents: {', '.join(self.agents)}")
        return self.outcomes[self.agents.index(agent)]


def read_csv(
    source: Path | str,
    agents: Sequence[str],
    *,
    name: str = "instance",
    paradigm: str = "paradigm",
    ignore: Sequence[str] = (),
) -> OutcomeTable:
    """Read a table with one row per instance: its meta-features and the outcomes of agents.

    An empty cell is an outcome that was not played, or a meta-feature that is not known.

    Args:
        source: A file, or the text itself.
        agents: The columns that hold outcomes; all other columns are meta-features,
            by their names and perhaps with units in brackets.
        name: The column with the names of instances, if there is one.
        paradigm: The column with the paradigms of instances, if there is one.
        ignore: Columns to leave out.

    Raises:
        TableError: The table cannot be read; the message names row and column.
    """
    header, rows = _table(source, agents)
    if lost := [agent for agent in agents if agent not in header]:
        raise TableError(f"no column {lost[0]!r} of outcomes; columns: {', '.join(header)}")
    words = {name, paradigm}
    columns = [c for c in header if c not in words and c not in agents and c not in ignore]
    numbers = {
        column: np.array(
            [_number(row[column], i, column) for i, row in enumerate(rows, 2)], np.float64
        )
        for column in (*columns, *agents)
    }
    instances = Instances(
        tuple(columns),
        np.array([numbers[c] for c in columns]).reshape(len(columns), len(rows)).T,
        tuple(row[paradigm] for row in rows) if paradigm in header else (),
        tuple(row[name] for row in rows) if name in header else (),
    )
    outcomes = np.array([numbers[a] for a in agents]).reshape(len(agents), len(rows))
    return OutcomeTable(instances, tuple(agents), outcomes)


def _table(source: Path | str, agents: Sequence[str]) -> tuple[list[str], list[dict[str, str]]]:
    """The header and the rows of a CSV file, or of CSV text; units are taken off the header."""
    try:
        text = source.read_text("utf-8-sig") if isinstance(source, Path) else source
    except OSError as error:
        raise TableError(f"{source}: {error.strerror or 'cannot be read'}") from None
    except UnicodeDecodeError:
        raise TableError(f"{source}: no text in UTF-8") from None
    reader = csv.reader(io.StringIO(text))
    header = [c if c in agents else _UNIT.sub("", c) for c in next(reader, list[str]())]
    if twice := [c for c in header if header.count(c) > 1]:
        raise TableError(f"column {twice[0]} is there {header.count(twice[0])} times")
    rows: list[dict[str, str]] = []
    for i, cells in enumerate(reader, 2):
        if not cells:
            continue
        if len(cells) != len(header):
            raise TableError(f"line {i}: {len(cells)} cells; the header has {len(header)}")
        rows.append(dict(zip(header, cells, strict=True)))
    return header, rows


def _number(cell: str, line: int, column: str) -> float:
    if not cell.strip():
        return float("nan")
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise TableError(f"line {line}, column {column}: {cell!r} is no finite number")
    return value
