"""Makes batteries from arena files or families, and keeps them on disk by digest."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np

from animalcat.arena_configs.batteries.language import Entry
from animalcat.arena_configs.batteries.reader import read_recipe
from animalcat.arena_configs.families.claims import check_claims
from animalcat.arena_configs.families.generate import drawing
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.library import family_text, load_family
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.instance import Instance
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import STEPS_PER_UNIT, Arena, ArenaError, Problem
from animalcat.arena_configs.origin import Origin
from animalcat.arena_configs.sequence import episode_arenas, episodes
from animalcat.arena_configs.writer import to_yaml
from animalcat.arenas.arena_files import battery_files
from animalcat.service.batteries.built import BuiltShelf, build_key
from animalcat.service.batteries.columns import InstanceColumns, read_head
from animalcat.service.batteries.drafts import (
    Draft,
    Drafts,
    Fixed,
    drawn_fields,
    fixed_arena,
    fixed_instances,
    instance_seed,
    join_errors,
    measure_drafts,
    name_errors,
    silent,
    unfit,
)
from animalcat.service.batteries.estimate import Tick, with_estimate
from animalcat.service.batteries.feature_table import FeatureTable, read_table
from animalcat.service.batteries.findings import alike, in_lines, problems_of
from animalcat.service.batteries.instance import arena_identity
from animalcat.service.batteries.marks import Marks, marks_of
from animalcat.service.batteries.naming import (
    ControlLink,
    groups_of,
    kinds_of,
    links_of,
)
from animalcat.service.batteries.packed import Packed
from animalcat.service.batteries.piaagets import metadata_of, read_metadata
from animalcat.service.batteries.readings import Reading, key_of
from animalcat.service.batteries.writing import RECIPE, TABLE, TABLE_VERSION, write_battery
from animalcat.text.marked_yaml import text_of

USUAL_STEPS: Final = 250 * STEPS_PER_UNIT
"""Time limit of most arenas of the Animal-AI Olympics, in physics steps."""


class ArenaFile(NamedTuple):
    """An arena file: its path relative to the battery's folder, and its text (see `text_of`)."""

    path: str
    text: str


class NamedLayout(NamedTuple):
    """A layout that comes with the project.

    Attributes:
        name: Its name.
        variant: Its variant; empty for the usual one.
    """

    name: str
    variant: str = ""


USUAL_LAYOUT: Final = NamedLayout("aaio")
"""What measures on batteries that name no layout."""


@dataclass(frozen=True)
class Battery:
    """A content-addressed set of instances.

    Attributes:
        digest: SHA-256 of the content.
        units: Unit by meta-feature.
        instances: The instances in order of name.
        problems: Problems found in the files, one line each.
        folder: The battery's folder, in which its arenas are.
        versions: Version of the definition by measured meta-feature.
        recipe: What its recipe says of it, as `recipes.recipe_head` has it; empty without one.
        unsolved: Why the planner did not solve an instance, by its name; None where it did not try.
        drawn: What its file leaves to chance beside looks and was drawn when the battery was made,
            by instance.
        doubles: What `same_arena` is, where the arenas are elsewhere; None where they are here.
        layout: The layout that the battery names, by which it is measured unless another one is
            asked for; None if it names none, and `USUAL_LAYOUT` measures.
    """

    digest: str
    units: Mapping[str, str]
    instances: Sequence[Instance]
    problems: tuple[str, ...]
    folder: Path
    versions: Mapping[str, int] = field(default_factory=dict[str, int])
    recipe: Mapping[str, Any] = field(default_factory=dict[str, Any])
    unsolved: Mapping[str, str] | None = None
    drawn: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    doubles: Mapping[str, str] | None = None
    layout: NamedLayout | None = None

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Position of every instance, by name."""
        own = self.instances
        named = own.names if isinstance(own, InstanceColumns) else [each.name for each in own]
        return {name: k for k, name in enumerate(named)}

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """Entries of the recipe that it was built from, by name; empty if that was not kept."""
        try:
            kept: dict[str, Any] = json.loads((self.folder / RECIPE).read_text("utf-8"))
            recipe = read_recipe(kept["text"], RECIPE, kept["families"])
        except (OSError, ArenaError):
            return {}
        return {entry.name: entry for entry in recipe.entries}

    @cached_property
    def groups(self) -> Mapping[str, str]:
        """Group of variants by instance name; each is called after its first instance."""
        return groups_of(self.instances)

    @cached_property
    def marks(self) -> Marks:
        """Which instances nobody can pass, and which nobody can fail."""
        return marks_of(self.instances)

    def marked(self, pass_marks: Mapping[str, float]) -> Battery:
        """The same arenas with other pass marks, for outcomes that were passed by these.

        Args:
            pass_marks: Pass marks by instance name; other instances keep theirs.
        """
        instances = tuple(
            replace(instance, pass_mark=pass_marks.get(instance.name, instance.pass_mark))
            for instance in self.instances
        )
        return replace(self, instances=instances)

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

    @cached_property
    def identities(self) -> Mapping[str, tuple[str, str]]:
        """What instances share that are one arena under different names; lost arenas have none."""
        identities: dict[str, tuple[str, str]] = {}
        for instance in self.instances:
            with suppress(OSError, UnicodeDecodeError):
                identities[instance.name] = arena_identity(self.arena_yaml(instance), instance)
        return identities

    @cached_property
    def same_arena(self) -> Mapping[str, str]:
        """Instances that are one arena with an earlier one, by whose name each is found."""
        if self.doubles is not None:
            return self.doubles
        firsts: dict[tuple[str, str], str] = {}
        named = {
            name: firsts.setdefault(identity, name) for name, identity in self.identities.items()
        }
        return {name: first for name, first in named.items() if name != first}

    def arena_yaml(self, instance: Instance) -> str:
        """Return the fixed arena of an instance, as YAML in the current grammar.

        Raises:
            OSError: It is lost.
        """
        return (self.folder / instance.arena).read_text("utf-8")


BATTERIES: Final = "batteries"
"""Folder of the batteries within a data directory, each under its digest."""


def import_files(
    files: Iterable[ArenaFile],
    seed: int,
    store: Path,
    table: str = "",
    tick: Tick = silent,
    processes: int = 1,
    *,
    in_order: bool = False,
    layout: NamedLayout | None = None,
) -> Battery:
    """Make a battery from arena files.

    A file gives an instance for each of its arenas. Those that merge are played in one episode, so
    they are one instance, which is called after the first of them.

    Args:
        files: The files, in any order.
        seed: Seed for values that the files leave to chance; each instance draws with (seed, its
            name).
        store: Folder that holds batteries by digest.
        table: What the user says of the instances as CSV: their kinds, and meta-features (see
            `feature_table`); empty for none.
        tick: Told of progress; an exception that it raises ends the import.
        processes: How many processes measure, if there are many arenas.
        in_order: Whether the files come in order of path, so that they need not be held at once.
        layout: The layout that the battery is to name; None for none.

    Raises:
        ArenaError: Files cannot be used; the message names each, with its line.
        ValueError: There is no file, two files give instances of the same name, or the table does
            not fit; the message names the place.
    """
    drafts: Packed[Draft] = Packed()
    instances: list[str] = []
    places: list[str] = []
    problems: list[Problem] = []
    refused: list[ArenaError] = []
    metadata = metadata_of(table)
    own = read_table(table) if table and metadata is None else None
    ordered = files if in_order else sorted(files)
    total = len(ordered) if isinstance(ordered, Sized) else 0
    number = 0
    for number, file in enumerate(ordered):
        tick(number, total, "reading files")
        try:
            loaded = load_text(file.text, file.path)
            arenas = episodes(loaded.config)
        except ArenaError as error:
            named_by = str(error).startswith(file.path)
            text = str(error) if named_by else f"{file.path}: {error}"
            refused.append(ArenaError(text, error.problems))
            continue
        problems += problems_of(loaded, file.path, seed)
        stem = str(PurePosixPath(file.path).with_suffix(""))
        for key, arena in sorted(arenas.items()):
            name = stem if len(arenas) == 1 else f"{stem}.{key}"
            drafts.append(Draft(name, "", arena, instance_seed(seed, name)))
            instances.append(name)
            places.append(file.path)
    if refused:
        raise join_errors([*refused, *unfit(drafts)], number + 1, "files")
    if metadata is not None:
        own, unmatched = read_metadata(metadata, instances)
        problems += unmatched
    elif own is not None:
        own = own.resolved(instances)
    kinds = kinds_of(instances, own.kinds if own else {})
    links = links_of(instances, own.links if own else None)
    with_kinds = Packed(
        draft._replace(kind=kinds[draft.name], link=links.get(draft.name, ControlLink()))
        for draft in drafts
    )
    drawn: dict[str, Sequence[str]] = {}
    for draft in with_kinds:
        try:
            fields = name_errors(draft, drawn_fields)
        except ArenaError as error:
            refused.append(error)
            continue
        if fields:
            drawn[draft.name] = fields
    if refused:
        raise join_errors(refused, len(with_kinds), "arenas")
    problems += alike(
        (place, draft.name, draft.arena) for place, draft in zip(places, with_kinds, strict=True)
    )
    lines = in_lines(problems)
    return store_drafts(with_kinds, lines, store, tick, processes, own, drawn=drawn, layout=layout)


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
    shelf, key = BuiltShelf(), build_key(family, family_text(family), n, seed)
    if digest := shelf.fetch(key, store):
        return load(digest, store)
    drawn: Packed[FamilyInstance] = Packed()
    for instance in drawing(family, n, _generator(family, seed)):
        drawn.append(instance)
        tick(len(drawn), n, "drawing arenas")
    drafts = drawn.mapped(lambda instance: _draft(family, instance, seed))
    battery = store_drafts(drafts, [], store, tick, processes, family=family)
    _check_claims(family, drawn, battery)
    shelf.keep(key, battery.folder)
    return battery


def _check_claims(family: str, drawn: Iterable[FamilyInstance], battery: Battery) -> None:
    """Compare what a family claims with what was measured on its instances."""
    current = ""

    def each() -> Iterator[FamilyInstance]:
        nonlocal current
        for made in drawn:
            current = made.name
            yield made

    def take_measures(_: Arena) -> MeasuredFeatures:
        instance = battery.instances[battery.index[current]]
        return MeasuredFeatures({**instance.features}, {**instance.missing})

    check_claims(load_family(family), each(), take_measures, played=True)


def family_readings(family: str, n: int, seed: int, processes: int = 1) -> dict[str, Reading]:
    """Measure all arenas of a battery that `build_family` would make, for `readings.ship`.

    Args:
        family: A name in `arena_configs.families.FAMILIES`.
        n: Number of instances.
        seed: Seed for drawing the instances.
        processes: How many processes measure, if there are many arenas.

    Returns:
        Readings by key.
    """
    drafts = [_draft(family, instance, seed) for instance in _draw_instances(family, n, seed)]
    keys = [key_of(to_yaml(fixed_arena(draft)), draft.seed) for draft in drafts]
    return dict(zip(keys, measure_drafts(drafts, processes), strict=True))


def _draw_instances(family: str, n: int, seed: int) -> list[FamilyInstance]:
    return [*drawing(family, n, _generator(family, seed))]


def _generator(family: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, crc32(family.encode())])


def _draft(family: str, instance: FamilyInstance, seed: int) -> Draft:
    origin = Origin("", family, instance.paradigm, instance.part, instance.task, instance.variant)
    return Draft(
        instance.name, instance.paradigm, instance.arena, instance_seed(seed, instance.name), origin
    )


def load(digest: str, store: Path) -> Battery:
    """Read a battery from disk.

    Raises:
        FileNotFoundError: There is no such battery.
        ValueError: Another version wrote its table.
    """
    folder = store / digest
    table = read_head(folder / TABLE)
    if table["version"] != TABLE_VERSION:
        raise ValueError(
            f"{folder}: its table has version {table['version']}, and this animalcat reads version "
            f"{TABLE_VERSION}. Update animalcat if a newer one wrote it; otherwise import or build "
            "the battery again"
        )
    return Battery(
        digest=digest,
        units=table["units"],
        instances=InstanceColumns(folder / TABLE),
        problems=tuple(table["problems"]),
        folder=folder,
        versions=table["versions"],
        recipe=table.get("recipe", {}),
        unsolved=table.get("unsolved"),
        drawn=table.get("drawn", {}),
        layout=_named_layout(table),
    )


def _named_layout(table: Mapping[str, Any]) -> NamedLayout | None:
    """The layout that a battery names, or the recipe that it was built from."""
    recipe: Mapping[str, Any] = table.get("recipe", {})
    if recipe.get("layout"):
        return NamedLayout(recipe["layout"], recipe["layout_variant"])
    return NamedLayout(*table["layout"]) if "layout" in table else None


def read_files(source: Path) -> Iterator[ArenaFile]:
    """Yield the arena files of a folder and its subfolders, or a single file.

    Raises:
        AnimalcatError: There is no such path, no arena file, or two give the same name.
    """
    for relative, path in battery_files(source).files:
        yield ArenaFile(relative, text_of(path.read_bytes()))


def store_drafts(
    drafts: Drafts,
    problems: Sequence[str],
    store: Path,
    tick: Tick,
    processes: int,
    own: FeatureTable | None = None,
    family: str = "",
    drawn: Mapping[str, Sequence[str]] | None = None,
    layout: NamedLayout | None = None,
) -> Battery:
    """Fix, measure and write instances.

    Args:
        drafts: The instances.
        problems: Problems found in files, one line each.
        store: Folder that holds batteries by digest.
        tick: Told of progress; an exception that it raises ends the work.
        processes: How many processes measure, if there are many arenas.
        own: The user's own meta-features.
        family: The family that they are drawn from; empty for none.
        drawn: What their files leave to chance beside looks, by instance.
        layout: The layout that the battery is to name; None for none.

    Raises:
        ArenaError: An arena cannot be built; the message names it.
        ValueError: There is no draft, two have the same name, or the table does not fit.
    """
    ordered = in_order(drafts)
    timed = with_estimate(tick)
    units = {name: feature.unit for name, feature in FEATURES.items()}
    if own is not None:
        _check_places(ordered, own)
    every = units if own is None else {**own.units, **units}

    def fix_instances() -> Generator[Fixed]:
        made = fixed_instances(ordered, processes, timed, battery=family)
        for number, instance in enumerate(made, 1):
            timed(number, len(ordered), "measuring arenas")
            yield instance if own is None else _with_own(instance, own, units)

    with closing(fix_instances()) as instances:
        digest = write_battery(instances, every, store, problems, drawn=drawn, layout=layout)
    return load(digest, store)


def _check_places(drafts: Drafts, own: FeatureTable) -> None:
    """Refuse marked places in arenas that merge, which could be in any of them."""
    for draft in drafts:
        row, arenas = own.rows[draft.name], len(episode_arenas(draft.arena))
        if row.places and arenas > 1:
            raise ValueError(
                f"table, line {row.line}, column choices: {draft.name} is {arenas} arenas that "
                "merge into one episode, and a place does not say in which of them it is; leave "
                "the cell empty, or import the arenas without mergeNextArena"
            )


def in_order(drafts: Drafts) -> Packed[Draft]:
    """Drafts in order of their names.

    Raises:
        ValueError: There is none, or two have the same name.
    """
    if not len(drafts):
        raise ValueError("a battery needs at least one arena")
    names = [draft.name for draft in drafts]
    order = sorted(range(len(names)), key=names.__getitem__)
    for place, following in pairwise(order):
        if names[place] == names[following]:
            raise ValueError(f"two files give an instance named {names[place]!r}; rename one")
    packed = drafts if isinstance(drafts, Packed) else Packed(drafts)
    return packed.taken(order)


def _with_own(fixed: Fixed, own: FeatureTable, units: Mapping[str, str]) -> Fixed:
    """Return an instance with the features and places that the user's table gives it."""
    instance = fixed.instance
    features, missing = own.joined(instance.name, instance.features, units)
    return fixed._replace(
        instance=replace(
            instance,
            features=features,
            missing={**instance.missing, **missing},
            places=own.rows[instance.name].places,
        )
    )
