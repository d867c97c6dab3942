"""What every command prints through: tables for people, JSON for programs, errors with codes."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import typer
from rich.text import Text

from animalcat.cli.shared.common import common
from animalcat.cli.shared.table import Column, lay_out, wrap
from animalcat.machine.codes import BAD_INPUT
from animalcat.machine.codes import FAILED as FAILED
from animalcat.machine.codes import MISSING as MISSING
from animalcat.machine.codes import UNREACHABLE as UNREACHABLE
from animalcat.text.plain_console import PlainConsole
from animalcat.text.terminals import harmless, harmless_json

if TYPE_CHECKING:
    from rich.progress import TextColumn

Row = TypeVar("Row")
LONG_WAIT: Final = 5.0
"""Seconds after which it is said in a pipe what is waited for."""
PAGE_ROWS: Final = 100
"""Rows of a list that a table shows, unless more are asked for."""
ENDLESS: Final = 10_000
"""Letters of a line that is as long as what stands in it."""


def say(text: str = "", *, err: bool = False, nl: bool = True, fg: str | None = None) -> None:
    """Print a text, in which what steers a terminal is written out: the only way to print one.

    Args:
        text: What to print.
        err: Whether it goes to standard error.
        nl: Whether a line ends with it.
        fg: Its colour.
    """
    typer.secho(harmless(text), err=err, nl=nl, fg=fg)


def line_width() -> int | None:
    """Letters of a line of results; None in a pipe, unless COLUMNS says how many."""
    if sys.stdout.isatty():
        return PlainConsole().width  # heeds COLUMNS as well
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdecimal() and int(asked) else None


def console() -> PlainConsole:
    """A console for results; in a pipe it breaks no line unless COLUMNS is set.

    It prints text as it is: most of what is printed are names that others gave, and "[/b]" in one
    is no markup, so nothing is. Where rich reads markup whatever its console says, `Progress` and
    `Status`, `plain_column` and `status` keep it from that. Style goes into arguments.
    """
    return PlainConsole(width=line_width() or ENDLESS)


def progress_console() -> PlainConsole:
    """A console for progress: on standard error, and silent unless that is a terminal."""
    terminal = sys.stderr.isatty()
    return PlainConsole(stderr=True, quiet=not terminal)


@contextmanager
def status(words: str) -> Generator[Callable[[str], None]]:
    """Say on standard error what is waited for, while the block lasts; call it to change that.

    It is a spinner on a terminal. In a pipe it is a line, once the wait is a long one.
    """
    shows = spinner if sys.stderr.isatty() else long_wait
    with shows(words) as change:
        yield change


@contextmanager
def spinner(words: str) -> Generator[Callable[[str], None]]:
    """A spinner beside words on a terminal, while the block lasts; call it to change them."""
    with progress_console().status(Text(words)) as shown:
        yield lambda others: shown.update(Text(others))


@contextmanager
def long_wait(words: str, seconds: float = LONG_WAIT) -> Generator[Callable[[str], None]]:
    """Print a line on standard error if a block lasts long.

    Args:
        words: What is waited for. What is yielded takes other words, and the wait begins anew.
        seconds: How long is long.
    """
    timer: threading.Timer | None = None

    def begin(now: str) -> None:
        nonlocal timer
        if timer is not None:
            timer.cancel()
            timer.join()  # which has been cancelled, and prints nothing later
        timer = threading.Timer(seconds, lambda: say(f"{now} ...", err=True))
        timer.daemon = True
        timer.start()

    begin(words)
    try:
        yield begin
    finally:
        assert timer is not None  # it has begun
        timer.cancel()
        timer.join()


def plain_column() -> TextColumn:
    """The column of a `Progress` that shows what its task is called, as it is."""
    from rich.progress import TextColumn  # which most commands do without

    return TextColumn("{task.description}", markup=False)


def print_json(value: Any) -> None:
    """Print JSON to standard output, two spaces an indent."""
    say(harmless_json(json.dumps(value, indent=2, ensure_ascii=False)))


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Iterable[Column | str]) -> None:
    """Print rows as a table, or with --json as a list of objects with all their keys.

    Args:
        rows: The rows; floats are shown with four significant digits.
        columns: What the table shows, in order; a name alone is a column that always stays.
    """
    if common().as_json:
        _print_json_rows(rows)
    else:
        print_table(rows, columns)


def print_table(
    rows: Iterable[Mapping[str, Any]], columns: Iterable[Column | str], title: str = ""
) -> None:
    """Print rows as a table. One with a title is part of a longer text: an empty line ends it."""
    rows = list(rows)
    width = line_width()
    layout = lay_out(rows, columns, width)
    out = PlainConsole(highlight=False)
    for lines, style in (
        (wrap(title, width or ENDLESS) if title else [], "italic"),
        (layout.head, "bold"),
        (layout.body, None),
        ([""] if title else [], None),
    ):
        for line in lines:
            if style is None:
                say(line)  # a tenth of the time, of thousands of rows
            else:
                out.print(Text(line), style=style, soft_wrap=True)
    if layout.gone:
        remark(f"{width} columns leave no room for {', '.join(layout.gone)}; --json has all")


def _print_json_rows(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print what `print_json` prints of a list, each row as it comes."""
    before = "["
    for row in rows:
        text = harmless_json(json.dumps(row, indent=2, ensure_ascii=False))
        say(before + "\n" + indent(text, "  "), nl=False)
        before = ","
    say("[]" if before == "[" else "\n]")


def some(
    rows: Callable[[int | None], Iterator[Row]], every: bool, limit: int | None
) -> Iterator[Row]:
    """The rows of a list that a command shows: a page of them, unless all are asked for.

    A note on standard error says if there are more.

    Args:
        rows: Gives the rows, so many at most; None for all.
        every: Whether all are asked for.
        limit: How many are asked for; None if nothing is said: then JSON has all.
    """
    if every and limit is not None:
        fail("--all lists all, and --limit so many; give one of them")
    most = limit if limit is not None else None if every or common().as_json else PAGE_ROWS
    if most is None:
        yield from rows(None)
        return
    for number, row in enumerate(rows(most + 1)):
        if number < most:
            yield row
        else:
            remark(f"there are more than these {most}; --all lists all, --limit NUMBER that many")


def wrote(what: str, path: Path) -> None:
    """Say on standard error that a file was written: standard output may hold the result.

    Args:
        what: What is in it.
        path: As the user named it.
    """
    say(f"{what} -> {path}", err=True)


def to_standard_output(content: bytes, form: str) -> None:
    """Print the content of a file; what is no text would only garble a terminal.

    Args:
        content: The content.
        form: What it is.
    """
    insist_no_terminal(form)
    if sys.stdout.isatty():
        say(content.decode(errors="replace"), nl=False)
    else:
        sys.stdout.buffer.write(content)


def insist_no_terminal(form: str) -> None:
    """End the command where standard output is a terminal and a form is no text."""
    if form in ("parquet", "netcdf", "draws") and sys.stdout.isatty():
        fail(f"{form} is not text for a terminal; give --output FILE")


def complain(message: str) -> None:
    """Print an error on standard error."""
    say(f"error: {message}", err=True, fg=typer.colors.RED)


def remark(message: str) -> None:
    """Print a note to standard error, beside the result."""
    say(f"note: {message}", err=True)


def fail(message: str, code: int = BAD_INPUT) -> NoReturn:
    """End the command with a message on standard error."""
    complain(message)
    raise typer.Exit(code)
