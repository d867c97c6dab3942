"""The families that come with the project: what they claim holds, and parts and demands work."""

from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.arena_configs.batteries.library import RECIPES, load_recipe
from animalcat.arena_configs.checks import check_config
from animalcat.arena_configs.families.claims import measure_geometry
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.library import FAMILIES, load_family
from animalcat.arena_configs.families.ranges import Categorical
from animalcat.arena_configs.families.search import search
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import episode_arenas, episodes
from animalcat.arena_configs.writer import to_yaml

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
