"""Recipes of batteries: what they say, how they scale, what is drawn, and what is wrong in them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from animalcat.arena_configs.batteries.drawing import RecipeInstance, draw
from animalcat.arena_configs.batteries.language import Recipe
from animalcat.arena_configs.batteries.library import RECIPES, load_recipe
from animalcat.arena_configs.batteries.reader import read_recipe
from animalcat.arena_configs.batteries.sizing import counts_for, full_counts, full_size, total
from animalcat.arena_configs.families.claims import measure_geometry
from animalcat.arena_configs.model import ArenaError
from animalcat.arena_configs.writer import to_yaml

HEAD = "name: mine\nabout: To try it.\nentries:\n"


O_PIAAGETS = (
    *("continuity/egocentric", "continuity/allocentric", "cohesion/contour-disruption"),
    *(f"property-change/{what}" for what in ("size", "colour", "shape", "pattern")),
    *("controls/introduction", "controls/rooms"),
)
"""Suites of O-PIAAGETS, those of its further work among them."""


def recipe(*entries: str, families: dict[str, str] | None = None) -> Recipe:
    lines = "".join(f"  - {{{entry}}}\n" for entry in entries)
    return read_recipe(HEAD + lines, "mine.yaml", families or {})


def draw_instances(of: Recipe, size: int | None = None, seed: int = 0) -> list[RecipeInstance]:
    return draw(of, counts_for(of, size), seed, measure_geometry)


def texts(made: list[RecipeInstance]) -> dict[str, str]:
    return {one.made.name: to_yaml(one.made.arena) for one in made}


def test_shipped_recipes_have_what_their_names_say() -> None:
    sizes = {name: total(full_counts(load_recipe(name))) for name in RECIPES}
    assert sizes["object-permanence"] == 2188
    assert sizes["navigation-2000"] == 2000
    assert (sizes["basics"], sizes["spoken"]) == (60, 120)
    assert [one.name for one in load_recipe("basics").entries] == [
        *("see", "move", "turn", "climb", "avoid")
    ]
    categories = {entry.name[0]: entry for entry in load_recipe("testbed").entries}
    assert "".join(categories) == "abcdefghijkl"
    assert all(load_recipe(name).licence and load_recipe(name).about for name in RECIPES)


def test_object_permanence_has_the_counts_of_the_paper() -> None:
    """Section D.2 of Burden et al. 2023, with 603 chick controls (benchmarks.synthetic)."""
    chosen = load_recipe("object-permanence")
    counts = dict(zip([one.name for one in chosen.entries], full_counts(chosen), strict=True))
    cups = [counts["cups"], counts["cups-large"], counts["cups-sliding"]]
    straight = counts["cups-sliding"].controls["straight"]
    assert sum(one.instances for one in cups) + straight == 359
    assert sum(one.controls["glass"] for one in cups) == 239
    grids = [counts["grids"], counts["grids-around"]]
    assert sum(one.instances for one in grids) == 191
    of_glass = [counts["grids-of-glass"], counts["grids-around-of-glass"]]
    instances = sum(one.instances for one in of_glass)
    assert instances + sum(one.controls["glass"] for one in grids) == 239
    chicks = [counts["chicks"], counts["chicks-rolling"]]
    stays = counts["chicks-rolling"].controls["stays"]
    assert sum(one.instances for one in chicks) + stays == 36
    chick_controls = sum(one.controls["open"] for one in chicks)
    in_sight = counts["chicks-in-sight"].instances + counts["rolling"].instances
    assert chick_controls + in_sight == 603
    assert sum(one.total for name, one in counts.items() if name.startswith("basic-")) == 521


def test_o_piaagets_has_the_suites_of_the_paper_and_practises_on_the_control_suite() -> None:
    chosen = load_recipe("o-piaagets")
    suites = {suite: [e for e in chosen.entries if e.suite == suite] for suite in O_PIAAGETS}
    assert sum(map(len, suites.values())) == len(chosen.entries)
    for suite, entries in suites.items():
        parts = {entry.part for entry in entries}
        assert parts == ({"practice", "test"} if suite.startswith("controls/") else {"test"})
        assert all(entry.controls for entry in entries if not suite.startswith("controls/"))
    a_not_b = {e.part: {p.name for p in e.family.paradigms} for e in chosen.entries
               if e.family.name == "a-not-b"}  # fmt: skip
    assert a_not_b["practice"] == {"at_a"}
    assert "at_a" not in a_not_b["test"]


@pytest.mark.parametrize("name", RECIPES)
def test_counts_are_scaled_to_any_size(name: str) -> None:
    chosen = load_recipe(name)
    full = full_counts(chosen)
    rng = np.random.default_rng(1)
    for size in {len(full), total(full), 300, *rng.integers(len(full), 5000, 20).tolist()}:
        counts = counts_for(chosen, size)
        drawn = total(counts)
        if chosen.separable is None:
            assert drawn == size
        else:  # some of what is drawn is left out
            assert drawn == max(size, round(size * total(full) / chosen.separable))
        for entry, one, whole in zip(chosen.entries, counts, full, strict=True):
            assert one.instances >= 1
            assert abs(one.instances - whole.instances * drawn / total(full)) < 2 + len(full)
            for control, number in one.controls.items():
                assert 0 <= number <= entry.eligible(control, one.instances)


def test_a_change_in_one_entry_leaves_the_others_as_they_are() -> None:
    cups = "family: cups, count: 3"
    before = draw_instances(recipe(cups))
    after = draw_instances(recipe("family: detour, count: 2", cups))
    assert texts(before).items() <= texts(after).items()


def test_controls_can_stand_alone() -> None:
    made = draw_instances(recipe("family: introductory, count: 6, control: bare"))
    assert len(made) == 6
    assert {one.origin.control for one in made} == {"bare"}
    assert {one.origin.control_of for one in made} == {""}
    assert "introductory-food" not in {one.paradigm for one in made}


def test_demands_are_searched_for() -> None:
    entry = "family: introductory, paradigms: food, count: 2, "
    made = draw_instances(
        recipe(entry + "demands: {distance: {least: 9, most: 10}, rewardSize: 2}")
    )
    for one in made:
        found = measure_geometry(one.made.arena).values
        assert 8.9 <= found["rewardDistance"] <= 10.1
        assert found["rewardSize"] == pytest.approx(2.0, abs=0.03)


WRONG = [
    ("family: cup, count: 2", "no family 'cup'. Did you mean 'cups'?"),
    ("family: nowhere.yaml, count: 2", "there is no file nowhere.yaml"),
    ("family: cups", "it has no `count`"),
    ("family: cups, count: 0", "expected a whole number from 1"),
    ("family: cups, count: 2, paradigms: fored", "no paradigm 'fored'"),
    ("family: cups, count: 2, with: {heldd: 3}", "no parameter 'heldd'. Did you mean 'held'?"),
    ("family: cups, count: 2, with: {held: long}", "unknown name 'long'"),
    ("family: cups, count: 2, with: {paint: 3}", "is one of beige"),
    ("family: chick-task, count: 2, with: {other: navy}", "cannot be 'navy'"),
    ("family: cups, count: 2, controls: [glas]", "no control 'glas'"),
    ("family: cups, count: 2, controls: {glass: 3}", "expected a whole number from 1 to 2"),
    ("family: introductory, count: 4, controls: {bare: 4}", "are of paradigms that have it"),
    ("family: introductory, count: 4, control: bare, paradigms: food", "alone"),
    ("family: cups, count: 2, control: glass, controls: [now]", "either `control` or `controls`"),
    ("family: cups, count: 2, part: exam", "no part 'exam'"),
    ("family: cups, count: 2, demands: {rewardDistanc: 3}", "no demand 'rewardDistanc'"),
    ("family: cups, count: 2, demands: {rewardDistance: -3}", "is from 0"),
    ("family: cups, count: 2, demands: {XPos: {least: 1, most: 0}}", "is above most"),
    ("family: navigation, count: 2, with: {sice: 1}", "'sice'. Did you mean 'size'?"),
    ("family: navigation, count: 2, controls: [glass]", "has no control 'glass'. It has none."),
    ("family: cups, count: 2, suite: a/b/c", "expected SUITE or SUITE/SUB-SUITE"),
    ("family: cups, count: 2, suite: a/", "'a/' is not a suite"),
    ("family: cups, count: 2, colour: red", "there is no such key"),
]


@pytest.mark.parametrize(("entry", "message"), WRONG)
def test_what_is_wrong_is_named_with_its_place(entry: str, message: str) -> None:
    with pytest.raises(ArenaError) as error:
        recipe("family: detour, count: 1", entry)
    assert "mine.yaml:5: entries[1]" in str(error.value)
    assert message in str(error.value)


def test_demands_out_of_reach_say_what_is_nearest() -> None:
    entry = "family: introductory, paradigms: food, count: 1, demands: {distance: 39}"
    with pytest.raises(ArenaError, match=r"entry introductory: of 1 .* the nearest has"):
        draw_instances(recipe(entry))


def test_the_recipe_of_the_docs_is_one() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "batteries.md").read_text()
    text = page.split("```yaml\n")[1].split("```")[0]
    counts = counts_for(read_recipe(text, "my-recipe.yaml"), None)
    assert [one.total for one in counts] == [40, 30, 10]


def test_a_separable_battery_names_its_layout_and_is_drawn_larger() -> None:
    lines = "  - {family: cups, count: 30}\n"
    with pytest.raises(ArenaError, match=r"mine.yaml:3: separable: .*`layout`"):
        read_recipe(f"name: mine\nabout: To try it.\nseparable: 20\nentries:\n{lines}", "mine.yaml")
    text = f"name: mine\nabout: x\nlayout: aaio\nseparable: 20\nentries:\n{lines}"
    chosen = read_recipe(text, "mine.yaml")
    assert (chosen.separable, full_size(chosen), total(full_counts(chosen))) == (20, 20, 30)
    assert total(counts_for(chosen, None)) == 30
    assert total(counts_for(chosen, 10)) == 15
    whole = text.replace("separable: 20", "separable: 40")
    with pytest.raises(ArenaError, match=r"mine.yaml:4: separable: 40 of 30 instances"):
        read_recipe(whole, "mine.yaml")
