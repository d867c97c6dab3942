"""Finds the arena files that a command is about, and says what is doubtful in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import typer

from animalcat.cli.shared.output import fail

ENDINGS: Final = (".yaml", ".yml")
MOST_TOLD: Final = 10
"""Problems that are said one by one beside what a command is about."""


def arena_files(paths: Iterable[Path]) -> list[Path]:
    """The files that are named, and those in folders that are.

    Raises:
        typer.Exit: There is nothing of that name, or no arena file in a folder; it was said.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix in ENDINGS and p.is_file())
            if not inside:
                fail(f"no arena files ({', '.join(ENDINGS)}) in the folder {path}")
            found.extend(inside)
        elif path.is_file():
            found.append(path)
        else:
            fail(f"no such file or folder: {path}")
    return found


def tell_problems(problems: Iterable[str]) -> None:
    """Say on standard error what is wrong or doubtful in files, each once."""
    each = list(dict.fromkeys(problems))
    told = [f"warning: {problem}" for problem in each[:MOST_TOLD]]
    if more := each[MOST_TOLD:]:
        told.append(f"warning: and {len(more)} more, which `animalcat arena check` lists")
    for line in told:
        typer.secho(line, err=True, fg=typer.colors.YELLOW)
