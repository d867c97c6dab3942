"""Reads tables of outcomes that were made elsewhere: one row an instance, one column an agent."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import typer

from animalcat.cli.shared.output import fail

INSTANCE: Final = "instance"
"""The column that names instances."""


def read_rewards(path: Path) -> pd.DataFrame:
    """Final rewards: instances as the index, one float column an agent, NaN for an empty cell."""
    table = _read(path)
    if table.columns.empty:
        fail(f"{path}: no column besides `{INSTANCE}`; one column of final rewards an agent")
    return _numbers(table, path)


def read_pass_marks(path: Path) -> pd.Series[float]:
    """Pass marks, instances as the index, NaN for an empty cell."""
    table = _read(path)
    if "pass_mark" not in table.columns:
        fail(f"{path}: no column `pass_mark`; columns: {INSTANCE}, {', '.join(table.columns)}")
    return _numbers(table[["pass_mark"]], path)["pass_mark"]


def pass_marks_of(
    path: Path, wanted: Collection[str], known: Collection[str] = ()
) -> dict[str, float]:
    """Pass marks by instance; ends the command where one that is wanted has none.

    Pass marks of instances that nobody knows are not used, which is said.

    Args:
        path: The table.
        wanted: The instances that need a pass mark.
        known: Other instances that there are.
    """
    marks = {str(k): float(v) for k, v in read_pass_marks(path).items() if not np.isnan(v)}
    there = {*wanted, *known}
    strange = [name for name in marks if name not in there]
    if strange and len(strange) == len(marks):
        fail(f"{path}: none of its instances is known here (the first is {strange[0]!r})")
    if lost := [name for name in wanted if name not in marks]:
        fail(f"{path}: {lost[0]} has no pass mark")
    if strange:
        typer.echo(
            f"note: {path}: {len(strange)} pass marks are not used, since no arena has the name "
            f"(the first is {strange[0]!r})",
            err=True,
        )
    return marks


def _read(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except pd.errors.EmptyDataError:
        table = pd.DataFrame()
    except OSError as error:
        fail(f"{path}: {error.strerror or 'cannot be read'}")
    except ValueError as error:  # of which pandas' parser errors and wrong encodings are kinds
        fail(f"{path}: no CSV text in UTF-8: {error}")
    if INSTANCE not in table.columns:
        listed = ", ".join(table.columns) or "none"
        fail(f"{path}: no column `{INSTANCE}`; columns: {listed}")
    table = table.set_index(INSTANCE)
    counts = table.index.value_counts()
    if (counts > 1).any():
        fail(f"{path}: instance {counts.index[0]} has {counts.iloc[0]} rows; one is wanted")
    return table


def _numbers(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    numbers = table.apply(pd.to_numeric, errors="coerce")
    given = table.map(str.strip) != ""
    for problem, wrong in (
        ("is no finite number", given & numbers.isna()),
        ("is not finite", pd.DataFrame(np.isinf(numbers))),
    ):
        if wrong.to_numpy().any():
            row, column = np.argwhere(wrong.to_numpy())[0]
            where = f"{path}: instance {table.index[row]}, column {table.columns[column]}"
            fail(f"{where}: {table.iat[row, column]!r} {problem}")
    return numbers
