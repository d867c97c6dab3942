"""Reads the text of a table as a sheet with named columns; whatever is ambiguous is refused."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from animalcat.layouts.model.units import is_unit

if TYPE_CHECKING:
    import pandas as pd

_BRACKETS: Final = re.compile(r"(.*?)\s*\[([^\[\]]*)\]", re.DOTALL)
_ROUND: Final = re.compile(r"(.*?)\s*\(([^()]*)\)", re.DOTALL)
_NAMELESS: Final = re.compile(r"Unnamed: \d+|level_\d+|", re.IGNORECASE)
"""Heads of a column that pandas made of row numbers, and no head at all."""
_FILE: Final = re.compile(r".*\.(csv|tsv|txt|parquet|xlsx?|gz|zip|json)", re.IGNORECASE)
_SUMMARIES: Final = frozenset(
    (
        *("mean", "average", "avg", "sum", "total", "std", "sd", "sem", "var", "median", "count"),
        *("min", "max", "25%", "50%", "75%", "all"),
    )
)
"""Names of rows that sum a table up."""
_FLAGS: Final = {"true": 1.0, "false": 0.0}
_WORDS: Final = {**_FLAGS, "success": 1.0, "failure": 0.0}
_NUMBER: Final = re.compile(r"-?[\d.,']+")
"""A number, whatever stands between its digits."""
_LONG: Final = 60
"""Characters of a cell that a message shows."""
_FORMS: Final = (
    (b"PK\x03\x04", "a spreadsheet or another packed file; save the table as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet; save the table as CSV"),
    (b"\x1f\x8b", "compressed; unpack it first"),
    (b"PAR1", "Parquet, and CSV is expected"),
)
"""How files that are no text begin, and what they are."""
MOST_CELLS: Final = 20_000_000
"""Most cells of a table."""
MOST_COLUMNS: Final = 20_000
"""Most columns of a table."""
_MOST_UNPACKED: Final = 2 << 30
"""Most bytes of a Parquet table as it says of itself."""


class TableError(ValueError):
    """A table cannot be used; the message says where, and what to do."""


@dataclass(frozen=True)
class Sheet:
    """The cells of a table, as text without white space at the ends.

    Attributes:
        heads: The columns as the header has them.
        names: Their names, without a unit.
        units: What unit each has; None where the header says nothing.
        lines: The line of each row, counted from 1.
        rows: The cells of each row.
        labels: What messages call each row; its line if empty.
    """

    heads: tuple[str, ...]
    names: tuple[str, ...]
    units: tuple[str | None, ...]
    lines: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def called(self, row: int) -> str:
        """What messages call a row, by its index."""
        return self.labels[row] if self.labels else f"line {self.lines[row]}"

    def unit(self, name: str) -> str | None:
        """What unit the header says of a column."""
        return self.units[self.names.index(name)]

    def column(self, name: str) -> list[str]:
        """The cells of a column.

        Raises:
            TableError: There is no such column.
        """
        if name not in self.names:
            raise TableError(f"no column `{name}`; columns: {', '.join(self.names)}")
        place = self.names.index(name)
        return [row[place] for row in self.rows]

    def numbers(self, name: str) -> list[float]:
        """A column of numbers, NaN where a cell is empty; one of true and false is 1 and 0.

        Raises:
            TableError: There is no such column, or a cell is not a finite number.
        """
        cells = self.column(name)
        filled = [cell.lower() for cell in cells if cell]
        if filled and all(cell in _FLAGS for cell in filled):
            return [_FLAGS[cell.lower()] if cell else math.nan for cell in cells]
        return [self._number(cell, i, name) for i, cell in enumerate(cells)]

    def why_text(self, name: str) -> str:
        """Why a column holds no numbers, if no cell of it is or looks like one; empty otherwise."""
        cells = self.column(name)
        try:
            self.numbers(name)
        except TableError as error:
            return "" if any(map(like_number, filter(None, cells))) else str(error)
        return ""

    def outcomes(self, name: str) -> list[float]:
        """A column of outcomes: numbers, or true and false, or success and failure.

        Raises:
            TableError: There is no such column, or a cell is none of these.
        """
        return [
            _WORDS[cell.lower()] if cell.lower() in _WORDS else self._number(cell, i, name)
            for i, cell in enumerate(self.column(name))
        ]

    def in_words(self, name: str) -> bool:
        """Whether a column has words for outcomes."""
        return any(cell.lower() in _WORDS for cell in self.column(name))

    def row_names(self, name: str) -> tuple[str, ...]:
        """The names of rows.

        Raises:
            TableError: There is no such column, one is empty or there twice, or the last sums the
                others up.
        """
        cells = self.column(name)
        for row, cell in enumerate(cells):
            if not cell:
                raise TableError(
                    f"{self.called(row)}, column {name}: it is empty; every row has a name"
                )
        if cells and cells[-1].casefold() in _SUMMARIES:
            raise TableError(
                f"{self.called(-1)}, column {name}: the last row is called {cells[-1]!r}; take "
                "it out if it sums the others up, and give it another name if it does not"
            )
        for cell, count in Counter(cells).items():
            if count > 1:
                raise TableError(
                    f"{name} {cell} has {count} rows; one is expected. What was played again "
                    "counts as less than another outcome: a table that says so has a row for each "
                    "episode and the columns of `profile export --format csv`"
                )
        return tuple(cells)

    def is_count(self, name: str) -> bool:
        """Whether a column holds the numbers of the rows, from 0 or from 1."""
        cells = self.column(name)
        return len(cells) > 2 and any(
            cells == [str(i) for i in range(start, start + len(cells))] for start in (0, 1)
        )

    def _number(self, cell: str, row: int, column: str) -> float:
        if not cell:
            return math.nan
        try:
            value = float(cell) if "_" not in cell else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            hint = (
                "; write it with a point and without separators, as in 1234.5"
                if _NUMBER.fullmatch(cell)
                else "; leave a cell empty where there is none"
            )
            shown = repr(cell if len(cell) <= _LONG else f"{cell[:_LONG]}...")
            raise TableError(
                f"{self.called(row)}, column {column}: {shown} is not a finite number{hint}"
            )
        return value


def read_sheet(
    source: Path | str | bytes,
    whole: Collection[str] = (),
    *,
    units: bool = True,
    may_be_empty: bool = False,
) -> Sheet:
    """Read a table: CSV in UTF-8, whose first line names the columns.

    A column may have a unit after its name, as in `wayLength [cm]` or `wayLength (cm)`.

    Args:
        source: A file, or the content of one. A text of one line is the name of a file.
        whole: Columns whose heads are names as they are, without units: those of agents.
        units: Whether other heads may have units; if not, all are names as they are.
        may_be_empty: Whether a table may have no rows.

    Raises:
        TableError: It is no such table, or one that may mean something else.
    """
    reader = csv.reader(io.StringIO(_text(source), newline=""))
    try:
        lines = [(reader.line_num, tuple(map(str.strip, cells))) for cells in reader]
    except csv.Error as error:
        raise TableError(f"line {reader.line_num}: no CSV: {error}") from None
    lines = [(number, cells) for number, cells in lines if any(cells)]
    if not lines:
        raise TableError("the table is empty; its first line names the columns")
    heads, rows = lines[0][1], lines[1:]
    _check_extent(len(heads), len(rows))
    _check_heads(heads, whole)
    if not rows and not may_be_empty:
        raise TableError(f"the table has no rows below its columns {', '.join(heads)}")
    for number, cells in rows:
        if len(cells) != len(heads):
            what = "cell" if len(cells) == 1 else "cells"
            raise TableError(
                f"line {number}: {len(cells)} {what}; the header has {len(heads)}. "
                + (
                    "A comment is not part of a table: remove it"
                    if cells[0].startswith("#")
                    else "Numbers are written with a point, and text with a comma is quoted"
                )
            )
    split = [name_and_unit(head) if units and head not in whole else (head, None) for head in heads]
    names = tuple(name for name, _ in split)
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise TableError(f"column {name} is there {times} times")
    return Sheet(
        heads,
        names,
        tuple(unit for _, unit in split),
        tuple(number for number, _ in rows),
        tuple(cells for _, cells in rows),
    )


def name_and_unit(head: str) -> tuple[str, str | None]:
    """The name in a column's head, and its unit; None if it says none."""
    if (match := _BRACKETS.fullmatch(head)) and match[1]:
        return match[1], match[2].strip() or None
    if (match := _ROUND.fullmatch(head)) and match[1] and is_unit(match[2].strip()):
        return match[1], match[2].strip()
    return head, None


def check_alike(names: Iterable[str], what: str) -> None:
    """Refuse names that differ in case alone, or by white space around them.

    Raises:
        TableError: Two do.
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.strip().casefold(), name)
        if other != name:
            how = "white space" if other.strip() == name.strip() else "case"
            raise TableError(f"{what} {other!r} and {name!r} differ in {how} alone; give one name")


def plain_name(name: str) -> str:
    """A name without case, units and what stands between its words."""
    match = _ROUND.fullmatch(name) or _BRACKETS.fullmatch(name)
    bare = match[1] if match and match[1] else name
    return re.sub(r"[\W_]+", "", bare).casefold() or name


def nearest(name: str, known: Sequence[str]) -> str:
    """Which known name another is likely to stand for; empty if none."""
    plain = plain_name(name)
    for other in known:
        most = 0 if len(plain) < 4 else 1 if len(plain) < 8 else 2
        if _distance(plain, plain_name(other)) <= most:
            return other
    return ""


def guess(name: str, known: Sequence[str]) -> str:
    """The end of a sentence about an unknown name: what it is likely to stand for."""
    close = nearest(name, known)
    return f" Did you mean {close!r}?" if close else ""


def of_kind(value: object) -> str:
    """What something is, or what a class makes, for messages: "a DataFrame", "an int", "None"."""
    if value is None:
        return "None"
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def like_number(cell: str) -> bool:
    """Whether a cell is a finite number, or one with other marks between its digits."""
    try:
        return _NUMBER.fullmatch(cell) is not None or math.isfinite(float(cell))
    except ValueError:
        return False


def _distance(first: str, other: str) -> int:
    """How many letters are changed, left out, put in, or swapped with the next."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for i, a in enumerate(first, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            best = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == first[i - 2]:
                best = min(best, before[j - 2] + 1)
            row.append(best)
        before, last = last, row
    return last[-1]


def _text(source: Path | str | bytes) -> str:
    if isinstance(source, str):
        if "\n" in source or "\r" in source or not source.strip():
            return source.removeprefix("\ufeff")
        path = Path(source)
        try:
            there = path.is_file()
        except (OSError, ValueError):  # too long for a name
            there = False
        if not there:
            if not _FILE.fullmatch(source):
                return source
            raise TableError(f"{source}: No such file; give a file, or the text of a table")
        source = path
    if isinstance(source, Path):
        try:
            content = source.read_bytes()
        except OSError as error:
            raise TableError(f"{source}: {error.strerror or 'cannot be read'}") from None
        try:
            return _decode(content)
        except TableError as error:
            raise TableError(f"{source}: {error}") from None
    return _decode(source)


def _decode(content: bytes) -> str:
    for start, what in _FORMS:
        if content.startswith(start):
            raise TableError(f"the file is {what}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TableError("not UTF-8 text; save the table as CSV in UTF-8") from None


def read_parquet(source: Path | bytes) -> pd.DataFrame:
    """Read a table from Parquet; what it says of its size is counted before it is unpacked.

    Args:
        source: A file, or the content of one.

    Raises:
        TableError: It is no such table, or too large.
        OSError: The file cannot be read.
    """
    content = source if isinstance(source, bytes) else source.read_bytes()
    parquet: Any = import_module("pyarrow.parquet")
    try:
        said = parquet.read_metadata(io.BytesIO(content))
        _check_extent(said.num_columns, said.num_rows)
        groups = [said.row_group(k) for k in range(said.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > _MOST_UNPACKED:
            raise TableError(f"it unpacks to more than {_MOST_UNPACKED >> 30} GiB")
        table = parquet.read_table(io.BytesIO(content))
        table.validate(full=True)  # or texts that are none are found when they are used
        return table.to_pandas()
    except TableError:
        raise
    except Exception as error:  # noqa: BLE001 - at damage, the parser raises errors of any type
        raise TableError(f"this is not Parquet: {error}") from None


def _check_extent(columns: int, rows: int) -> None:
    if columns > MOST_COLUMNS or columns * rows > MOST_CELLS:
        raise TableError(
            f"the table has {columns:,} columns and {rows:,} rows; at most {MOST_COLUMNS:,} "
            f"columns and {MOST_CELLS:,} cells are read"
        )


def _check_heads(heads: Sequence[str], whole: Collection[str]) -> None:
    if heads[0].startswith("#"):
        raise TableError("line 1 is a comment; the first line of a table names the columns")
    if len(heads) == 1 and any(mark in heads[0] for mark in ";\t|"):
        raise TableError("line 1: commas are expected between columns, and numbers with a point")
    for place, head in enumerate(heads, 1):
        if head not in whole and _NAMELESS.fullmatch(head):
            said = f"is called {head!r}" if head else "has no name"
            raise TableError(
                f"column {place} {said}; row numbers are not part of a table: remove the column "
                "(pandas: to_csv(..., index=False)), or give it a name"
            )
