"""Families at the edges of their language: values that are set, and what is rare, wrong or odd."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.batteries.drawing import draw
from animalcat.arena_configs.batteries.reader import read_recipe
from animalcat.arena_configs.batteries.sizing import counts_for
from animalcat.arena_configs.families.build import build_arena, scope_of
from animalcat.arena_configs.families.claims import measure_geometry
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.families.reader import read_family
from animalcat.arena_configs.families.sampling import draw_parameters
from animalcat.arena_configs.families.search import search
from animalcat.arena_configs.model import (
    Arena,
    ArenaError,
    Item,
    LimitedInvocations,
    OperationFromList,
    ToggleObject,
    Vector3,
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


def draw_some(family: Family | str, n: int = 4, **more: object) -> list[FamilyInstance]:
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
    made = draw_some("implosion-explosion", 1, **more)
    assert [one.parameters["change"] for one in made] == [2.0, 2.0]


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


def test_no_whole_number_between_two_ends_is_told() -> None:
    family = field("parameters: {n: {integers: [1.2, 1.8]}}\n")
    message = r"value: n: the low end `1.2`, rounded up, is always above its high end"
    with pytest.raises(ArenaError, match=message):
        draw_some(family, 1)


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


def spawns_of(item: Item) -> list[Item]:
    """What a button's operations spawn."""
    limited = item.operations[0]
    assert isinstance(limited, LimitedInvocations)
    assert isinstance(limited.operation, OperationFromList)
    found = [one.spawnable for one in limited.operation.operations if isinstance(one, ToggleObject)]
    return [one for one in found if one is not None]


def test_what_is_spawned_is_in_the_frame_of_its_group() -> None:
    family = field(items=BUTTON.format(at="[20, 0.5, 10]", spot="[2, 1, -6]"))
    button = draw_some(family, 1)[0].arena.items[-1]
    # A quarter turn takes (x, z) to (z, -x).
    assert button.positions == (Vector3(x=25, y=0.5, z=15),)
    assert button.reward_spawn_pos == Vector3(x=14, y=1.5, z=8)
    wall, ramp = spawns_of(button)
    assert (wall.positions, wall.rotations) == ((Vector3(x=23, y=0.5, z=11),), (120.0,))
    assert (ramp.positions, ramp.rotations) == ((), (90.0,))
    with pytest.raises(ArenaError, match=r"outside the arena, at \(-1, 8\)"):
        draw_some(field(items=BUTTON.format(at="[5, 10]", spot="[2, 1, -6]")), 1)


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


def test_a_part_that_no_arena_is_of_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def always_test(arena: Arena) -> str:
        return "test"

    monkeypatch.setattr("animalcat.arena_configs.families.search.part_of", always_test)
    rng = np.random.default_rng(0)
    with pytest.raises(ArenaError, match=r"no instance could be built.* it is not for practice"):
        search("navigation", {"distance": 20.0}, rng, measure_geometry, part="practice")
