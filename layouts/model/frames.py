"""Reads pandas tables of instances, by the rules by which tables in files are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.tables import (
    Sheet,
    TableError,
    guess,
    name_and_unit,
    nearest,
    of_kind,
)

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = npt.NDArray[np.float64]

NAME: Final = "instance"
"""The column that names instances; without it, the index does."""
PARADIGM: Final = "paradigm"
"""The column with the kind of test that each instance is."""
_NAMED: Final = 3
"""Most rows that a message names."""


def insist_frame(frame: object, call: str) -> pd.DataFrame:
    """Require a pandas table.

    Args:
        frame: What was given.
        call: The call that was meant, for the message.

    Raises:
        TypeError: It is something else.
    """
    import pandas as pd

    if isinstance(frame, pd.DataFrame):
        return frame
    kind = type(frame).__name__
    hint = {
        "str": "read a file by pandas.read_csv(path) first",
        "Series": "make a table of it by series.to_frame()",
        "dict": "make a table of it by pandas.DataFrame(columns)",
        "list": "make a table of it by pandas.DataFrame(rows)",
    }.get(kind, "it has a row for each instance and a column for each meta-feature")
    if hasattr(frame, "__fspath__"):
        hint = "read a file by pandas.read_csv(path) first"
    elif hasattr(frame, "to_pandas"):
        hint = "convert it by df.to_pandas()"
    raise TypeError(f"{call}: df is {of_kind(frame)}, and a pandas DataFrame is expected; {hint}")


def instances_in(frame: pd.DataFrame, layout: Layout, without: Sequence[str] = ()) -> Instances:
    """The instances of a table, with the columns that a layout needs and all others of numbers.

    Columns of text that the layout does not need are left alone. Names are those of the column
    `instance`, or else of the index.

    Args:
        frame: The table.
        layout: The layout.
        without: Columns that are no meta-features.

    Raises:
        TableError: Columns are missing, or a cell is no number.
    """
    sheet = sheet_of(frame)
    if NAME not in sheet and frame.index.hasnans:
        raise TableError("the table's index, which names its rows, has gaps; name all of them")
    _insist_complete(sheet, layout)
    needed = {*layout.feature_names, *(exclusion.feature for exclusion in layout.excludes)}
    columns = [
        name
        for head, name in zip(sheet.heads, sheet.names, strict=True)
        if name in needed or (_numeric(frame[head]) and name not in {NAME, PARADIGM, *without})
    ]
    values = np.array([sheet.numbers(name) for name in columns], np.float64)
    return Instances(
        tuple(columns),
        values.reshape(len(columns), len(frame)).T,
        tuple(sheet.column(PARADIGM)) if PARADIGM in sheet else (),
        sheet.row_names(NAME) if NAME in sheet else tuple(map(str, frame.index)),
        tuple(sheet.unit(name) for name in columns),
    )


def insist_described(instances: Instances, frame: pd.DataFrame, layout: Layout) -> None:
    """Refuse instances that a layout does not describe.

    Raises:
        TableError: There are some; the message says which, and how to leave them out.
    """
    covered = instances.covered(layout)
    out = [row for row, why in enumerate(covered.reasons) if why]
    if out:
        labels = ", ".join(repr(_plain(frame.index[row])) for row in out[:_NAMED])
        more = ", ..." * (len(out) > _NAMED)
        raise TableError(
            f"layout {layout.name} does not describe {covered.gaps}. Leave these rows out: "
            f"df.drop(index=[{labels}{more}])"
        )


def outcomes_in(frame: pd.DataFrame, columns: Sequence[str]) -> Floats:
    """Columns of outcomes: numbers, true and false, or success and failure.

    Args:
        frame: The table.
        columns: The columns.

    Returns:
        (instances, columns); NaN where a cell is empty.

    Raises:
        TableError: There is no such column, or a cell is none of these.
    """
    sheet = sheet_of(frame)
    for column in columns:
        if column not in sheet.heads:
            raise TableError(
                f"no column {column!r} of outcomes; columns: {', '.join(sheet.heads)}."
                f"{guess(column, sheet.heads)} Name the one that has them: "
                'fit(layout, df, outcome="COLUMN")'
            )
    return np.array([sheet.outcomes(name_and_unit(column)[0]) for column in columns]).T


def sheet_of(frame: pd.DataFrame) -> Sheet:
    """The cells of a pandas table as text, which is then read as that of a file is.

    Raises:
        TableError: The table has no rows, a column has no plain name, or two have one name.
    """
    heads = [*map(_plain, frame.columns)]
    if odd := [head for head in heads if not isinstance(head, str)]:
        raise TableError(
            f"the table's columns have names that are not text; the first is {odd[0]!r}; "
            "name them: df.columns = [...]"
        )
    if not len(frame):
        raise TableError(f"the table has no rows below its columns {', '.join(heads)}")
    split = [name_and_unit(head) for head in heads]
    for name, count in Counter(name for name, _ in split).items():
        if count > 1:
            raise TableError(f"column {name} is there {count} times")
    cells = [_cells(frame.iloc[:, k]) for k in range(len(heads))]
    return Sheet(
        tuple(heads),
        tuple(name for name, _ in split),
        tuple(unit for _, unit in split),
        (),
        tuple(zip(*cells, strict=True)) if cells else ((),) * len(frame),
        tuple(f"row {_plain(label)!r}" for label in frame.index),
    )


def _insist_complete(sheet: Sheet, layout: Layout) -> None:
    """Refuse a table without a column that a layout cannot do without."""
    taught = {layout.feature_names[k] for k in layout.taught}
    missing = [
        feature.name
        for feature in layout.features
        if feature.if_missing is None
        and not feature.counts
        and feature.name not in taught
        and feature.name not in sheet
    ]
    if not missing:
        return
    others = [
        head
        for head, name in zip(sheet.heads, sheet.names, strict=True)
        if name not in layout.feature_names
    ]
    close = ", ".join(f"{(nearest(name, others) or 'COLUMN')!r}: {name!r}" for name in missing)
    which = " and ".join(filter(None, (", ".join(map(repr, missing[:-1])), repr(missing[-1]))))
    raise TableError(
        f"the table has no column {which}, which layout {layout.name} needs; columns: "
        f"{', '.join(sheet.heads)}. Name what stands for it: df.rename(columns={{{close}}})"
    )


def _numeric(column: pd.Series[Any]) -> bool:
    return column.dtype.kind in "biuf"


def _cells(column: pd.Series[Any]) -> list[str]:
    there = column.notna().tolist()
    return [
        str(_plain(cell)).strip() if known else ""
        for cell, known in zip(column.tolist(), there, strict=True)
    ]


def _plain(value: Any) -> Any:
    """A value of numpy as Python has it, for messages."""
    scalar: Any = value
    return scalar.item() if isinstance(value, np.generic) else value
