"""Reads a user's table: what kinds its instances are, and meta-features, joined by name."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.arena_files import is_yaml
from animalcat.service.batteries.naming import KIND, MOST, Kind, some

INSTANCE: Final = "instance"
CHOICES: Final = "choices"
"""Column that marks places, as in `right 10 20 2; wrong 30 20 2`: x, z and radius in metres."""
CLOSE: Final = 1e-6
"""Tolerance, relative and absolute, between a value given and the same feature as measured."""

_HEADER: Final = re.compile(r"\s*([^\[\]]*?)\s*(?:\[\s*([^\[\]]*?)\s*\])?\s*")
_NAME: Final = re.compile(r"[A-Za-z_]\w{0,63}")


class TableError(ValueError):
    """A table that cannot be used; the message names the place."""


class FeatureRow(NamedTuple):
    """One row of a table.

    Attributes:
        line: Line in the table, counted from 1.
        values: Feature values by name, without those of empty cells.
        places: Places that are marked as choices.
        kind: What kind of task the instance is, as far as the table says it.
    """

    line: int
    values: Mapping[str, float]
    places: tuple[MarkedPlace, ...]
    kind: Kind = Kind()


class FeatureTable(NamedTuple):
    """What a user says of instances.

    Attributes:
        units: Unit of every feature; "" for none.
        rows: Row by instance name.
    """

    units: Mapping[str, str]
    rows: Mapping[str, FeatureRow]

    @property
    def kinds(self) -> dict[str, Kind]:
        """What kind of task the instances are, by name."""
        return {name: row.kind for name, row in self.rows.items()}

    def resolved(self, instances: Collection[str]) -> FeatureTable:
        """Return the table with instances called by their names.

        A row may also call an instance by its file, or by the file's name without the folders if no
        other has it.

        Args:
            instances: Names of the instances.

        Raises:
            TableError: A row names an instance that is not there, or one of several; two rows name
                the same; or an instance has no row.
        """
        known, files = set(instances), dict[str, list[str]]()
        for name in sorted(known):
            files.setdefault(PurePosixPath(name).name, []).append(name)
        rows: dict[str, FeatureRow] = {}
        for given, row in self.rows.items():
            name = given if given in known else _stem(given)
            if name not in known:
                alike = files.get(name, [])
                if len(alike) > 1:
                    raise TableError(
                        f"table, line {row.line}: {given!r} is {some(alike)}; give the folder too"
                    )
                name = alike[0] if alike else given
            if name in rows:
                raise TableError(
                    f"table, line {row.line}: instance {given!r} was on line {rows[name].line}"
                )
            rows[name] = row
        made = self._replace(rows=rows)
        made.check(known)
        return made

    def check(self, instances: Collection[str]) -> None:
        """Check that every instance has a row, and that there are no other rows.

        Raises:
            TableError: A row is missing, or belongs to no instance.
        """
        for name, row in self.rows.items():
            if name not in instances:
                raise TableError(
                    f"table, line {row.line}: the battery has no instance {name!r}; it has "
                    f"{some(sorted(instances))}"
                )
        if lost := sorted(set(instances) - set(self.rows)):
            raise TableError(
                f"table: no row for {some(lost)}; give every instance a row, with empty cells "
                "where a feature does not apply"
            )

    def joined(
        self, instance: str, values: Mapping[str, float], units: Mapping[str, str]
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Join an instance's measured features with the user's own ones.

        Args:
            instance: Name of the instance.
            values: The measured features.
            units: Unit by measured feature.

        Returns:
            All features by name, and the reason for each of the user's own that is missing.

        Raises:
            TableError: A column has the name of a measured feature but another value or unit.
        """
        row = self.rows[instance]
        for name in self.units.keys() & units.keys():
            given, found = row.values.get(name), values.get(name)
            same = (
                given == found
                if given is None or found is None
                else math.isclose(given, found, rel_tol=CLOSE, abs_tol=CLOSE)
            )
            if not same or self.units[name] != units[name]:
                raise TableError(
                    f"table, line {row.line}, column {name}: {_said(given, self.units[name])}, but "
                    f"{name} is a measured feature and is {_said(found, units[name])}; give a "
                    "feature of your own another name"
                )
        own = {name: value for name, value in row.values.items() if name not in units}
        missing = self.units.keys() - row.values.keys() - units.keys()
        return {**values, **own}, dict.fromkeys(sorted(missing), "empty in the table")


def read_table(text: str) -> FeatureTable:
    """Parse a table.

    Args:
        text: CSV with a header. The columns are `instance`, any of `suite`, `paradigm`, `task`
            and `variant`, one per feature, written `name` or `name [unit]`, and optionally
            `choices`. An empty cell means that the feature does not apply, or that the table does
            not say it.

    Raises:
        TableError: The table cannot be read; the message names line and column.
    """
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    try:
        lines = [(reader.line_num, cells) for cells in reader if any(map(str.strip, cells))]
    except csv.Error as error:
        raise TableError(f"table, line {reader.line_num}: {error}") from error
    if not lines:
        raise TableError("table: it is empty; its first line names the columns")
    columns = [_column(cell) for cell in lines[0][1]]
    names = [name for name, _ in columns]
    if INSTANCE not in names:
        raise TableError(f"table: no column `{INSTANCE}`; columns: {', '.join(names)}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise TableError(f"table: two columns are named {twice}")
    for name, unit in columns:
        if unit and name in (*KIND, INSTANCE, CHOICES):
            raise TableError(f"table: column `{name} [{unit}]`: {name} is text and has no unit")
    rows: dict[str, FeatureRow] = {}
    for number, cells in lines[1:]:
        if len(cells) != len(names):
            raise TableError(
                f"table, line {number}: {len(cells)} cells; the header has {len(names)}"
            )
        row = dict(zip(names, map(str.strip, cells), strict=True))
        instance = row.pop(INSTANCE)
        if not instance:
            raise TableError(f"table, line {number}, column {INSTANCE}: it is empty")
        if instance in rows:
            raise TableError(
                f"table, line {number}: instance {instance!r} was on line {rows[instance].line}"
            )
        places = _choices(row.pop(CHOICES, ""), number)
        kind = Kind(**{part: _text(row.pop(part, ""), number, part) for part in KIND})
        values = {name: _number(cell, number, name) for name, cell in row.items() if cell}
        rows[instance] = FeatureRow(number, values, places, kind)
    units = {name: unit for name, unit in columns if name not in (INSTANCE, CHOICES, *KIND)}
    return FeatureTable(units, rows)


def _column(cell: str) -> tuple[str, str]:
    """Return the name and the unit in a column's header."""
    matched = _HEADER.fullmatch(cell)
    if matched is None or not _NAME.fullmatch(matched[1]):
        raise TableError(
            f"table: column {cell!r}: give a name of letters, digits and _, followed by its unit "
            "in brackets if it has one, as in `noise [dB]`"
        )
    unit = matched[2] or ""
    return matched[1], "" if unit == "1" else unit


def _number(cell: str, line: int, column: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise TableError(
            f"table, line {line}, column {column}: {cell!r} is not a finite number; text columns "
            f"are {', '.join((INSTANCE, *KIND, CHOICES))}"
        )
    return value


def _text(cell: str, line: int, column: str) -> str:
    """Return what a table says in a column of text."""
    if len(cell) > MOST or not (cell.isprintable() or not cell):
        raise TableError(
            f"table, line {line}, column {column}: {cell[:MOST]!r}: give at most {MOST} printable "
            "characters"
        )
    return cell


def _stem(file: str) -> str:
    """Return the name of the instance of a file."""
    return str(PurePosixPath(file).with_suffix("")) if is_yaml(file) else file


def _choices(cell: str, line: int) -> tuple[MarkedPlace, ...]:
    return tuple(_place(part, line) for part in cell.split(";") if part.strip())


def _place(text: str, line: int) -> MarkedPlace:
    kind, *numbers = text.split()
    try:
        x, z, radius = map(float, numbers)
    except ValueError:
        x = z = radius = math.nan
    inside = 0.0 <= x <= ARENA_SIDE and 0.0 <= z <= ARENA_SIDE and 0.0 < radius < math.inf
    if kind not in ("right", "wrong") or not inside:
        raise TableError(
            f"table, line {line}, column {CHOICES}: {text.strip()!r}; give right or wrong, then x "
            f"and z from 0 to {ARENA_SIDE:g} and a radius above 0, in metres, as in `right 10 20 2`"
        )
    return MarkedPlace(kind == "right", x, z, radius)


def _said(value: float | None, unit: str) -> str:
    return "nothing" if value is None else f"{value:g}{f' {unit}' * bool(unit)}"
