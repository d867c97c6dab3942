"""Where animalcat keeps files of its own on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(part: str) -> Path:
    """Folder for what can be worked out again: below XDG_CACHE_HOME, or else ~/.cache.

    Args:
        part: What is kept there, as the name of a folder.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "animalcat" / part
