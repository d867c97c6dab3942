"""Makes batteries from arena files or families, and keeps them on disk by digest."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np

from animalcat.arena_configs.families import (
    Family,
    FamilyInstance,
    check_claims,
    generate,
    load_family,
)
from animalcat.arena_configs.features import (
    FEATURES,
    MeasuredFeatures,
    Survey,
    measure_features,
)
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import STEPS_PER_UNIT, Arena, ArenaError
from animalcat.arena_configs.outcome import MarkedPlace
from animalcat.arena_configs.placement import fix, place
from animalcat.arena_configs.writer import to_yaml
from animalcat.service.batteries.feature_table import FeatureTable, read_table
from animalcat.service.batteries.instance import Instance

USUAL_STEPS: Final = 250 * STEPS_PER_UNIT
"""Time limit of most arenas of the Animal-AI Olympics, in physics steps."""
TABLE_VERSION: Final = 2
"""Version of a battery's table on disk, and part of its digest.

Version 1 has only the features of `aaio`, and does not say why one is missing.
"""
MANY: Final = 100
"""Arenas from which on several processes measure: each takes seconds to start."""
CHUNK: Final = 8
"""Arenas that a process measures at a time."""

Tick: TypeAlias = Callable[[int, int, str], None]
"""Told of progress: the parts done, all parts (0 if unknown), and what is being done."""


def silent(done: int, total: int, message: str) -> None:
    """Ignore progress."""


class ArenaFile(NamedTuple):
    """An arena file: its path relative to the battery's folder, and its text."""

    path: str
    text: str


@dataclass(frozen=True)
class Battery:
    """A content-addressed set of instances.

    Attributes:
        digest: SHA-256 of the content.
        units: Unit by meta-feature.
        instances: The instances in order of name.
        problems: Problems found in the files, one line each.
        folder: The battery's folder, in which its arenas are.
        versions: Version of the definition by measured meta-feature; empty in batteries of table
            version 1.
    """

    digest: str
    units: Mapping[str, str]
    instances: tuple[Instance, ...]
    problems: tuple[str, ...]
    folder: Path
    versions: Mapping[str, int] = field(default_factory=dict[str, int])

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Position of every instance, by name."""
        return {instance.name: k for k, instance in enumerate(self.instances)}

    @cached_property
    def expected_steps(self) -> Mapping[str, int]:
        """Expected length of an episode in physics steps, by instance name.

        This is the instance's time limit. Without a limit an episode may last longer than any that
        has one, and nobody knows how much. The battery's longest limit is then the lowest plausible
        value, which avoids overrating what the instance tells per second.
        """
        limits = {instance.name: instance.time_limit_steps for instance in self.instances}
        longest = max(limits.values(), default=0) or USUAL_STEPS
        return {name: limit or longest for name, limit in limits.items()}

    def arena_yaml(self, instance: Instance) -> str:
        """Return the fixed arena of an instance, as YAML in the current grammar."""
        return (self.folder / instance.arena).read_text("utf-8")


def import_files(
    files: Iterable[ArenaFile],
    seed: int,
    store: Path,
    table: str = "",
    tick: Tick = silent,
    processes: int = 1,
) -> Battery:
    """Make a battery from arena files.

    Args:
        files: The files, in any order.
        seed: Seed for values that the files leave to chance; each instance draws with (seed, its
            name).
        store: Folder that holds batteries by digest.
        table: The user's own meta-features as CSV (see `feature_table`); empty for none.
        tick: Told of progress; an exception that it raises ends the import.
        processes: How many processes measure, if there are many arenas.

    Raises:
        ArenaError: A file cannot be used; the message names file and line.
        ValueError: There is no file, two files give instances of the same name, or the table does
            not fit; the message names the place.
    """
    drafts: list[Draft] = []
    problems: list[str] = []
    own = read_table(table) if table else None
    ordered = sorted(files)
    for number, file in enumerate(ordered):
        tick(number, len(ordered), "reading files")
        loaded = load_text(file.text, file.path)
        problems += [str(problem) for problem in loaded.problems]
        arenas = loaded.config.arenas
        if not arenas:
            raise ArenaError(f"{file.path}: the configuration has no arena")
        stem = str(PurePosixPath(file.path).with_suffix(""))
        for key, arena in sorted(arenas.items()):
            name = stem if len(arenas) == 1 else f"{stem}.{key}"
            drafts.append(Draft(name, paradigm_of(name), arena, instance_seed(seed, name)))
    return _store(drafts, problems, store, tick, processes, own)


def build_family(
    family: str, n: int, seed: int, store: Path, tick: Tick = silent, processes: int = 1
) -> Battery:
    """Make a battery from a family of arenas.

    Args:
        family: A name in `arena_configs.families.FAMILIES`.
        n: Number of instances.
        seed: Seed for drawing the instances.
        store: Folder that holds batteries by digest.
        tick: Told of progress; an exception that it raises ends the build.
        processes: How many processes measure, if there are many arenas.

    Raises:
        ValueError: There is no such family.
        ClaimError: The family claims of an instance what is not so.
    """
    rng = np.random.default_rng([seed, crc32(family.encode())])
    drafts: list[Draft] = []
    drawn = generate(family, n, rng)
    for made in drawn:
        drafts.append(Draft(made.name, made.paradigm, made.arena, instance_seed(seed, made.name)))
        tick(len(drafts), n, "drawing arenas")
    battery = _store(drafts, [], store, tick, processes)
    _check_claims(family, drawn, battery)
    return battery


def _check_claims(family: str, drawn: Sequence[FamilyInstance], battery: Battery) -> None:
    """Compare what a family claims with what was measured on its instances."""
    chosen = load_family(family)
    if isinstance(chosen, Family):
        measured = {
            made.arena: MeasuredFeatures({**one.features}, {**one.missing})
            for made in drawn
            for one in [battery.instances[battery.index[made.name]]]
        }
        check_claims(chosen, drawn, measured.__getitem__, played=True)


def load(digest: str, store: Path) -> Battery:
    """Read a battery from disk.

    Raises:
        FileNotFoundError: There is no such battery.
        ValueError: A newer version wrote its table.
    """
    folder = store / digest
    table: dict[str, Any] = json.loads((folder / "battery.json").read_text("utf-8"))
    if table["version"] > TABLE_VERSION:
        raise ValueError(f"{folder} was written by a newer version of animalcat; update animalcat")
    return Battery(
        digest=digest,
        units=table["units"],
        instances=tuple(_instance(row) for row in table["instances"]),
        problems=tuple(table["problems"]),
        folder=folder,
        versions=table.get("versions", {}),
    )


def _instance(row: Mapping[str, Any]) -> Instance:
    fields: dict[str, Any] = dict(row)
    fields["places"] = tuple(MarkedPlace(*place) for place in row.get("places", ()))
    return Instance(**fields)


def _row(instance: Instance) -> dict[str, Any]:
    """Return an instance as a row of the table on disk."""
    row = asdict(instance)
    if not instance.places:
        del row["places"]
    return row


def read_files(source: Path) -> Iterator[ArenaFile]:
    """Yield the arena files of a folder and its subfolders, or a single file.

    Raises:
        FileNotFoundError: The path does not exist, or the folder has no arena file.
        ValueError: A file is not UTF-8; the message names it.
    """
    if source.is_dir():
        paths = sorted(p for p in source.rglob("*") if p.suffix in (".yaml", ".yml"))
        root = source
    else:
        paths, root = [source], source.parent
    if not paths:
        raise FileNotFoundError(f"{source}: no .yaml or .yml file is in this folder")
    for path in paths:
        try:
            yield ArenaFile(path.relative_to(root).as_posix(), path.read_text("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 text (byte {error.start})") from error


def paradigm_of(name: str) -> str:
    """Return the paradigm that an instance's name stands for.

    The name is split at '-'. Of three or more components it is the first two ("01-13" of
    "01-13-02"), of two components the first, and a name of one component takes its folder.
    """
    path = PurePosixPath(name)
    parts = path.name.split("-")
    if len(parts) == 1:
        return path.parent.name or "all"
    return "-".join(parts[: min(2, len(parts) - 1)])


class Draft(NamedTuple):
    """An instance before its values are fixed."""

    name: str
    paradigm: str
    arena: Arena
    seed: int


class Fixed(NamedTuple):
    """An instance, and the text of its arena."""

    instance: Instance
    text: str


def instance_seed(seed: int, name: str) -> int:
    """Return an instance's seed: 63 bits, because a backend may read it as a signed number."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def fixed_instance(draft: Draft, file: str = "") -> Fixed:
    """Make an instance from a draft: fix every value and measure its features.

    Args:
        draft: The draft.
        file: The arena's file within the battery's folder; empty if it has none.

    Raises:
        ArenaError: The arena cannot be built.
    """
    fixed = fix(draft.arena, np.random.default_rng([draft.seed, crc32(b"fix")]))
    placement = place(fixed, np.random.default_rng(draft.seed))
    # Imported here: it loads the simulator, which lists do without.
    from animalcat.envs.measure import measure_playing

    survey = Survey(placement)
    features, missing = measure_features(survey, *measure_playing(survey, draft.seed))
    return Fixed(
        Instance(
            name=draft.name,
            paradigm=draft.paradigm,
            features=features,
            pass_mark=fixed.pass_mark,
            time_limit_steps=max(0, fixed.time_limit) * STEPS_PER_UNIT,
            seed=draft.seed,
            arena=file,
            missing=missing,
        ),
        to_yaml(fixed),
    )


def _store(
    drafts: Sequence[Draft],
    problems: Sequence[str],
    store: Path,
    tick: Tick,
    processes: int,
    own: FeatureTable | None = None,
) -> Battery:
    """Fix, measure and write the instances; a battery that exists already is left alone."""
    if not drafts:
        raise ValueError("a battery needs at least one arena")
    ordered = sorted(drafts, key=lambda draft: draft.name)
    for one, other in pairwise(ordered):
        if one.name == other.name:
            raise ValueError(f"two files give an instance named {one.name!r}; rename one")
    if own is not None:  # before the work that takes time
        own.check({draft.name for draft in ordered})
    made: list[Fixed] = []
    for one in _measured(ordered, processes):
        made.append(one)
        tick(len(made), len(ordered), "measuring arenas")
    units = {name: feature.unit for name, feature in FEATURES.items()}
    if own is not None:
        made = [_with_own(one, own, units) for one in made]
        units |= own.units
    versions = {name: feature.version for name, feature in FEATURES.items()}
    rows = [_row(one.instance) for one in made]
    content = {
        "version": TABLE_VERSION,
        "units": units,
        "versions": versions,
        "instances": rows,
        "arenas": [hashlib.sha256(one.text.encode()).hexdigest() for one in made],
    }
    digest = hashlib.sha256(
        json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()
    folder = store / digest
    if not folder.exists():
        store.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".new-", dir=store))
        try:
            (temporary / "arenas").mkdir()
            for one in made:
                (temporary / one.instance.arena).write_text(one.text, "utf-8")
            table = {
                "version": TABLE_VERSION,
                "units": units,
                "versions": versions,
                "problems": list(problems),
                "instances": rows,
            }
            with (temporary / "battery.json").open("w", encoding="utf-8") as file:
                json.dump(table, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            _rename(temporary, folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return load(digest, store)


def _with_own(made: Fixed, own: FeatureTable, units: Mapping[str, str]) -> Fixed:
    """Return an instance with the features and places that the user's table gives it."""
    instance = made.instance
    features, missing = own.joined(instance.name, instance.features, units)
    return made._replace(
        instance=replace(
            instance,
            features=features,
            missing={**instance.missing, **missing},
            places=own.rows[instance.name].places,
        )
    )


def _measured(drafts: Sequence[Draft], processes: int) -> Iterator[Fixed]:
    """Make the instances of drafts, in their order."""
    numbers = range(len(drafts))
    if processes <= 1 or len(drafts) < MANY:
        yield from map(_make_named, drafts, numbers)
        return
    # Threads of numerical libraries may hold locks that a fork would copy.
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    try:
        yield from pool.map(_make_named, drafts, numbers, chunksize=CHUNK)
    finally:
        pool.shutdown(cancel_futures=True)


def _make_named(draft: Draft, number: int) -> Fixed:
    try:
        return fixed_instance(draft, f"arenas/{number:05}.yaml")
    except ArenaError as error:
        raise ArenaError(f"{draft.name}: {error}", error.problems) from error


def _rename(temporary: Path, folder: Path) -> None:
    try:
        temporary.chmod(0o755)
        temporary.rename(folder)
    except OSError:
        if not folder.exists():  # otherwise another thread stored the same content first
            raise
