"""The instances of a battery with their demands as one table: CSV and Parquet, with units."""

from __future__ import annotations

import csv
import io
from typing import Any, Final, Literal, NamedTuple

from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.naming import task_of, variant_of

ORIGIN: Final = ("entry", "family", "paradigm", "part", "control", "control_of")
"""Columns that say where an instance comes from; empty for arena files."""


class Column(NamedTuple):
    """A column of the table.

    Attributes:
        name: Its name.
        unit: Unit; empty for none.
        values: Texts, numbers or truth values; None where there is none.
    """

    name: str
    unit: str
    values: list[Any]

    @property
    def head(self) -> str:
        """Its name with its unit, as in `wayLength [m]`."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


def columns(battery: Battery) -> list[Column]:
    """The columns of a battery's table: what an instance is, then its demands by name."""
    instances = battery.instances
    solved = battery.unsolved

    def origin(name: str) -> list[Any]:
        return [None if one.origin is None else getattr(one.origin, name) for one in instances]

    return [
        Column("instance", "", [one.name for one in instances]),
        Column("suite", "", [one.suite or None for one in instances]),
        Column("stratum", "", [one.paradigm for one in instances]),
        *(Column(name, "", origin(name)) for name in ORIGIN[:4]),
        Column("task", "", [task_of(one) or None for one in instances]),
        Column("variant", "", [variant_of(one) or None for one in instances]),
        Column("group", "", [battery.groups[one.name] for one in instances]),
        *(Column(name, "", origin(name)) for name in ORIGIN[4:]),
        Column("pass_mark", "", [one.pass_mark for one in instances]),
        Column(
            "solved", "", [None if solved is None else one.name not in solved for one in instances]
        ),
        *(
            Column(name, unit, [one.features.get(name) for one in instances])
            for name, unit in sorted(battery.units.items())
        ),
    ]


def csv_text(battery: Battery) -> str:
    """The table as CSV; an empty cell says that there is no value."""
    table = columns(battery)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([one.head for one in table])
    for row in zip(*(one.values for one in table), strict=True):
        writer.writerow(["" if value is None else _cell(value) for value in row])
    return file.getvalue()


def _cell(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def parquet_bytes(battery: Battery) -> bytes:
    """The table as Parquet, under the names of columns that the CSV has.

    The same battery gives the same bytes with the same versions of pandas and pyarrow.
    """
    import pandas as pd

    table = columns(battery)
    frame = pd.DataFrame({one.head: pd.Series(one.values, dtype=_type(one)) for one in table})
    file = io.BytesIO()
    frame.to_parquet(file, engine="pyarrow", compression="zstd", index=False)
    return file.getvalue()


def _type(column: Column) -> Literal["boolean", "string", "float64"]:
    if column.name == "solved":
        return "boolean"
    if column.name in ("instance", "suite", "stratum", "task", "variant", "group", *ORIGIN):
        return "string"
    return "float64"
