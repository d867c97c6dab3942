"""How far something is that the server does: a bar on a terminal, a line now and then in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn

from animalcat.cli.shared.output import plain_column, progress_console
from animalcat.client.values import Operation

LINE_SECONDS: Final = 5.0
"""How often a line is printed in a pipe, at most."""


@contextmanager
def progress(title: str) -> Generator[Callable[[Operation], None]]:
    """Show how far an operation is, on standard error, for as long as the block lasts.

    Args:
        title: What is being done.

    Yields:
        What to tell of the operation as it goes on.
    """
    if not sys.stderr.isatty():
        yield _lines(title)
        return
    with Progress(
        SpinnerColumn(),
        plain_column(),
        BarColumn(),
        MofNCompleteColumn(),
        console=progress_console(),
        transient=True,
    ) as bar:
        task = bar.add_task(title, total=None)

        def tell(now: Operation) -> None:
            bar.update(
                task,
                description=f"{title}: {now.message}" if now.message else title,
                completed=now.done,
                total=now.total or None,
            )

        yield tell


def _lines(title: str) -> Callable[[Operation], None]:
    next_line = time.monotonic() + LINE_SECONDS

    def tell(now: Operation) -> None:
        nonlocal next_line
        if time.monotonic() < next_line:
            return
        next_line = time.monotonic() + LINE_SECONDS
        parts = f" {now.done} of {now.total}" if now.total else ""
        typer.echo(f"{title}: {now.message}{parts}", err=True)

    return tell
