"""Keeps what was found out about arenas, so that none is measured or solved twice."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple

import animalcat
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.machine.kept import KeptTexts
from animalcat.service.batteries.validity import PlannerVerdict

SHIPPED: Final = "service/batteries/shipped"
"""Readings that come with the project, a file for each battery that it ships."""


class Reading(NamedTuple):
    """What was found out about one arena.

    Attributes:
        features: Meta-features by name, of those that could be measured.
        missing: Reason by name, of those that could not.
        verdict: How the planner fared in it; None where it did not try.
    """

    features: dict[str, float]
    missing: dict[str, str]
    verdict: PlannerVerdict | None = None

    def row(self) -> list[Any]:
        """The reading as JSON values."""
        parts: list[Any] = [self.features, self.missing]
        return parts if self.verdict is None else [*parts, list(self.verdict)]


def reading_of(row: Sequence[Any]) -> Reading:
    """Read a reading from JSON values.

    Raises:
        TypeError: They are none.
    """
    features, missing, *rest = row
    return Reading(features, missing, *(PlannerVerdict(*verdict) for verdict in rest))


def key_of(text: str, seed: int) -> str:
    """Return the name under which an arena's readings are kept.

    Args:
        text: The fixed arena as YAML.
        seed: Seed of what spawners and operations leave to chance.
    """
    versions = {name: feature.version for name, feature in FEATURES.items()}
    about = json.dumps([versions, seed], sort_keys=True)
    return hashlib.sha256(f"{about}\0{text}".encode()).hexdigest()


def shipped_readings(battery: str) -> Mapping[str, Reading]:
    """Return the readings that come with the project, by key; keys name the definitions.

    Args:
        battery: Name of the family or recipe.
    """
    file = files(animalcat).joinpath(SHIPPED, f"{battery}.json.gz")
    if not file.is_file():
        return {}
    rows: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return {key: reading_of(row) for key, row in rows.items()}


def ship(readings: Mapping[str, Reading], file: Path) -> None:
    """Write readings as the project ships them: the same bytes for the same readings."""
    rows = {key: readings[key].row() for key in sorted(readings)}
    text = json.dumps(rows, separators=(",", ":"), sort_keys=True)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


class Shelf:
    """Readings that are kept for the next time; what other code measured is not found."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open a shelf.

        Args:
            folder: Where it is; None for the user's cache.
        """
        self._kept = KeptTexts(folder)

    def find(self, key: str) -> Reading | None:
        """Return what is kept under a key; None if there is nothing that can be used."""
        text = self._kept.find(_place(key))
        try:
            return None if text is None else reading_of(json.loads(text))
        except (ValueError, TypeError):
            return None

    def keep(self, key: str, reading: Reading) -> None:
        """Keep a reading; that it cannot be written is no reason to fail."""
        self._kept.keep(_place(key), json.dumps(reading.row()))


def _place(key: str) -> str:
    return f"readings/{code_digest()}/{key}"


@cache
def code_digest() -> str:
    """Return a digest of the code that measures and solves: it changes more than its versions."""
    root = Path(animalcat.__file__).parent
    paths = [
        *(root / "arena_configs").rglob("*.py"),
        *(root / "envs" / "sim").rglob("*.py"),
        *(root / "envs" / "agents" / "planner").rglob("*.py"),
        root / "envs" / "measure.py",
    ]
    return digest_of(paths)[:16]


def digest_of(paths: Iterable[Path]) -> str:
    """Return a digest of files, in the order of their paths."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()
