"""Builds batteries from recipes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from animalcat.arena_configs.batteries.drawing import RecipeInstance, draw
from animalcat.arena_configs.batteries.language import Recipe
from animalcat.arena_configs.batteries.sizing import Counts, counts_for, full_counts, total
from animalcat.arena_configs.families.claims import check_claims
from animalcat.arena_configs.features.definition import MeasuredFeatures
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.model import Arena, ArenaError
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import Battery, in_order, load
from animalcat.service.batteries.built import BuiltShelf, build_key
from animalcat.service.batteries.drafts import (
    Draft,
    Fixed,
    fixed_instances,
    instance_seed,
    reading_of,
    silent,
)
from animalcat.service.batteries.estimate import Tick, with_estimate
from animalcat.service.batteries.naming import TaskKind
from animalcat.service.batteries.readings import Reading, key_of
from animalcat.service.batteries.selection import MOST, DemandRows, select
from animalcat.service.batteries.writing import write_battery


def build_recipe(
    recipe: Recipe,
    store: Path,
    size: int | None = None,
    seed: int | None = None,
    tick: Tick = silent,
    processes: int = 1,
) -> Battery:
    """Make a battery from a recipe, and let the planner play every instance.

    Args:
        recipe: The recipe.
        store: Folder that holds batteries by digest.
        size: Number of instances with controls, to which counts are scaled; None for what the
            recipe asks for.
        seed: Seed of the drawing; None for the recipe's.
        tick: Told of progress; an exception that it raises ends the build.
        processes: How many processes measure, if there are many arenas.

    Raises:
        ArenaError: The recipe cannot be followed, or a family claims what is not so; the message
            names the place in the recipe. Or demands are to be separable and are not.
    """
    chosen = recipe.seed if seed is None else seed
    counts = counts_for(recipe, size)
    layout = None if recipe.separable is None else _layout_of(recipe)
    by = layout.digest if layout else ""
    shelf, key = BuiltShelf(), build_key(recipe.digest, size, chosen, by)
    if digest := shelf.fetch(key, store):
        return load(digest, store)
    timed = with_estimate(tick)
    drawn = drawn_instances(recipe, counts, chosen, timed)
    drafts = in_order(recipe_drafts(recipe, drawn, chosen))
    fixed: list[Fixed] = []
    for instance in fixed_instances(drafts, processes, timed, battery=recipe.name, solve=True):
        fixed.append(instance)
        timed(len(fixed), len(drafts), "measuring and solving arenas")
    check_recipe_claims(recipe, drawn, fixed)
    if layout is not None and recipe.separable is not None:
        fixed = _separable(layout, fixed, recipe.separable if size is None else size)
        if size is None:
            _check_separation(recipe, layout, fixed)
    units = {name: feature.unit for name, feature in FEATURES.items()}
    head = recipe_head(recipe, counts, chosen)
    digest = write_battery(fixed, units, store, recipe=head, source=recipe)
    shelf.keep(key, store / digest)
    return load(digest, store)


def _layout_of(recipe: Recipe) -> Layout:
    """The layout that a recipe is meant for.

    Raises:
        ArenaError: There is none of this name, or it has no such variant.
    """
    try:
        return load_layout(recipe.layout, recipe.variant)
    except SpecificationError as error:
        raise ArenaError(f"{recipe.file}: layout: {error}") from None


def _separable(layout: Layout, fixed: Sequence[Fixed], keep: int) -> list[Fixed]:
    """The instances among which the demands of a layout go together least."""
    unsolved = [
        candidate.instance.name
        for candidate in fixed
        if candidate.verdict and not candidate.verdict.solved
    ]
    names = select(layout, [candidate.instance for candidate in fixed], keep, unsolved)
    return [candidate for candidate in fixed if candidate.instance.name in names]


def _check_separation(recipe: Recipe, layout: Layout, fixed: Sequence[Fixed]) -> None:
    """Refuse a battery that is to be separable and is not.

    Raises:
        ArenaError: It is not; the message says why.
    """
    together = DemandRows.of(layout, [each.instance for each in fixed]).together
    if failures := [pair for pair in together if pair.most > MOST]:
        pairs = "; ".join(
            f"{pair.one} and {pair.other} (ranks {pair.ranks:+.2f}, values {pair.values:+.2f})"
            for pair in failures
        )
        raise ArenaError(
            f"{recipe.file}: the demands of layout {layout.name} are not separable, since these "
            f"go together: {pairs}. Change the entries, or draw with another seed"
        )


def recipe_readings(recipe: Recipe, processes: int, tick: Tick = silent) -> dict[str, Reading]:
    """Measure and solve all arenas of a recipe, for `readings.ship`.

    Args:
        recipe: The recipe.
        processes: How many processes measure.
        tick: Told of progress.

    Returns:
        Readings by key.
    """
    drawn = drawn_instances(recipe, full_counts(recipe), recipe.seed, tick)
    drafts = recipe_drafts(recipe, drawn, recipe.seed)
    timed = with_estimate(tick)
    readings: dict[str, Reading] = {}
    for fixed in fixed_instances(drafts, processes, timed, solve=True):
        instance = fixed.instance
        reading = Reading({**instance.features}, {**instance.missing}, fixed.verdict)
        readings[key_of(fixed.text, instance.seed)] = reading
        timed(len(readings), len(drafts), "measuring and solving arenas")
    return readings


def drawn_instances(
    recipe: Recipe, counts: Sequence[Counts], seed: int, tick: Tick = silent
) -> list[RecipeInstance]:
    """Draw the instances of a recipe.

    Args:
        recipe: The recipe.
        counts: How many instances each entry has.
        seed: Seed of the drawing.
        tick: Told of progress.

    Raises:
        ArenaError: An entry cannot be drawn; the message names its place in the recipe.
    """
    whole = total(counts)
    return draw(recipe, counts, seed, _measure, lambda done: tick(done, whole, "drawing arenas"))


def recipe_drafts(recipe: Recipe, drawn: Sequence[RecipeInstance], seed: int) -> list[Draft]:
    """Instances as drafts, which can be measured and stored.

    An instance and its controls have the same seed, and are of the same suite.
    """
    suites = {entry.name: entry.suite for entry in recipe.entries}
    return [
        Draft(
            drawn_instance.made.name,
            drawn_instance.paradigm,
            drawn_instance.made.arena,
            instance_seed(seed, drawn_instance.made.control_of or drawn_instance.made.name),
            drawn_instance.origin,
            TaskKind(suite=suites[drawn_instance.origin.entry]),
        )
        for drawn_instance in drawn
    ]


def recipe_head(recipe: Recipe, counts: Sequence[Counts], seed: int) -> dict[str, Any]:
    """What a recipe says of its battery; it is part of the battery's digest."""
    return {
        "name": recipe.name,
        "about": recipe.about,
        "licence": recipe.licence,
        "layout": recipe.layout,
        "layout_variant": recipe.variant,
        "seed": seed,
        **({} if recipe.separable is None else {"separable": recipe.separable}),
        "entries": {
            entry.name: {"count": count.instances, "controls": dict(count.controls)}
            for entry, count in zip(recipe.entries, counts, strict=True)
        },
    }


def check_recipe_claims(
    recipe: Recipe, drawn: Sequence[RecipeInstance], fixed: Sequence[Fixed]
) -> None:
    """Compare what families claim with what was measured on the instances of a recipe.

    Args:
        recipe: The recipe.
        drawn: Its instances as they were drawn.
        fixed: The same, measured, in any order.

    Raises:
        ArenaError: A claim does not hold; the message names entry, instance, demand and values.
    """
    known = {each.instance.name: each.instance for each in fixed}
    for entry in recipe.entries:
        here = [
            drawn_instance.made
            for drawn_instance in drawn
            if drawn_instance.origin.entry == entry.name
        ]
        features = {
            instance.arena: MeasuredFeatures(
                {**known[instance.name].features}, {**known[instance.name].missing}
            )
            for instance in here
        }
        try:
            check_claims(entry.family, here, features.__getitem__, played=True)
        except ArenaError as error:
            raise entry.place.error(f"entry {entry.name}: {error}", "bad-claim") from error


def _measure(arena: Arena) -> MeasuredFeatures:
    """Measure the demands of an arena that is looked for, and keep them."""
    reading = reading_of(Draft("arena", "", arena, 0))
    return MeasuredFeatures(dict(reading.features), dict(reading.missing))
