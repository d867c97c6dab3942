"""Families at the edges of their language: values that are set, and what is rare, wrong or odd."""

from __future__ import annotations

import numpy as np

from animalcat.arena_configs.batteries import counts_for, draw, read_recipe
from animalcat.arena_configs.families import (
    Family,
    FamilyInstance,
    generate,
    measure_geometry,
    read_family,
)

FIELD = """\
name: field
description: Food ahead.
{head}arena:
  timeLimit: 250
  items:
    - {{id: agent, name: Agent, positions: [[20, 5]]}}
    - {{id: food, name: GoodGoal, positions: [[20, 25]], sizes: [1]}}
{items}{tail}"""


def field(head: str = "", items: str = "", tail: str = "") -> Family:
    """A family of one arena, with more lines before it, among its items and after it."""
    text = FIELD.format(head=head, items=items, tail=tail)
    return read_family(text, "field.yaml")


def drawn(family: Family | str, n: int = 4, **more: object) -> list[FamilyInstance]:
    return generate(family, n, np.random.default_rng(1), **more)  # type: ignore[arg-type]


def test_a_control_keeps_derived_values_that_were_drawn_or_set() -> None:
    entry = (
        "name: mine\nabout: To try it.\nentries:\n"
        "  - {family: implosion-explosion, count: 4, paradigms: [implosion],"
        " with: {change: {choice: [1, 2]}}, controls: [glass]}\n"
    )
    recipe = read_recipe(entry, "mine.yaml")
    made = [one.made for one in draw(recipe, counts_for(recipe, None), 0, measure_geometry)]
    before = {one.name: one.parameters["change"] for one in made if not one.control}
    assert set(before.values()) == {1.0, 2.0}
    controls = [one for one in made if one.control]
    assert [one.parameters["change"] for one in controls] == [
        before[one.control_of] for one in controls
    ]
    more = {"paradigm": "implosion", "controls": ["glass"], "given": {"change": 2.0}}
    made = drawn("implosion-explosion", 1, **more)
    assert [one.parameters["change"] for one in made] == [2.0, 2.0]


def test_a_derived_value_with_another_formula_follows_a_control() -> None:
    head = (
        "parameters: {far: {uniform: [5, 9]}}\nderived: {twice: 2 * far}\n"
        "paradigms: [{name: usual}, {name: thrice, parameters: {twice: 3 * far}}]\n"
    )
    post = "    - {name: Wall, positions: [[5, twice]], sizes: [[1, 1, far / 10]]}\n"
    family = field(head, post, "controls: {near: {parameters: {far: 4}}}\n")
    usual, near, other, nearer = drawn(family, 2, controls=["near"])
    assert (near.parameters["twice"], nearer.parameters["twice"]) == (8.0, 12.0)
    assert other.parameters["twice"] != usual.parameters["twice"] != 8.0
