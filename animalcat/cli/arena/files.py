"""Finds the arena files that a command is about."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from animalcat.cli.shared.output import fail

ENDINGS: Final = (".yaml", ".yml")


def arena_files(paths: Iterable[Path]) -> list[Path]:
    """The files that are named, and those in folders that are.

    Raises:
        typer.Exit: There is nothing of that name, or no arena file in a folder; it was said.
    """
    return [path for path, _ in named_files(paths)]


def named_files(paths: Iterable[Path]) -> list[tuple[Path, str]]:
    """The files as `arena_files` has them, each with the name that a battery gives its instance.

    Raises:
        typer.Exit: As for `arena_files`.
    """
    found: list[tuple[Path, str]] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix in ENDINGS and p.is_file())
            if not inside:
                fail(f"no arena files ({', '.join(ENDINGS)}) in the folder {path}")
            found += [(p, p.relative_to(path).with_suffix("").as_posix()) for p in inside]
        elif path.is_file():
            found.append((path, path.stem))
        else:
            fail(f"no such file or folder: {path}")
    return found
