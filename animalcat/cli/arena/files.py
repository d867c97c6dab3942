"""Finds the arena files that a command is about."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from animalcat.arena_files import ENDINGS, find_arena_files
from animalcat.cli.shared.output import fail, remark


def arena_files(paths: Iterable[Path]) -> list[Path]:
    """The files that are named, and those in folders that are; what is left out is said.

    Raises:
        typer.Exit: There is nothing of that name, or no arena file in a folder; it was said.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = find_arena_files(path)
            if inside.note:
                remark(inside.note)
            if not inside.files:
                fail(f"no arena files ({', '.join(ENDINGS)}) in the folder {path}")
            found.extend(inside.files)
        elif path.is_file():
            found.append(path)
        else:
            fail(f"no such file or folder: {path}")
    return found
