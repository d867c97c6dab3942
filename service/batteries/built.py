"""Keeps whole batteries as they were built, so that none is built twice."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import animalcat
from animalcat.machine.folders import cache_folder
from animalcat.machine.kept import prune_folders, size_limit
from animalcat.service.batteries.columns import read_head
from animalcat.service.batteries.readings import code_digest, digest_of
from animalcat.service.batteries.writing import TABLE, TABLE_VERSION, UNFINISHED, into_place

KEPT: Final = 5
"""Batteries that are kept at most; those that were not used for longest go first."""


def build_key(*source: Any) -> str:
    """Return the name under which what is built is kept.

    Args:
        source: All that the battery follows from, besides the code: digests, names and numbers.
    """
    about = [TABLE_VERSION, *source, code_digest(), _own_code()]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


@cache
def _own_code() -> str:
    """Return a digest of the families that come with the project, and of the code that builds."""
    root = Path(animalcat.__file__).parent
    families = (root / "arena_configs" / "families").glob("*.yaml")
    return digest_of([*families, *(root / "service" / "batteries").glob("*.py")])


class BuiltShelf:
    """Batteries in a folder, by what they were built from."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open a shelf.

        Args:
            folder: Where it is; None for the user's cache.
        """
        self._folder = folder or cache_folder("batteries")

    def fetch(self, key: str, store: Path) -> str:
        """Copy what is kept under a key into a store; return its digest, "" if there is nothing."""
        kept = self._folder / key
        try:
            (source,) = kept.iterdir()
            read_head(source / TABLE)
            os.utime(kept)
            _copy(source, store / source.name)
        except (OSError, ValueError):
            return ""
        return source.name

    def keep(self, key: str, folder: Path) -> None:
        """Keep a battery; that the cache cannot be written is no reason to fail.

        Args:
            key: What it was built from.
            folder: The battery's folder.
        """
        with suppress(OSError):
            _copy(folder, self._folder / key / folder.name)
            prune_folders(self._folder, KEPT, size_limit())


def _copy(source: Path, target: Path) -> None:
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=target.parent))
    try:
        shutil.copytree(source, temporary, dirs_exist_ok=True)
        into_place(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
