"""Keeps the meta-features that were measured of arenas, so that none is measured twice."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import animalcat
from animalcat.arena_configs.features import FEATURES
from animalcat.folders import cache_folder

SHIPPED: Final = "service/batteries/shipped.json.gz"
"""Readings that come with the project: those of the batteries that anyone builds first."""


class Reading(NamedTuple):
    """The meta-features of one arena.

    Attributes:
        features: Value by name, of those that could be measured.
        missing: Reason by name, of those that could not.
    """

    features: dict[str, float]
    missing: dict[str, str]


def key_of(text: str, seed: int) -> str:
    """Return the name under which an arena's readings are kept.

    Args:
        text: The fixed arena as YAML.
        seed: Seed of what spawners and operations leave to chance.
    """
    versions = {name: feature.version for name, feature in FEATURES.items()}
    about = json.dumps([versions, seed], sort_keys=True)
    return hashlib.sha256(f"{about}\0{text}".encode()).hexdigest()


def shipped() -> Mapping[str, Reading]:
    """Return the readings that come with the project, by key; keys name the definitions."""
    file = files(animalcat).joinpath(SHIPPED)
    if not file.is_file():
        return {}
    rows: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return {key: Reading(*row) for key, row in rows.items()}


def ship(readings: Mapping[str, Reading], file: Path) -> None:
    """Write readings as the project ships them: the same bytes for the same readings."""
    text = json.dumps(dict(sorted(readings.items())), separators=(",", ":"), sort_keys=True)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


class Shelf:
    """Readings in a folder, a file for each arena; what other code measured is not found."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open a shelf.

        Args:
            folder: Where it is; None for the user's cache.
        """
        self._folder = (folder or cache_folder("readings")) / _code()

    def find(self, key: str) -> Reading | None:
        """Return what is kept under a key; None if there is nothing that can be used."""
        try:
            return Reading(*json.loads((self._folder / f"{key}.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def keep(self, key: str, reading: Reading) -> None:
        """Keep a reading; that the folder cannot be written is no reason to fail."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump(reading, out)
            Path(name).replace(self._folder / f"{key}.json")


@cache
def _code() -> str:
    """Return a digest of the code that measures: it changes more often than its versions."""
    root = Path(animalcat.__file__).parent
    paths = [
        *(root / "arena_configs").rglob("*.py"),
        *(root / "envs" / "sim").rglob("*.py"),
        root / "envs" / "measure.py",
    ]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
