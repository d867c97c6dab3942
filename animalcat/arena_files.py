"""Finds the arena files in a folder."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Final, NamedTuple

ENDINGS: Final = (".yaml", ".yml")
"""Endings of arena files, in any case."""

_NOT_OURS: Final = "__MACOSX"
"""The folder that a Mac adds to an archive."""


class ArenaFiles(NamedTuple):
    """What is in a folder.

    Attributes:
        files: Its arena files and those of its subfolders, in order.
        hidden: Files of such a name that are hidden, or in a folder that is: copies of editors and
            what a Mac adds to archives.
    """

    files: list[Path]
    hidden: list[Path]

    @property
    def note(self) -> str:
        """Say what was left out; "" for nothing."""
        if not self.hidden:
            return ""
        number = "1 hidden file is" if len(self.hidden) == 1 else f"{len(self.hidden)} hidden are"
        return f"{number} left out, such as {self.hidden[0]}"


def is_yaml(path: str | PurePath) -> bool:
    """Whether a file's name ends as that of an arena, a layout or a recipe does."""
    return str(path).lower().endswith(ENDINGS)


def find_arena_files(folder: Path) -> ArenaFiles:
    """Find the arena files of a folder and its subfolders."""
    found = ArenaFiles([], [])
    for path in sorted(folder.rglob("*")):
        if is_yaml(path) and path.is_file():
            parts = path.relative_to(folder).parts
            hidden = any(part.startswith(".") or part == _NOT_OURS for part in parts)
            (found.hidden if hidden else found.files).append(path)
    return found
