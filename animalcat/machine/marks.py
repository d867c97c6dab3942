"""Marks the folders in which animalcat writes, so that agents are not shown what is in them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = ".animalcat-made"
"""Name of the file by which such a folder is known."""


def mark(folder: Path) -> None:
    """Mark a folder, where it can be written."""
    with suppress(OSError):
        (folder / MARK).touch(0o600, exist_ok=False)
