"""The instances of a battery with their demands as one table: CSV and Parquet, with units."""

from __future__ import annotations

import csv
import io
from typing import Any, Final, Literal, NamedTuple

from animalcat.service.batteries.battery import Battery
from animalcat.service.batteries.naming import LINK, link_of, task_of, variant_of

ORIGIN: Final = ("entry", "family", "paradigm", "part")
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
        return [
            None if instance.origin is None else getattr(instance.origin, name)
            for instance in instances
        ]

    return [
        Column("instance", "", [instance.name for instance in instances]),
        Column("suite", "", [instance.suite or None for instance in instances]),
        Column("stratum", "", [instance.paradigm for instance in instances]),
        *(Column(name, "", origin(name)) for name in ORIGIN),
        Column("task", "", [task_of(instance) or None for instance in instances]),
        Column("variant", "", [variant_of(instance) or None for instance in instances]),
        Column("group", "", [battery.groups[instance.name] for instance in instances]),
        *(
            Column(name, "", [getattr(link_of(one), name) or None for one in instances])
            for name in LINK
        ),
        Column("pass_mark", "", [instance.pass_mark for instance in instances]),
        Column(
            "solved",
            "",
            [None if solved is None else instance.name not in solved for instance in instances],
        ),
        *(
            Column(name, unit, [instance.features.get(name) for instance in instances])
            for name, unit in sorted(battery.units.items())
        ),
    ]


def csv_text(battery: Battery) -> str:
    """The table as CSV; an empty cell says that there is no value."""
    table = columns(battery)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([column.head for column in table])
    for row in zip(*(column.values for column in table), strict=True):
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
    frame = pd.DataFrame(
        {column.head: pd.Series(column.values, dtype=_type(column)) for column in table}
    )
    file = io.BytesIO()
    frame.to_parquet(file, engine="pyarrow", compression="zstd", index=False)
    return file.getvalue()


def _type(column: Column) -> Literal["boolean", "string", "float64"]:
    if column.name == "solved":
        return "boolean"
    if column.name in ("instance", "suite", "stratum", "task", "variant", "group", *ORIGIN, *LINK):
        return "string"
    return "float64"
