"""Meta-features of many arena files: by several processes, and kept for the next time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from animalcat.arena_configs.builds import Build
from animalcat.arena_configs.draws import OWN, draws_by_name
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.loader import load_config
from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.arena_configs.placement import Placement, place
from animalcat.arena_configs.sequence import arena_numbers, episode_arenas, episodes
from animalcat.envs.explaining import explanation
from animalcat.machine.kept import KeptTexts
from animalcat.machine.processes import process_pool
from animalcat.service.batteries.drafts import Draft, first_placements, instance_seed, placements
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
    problems: list[str] = field(default_factory=list[str])

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

    def key(self, content: bytes, name: str) -> str:
        """Name under which a file's rows are kept: for this content and name, plan and demands."""
        versions = {name: (feature.version, feature.chain) for name, feature in FEATURES.items()}
        about = json.dumps([code_digest(), versions, *self.drawn_by, name])
        return f"features/{hashlib.sha256(about.encode() + bytes(1) + content).hexdigest()}"


def measure_files(
    paths: Sequence[Path],
    plan: Plan,
    *,
    processes: int,
    cache: KeptTexts | None,
    tick: Tick,
    names: Sequence[str] = (),
) -> list[FeatureRow]:
    """Measure all arenas of some files.

    Args:
        paths: The files.
        plan: How.
        processes: How many processes measure.
        cache: Where rows are kept; None to keep and to use none.
        tick: Told of progress.
        names: What a battery calls the instance of each file; without them, as the file.

    Returns:
        A row for every arena, and one for every file that cannot be read, in the order of files.
    """
    files = list(zip(paths, names or [path.stem for path in paths], strict=True))
    rows: dict[int, list[FeatureRow]] = {}
    keys: dict[int, str] = {}
    for number, (path, name) in enumerate(files):
        if cache is None or plan.explain:
            break
        with suppress(OSError):  # such a file is an error further down
            keys[number] = plan.key(path.read_bytes(), name)
            if (kept := _read_kept(cache.find(keys[number]), path)) is not None:
                rows[number] = kept
    left = [number for number in range(len(paths)) if number not in rows]
    tick(len(rows), len(paths))
    for number, measured in _measure_files(files, left, plan, processes):
        rows[number] = measured
        tick(len(rows), len(paths))
        if cache is not None and number in keys:
            text = json.dumps([row.as_dict() for row in measured])
            cache.keep(keys[number], text)
    return [row for number in range(len(paths)) for row in rows[number]]


def _measure_files(
    files: Sequence[tuple[Path, str]], left: Sequence[int], plan: Plan, processes: int
) -> Iterator[tuple[int, list[FeatureRow]]]:
    if processes <= 1 or len(left) <= FEW:
        for number in left:
            yield number, feature_rows(*files[number], plan)
        return
    with process_pool(processes) as pool:
        jobs = {pool.submit(feature_rows, *files[number], plan): number for number in left}
        for job in as_completed(jobs):
            yield jobs[job], job.result()


def feature_rows(path: Path, name: str, plan: Plan) -> list[FeatureRow]:
    """Measure all arenas of a file; those that merge are measured as one, called by the first.

    What an arena leaves to chance is drawn as a battery draws it that is made of the file with the
    same seed, unless Unity is to draw.
    """
    from animalcat.envs.measure import measure_episode  # it loads the simulator

    try:
        loaded = load_config(path)
        arenas = episodes(loaded.config)
    except ArenaError as error:
        return [FeatureRow(str(path), None, name, *plan.drawn_by, error=str(error))]
    rows: list[FeatureRow] = []
    for number, arena in arenas.items():
        instance = name if len(arenas) == 1 else f"{name}.{number}"
        whose = tuple(f"arenas[{one}]" for one in arena_numbers(loaded.config, number))
        met = [
            str(one)
            for one in loaded.problems
            if not one.field.startswith("arenas[") or one.field.startswith(whose)
        ]
        try:
            placed, seed = place_by_plan(arena, instance, plan)
        except ArenaError as error:
            row = FeatureRow(str(path), number, instance, *plan.drawn_by, error=str(error))
            rows.append(replace(row, problems=met))
            continue
        found = measure_episode(placed, seed)
        told: list[dict[str, Any]] = []
        if plan.explain:
            told = [*map(explanation, found.surveys, found.played)]
        rows.append(
            FeatureRow(
                str(path),
                number,
                instance,
                *plan.drawn_by,
                _chance_fields(placed),
                *found.features,
                explanation=_together(told),
                problems=met,
            )
        )
    return rows


def place_by_plan(arena: Arena, instance: str, plan: Plan) -> tuple[list[Placement], int]:
    """The arenas of an episode as a plan draws them, and the seed by which it is played.

    Args:
        arena: The arena, or those that merge.
        instance: What a battery calls it, on which depends what is drawn, unless Unity draws.
        plan: How to draw.

    Raises:
        ArenaError: An arena cannot be built.
    """
    if plan.rng != OWN:
        draws = draws_by_name(plan.rng, plan.seed, plan.build)
        return [place(one, draws) for one in episode_arenas(arena)], plan.seed
    draft = Draft(instance, "", arena, instance_seed(plan.seed, instance))
    both = zip(placements(draft), first_placements(draft), strict=True)
    return [
        replace(one, drawn=first.drawn, skipped=first.skipped) for one, first in both
    ], draft.seed


def _chance_fields(placed: Sequence[Placement]) -> dict[str, float]:
    """What was left to chance in an episode; fields of later arenas begin with their place."""
    return {
        f"{f'arenas[{number}].' * bool(number)}{field}": value
        for number, placement in enumerate(placed)
        for field, value in placement.drawn.items()
    }


def _together(told: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The explanations of arenas that merge: of the first, with the words of all."""
    if len(told) < 2:
        return next(iter(told), None)
    words = [
        f"In arena {number} of the {len(told)} that merge: {sentence}"
        for number, one in enumerate(told)
        for sentence in one["words"]
    ]
    return {**told[0], "words": words}


def _read_kept(text: str | None, path: Path) -> list[FeatureRow] | None:
    """Rows that were kept; None if there are none or they cannot be used."""
    if text is None:
        return None
    try:
        rows = [FeatureRow(**row) for row in json.loads(text)]
    except (ValueError, TypeError):
        return None
    # The same content may lie under the same name elsewhere.
    return [
        replace(
            row,
            file=str(path),
            error=None if row.error is None else row.error.replace(row.file, str(path)),
            problems=[problem.replace(row.file, str(path)) for problem in row.problems],
        )
        for row in rows
    ]
