"""Families at the edges of their language: values that are set, and what is rare, wrong or odd."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np
import pytest

from animalcat.arena_configs.batteries.drawing import draw
from animalcat.arena_configs.batteries.reader import read_recipe
from animalcat.arena_configs.batteries.sizing import counts_for
from animalcat.arena_configs.families.build import build_arena, parameter_values, scope_of
from animalcat.arena_configs.families.claims import measure_geometry
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.families.palette import COLOURS
from animalcat.arena_configs.families.reader import read_family
from animalcat.arena_configs.families.sampling import draw_parameters
from animalcat.arena_configs.families.search import search
from animalcat.arena_configs.families.variants import mirrored, shifted, turned
from animalcat.arena_configs.model import (
    RGB,
    Arena,
    ArenaError,
    Item,
    LimitedInvocations,
    OperationFromList,
    ToggleObject,
    Vector3,
)
from animalcat.service.measuring.twins import Stratum, Target, twin

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


def test_constraints_hold_for_parameters_of_variants() -> None:
    head = (
        "parameters: {b: {uniform: [0, 10]}}\nconstraints: [a > 5, a > b]\n"
        "variants: {each: 4, parameters: {a: {uniform: [0, 10]}}}\n"
    )
    post = "    - {name: Wall, positions: [[5, 5]], sizes: [[1 + a / 10, 1, 1 + b / 10]]}\n"
    made = drawn(field(head, post), 24)
    values = [(float(one.parameters["a"]), float(one.parameters["b"])) for one in made]
    assert all(a > 5 and a > b for a, b in values)
    assert len({a for a, _ in values}) == 24
    assert len({b for _, b in values}) == 6


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            "parameters: {a: {uniform: [0, 1]}}\nconstraints: [a < 0.0005]\n",
            r"^field.yaml:4: constraints\[0\]: .* only 1 of 4000 draws .*; change ranges",
        ),
        (
            "parameters: {a: {uniform: [0, 1]}, b: {uniform: [a, 0.0005]}}\n",
            "paradigm field: only 3 of 4000 draws have a value in every range",
        ),
    ],
)
def test_what_holds_too_rarely_is_told(head: str, message: str) -> None:
    family = field(head)
    with pytest.raises(ArenaError, match=message):
        draw_parameters(family, family.paradigms[0], np.random.default_rng(2))


@pytest.mark.parametrize(
    ("ends", "options"),
    [
        ("[1, 2.5]", {1.0, 2.0}),
        ("[0.5, 3]", {1.0, 2.0, 3.0}),
        ("[-1.5, 0.2]", {-1.0, 0.0}),
        ("[0.1 * 30, 0.7 * 10]", {3.0, 4.0, 5.0, 6.0, 7.0}),
    ],
)
def test_whole_numbers_are_between_their_ends(ends: str, options: set[float]) -> None:
    family = field(f"parameters: {{n: {{integers: {ends}}}}}\n")
    (paradigm,) = family.paradigms
    shares = [k / 200 for k in range(200)]
    found = [parameter_values(family, paradigm, {"n": share})["n"] for share in shares]
    assert set(found) == options
    assert found == sorted(found, key=float)


def test_no_whole_number_between_two_ends_is_told() -> None:
    family = field("parameters: {n: {integers: [1.2, 1.8]}}\n")
    message = r"value: n: the low end `1.2`, rounded up, is always above its high end"
    with pytest.raises(ArenaError, match=message):
        drawn(family, 1)


BUTTON = """\
    - at: {at}
      turn: 90
      items:
        - name: SpawnerButton
          positions: [[-5, 5]]
          rewardNames: [GoodGoal]
          rewardWeights: [1]
          rewardSpawnPos: {spot}
          operations:
          - !limitedInvocationsOperation
            maxInvocations: 2
            operation: !operationFromList
              operations:
              - !toggleObject {{spawnable: !Item {{name: Wall, positions: [[-1, 3]],
                  rotations: [30], sizes: [1]}}}}
              - !toggleObject {{spawnable: !Item {{name: Ramp, sizes: [1]}}}}
              operationWeights: [1, 1]
"""


def spawned(item: Item) -> list[Item]:
    """What a button's operations spawn."""
    limited = item.operations[0]
    assert isinstance(limited, LimitedInvocations)
    assert isinstance(limited.operation, OperationFromList)
    found = [one.spawnable for one in limited.operation.operations if isinstance(one, ToggleObject)]
    return [one for one in found if one is not None]


def test_what_is_spawned_is_in_the_frame_of_its_group() -> None:
    family = field(items=BUTTON.format(at="[20, 0.5, 10]", spot="[2, 1, -6]"))
    button = drawn(family, 1)[0].arena.items[-1]
    # A quarter turn takes (x, z) to (z, -x).
    assert button.positions == (Vector3(x=25, y=0.5, z=15),)
    assert button.reward_spawn_pos == Vector3(x=14, y=1.5, z=8)
    wall, ramp = spawned(button)
    assert (wall.positions, wall.rotations) == ((Vector3(x=23, y=0.5, z=11),), (120.0,))
    assert (ramp.positions, ramp.rotations) == ((), (90.0,))
    with pytest.raises(ArenaError, match=r"outside the arena, at \(-1, 8\)"):
        drawn(field(items=BUTTON.format(at="[5, 10]", spot="[2, 1, -6]")), 1)


def test_food_that_may_be_anywhere_stays_so() -> None:
    grouped = field(items=BUTTON.format(at="[20, 10]", spot="[0, 0, 0]"))
    plain = BUTTON.format(at="[0, 0]", spot="[-1, 0, 7]").replace("turn: 90", "turn: 0")
    free = field(items=plain.replace("[[-5, 5]]", "[[5, 5]]").replace("[[-1, 3]]", "[[1, 3]]"))
    one, other = (drawn(family, 1)[0].arena.items[-1] for family in (grouped, free))
    assert one.reward_spawn_pos == Vector3()
    assert other.reward_spawn_pos == Vector3(x=-1, z=7)


def button(spot: Vector3, at: Vector3, yaw: float) -> Arena:
    thing = Item(name="Wall", positions=(at,), rotations=(yaw,))
    item = Item(
        name="SpawnerButton",
        positions=(Vector3(x=10, z=10),),
        rotations=(0.0,),
        reward_spawn_pos=spot,
        operations=(ToggleObject(spawnable=thing),),
    )
    return Arena(items=(item,))


CHANGES: dict[str, Callable[[Arena], Arena]] = {
    "mirrored": mirrored,
    "turned": lambda arena: turned(arena, 1),
    "turned twice": lambda arena: turned(arena, 2),
    "shifted": lambda arena: shifted(arena, 90.0, 1.0, 0.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_variants_leave_what_is_random_to_chance(change: str) -> None:
    (item,) = CHANGES[change](button(Vector3(), Vector3(x=-1, z=-1), -1.0)).items
    assert item.reward_spawn_pos == Vector3()
    (operation,) = item.operations
    assert isinstance(operation, ToggleObject)
    assert operation.spawnable is not None
    assert operation.spawnable.positions == (Vector3(x=-1, z=-1),)
    assert operation.spawnable.rotations == (-1.0,)


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        ("mirrored", (-1, 7), (-1, 7)),
        ("mirrored", (7, -1), (33, -1)),
        ("mirrored", (7, 3), (33, 3)),
        ("turned", (-1, 7), (7, -1)),
        ("turned", (7, 3), (3, 33)),
        ("turned twice", (7, -1), (33, -1)),
        ("shifted", (7, -1), (-1, -1)),
        ("shifted", (7, 3), (4, 33)),
    ],
)
def test_variants_move_what_is_spawned(
    change: str, before: tuple[float, float], after: tuple[float, float]
) -> None:
    spot = Vector3(x=before[0], z=before[1])
    (item,) = CHANGES[change](button(spot, spot, 0.0)).items
    (operation,) = item.operations
    assert isinstance(operation, ToggleObject)
    assert operation.spawnable is not None
    wanted = Vector3(x=after[0], z=after[1])
    assert (item.reward_spawn_pos, operation.spawnable.positions) == (wanted, (wanted,))


REPEATED = """\
    - at: [20, 20]
      repeat: {times: 2, as: k}
      items:
        - {id: post, name: Wall, positions: [[5 + 4 * k, 2 * i]], sizes: [1], repeat: 3}
    - {id: post, name: Wall, positions: [[5, 5 + 2 * i]], sizes: [1], repeat: 2}
    - {id: stone, name: Wall, positions: [[8 + 3 * column, 12 + 3 * row + far / 9]], sizes: [1],
       repeat: {grid: [2, 2], as: number}}
"""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("food: {positions: [[20 + i, 9]]}", r"controls.c.items.food.positions\[0\].x: .*name 'i'"),
        ("post: {sizes: [1 + k]}", r"field.yaml:17: controls.c.items.post.sizes\[0\]: .* 'k'"),
        ("post: {sizes: [1 + row]}", "unknown name 'row'"),
        ("stone: {sizes: [1 + i]}", "unknown name 'i'"),
    ],
)
def test_controls_may_name_what_their_items_repeat_alone(fields: str, message: str) -> None:
    with pytest.raises(ArenaError, match=message):
        field("derived: {far: 9}\n", REPEATED, f"controls:\n  c: {{items: {{{fields}}}}}\n")


def test_controls_name_repeats_of_any_name() -> None:
    tail = (
        "controls:\n  c: {items: {stone: {sizes: [[1, 1 + number + column, 1]]},"
        " post: {sizes: [[1, 1 + i, 1]]}}}\n"
    )
    one, control = drawn(field("derived: {far: 9}\n", REPEATED, tail), 1, controls=["c"])
    assert {item.sizes[0].y for item in one.arena.items[2:]} == {1.0}
    heights = [item.sizes[0].y for item in control.arena.items[2:]]
    assert heights == [1, 2, 3, 1, 2, 3, 1, 2, 1, 3, 3, 5]


@pytest.mark.parametrize(
    ("head", "repeat", "message"),
    [
        ("parameters: {angle: {uniform: [1, 9]}}", "{ring: 3}, turn: angle", "'angle' is what a"),
        ("derived: {angle: 9}", "{ring: 3}, at: [20, angle]", r"at.z: `angle`: 'angle' is what"),
        ("derived: {row: 9}", "{grid: [2, 2]}, turn: row * 3", "'row' is what a repeat counts"),
        ("derived: {i: 9}", "2, turn: i", "'i' is what a repeat counts here, and a parameter"),
        ("parameters: {p: {choice: [i, z]}}", "2, if: p == i", "an option or a paradigm as well"),
        ("derived: {k: 9}", "{times: 2, as: k}", "'k' cannot be the name of the number"),
        ("", "{ring: 2, as: angle}", "'angle' has a meaning of its own in a ring; take another"),
        ("", "{grid: [2, 2], as: row}", "'row' has a meaning of its own in a grid"),
    ],
)
def test_a_name_is_not_both_a_parameter_and_counted(head: str, repeat: str, message: str) -> None:
    group = f"    - {{repeat: {repeat}, items: [{{name: Wall, positions: [[5, 5]]}}]}}\n"
    with pytest.raises(ArenaError, match=message):
        field(f"{head}\n" if head else "", group)


def test_parameters_may_be_named_like_what_other_repeats_count() -> None:
    head = "parameters:\n  angle: {uniform: [40, 50]}\n  column: {choice: [blue, red]}\n"
    group = """\
    - {name: Wall, positions: [[8 + 4 * i, 8]], rotations: [angle], sizes: [1], repeat: 2}
    - at: [20, 33]
      repeat: {grid: [2, 1]}
      turn: angle
      items: [{name: Wall, positions: [[4 * i, 0]], sizes: [1], colors: [$column]}]
"""
    (one,) = drawn(field(head, group), 1)
    walls = one.arena.items[2:]
    assert {item.rotations[0] for item in walls} == {round(float(one.parameters["angle"]), 3)}
    red, green, blue = COLOURS[str(one.parameters["column"])]
    assert {item.colors for item in walls[2:]} == {(RGB(r=red, g=green, b=blue),)}


@pytest.mark.parametrize(
    ("outer", "inner"),
    [("{times: 3, as: k}", "{times: 3, as: m}"), ("3", "3"), ("{times: 3, as: k}", "3")],
)
def test_every_copy_has_a_random_colour_of_its_own(outer: str, inner: str) -> None:
    group = f"""\
    - at: [20, 30]
      repeat: {outer}
      items:
        - name: Wall
          repeat: {inner}
          positions: [[{"4 * k - 9" if "k" in outer else "0"}, 0]]
          sizes: [1]
          colors: [random]
"""
    family = field(items=group)
    arena = build_arena(family, scope_of(family, family.paradigms[0], {}), seed=3)
    assert len({item.colors for item in arena.items[2:]}) == 9


def test_random_colours_of_a_plain_repeat_stay_what_they_were() -> None:
    wall = "{name: Wall, positions: [[5, 5 + i]], colors: [random], repeat: {grid: [1, 2]}}"
    family = field(items=f"    - {wall}\n")
    arena = build_arena(family, scope_of(family, family.paradigms[0], {}), seed=3)
    colours = [(one.r, one.g, one.b) for item in arena.items[2:] for one in item.colors]
    assert colours == [(132, 155, 98), (12, 25, 200)]


@pytest.mark.parametrize(
    ("family", "demands", "more", "message"),
    [
        ("navigation", {}, {"paradigm": "nonsense"}, "navigation has no paradigm 'nonsense'"),
        ("navigation", {}, {"given": {"a": 3.0}}, "has no parameter 'a'; it has nearest"),
        ("navigation", {}, {"part": "tests"}, "no part 'tests'; it has practice and test"),
        ("y-maze", {}, {"part": "tests"}, "no part 'tests'; it has practice and test"),
        ("y-maze", {}, {"given": {"nosuch": 3.0}}, "y-maze has no parameter 'nosuch'; it has "),
        ("y-maze", {}, {"given": {"arm": math.inf}}, "'arm' is set to inf; give a finite"),
        ("y-maze", {"distance": math.nan}, {}, "distance is asked to be nan; give a finite"),
        ("navigation", {"size": -math.inf}, {}, "size is asked to be -inf; give a finite number"),
        ("navigation", {"rewardDistance": 9.0}, {}, "rewardDistance is asked for twice, as "),
    ],
)
def test_requests_that_no_family_can_meet_are_refused(
    family: str, demands: dict[str, float], more: dict[str, object], message: str
) -> None:
    def look(arena: Arena) -> NoReturn:
        raise AssertionError("it is not refused")

    rng = np.random.default_rng(0)
    with pytest.raises(ArenaError, match=message):
        search(family, {**demands, "distance": 12.0, **demands}, rng, look, **more)  # type: ignore[arg-type]
    if not demands:
        with pytest.raises(ArenaError, match=message):
            drawn(family, 1, **more)


def test_controls_of_a_family_without_any_are_refused() -> None:
    with pytest.raises(ArenaError, match="navigation has no control 'open'; it has none"):
        drawn("navigation", 1, controls=["open"])


def test_a_goal_is_made_in_the_paradigm_that_is_asked_for() -> None:
    rng = np.random.default_rng(0)
    for paradigm in ("open-behind", "wall-front"):
        found = search("navigation", {"distance": 20.0}, rng, measure_geometry, paradigm=paradigm)
        assert (found.instance.paradigm, found.exact) == (paradigm, True)


def test_a_part_that_no_arena_is_of_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def always_test(arena: Arena) -> str:
        return "test"

    monkeypatch.setattr("animalcat.arena_configs.families.search.part_of", always_test)
    rng = np.random.default_rng(0)
    with pytest.raises(ArenaError, match=r"no instance could be built.* it is not for practice"):
        search("navigation", {"distance": 20.0}, rng, measure_geometry, part="practice")


@pytest.mark.parametrize("form", ["abs({})", "({} in (1, 2))"])
def test_what_is_nested_too_deeply_is_refused_at_once(form: str) -> None:
    formula = "far"
    for _ in range(14):
        formula = form.format(formula)
    head = f"parameters: {{far: 9}}\nderived: {{near: '{formula}'}}\n"
    with pytest.raises(ArenaError, match=r"^field.yaml:4: derived.near: .* is nested too deeply; "):
        field(head)
    shallow = "abs(abs(abs(abs(far - 30))))"
    family = field(f"parameters: {{far: 9}}\nderived: {{near: '{shallow}'}}\n")
    assert drawn(family, 1)[0].parameters["near"] == 21.0


def test_a_stratum_without_arenas_has_no_twins() -> None:
    family = field(items="    - {name: Wall, positions: [[50, 5]], sizes: [1]}\n")
    aims = {"rewardDistance": Target(20.0, 1.0)}
    rng = np.random.default_rng(0)
    assert twin(Stratum(family, family.paradigms[0]), aims, rng, measure_geometry) is None
