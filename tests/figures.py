"""Figures of pages, and the results that they come from.

A mark behind figures says where they come from, `<!-- figures: FILE | ROW | KEY ... -->`: a file of
benchmarks/results, the name of a row or a part of several, and a key for each number before the
mark. A dash skips a number, `%` after a key makes percents of it; `least` and `most` are those of
all these rows. Behind a table the row may be `COLUMN: CELL`: then every cell has a number for each
key, of the row that is called as its column and the first cell of its line.
`python -m tests.figures` lists the figures, and which are due: those whose code has changed since
they were measured, or that were kept without a digest of it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.checks import ROOT, digest

RESULTS: Final = ROOT / "benchmarks" / "results"
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "docs" / "paper" / "paper.md",
    *sorted((ROOT / "docs").glob("*.md")),
)
"""Where marks are looked for."""
MARK: Final = re.compile(r"<!-- figures: ([^|]+?) \| ([^|]*?) \| (.+?) -->")
BY_CELL: Final = "COLUMN: CELL"
NUMBER: Final = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?")


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers of a page, and where they come from.

    Attributes:
        page: The page, below the checkout.
        said: The numbers as they stand there, for each key one, without those that are skipped.
        file: The file of results, below their folder.
        row: What the names of its rows have in them.
        keys: What each number is.
    """

    page: str
    said: tuple[str, ...]
    file: str
    row: str
    keys: tuple[str, ...]

    @property
    def result(self) -> Mapping[str, Any]:
        """What the file of results has."""
        return json.loads((RESULTS / self.file).read_text("utf-8"))

    @property
    def values(self) -> tuple[float, ...]:
        """What the numbers have to be."""
        result = self.result
        rows = [row for row in result["rows"] if self.row in row["name"]]
        rows = [row for row in rows if row["name"] == self.row] or rows
        return tuple(value_of(rows, result, key) for key in self.keys)

    @property
    def due(self) -> bool:
        """Whether the code has changed since."""
        return is_due(self.result["birth"])


def value_of(rows: list[Mapping[str, Any]], result: Mapping[str, Any], key: str) -> float:
    """What a key says of some rows, or of the whole result where no row has it."""
    name = key.removesuffix("%")
    if name in ("least", "most"):
        value = {"least": min, "most": max}[name](row["value"] for row in rows)
    else:
        (value,) = {row[name] for row in rows if name in row} or {result[name]}
    return value * 100 if key.endswith("%") else value


def is_due(born: Mapping[str, Any]) -> bool:
    """Whether results were measured on other code than there is, or on code that nobody noted."""
    return not born["digest"] or born["digest"] != digest(born["covers"])


def rounds_to(number: str, value: float) -> bool:
    """Whether a number is a value, rounded as it stands there: 26,000 is one of two digits."""
    digits, _, exponent = number.replace(",", "").partition("e")
    zeros = len(digits) - len(digits.rstrip("0")) if "," in number else 0
    decimals = len(digits.partition(".")[2]) - zeros
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return abs(float(digits) * 10 ** int(exponent or 0) - value) <= 0.5 * unit * (1 + 1e-6)


def read_figures(page: Path) -> Iterator[Figures]:
    """The figures of a page that are marked.

    Raises:
        ValueError: A paragraph has fewer numbers before a mark than the mark has keys.
    """
    for block in page.read_text("utf-8").split("\n\n"):
        for mark in MARK.finditer(block):
            keys = mark[3].split()
            found = NUMBER.findall(re.sub(r"<!--.*?-->|\]\([^)]*\)", "", block[: mark.start()]))
            name = page.relative_to(ROOT).as_posix()
            if mark[2] == BY_CELL:
                yield from _cells(name, block[: mark.start()], mark[1], tuple(keys))
                continue
            if len(found) < len(keys):
                raise ValueError(f"{name}: {mark[0]} has more keys than numbers before it")
            pairs = zip(found[-len(keys) :], keys, strict=True)
            said, meant = zip(*((n, k) for n, k in pairs if k != "-"), strict=True)
            yield Figures(name, said, mark[1], mark[2], meant)


def _cells(page: str, table: str, file: str, keys: tuple[str, ...]) -> Iterator[Figures]:
    lines = [line for line in table.splitlines() if line.startswith("|")]
    (_, *columns), _, *rows = ([cell.strip() for cell in one.split("|")[1:-1]] for one in lines)
    for first, *cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            if found := NUMBER.findall(cell):
                if len(found) != len(keys):
                    raise ValueError(f"{page}: {cell} has not one number for each of {keys}")
                yield Figures(page, tuple(found), file, f"{column}: {first}", keys)


def all_figures() -> list[Figures]:
    """All figures that are marked, page after page."""
    return [one for page in PAGES for one in read_figures(page)]


def main() -> int:
    """List figures with their births; due ones first."""
    for one in sorted(all_figures(), key=lambda one: not one.due):
        born = one.result["birth"]
        words = f"{', '.join(one.said)} ({one.row or 'all rows'})"
        print(
            f"{'due ' if one.due else 'good'}  {one.page}: {words}; {one.file}, "
            f"{born['commit']}, {born['day']}, {born['command']}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
