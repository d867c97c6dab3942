"""Makes batteries of tables of demands: a row is an instance that has no arena."""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np

from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.instance import Instance
from animalcat.layouts.model.tables import TableError, read_sheet
from animalcat.layouts.model.units import UnitError, conversion
from animalcat.service.batteries.battery import Battery, NamedLayout, load
from animalcat.service.batteries.columns import ROWS
from animalcat.service.batteries.drafts import Fixed, instance_seed, silent
from animalcat.service.batteries.estimate import Tick, with_estimate
from animalcat.service.batteries.feature_table import CHOICES, INSTANCE, is_feature_name
from animalcat.service.batteries.naming import KIND, LINK, paradigm_of
from animalcat.service.batteries.writing import write_battery
from animalcat.text import names

MOST_NAME: Final = 500
"""Most characters of an instance's name."""
_PARQUET: Final = b"PAR1"
_INDEX: Final = "__index_level_"
"""How the column begins that pandas makes of row numbers."""
_BLOCK: Final = 8 << 20
"""Bytes of CSV that are read at a time."""


class _Column(NamedTuple):
    """A column of features.

    Attributes:
        head: Its head in the table.
        name: The feature.
        unit: Its unit in the battery; "" for none.
        factor: By what the values are multiplied for that.
    """

    head: str
    name: str
    unit: str
    factor: float


def import_demands(
    table: IO[bytes],
    seed: int,
    store: Path,
    tick: Tick = silent,
    *,
    layout: NamedLayout | None = None,
) -> Battery:
    """Make a battery of a table of demands.

    Nothing is measured, and there are no arenas: only a backend that has `load_demands` plays it.
    An episode succeeds where its return is above 0, and has no time limit. A column in the name of
    a measured feature stands for that and has its unit. Only some rows are held as instances at a
    time; the columns are held once, sorted by name.

    Args:
        table: An open file: Parquet, or CSV in UTF-8 with a header. The columns are `instance`,
            any of `suite`, `paradigm`, `task` and `variant`, and one per feature, written `name` or
            `name [unit]`. An empty cell means that the feature does not apply.
        seed: Each instance has a seed that follows from this and from its name.
        store: Folder that holds batteries by digest.
        tick: Told of progress; an exception that it raises ends the import.
        layout: The layout that the battery is to name; None for none.

    Raises:
        TableError: The table cannot be read; the message names the column, and the instance or
            line.
    """
    tick(0, 0, "reading the table")
    given, parquet = _heads(table)
    heads = [head.strip() for head in given]
    columns = _columns(heads)
    rows = _sort_rows(_read(table, heads, columns, parquet=parquet))
    timed = with_estimate(tick)

    def fixed() -> Generator[Fixed]:
        for number, instance in enumerate(_instances(rows, columns, seed), 1):
            timed(number, rows.num_rows, "writing instances")
            yield Fixed(instance, "")

    units = {column.name: column.unit for column in columns}
    with closing(fixed()) as instances:
        digest = write_battery(instances, units, store, layout=layout)
    return load(digest, store)


def _heads(table: IO[bytes]) -> tuple[list[str], bool]:
    """The heads of a table's columns, and whether it is Parquet."""
    table.seek(0)
    if table.read(len(_PARQUET)) == _PARQUET:
        arrow: Any = import_module("pyarrow")
        try:
            return list(import_module("pyarrow.parquet").read_schema(table).names), True
        except arrow.ArrowException as error:
            raise TableError(f"table: it is no whole Parquet file: {error}") from None
    table.seek(0)
    file = io.TextIOWrapper(table, encoding="utf-8-sig", newline="")
    try:
        first = next(csv.reader(file), list[str]())
    except (UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"table: neither Parquet nor CSV in UTF-8: {error}") from None
    finally:
        file.detach()  # else it would close the table
    return first, False


def _columns(heads: Sequence[str]) -> list[_Column]:
    """The columns of features, by the rules of all tables."""
    text = io.StringIO()
    csv.writer(text).writerow(heads)
    try:
        sheet = read_sheet(text.getvalue().encode(), may_be_empty=True)
    except TableError as error:
        raise TableError(f"table: {error}") from None
    if INSTANCE not in sheet:
        raise TableError(f"table: no column `{INSTANCE}`; columns: {', '.join(sheet.names)}")
    columns: list[_Column] = []
    for head, name, unit in zip(sheet.heads, sheet.names, sheet.units, strict=True):
        if name in (CHOICES, *LINK):
            raise TableError(
                f"table, column `{head}`: it is for arenas, and a table of demands has none"
            )
        if name in (INSTANCE, *KIND):
            if unit:
                raise TableError(f"table, column `{head}`: {name} is text and has no unit")
            continue
        if name.startswith(_INDEX):
            raise TableError(
                f"table, column {head!r}: it has row numbers; take it out (pandas: "
                "to_parquet(..., index=False))"
            )
        if not is_feature_name(name):
            raise TableError(
                f"table, column {head!r}: give a name of letters, digits and _, followed by its "
                "unit in brackets if it has one, as in `noise [dB]`"
            )
        own, known = "" if unit in (None, "1") else str(unit), FEATURES.get(name)
        try:
            factor = conversion(own, known.unit) if known and own else 1.0
        except UnitError as error:
            raise TableError(f"table, column `{head}`: {error}") from None
        columns.append(_Column(head, name, known.unit if known else own, factor))
    if not columns:
        raise TableError("table: it has no column of a feature")
    return columns


def _read(
    table: IO[bytes], heads: Sequence[str], columns: Sequence[_Column], *, parquet: bool
) -> Any:
    """The columns of a table as Arrow's, features as numbers and all else as text."""
    arrow: Any = import_module("pyarrow")
    table.seek(0)
    numbers = {column.head for column in columns}
    types = {h: arrow.float64() if h in numbers else arrow.string() for h in heads}
    try:
        if parquet:
            read: Any = import_module("pyarrow.parquet").read_table(table)
            schema = arrow.schema([(head, types[head]) for head in heads])
            return read.rename_columns(list(heads)).cast(schema)
        reader: Any = import_module("pyarrow.csv")
        return reader.read_csv(
            table,
            reader.ReadOptions(block_size=_BLOCK, skip_rows=1, column_names=list(heads)),
            reader.ParseOptions(newlines_in_values=False),
            reader.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except arrow.ArrowException as error:
        raise TableError(
            f"table: {error}. Numbers are written with a point; text stands in the columns "
            f"{', '.join((INSTANCE, *KIND))}"
        ) from None


def _sort_rows(rows: Any) -> Any:
    """The rows in order of their names, each of which is there once."""
    arrow: Any = import_module("pyarrow.compute")
    if not rows.num_rows:
        raise TableError("table: it has no rows below its columns")
    named = rows[INSTANCE]
    if named.null_count:
        row = arrow.index(arrow.is_null(named), value=True).as_py()
        raise TableError(f"table, row {row + 1}: the column {INSTANCE} is empty")
    found = rows.sort_by(INSTANCE)
    named = found[INSTANCE].combine_chunks()
    twice = arrow.equal(named[:-1], named[1:])
    if (place := arrow.index(twice, value=True).as_py()) >= 0:
        raise TableError(f"table: instance {named[place].as_py()!r} has two rows; give it one")
    return found


def _instances(rows: Any, columns: Sequence[_Column], seed: int) -> Iterator[Instance]:
    """The instances, some rows at a time."""
    kinds = [part for part in KIND if part in rows.column_names]
    missing: dict[bytes, dict[str, str]] = {}  # few rows differ in what they lack
    for batch in rows.to_batches(max_chunksize=ROWS):
        named: list[str] = batch[INSTANCE].to_pylist()
        said = {part: batch[part].to_pylist() for part in kinds}
        values = np.empty((len(named), len(columns)))
        for k, column in enumerate(columns):
            values[:, k] = batch[column.head].to_numpy(zero_copy_only=False) * column.factor
        there = ~np.isnan(values)  # an empty cell, or what pandas writes for one
        _check_finite(values, named, columns)
        for i, name in enumerate(named):
            _check_name(name)
            own = np.flatnonzero(there[i]).tolist()
            lacks = missing.get(key := there[i].tobytes())
            if lacks is None:
                gone = sorted(columns[k].name for k in np.flatnonzero(~there[i]).tolist())
                lacks = missing[key] = dict.fromkeys(gone, "empty in the table")
            kind = {part: said[part][i] or "" for part in kinds}
            yield Instance(
                name=name,
                paradigm=kind.get("paradigm") or paradigm_of(name),
                features={columns[k].name: float(values[i, k]) for k in own},
                pass_mark=0.0,
                time_limit_steps=0,
                seed=instance_seed(seed, name),
                arena="",
                missing=lacks,
                suite=kind.get("suite", ""),
                task_name=kind.get("task", ""),
                variant=kind.get("variant", ""),
            )


def _check_finite(values: Any, named: Sequence[str], columns: Sequence[_Column]) -> None:
    for i, k in np.argwhere(np.isinf(values)).tolist():
        raise TableError(
            f"table, instance {named[i]!r}, column {columns[k].head}: it is no finite number"
        )


def _check_name(name: str) -> None:
    """Refuse what may not stand in tables and on terminals, or is no name of a file in a folder."""
    parts = name.split("/")
    if len(name) > MOST_NAME or {"", ".", ".."} & set(parts):
        raise TableError(
            f"table: instance {name[:120]!r}: give a name of at most {MOST_NAME} characters, whose "
            "parts between '/' are neither empty nor '.' nor '..'"
        )
    try:
        for part in parts:
            names.check_label(part, f"table: instance {name[:120]!r}:")
    except names.BadNameError as error:
        raise TableError(str(error)) from None
