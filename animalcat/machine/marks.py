"""Marks the folders in which animalcat writes, so that agents are not shown what is in them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = ".animalcat-made"
"""Name of the file by which such a folder is known."""
_WORDS: Final = "animalcat has written here, so agents kept apart do not see these files.\n"


def mark(folder: Path) -> None:
    """Mark a folder, where it can be written."""
    with suppress(OSError), (folder / MARK).open("x", encoding="utf-8") as file:
        file.write(_WORDS)
