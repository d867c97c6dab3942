"""The families that come with the project: what they claim holds, and parts and demands work."""

from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.arena_configs.batteries.library import RECIPES, load_recipe
from animalcat.arena_configs.checks import check_config
from animalcat.arena_configs.families.claims import measure_geometry
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.library import FAMILIES, load_family
from animalcat.arena_configs.families.ranges import Categorical
from animalcat.arena_configs.families.search import search
from animalcat.arena_configs.features.registry import FEATURES
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import episode_arenas, episodes
from animalcat.arena_configs.writer import to_yaml
from animalcat.layouts.library import LAYOUTS, load_layout

PAPER = {
    "introductory",
    "y-maze",
    "detour",
    "radial-maze",
    "spatial-elimination",
    "delayed-gratification",
}
"""Categories a to f of the testbed paper."""


def test_the_first_categories_of_the_testbed_are_there() -> None:
    assert set(FAMILIES) >= PAPER
    assert all(load_family(name).name == name for name in FAMILIES)


DEAR = {"hiding-separable"}
"""Families of which a few instances cost many seconds."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow if n in DEAR else ()) for n in FAMILIES]
)
def test_claims_hold_and_arenas_are_explicit_and_clean(name: str) -> None:
    one = load_family(name)
    rng = np.random.default_rng(11)
    weights = [paradigm.weight for paradigm in one.paradigms]
    number = max(4, math.ceil(sum(weights) / min(weights)))  # so that each paradigm has one
    made = generate(one, number, rng, controls=tuple(one.controls), measure=measure_geometry)
    assert {instance.paradigm for instance in made} == {p.name for p in one.paradigms}
    for instance in made:
        parts = episode_arenas(instance.arena)
        for part in parts:
            placement = place(part, np.random.default_rng(0))
            assert (placement.drawn, placement.skipped) == ({}, ()), instance.name
        loaded = load_text(to_yaml(instance.arena), instance.name, strict=True)
        assert episodes(loaded.config) == {0: instance.arena}
        problems = check_config(loaded.config, np.random.default_rng(0))
        assert {problem.code for problem in problems} <= {*one.allow}, instance.name


@pytest.mark.parametrize("name", FAMILIES)
def test_each_part_has_instances(name: str) -> None:
    practice, test = (
        generate(name, 3, np.random.default_rng(5), part=part) for part in ("practice", "test")
    )

    def texts(made: list[FamilyInstance]) -> set[str]:
        return {to_yaml(one.arena) for one in made}

    assert (len(texts(practice)), len(texts(test))) == (3, 3)
    assert not texts(practice) & texts(test)


@pytest.mark.parametrize("recipe", RECIPES)
def test_colours_of_walls_do_not_tell_the_paradigm(recipe: str) -> None:
    """Where the walls of a recipe have several colours, those of each paradigm have them too."""
    families = {entry.family.name for entry in load_recipe(recipe).entries}
    painted = {n: load_family(n).ranges.get("paint") for n in families}
    if not any(painted.values()):
        return
    choices = {paint.options for paint in painted.values() if isinstance(paint, Categorical)}
    assert len(choices) == 1
    for name in families:
        for paradigm in load_family(name).paradigms:
            made = generate(name, 10, np.random.default_rng(3), paradigm=paradigm.name)
            colours = [
                {
                    (c.r, c.g, c.b)
                    for item in one.arena.items
                    if item.name == "Wall"
                    for c in item.colors
                }
                for one in made
            ]
            walled = [each for each in colours if each]
            several = {colour for each in walled for colour in each}
            assert len(walled) < 5 or len(several) > 1, (name, paradigm.name)


@pytest.mark.parametrize("name", FAMILIES)
def test_nodes_are_in_their_layouts(name: str) -> None:
    for layout, nodes in load_family(name).nodes.items():
        assert layout in LAYOUTS
        known = {node.name for node in load_layout(layout).latents}
        assert set(nodes) <= known


@pytest.mark.parametrize(
    ("name", "demands"),
    [
        ("detour", {"distance": 17.0, "detour": 1.3}),
        ("y-maze", {"way": 15.0, "choices": 2.0}),
        ("radial-maze", {"rewards": 4.0, "wayLength": 13.0}),
        ("introductory", {"rewardSize": 2.0, "lavaDetour": 1.0}),
        ("delayed-gratification", {"gainByWaiting": 2.0, "distance": 5.0}),
        ("navigation", {"distance": 27.0, "size": 1.5, "behind": 0.0}),
    ],
)
def test_arenas_are_found_for_demands(name: str, demands: dict[str, float]) -> None:
    found = search(name, demands, np.random.default_rng(1), measure_geometry)
    assert found.exact, found.made
    again = measure_geometry(found.instance.arena).values
    for demand, asked in found.asked.items():
        assert again[demand] == pytest.approx(asked, abs=0.01 * max(1.0, asked))


def test_what_is_impossible_gives_the_nearest() -> None:
    found = search(
        "detour", {"distance": 90.0, "lava": 0.0}, np.random.default_rng(1), measure_geometry
    )
    assert not found.exact
    made = found.made["rewardDistance"]
    assert made is not None
    assert made > 24.0  # the family's longest is 26 m
    assert found.distance == pytest.approx((90 - made) / 90, abs=1e-6)
    set_ = search("navigation", {"distance": 90.0}, np.random.default_rng(1), measure_geometry)
    assert set_.made["rewardDistance"] == pytest.approx(50.0, abs=0.06)
    assert not set_.exact


def test_parts_and_parameters_hold_for_demands_as_well() -> None:
    rng = np.random.default_rng(2)
    found = search(
        "detour",
        {"distance": 15.0},
        rng,
        measure_geometry,
        part="practice",
        paradigm="wall",
        given={"size": 1.25},
    )
    assert found.exact
    assert (found.instance.part, found.instance.paradigm) == ("practice", "wall")
    assert found.measured.values["rewardSize"] == pytest.approx(1.25)


@pytest.mark.parametrize(
    ("name", "demands", "message"),
    [
        ("detour", {"distence": 3.0}, "no demand 'distence'.*short names are distance"),
        ("detour", {"distance": float("nan")}, "asked to be nan; give a finite number"),
        ("swimming", {"distance": 3.0}, "no family 'swimming'; there are: .*detour"),
    ],
)
def test_demands_that_cannot_be_asked_for(
    name: str, demands: dict[str, float], message: str
) -> None:
    with pytest.raises(ArenaError, match=message):
        search(name, demands, np.random.default_rng(0), measure_geometry)


def test_short_names_are_demands() -> None:
    from animalcat.arena_configs.families.search import SHORT

    assert set(SHORT.values()) <= set(FEATURES)
