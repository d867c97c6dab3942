"""Finds the arena files that a command is about, and says what is doubtful in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

import typer

from animalcat.arenas.arena_files import FoundFiles, find_arena_files
from animalcat.cli.shared.output import fail, say
from animalcat.errors import AnimalcatError

MOST_TOLD: Final = 10
"""Problems that are said one by one beside what a command is about."""


def named_files(paths: Iterable[Path]) -> list[tuple[Path, str]]:
    """Files that are named or in folders, each with the name that a battery gives its instance.

    Raises:
        typer.Exit: As for `found_files`.
    """
    return [(file, instance_name(name)) for path in paths for name, file in found_files(path).files]


def instance_name(name: str) -> str:
    """What a battery calls the instance of a file, by the file's path in its folder."""
    return str(PurePosixPath(name).with_suffix(""))


def found_files(path: Path) -> FoundFiles:
    """The files of a folder, or a file alone; what is left out is said.

    Raises:
        typer.Exit: There is nothing of that name, or no arena file in a folder; it was said.
    """
    try:
        files = find_arena_files(path)
    except AnimalcatError as error:
        fail(str(error))
    for note in files.notes:
        say(f"note: {path}: {note}", err=True)
    return files


def tell_problems(problems: Iterable[str]) -> None:
    """Say on standard error what is wrong or doubtful in files, each once."""
    each = list(dict.fromkeys(problems))
    lines = [f"warning: {problem}" for problem in each[:MOST_TOLD]]
    if more := each[MOST_TOLD:]:
        lines.append(f"warning: and {len(more)} more, which `animalcat arena check` lists")
    for line in lines:
        say(line, err=True, fg=typer.colors.YELLOW)
