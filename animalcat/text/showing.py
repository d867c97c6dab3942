"""How objects show themselves at the end of a notebook's cell: tables and pictures, in any theme.

A `_repr_html_` is made of `table_html`, `figure_html` and `stacked_html`, a `__repr__` of
`table_text`. Text and lines take the colour that the notebook has, light or dark, and every style
is scoped to a class of its own content: nothing leaks, and the same object gives the same text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from html import escape
from typing import Final

MOST: Final = 60
"""Most rows of a table that are shown; what is beyond is counted."""
_LINE: Final = "1px solid rgba(128,128,128,.4)"
_TABLE: Final = (
    "{0}{{border-collapse:collapse;border:0;color:inherit;background:none;font-size:.92em;"
    "margin:.3em 0}}"
    "{0} caption{{caption-side:top;text-align:left;color:inherit;font-weight:600;padding:0 0 .3em}}"
    "{0} th,{0} td{{text-align:left;vertical-align:top;padding:.15em 1.2em .15em 0;border:0;"
    "white-space:normal;max-width:36em;color:inherit}}"
    f"{{0}} th{{{{font-weight:600;border-bottom:{_LINE}}}}}"
    "{0} .n{{text-align:right;font-variant-numeric:tabular-nums}}"
    "{0} tfoot td{{opacity:.75;padding-top:.4em}}"
)
_FIGURE: Final = (
    "{0}{{overflow-x:auto}}{0} svg{{width:100%;height:auto;display:block}}"
    "{0} img{{max-width:100%;height:auto;border-radius:4px}}"
)


def table_html(
    columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "", note: str = ""
) -> str:
    """A table as HTML, all of its text escaped; columns of numbers stand at the right.

    Args:
        columns: The heads of the columns.
        rows: The cells of each row; None is an empty cell.
        caption: What stands above it.
        note: What stands below it.
    """
    right = _numeric(columns, rows)

    def row(cells: Sequence[object], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=n' * end}>{escape(_words_of_cell(cell))}</{tag}>"
            for cell, end in zip(cells, right, strict=True)
        )

    below = "; ".join([note] * bool(note) + _more(rows))
    foot = f"<tfoot><tr><td colspan={len(columns)}>{escape(below)}</td></tr></tfoot>"
    parts = [
        f"<caption>{escape(caption)}</caption>" if caption else "",
        f"<thead><tr>{row(columns, 'th')}</tr></thead><tbody>",
        *(f"<tr>{row(cells, 'td')}</tr>" for cells in rows[:MOST]),
        "</tbody>" + foot * bool(below),
    ]
    return _scope_of("table", "".join(parts), _TABLE)


def table_text(columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> str:
    """The same table as plain text, for `repr` and terminals."""
    right = _numeric(columns, rows)
    cells = [[*map(_words_of_cell, row)] for row in (columns, *rows[:MOST])]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if end else cell.ljust(width)
            for cell, width, end in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join([caption] * bool(caption) + lines + _more(rows))


def figure_html(picture: str) -> str:
    """A picture as HTML, no wider than the notebook.

    Args:
        picture: An element: a map's SVG, or an image of `plots.style.embed_figure`.
    """
    return _scope_of("div", picture, _FIGURE)


def stacked_html(*parts: str) -> str:
    """Several pieces of HTML under one another; empty ones are left out."""
    return f"<div>{''.join(filter(None, parts))}</div>"


def line_html(text: str) -> str:
    """A line of text as HTML, escaped."""
    return f'<p style="margin:.3em 0;color:inherit">{escape(text)}</p>'


def _scope_of(tag: str, content: str, style: str) -> str:
    name = f"animalcat-{hashlib.sha256(content.encode()).hexdigest()[:10]}"
    return f"<{tag} class={name}><style>{style.format(f'{tag}.{name}')}</style>{content}</{tag}>"


def _words_of_cell(cell: object) -> str:
    return "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _numeric(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[bool]:
    """Which columns hold nothing but numbers."""
    kinds = (int, float, type(None))
    return [bool(rows) and all(isinstance(r[k], kinds) for r in rows) for k in range(len(columns))]


def _more(rows: Sequence[object]) -> list[str]:
    return [f"and {len(rows) - MOST} more"] * (len(rows) > MOST)
