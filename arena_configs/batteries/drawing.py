"""Draws the instances of a recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np

from animalcat.arena_configs.batteries.language import Entry, Recipe, only
from animalcat.arena_configs.batteries.sizing import Counts
from animalcat.arena_configs.families.claims import Measure
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.language import Family, shares
from animalcat.arena_configs.families.search import ALIKE, SearchResult, search
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.origin import Origin
from animalcat.arena_configs.writer import to_yaml

Tick: TypeAlias = Callable[[int], None]
"""Told how many instances are drawn."""

TARGETS: Final = 4
"""How often demands are searched for in vain, before they are said to be out of reach."""
ROUNDS: Final = 20
"""How often arenas are drawn that are all there already, before there are said to be too few."""


class RecipeInstance(NamedTuple):
    """An instance of a recipe.

    Attributes:
        made: The instance as drawn from its family, under the name that it has in the battery.
        paradigm: The stratum of the battery that it belongs to.
        origin: Where it comes from.
    """

    made: FamilyInstance
    paradigm: str
    origin: Origin


def draw(
    recipe: Recipe,
    counts: Sequence[Counts],
    seed: int,
    measure: Measure,
    tick: Tick = lambda done: None,
) -> list[RecipeInstance]:
    """Draw the instances of a recipe.

    Every entry draws each paradigm with a seed of its own, which follows from the seed and the two
    names. So a change in one entry leaves the others as they are, and a smaller battery has the
    first instances of a larger one, under the same names. No arena is there twice.

    Args:
        recipe: The recipe.
        counts: How many instances each entry has.
        seed: Seed of the drawing.
        measure: Measures the demands of an arena by playing; only entries with `demands` need it.
        tick: Told how many are drawn.

    Raises:
        ArenaError: An entry cannot be drawn; the message names its place in the recipe.
    """
    drawn: list[RecipeInstance] = []
    seen = set[str]()
    for entry, count in zip(recipe.entries, counts, strict=True):
        try:
            for stratum in _strata(entry, count):
                for instance in _draw_named(stratum, seed, measure, seen):
                    drawn.append(instance)
                    tick(len(drawn))
        except ArenaError as error:
            raise entry.place.error(f"entry {entry.name}: {error}", "bad-recipe") from error
    return drawn


class _Stratum(NamedTuple):
    """A paradigm of an entry.

    Attributes:
        entry: The entry.
        name: Its name: the entry's, with the paradigm's where there are several.
        family: The family with this paradigm alone.
        counts: How many instances it has.
    """

    entry: Entry
    name: str
    family: Family
    counts: Counts


def _strata(entry: Entry, counts: Counts) -> Iterator[_Stratum]:
    """The paradigms of an entry, each with its share of the instances and of their controls."""
    paradigms = entry.family.paradigms
    numbers = shares([paradigm.weight for paradigm in paradigms], counts.instances)
    controls: list[dict[str, int]] = [{} for _ in paradigms]
    for name, wanted in counts.controls.items():
        control = entry.family.controls[name]
        having = [
            number if control.is_of(one) else 0
            for one, number in zip(paradigms, numbers, strict=True)
        ]
        if wanted:
            for own, number in zip(controls, shares(having, wanted), strict=True):
                own[name] = number
    for k, number in enumerate(numbers):
        name = entry.name if len(paradigms) == 1 else f"{entry.name}-{paradigms[k].name}"
        yield _Stratum(
            entry, name, only(entry.family, [paradigms[k].name]), Counts(number, controls[k])
        )


def _draw_named(
    stratum: _Stratum, seed: int, measure: Measure, seen: set[str]
) -> Iterator[RecipeInstance]:
    entry = stratum.entry
    count = stratum.counts.instances
    named = (entry.name, stratum.family.paradigms[0].name)
    rng = np.random.default_rng([seed, *(crc32(text.encode()) for text in named)])
    if entry.demands:
        instances = _search_demands(stratum, rng, measure, seen)
    elif entry.control:
        instances = _alone(stratum, rng, seen)
    else:
        controls = [name for name, number in stratum.counts.controls.items() if number]
        instances = generate(
            stratum.family, count, rng, part=entry.part, controls=controls, seen=seen
        )
        instances = _first_controls(instances, stratum.counts.controls)
    width = len(str(entry.count))
    names = dict[str, str]()
    number = 0
    for instance in instances:
        if instance.control_of:
            names[instance.name] = f"{names[instance.control_of]}.{instance.control}"
        else:
            number += 1
            names[instance.name] = f"{stratum.name}-{number:0{width}d}"
    for instance in instances:
        renamed = replace(
            instance,
            name=names[instance.name],
            task=names[instance.task],
            control_of=names.get(instance.control_of, ""),
        )
        yield RecipeInstance(renamed, stratum.name, _origin(entry, renamed))


def _origin(entry: Entry, instance: FamilyInstance) -> Origin:
    return Origin(
        entry.name,
        entry.family.name,
        instance.paradigm,
        instance.part,
        instance.task,
        instance.variant,
        instance.control,
        instance.control_of,
    )


def _first_controls(
    instances: Sequence[FamilyInstance], wanted: Mapping[str, int]
) -> list[FamilyInstance]:
    """Instances with as many controls as are asked for: those of the first instances."""
    left = Counter(wanted)
    kept: list[FamilyInstance] = []
    for instance in instances:
        if instance.control:
            left[instance.control] -= 1
        if not instance.control or left[instance.control] >= 0:
            kept.append(instance)
    return kept


def _alone(stratum: _Stratum, rng: np.random.Generator, seen: set[str]) -> list[FamilyInstance]:
    """Controls of arenas that are not in the battery themselves."""
    entry, count = stratum.entry, stratum.counts.instances
    controls: list[FamilyInstance] = []
    idle = 0
    while len(controls) < count:
        drawn = generate(
            stratum.family, count - len(controls), rng, part=entry.part, controls=[entry.control]
        )
        idle += 1
        for instance in drawn:
            text = to_yaml(instance.arena)
            if instance.control and text not in seen:
                seen.add(text)
                name = f"{len(controls) + 1}"
                controls.append(replace(instance, name=name, task=name, control_of=""))
                idle = 0
        if idle >= ROUNDS:
            raise ArenaError(
                f"of {count} instances there are only {len(controls)} different ones: all others "
                f"drawn have the same control {entry.control}"
            )
    return controls


def _search_demands(
    stratum: _Stratum, rng: np.random.Generator, measure: Measure, seen: set[str]
) -> list[FamilyInstance]:
    """Instances that have the demands of an entry."""
    entry, count = stratum.entry, stratum.counts.instances
    instances: list[FamilyInstance] = []
    vain: list[SearchResult] = []
    while len(instances) < count:
        asked = {
            name: float(rng.uniform(ends.least, ends.most)) for name, ends in entry.demands.items()
        }
        result = search(stratum.family, asked, rng, measure, part=entry.part)
        text = to_yaml(result.instance.arena)
        if text not in seen and _has(entry, result):
            seen.add(text)
            name = f"{len(instances) + 1}"
            instances.append(replace(result.instance, name=name, task=name))
            vain.clear()
            continue
        vain.append(result)
        if len(vain) >= TARGETS:
            nearest = min(vain, key=lambda result: result.distance)
            had = ", ".join(
                f"{name} {'does not apply' if value is None else format(value, '.4g')}"
                for name, value in nearest.made.items()
            )
            raise ArenaError(
                f"of {count} instances with these demands {len(instances)} were found; then the "
                f"nearest has {had}"
            )
    return instances


def _has(entry: Entry, result: SearchResult) -> bool:
    """Whether an instance has the demands of its entry, within a hundredth."""
    for name, ends in entry.demands.items():
        value = result.made[name]
        if value is None:
            return False
        ease = ALIKE * max(1.0, abs(value))
        if not ends.least - ease <= value <= ends.most + ease:
            return False
    return True
