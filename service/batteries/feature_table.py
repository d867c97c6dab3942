"""Reads a user's table: what kinds its instances are, and meta-features, joined by name."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from animalcat.arena_configs.model import ARENA_SIDE
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.layouts.model.tables import Sheet, TableError, read_sheet
from animalcat.layouts.model.units import UnitError, conversion
from animalcat.service.batteries.naming import (
    KIND,
    LINK,
    MOST,
    ControlLink,
    KnownNames,
    NamesError,
    TaskKind,
    some,
)

INSTANCE: Final = "instance"
CHOICES: Final = "choices"
"""Column that marks places, as in `right 10 20 2; wrong 30 20 2`: x, z and radius in metres."""
CLOSE: Final = 1e-6
"""Tolerance, relative and absolute, between a value given and the same feature as measured."""

_TEXT: Final = (INSTANCE, *KIND, *LINK, CHOICES)
"""Columns that hold text; every other one is a meta-feature."""
_NAME: Final = re.compile(r"[A-Za-z_]\w{0,63}")


class TableRow(NamedTuple):
    """One row of a table.

    Attributes:
        line: Line in the table, as a spreadsheet counts: the header is line 1.
        values: Feature values by name, without those of empty cells.
        places: Places that are marked as choices.
        kind: What kind of task the instance is, as far as the table says it.
        link: Of which instance it is a control, as far as the table says it.
    """

    line: int
    values: Mapping[str, float]
    places: tuple[MarkedPlace, ...]
    kind: TaskKind = TaskKind()
    link: ControlLink = ControlLink()


class FeatureTable(NamedTuple):
    """What a user says of instances.

    Attributes:
        units: Unit of every feature; "" for none.
        rows: Row by instance name.
        says_links: Whether it has a column that says which instances are controls.
    """

    units: Mapping[str, str]
    rows: Mapping[str, TableRow]
    says_links: bool = False

    @property
    def kinds(self) -> dict[str, TaskKind]:
        """What kind of task the instances are, by name."""
        return {name: row.kind for name, row in self.rows.items()}

    @property
    def links(self) -> dict[str, ControlLink] | None:
        """Of which instance each is a control, by name; None where no column says it."""
        return {name: row.link for name, row in self.rows.items()} if self.says_links else None

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
        known = KnownNames(instances)
        rows: dict[str, TableRow] = {}
        for given, row in self.rows.items():
            try:
                name = known.find(given) or given
            except NamesError as error:
                raise TableError(f"table, line {row.line}: {error}") from None
            if name in rows:
                raise TableError(
                    f"table, line {row.line}: instance {given!r} was on line {rows[name].line}"
                )
            rows[name] = row
        table = self._replace(rows=rows)
        table.check(set(instances))
        return table

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
            TableError: A column has the name of a measured feature but another value, or a unit
                that is none of the feature's.
        """
        row = self.rows[instance]
        for name in self.units.keys() & units.keys():
            given, measured = row.values.get(name), values.get(name)
            same = (
                given == measured
                if given is None or measured is None
                else math.isclose(
                    given * self._factor(name, units[name]), measured, rel_tol=CLOSE, abs_tol=CLOSE
                )
            )
            if not same:
                raise TableError(
                    f"table, line {row.line}, column {name}: {_say(given, self.units[name])}, but "
                    f"{name} is a measured feature and is {_say(measured, units[name])}; give a "
                    "feature of your own another name"
                )
        own = {name: value for name, value in row.values.items() if name not in units}
        missing = self.units.keys() - row.values.keys() - units.keys()
        return {**values, **own}, dict.fromkeys(sorted(missing), "empty in the table")

    def _factor(self, name: str, wanted: str) -> float:
        """By what to multiply a column of a measured feature; one without a unit is in its own."""
        try:
            return conversion(self.units[name], wanted) if self.units[name] else 1.0
        except UnitError as error:
            raise TableError(f"table, column {name} [{self.units[name]}]: {error}") from None


def is_feature_name(name: str) -> bool:
    """Whether a column may be a feature by its name."""
    return bool(_NAME.fullmatch(name))


def read_table(text: str) -> FeatureTable:
    """Parse a table.

    Args:
        text: CSV with a header. The columns are `instance`, any of `suite`, `paradigm`, `task`,
            `variant`, `control` and `control_of`, one per feature, written `name` or `name [unit]`,
            and optionally `choices`. An empty cell means that the feature does not apply, or that
            the table does not say it.

    Raises:
        TableError: The table cannot be read; the message names line and column.
    """
    try:
        return _table(read_sheet(text.encode()))
    except TableError as error:
        said = str(error)
        raise TableError(
            f"table{', ' if said.startswith(('line ', 'column ')) else ': '}{said}"
        ) from None


def _table(sheet: Sheet) -> FeatureTable:
    """What a sheet says.

    Raises:
        TableError: It says something else; the message names line and column.
    """
    for head, name, unit in zip(sheet.heads, sheet.names, sheet.units, strict=True):
        if not is_feature_name(name):
            raise TableError(
                f"column {head!r}: give a name of letters, digits and _, followed by its unit "
                "in brackets if it has one, as in `noise [dB]`"
            )
        if unit and name in _TEXT:
            raise TableError(f"column `{head}`: {name} is text and has no unit")
    instances = sheet.column(INSTANCE)
    features = [name for name in sheet.names if name not in _TEXT]
    try:
        columns = {name: sheet.numbers(name) for name in features}
    except TableError as error:
        raise TableError(f"{error}. Text stands in the columns {', '.join(_TEXT)}") from None
    said = {name: sheet.column(name) for name in _TEXT if name in sheet}
    rows: dict[str, TableRow] = {}
    for i, (line, instance) in enumerate(zip(sheet.lines, instances, strict=True)):
        if not instance:
            raise TableError(f"line {line}, column {INSTANCE}: it is empty")
        if instance in rows:
            raise TableError(
                f"line {line}: instance {instance!r} was on line {rows[instance].line}"
            )
        cells = {name: column[i] for name, column in said.items()}
        rows[instance] = TableRow(
            line,
            {name: column[i] for name, column in columns.items() if not math.isnan(column[i])},
            _choices(cells.get(CHOICES, ""), line),
            TaskKind(**{part: _text(cells.get(part, ""), line, part) for part in KIND}),
            ControlLink(**{part: _text(cells.get(part, ""), line, part) for part in LINK}),
        )
    units = {name: sheet.unit(name) or "" for name in features}
    return FeatureTable(
        {n: "" if unit == "1" else unit for n, unit in units.items()},
        rows,
        says_links=any(name in sheet for name in LINK),
    )


def _text(cell: str, line: int, column: str) -> str:
    """Return what a table says in a column of text."""
    if len(cell) > MOST or not (cell.isprintable() or not cell):
        raise TableError(
            f"line {line}, column {column}: {cell[:MOST]!r}: give at most {MOST} printable "
            "characters"
        )
    return cell


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
            f"line {line}, column {CHOICES}: {text.strip()!r}; give right or wrong, then x "
            f"and z from 0 to {ARENA_SIDE:g} and a radius above 0, in metres, as in `right 10 20 2`"
        )
    return MarkedPlace(kind == "right", x, z, radius)


def _say(value: float | None, unit: str) -> str:
    return "nothing" if value is None else f"{value:g}{f' {unit}' * bool(unit)}"
