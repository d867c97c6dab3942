"""How far a command is, on standard error: a bar on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TimeElapsedColumn

from animalcat.cli.shared.output import long_wait, plain_column, progress_console, say
from animalcat.values import Operation

LINE_SECONDS: Final = 5.0
"""How often a line is printed in a pipe, at most."""


WAIT_SECONDS: Final = 30.0
"""After how long a line is printed in a pipe although not a tenth more is done."""


class Tell(Protocol):
    """Takes how far something is."""

    def __call__(self, words: str, done: int = 0, total: int | None = None) -> None:
        """Show it.

        Args:
            words: What is being done.
            done: How much of it is done.
            total: How much there is to do; None: not known.
        """
        ...


def bar() -> Progress:
    """A bar for tasks, with a spinner and the time so far; silent unless on a terminal."""
    return Progress(
        SpinnerColumn(),
        plain_column(),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=progress_console(),
        transient=True,
    )


class PipeLines:
    """Says when a line is due in a pipe, which shows no bar: at each tenth, and now and then."""

    def __init__(self, piped: bool, done: int = 0) -> None:
        """Begin to count.

        Args:
            piped: Whether this is a pipe; on a terminal no line is ever due.
            done: How much was done before.
        """
        self._piped = piped
        self._done = done
        self._next = time.monotonic() + WAIT_SECONDS

    def due(self, done: int, total: int) -> bool:
        """Whether to print a line now."""
        tenth = 10 * done // total > 10 * self._done // total
        if not self._piped or done == self._done or not (tenth or time.monotonic() > self._next):
            return False
        self._done, self._next = done, time.monotonic() + WAIT_SECONDS
        return True


@contextmanager
def progress(title: str, wait: float = LINE_SECONDS) -> Generator[Tell]:
    """Show how far something is for as long as the block lasts.

    Args:
        title: What is being done, until more is told.
        wait: Seconds until the first line may be printed in a pipe; 0 where it will take long.

    Yields:
        What to tell of it as it goes on.
    """
    if not sys.stderr.isatty():
        with long_wait(title) as waiting:  # until there is something to count
            yield _lines(wait, waiting)
        return
    with bar() as shown:
        task = shown.add_task(title, total=None)

        def tell(words: str, done: int = 0, total: int | None = None) -> None:
            shown.update(task, description=words, completed=done, total=total)

        yield tell


@contextmanager
def operation_progress(title: str) -> Generator[Callable[[Operation], None]]:
    """Show how far an operation of the server is for as long as the block lasts.

    Args:
        title: What is being done.

    Yields:
        What to tell of the operation as it goes on.
    """
    with progress(title) as tell:

        def tell_operation(operation: Operation) -> None:
            words = f"{title}: {operation.message}" if operation.message else title
            tell(words, operation.done, operation.total or None)

        yield tell_operation


def _lines(wait: float, waiting: Callable[[str], None]) -> Tell:
    next_line = time.monotonic() + wait
    said = ""

    def tell(words: str, done: int = 0, total: int | None = None) -> None:
        nonlocal next_line, said
        if words != said:
            said = words
            waiting(words)
        if time.monotonic() < next_line:
            return
        next_line = time.monotonic() + LINE_SECONDS
        say(f"{words}: {done} of {total}" if total else words, err=True)

    return tell
