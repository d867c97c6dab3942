"""Meta-features of many arena files: by several processes, and kept for the next time."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from animalcat.arena_configs.builds import Build
from animalcat.arena_configs.draws import draws_by_name
from animalcat.arena_configs.features import FEATURES, Survey, measure_features
from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.placement import place
from animalcat.cli.arena.explaining import explanation
from animalcat.processes import process_pool
from animalcat.service.batteries.readings import code_digest

FEW: Final = 16
"""Files up to which one process is enough: others take a second to start."""

Tick = Callable[[int, int], None]
"""Told how many files are done, of how many."""


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """Meta-features of one arena; as in `arena_features.schema.json`."""

    file: str
    arena: int | None
    instance: str
    seed: int
    rng: str
    build: str
    drawn: dict[str, float] = field(default_factory=dict[str, float])
    features: dict[str, float] | None = None
    missing: dict[str, str] = field(default_factory=dict[str, str])
    error: str | None = None
    explanation: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The row as plain data; an explanation is there only if it was asked for."""
        values = asdict(self)
        if self.explanation is None:
            del values["explanation"]
        return values


@dataclass(frozen=True, slots=True)
class Plan:
    """How arenas are measured.

    Attributes:
        seed: Seed of what an arena leaves to chance.
        rng: How chance is drawn; a name for `draws_by_name`.
        build: Which build of Animal-AI draws, where Unity does.
        explain: Whether to say why the readings are what they are.
    """

    seed: int
    rng: str
    build: Build
    explain: bool = False

    @property
    def drawn_by(self) -> tuple[int, str, str]:
        """Seed, source and build, as rows have them."""
        return self.seed, self.rng, self.build

    def key(self, content: bytes) -> str:
        """Name under which the rows of a file are kept: for this content, plan and demands."""
        versions = {name: feature.version for name, feature in FEATURES.items()}
        about = json.dumps([code_digest(), versions, *self.drawn_by])
        return hashlib.sha256(about.encode() + b"\0" + content).hexdigest()


def measure_files(
    paths: Sequence[Path], plan: Plan, *, processes: int, cache: Path | None, tick: Tick
) -> list[FeatureRow]:
    """Measure all arenas of some files.

    Args:
        paths: The files.
        plan: How.
        processes: How many processes measure.
        cache: Folder in which rows are kept; None to keep and to use none.
        tick: Told of progress.

    Returns:
        A row for every arena, and one for every file that cannot be read, in the order of files.
    """
    rows: dict[int, list[FeatureRow]] = {}
    keys: dict[int, str] = {}
    for number, path in enumerate(paths):
        if cache is None or plan.explain:
            break
        with suppress(OSError):  # such a file is an error further down
            keys[number] = plan.key(path.read_bytes())
            if (kept := _kept(cache / f"{keys[number]}.json", path)) is not None:
                rows[number] = kept
    left = [number for number in range(len(paths)) if number not in rows]
    tick(len(rows), len(paths))
    for number, measured in _measured(paths, left, plan, processes):
        rows[number] = measured
        tick(len(rows), len(paths))
        if cache is not None and number in keys:
            _keep(cache / f"{keys[number]}.json", measured)
    return [row for number in range(len(paths)) for row in rows[number]]


def _measured(
    paths: Sequence[Path], left: Sequence[int], plan: Plan, processes: int
) -> Iterator[tuple[int, list[FeatureRow]]]:
    if processes <= 1 or len(left) <= FEW:
        for number in left:
            yield number, feature_rows(paths[number], plan)
        return
    with process_pool(processes) as pool:
        jobs = {pool.submit(feature_rows, paths[number], plan): number for number in left}
        for job in as_completed(jobs):
            yield jobs[job], job.result()


def feature_rows(path: Path, plan: Plan) -> list[FeatureRow]:
    """Measure all arenas of a file, each on its own even where one merges with the next."""
    from animalcat.envs.measure import measure_playing  # it loads the simulator

    try:
        config = load_config(path).config
    except ArenaError as error:
        return [FeatureRow(str(path), None, path.stem, *plan.drawn_by, error=str(error))]
    rows: list[FeatureRow] = []
    for number, arena in sorted(config.arenas.items()):
        instance = path.stem if len(config.arenas) == 1 else f"{path.stem}-{number}"
        try:
            placement = place(arena, draws_by_name(plan.rng, plan.seed, plan.build))
        except ArenaError as error:
            rows.append(FeatureRow(str(path), number, instance, *plan.drawn_by, error=str(error)))
            continue
        survey = Survey(placement)
        played = measure_playing(survey, plan.seed)
        rows.append(
            FeatureRow(
                str(path),
                number,
                instance,
                *plan.drawn_by,
                dict(placement.drawn),
                *measure_features(survey, *played),
                explanation=explanation(survey, played) if plan.explain else None,
            )
        )
    return rows


def _kept(file: Path, path: Path) -> list[FeatureRow] | None:
    """Rows that were kept; None if there are none or they cannot be used."""
    try:
        found = json.loads(file.read_text("utf-8"))
        rows = [FeatureRow(**row) for row in found]
    except (OSError, ValueError, TypeError):
        return None
    # The same content may lie under another name.
    return [
        replace(
            row,
            file=str(path),
            instance=path.stem if len(rows) == 1 else f"{path.stem}-{row.arena}",
            error=None if row.error is None else row.error.replace(row.file, str(path)),
        )
        for row in rows
    ]


def _keep(file: Path, rows: Sequence[FeatureRow]) -> None:
    """Keep rows; that the folder cannot be written is no reason to fail."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump([row.as_dict() for row in rows], out)
        Path(name).replace(file)
