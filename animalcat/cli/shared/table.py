"""Lays out tables as lines of text, for a terminal as for a pipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rich.cells import cell_len

from animalcat.text.terminals import harmless

GAP: Final = "  "
"""Between two columns."""
WRAPPED: Final = 16
"""What a column of several words keeps at least, before another column goes."""
PADDED: Final = 60
"""Where lines may be as long as they like, longer cells do not widen their column."""
READABLE: Final = 160
"""How long the lines of a table of many numbers may be then, before its rows become blocks."""


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: Its key in the rows, and its head.
        goes: 0 if it stays. Else it goes where a line has no room for all: the greatest first.
        filled: Whether it is there only if a row has something in it.
    """

    name: str
    goes: int = 0
    filled: bool = False


class TableLines(NamedTuple):
    """A table as lines.

    Attributes:
        head: Lines of the heads; none where every row is a block.
        body: Lines of the rows.
        gone: Names of the columns that had no room.
    """

    head: list[str]
    body: list[str]
    gone: list[str]


def lay_out(
    rows: Sequence[Mapping[str, Any]], columns: Iterable[Column | str], width: int | None
) -> TableLines:
    """Lay out a table within a width.

    Words are never broken, so ids stay whole. Where the columns have no room, those of several
    words are wrapped; then columns go, as they say; and where what stays has no room either, every
    row becomes a block that begins with its first column.

    Args:
        rows: The rows; floats are shown with four significant digits.
        columns: What to show, in order; a name alone is a column that stays.
        width: Letters of a line; None: as many as a row takes, with a row in a line. Only a table
            of very many columns that all stay has blocks then.
    """
    asked = [column if isinstance(column, Column) else Column(column) for column in columns]
    asked = [
        column for column in asked if not column.filled or any(row.get(column.name) for row in rows)
    ]
    numeric = {
        column.name
        for column in asked
        if rows and all(isinstance(row.get(column.name), int | float) for row in rows)
    }
    cells = [[show_cell(row.get(column.name)) for column in asked] for row in rows]
    lines = [[column.name for column in asked], *cells]
    if width is None:
        lines = [[" ".join(cell.split()) for cell in line] for line in lines]
        widths = [_width([line[k] for line in lines], whole=k == 0) for k in range(len(asked))]
        names = [column.name for column in asked]
        if sum(widths) > READABLE and not any(column.goes for column in asked):
            return _blocks(names, cells, READABLE)
        flush = [name in numeric for name in names]
        head, *body = (_line(line, widths, flush) for line in lines)
        return TableLines([head], body, [])
    stay = list(range(len(asked)))
    natural = [max(_widths(line[k] for line in lines)) for k in stay]
    least = [
        max(max(_widths(_words(line[k] for line in lines))), min(natural[k], WRAPPED)) for k in stay
    ]

    def room() -> int:
        return width - len(GAP) * (len(stay) - 1)

    while sum(least[k] for k in stay) > room():
        first = max(stay, key=lambda k: (asked[k].goes, k))
        if not asked[first].goes:
            return _blocks([column.name for column in asked], cells, width)
        stay.remove(first)
    widths = _shrunk([natural[k] for k in stay], [least[k] for k in stay], room())
    flush = [asked[k].name in numeric for k in stay]
    head, *body = (_row([line[k] for k in stay], widths, flush) for line in lines)
    gone = [column.name for k, column in enumerate(asked) if k not in stay]
    return TableLines(head, [line for row in body for line in row], gone)


def show_cell(value: Any) -> str:
    """A value as a cell."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return harmless(str(value))


def wrap(text: str, width: int) -> list[str]:
    """Break text into lines between words; a word that is longer than a line stays whole."""
    lines: list[str] = []
    for part in text.splitlines() or [""]:
        line = ""
        for word in re.findall(r"\s*\S+", part):
            if line and cell_len(line + word) > width:
                lines.append(line)
                line = word.lstrip()
            else:
                line += word
        lines.append(line)
    return lines


def _width(cells: Sequence[str], *, whole: bool) -> int:
    """How wide a column is where lines may be as long as they like."""
    widths = map(cell_len, cells)
    return max((width for width in widths if whole or width <= PADDED), default=0)


def _widths(texts: Iterable[str]) -> list[int]:
    return [cell_len(line) for text in texts for line in text.splitlines()] or [0]


def _words(texts: Iterable[str]) -> list[str]:
    return [word for text in texts for word in text.split()]


def _shrunk(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Widths that fit into a line: all cells break into about as many lines."""
    shrunk = list(widths)
    for _ in range(sum(shrunk) - room):
        free = [k for k in range(len(shrunk)) if shrunk[k] > least[k]]
        shrunk[min(free, key=lambda k: widths[k] / (shrunk[k] - 1))] -= 1
    return shrunk


def _line(cells: Sequence[str], widths: Sequence[int], flush: Sequence[bool]) -> str:
    """Cells side by side; a longer one shifts the rest of its line."""
    parts = [
        (" " * (width - cell_len(cell)) + cell) if right else cell + " " * (width - cell_len(cell))
        for cell, width, right in zip(cells, widths, flush, strict=True)
    ]
    return GAP.join(parts).rstrip()


def _row(cells: Sequence[str], widths: Sequence[int], flush: Sequence[bool]) -> list[str]:
    """The lines of a row whose cells are wrapped."""
    wrapped = [wrap(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(map(len, wrapped))
    padded = [[*lines, *[""] * (height - len(lines))] for lines in wrapped]
    return [_line(line, widths, flush) for line in zip(*padded, strict=True)]


def _blocks(names: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> TableLines:
    return TableLines([], [line for row in rows for line in _block(names, row, width)], [])


def _block(names: Sequence[str], cells: Sequence[str], width: int) -> list[str]:
    """A row below its first cell, as many values in a line as there is room for."""
    lines, line = wrap(cells[0], width), ""
    for name, cell in zip(names[1:], cells[1:], strict=True):
        if cell in ("", "-"):
            continue
        item = f"{name} {' '.join(cell.split())}"
        if line and cell_len(f"{GAP}{line}{GAP} {item}") > width:
            lines.append(GAP + line)
            line = ""
        line = f"{line}{GAP} {item}" if line else item
        if cell_len(GAP + line) > width:
            begin, *rest = wrap(line, width - 2 * len(GAP))
            lines += [GAP + begin, *(2 * GAP + line for line in rest)]
            line = ""
    return [*lines, GAP + line] if line else lines
