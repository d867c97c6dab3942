"""What every command prints through: tables for people, JSON for programs, errors with codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import TextColumn
from rich.table import Table
from rich.text import Text

from animalcat.cli.shared.codes import BAD_INPUT
from animalcat.cli.shared.codes import FAILED as FAILED
from animalcat.cli.shared.codes import MISSING as MISSING
from animalcat.cli.shared.codes import UNREACHABLE as UNREACHABLE


def console() -> Console:
    """A console for results; wide in a pipe, so that no cell is cut. It prints text as it is.

    Most of what is printed are names that others gave, and "[/b]" in one is no markup: so nothing
    is. Where rich reads markup whatever its console says, `Progress` and `Status`, `plain_column`
    and `status` keep it from that. Style goes into arguments.
    """
    return Console(width=None if sys.stdout.isatty() else 10_000, markup=False, emoji=False)


def progress_console() -> Console:
    """A console for progress: on standard error, and silent unless that is a terminal."""
    terminal = sys.stderr.isatty()
    return Console(stderr=True, quiet=not terminal, markup=False, emoji=False)


@contextmanager
def status(words: str) -> Generator[Callable[[str], None]]:
    """A spinner beside words on standard error, while the block lasts; call it to change them."""
    with progress_console().status(Text(words)) as shown:
        yield lambda others: shown.update(Text(others))


def plain_column() -> TextColumn:
    """The column of a `Progress` that shows what its task is called, as it is."""
    return TextColumn("{task.description}", markup=False)


def print_json(value: Any) -> None:
    """Print JSON to standard output, two spaces an indent."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_rows(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool, title: str = ""
) -> None:
    """Print rows as a table, or as a JSON list of objects with all their keys.

    Args:
        rows: The rows; floats are shown with four significant digits.
        columns: Keys to show, in order.
        as_json: Print JSON instead.
        title: Title of the table.
    """
    rows = list(rows)
    if as_json:
        print_json(rows)
        return
    table = Table(title=title or None, title_justify="left")
    numeric = {c for c in columns if rows and all(isinstance(r.get(c), int | float) for r in rows)}
    for column in columns:
        table.add_column(column, justify="right" if column in numeric else "left")
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in columns))
    console().print(table)


def wrote(what: str, path: Path) -> None:
    """Say on standard error that a file was written: standard output may hold the result.

    Args:
        what: What is in it.
        path: As the user named it.
    """
    typer.echo(f"{what} -> {path}", err=True)


def to_standard_output(content: bytes, form: str) -> None:
    """Print the content of a file; what is no text would only garble a terminal.

    Args:
        content: The content.
        form: What it is.
    """
    if form in ("parquet", "netcdf") and sys.stdout.isatty():
        fail(f"{form} is no text for a terminal; give --output FILE")
    sys.stdout.buffer.write(content)


def complain(message: str) -> None:
    """Print an error on standard error."""
    typer.secho(f"error: {message}", err=True, fg=typer.colors.RED)


def remark(message: str) -> None:
    """Print a note to standard error, beside the result."""
    typer.echo(f"note: {message}", err=True)


def fail(message: str, code: int = BAD_INPUT) -> NoReturn:
    """End the command with a message on standard error."""
    complain(message)
    raise typer.Exit(code)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
