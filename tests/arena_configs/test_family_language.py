"""The language of families: what it says, what it refuses, and what it makes."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from animalcat.arena_configs.checks import check_arena
from animalcat.arena_configs.families.claims import ClaimError, measure_geometry
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance, variant_of
from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.families.reader import read_family
from animalcat.arena_configs.families.variants import mirror_arena, turn_arena
from animalcat.arena_configs.features.registry import measure_features
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import RGB, Arena, ArenaConfig, ArenaError, Item, Vector3
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.sequence import episode_arenas
from animalcat.arena_configs.writer import to_yaml

YARD = """\
name: yard
description: Food behind a wall, and posts around.
parameters:
  distance: {uniform: [8, 20]}
  width: {log_uniform: [2, 10]}
  posts: {integers: [0, 4]}
  size: {choice: [1, 2]}
  wall: {choice: [Wall, WallTransparent], weights: [3, 1]}
derived:
  middle: distance / 2
  limit: 100 + 50 * (distance > 14)
constraints:
  - width + distance < 26
variants:
  mirror: true
  turns: true
  parameters:
    paint: {choice: [grey, blue, random]}
paradigms:
  - {name: plain, weight: 3}
  - {name: wide, weight: 1, parameters: {width: {normal: [12, 3], between: [10, 14]}}}
arena:
  timeLimit: limit
  passMark: 0.999 * size - 1
  items:
    - {name: Agent, positions: [[12, 8]], rotations: [10]}
    - name: GoodGoal
      positions: [[12, 8 + distance]]
      sizes: [size]
    - id: wall
      name: $wall
      positions: [[12, 8 + middle]]
      sizes: [[width, 2, 0.5]]
      colors: [$paint]
    - at: [30, 10]
      turn: 90
      repeat: posts
      if: i != 2
      items:
        - {name: Wall, positions: [[-2 * i, 1]], sizes: [[0.5, 1, 0.5]]}
claims:
  rewardDistance: {is: "hypot(distance, (size * 0.999 - 1) / 2)", within: 0.01}
  goalSide: -1 * mirror
  wallsInWay: {least: 1}
controls:
  open:
    description: Without the wall.
    remove: [wall]
    takes: [wallsInWay]
    keeps: [rewardDistance]
    claims: {wallsInWay: 0}
  glass:
    items: {wall: {name: WallTransparent, colors: []}}
    keeps: [detour]
"""


def yard(*changes: tuple[str, str]) -> Family:
    text = YARD
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return read_family(text, "yard.yaml")


def draw_some(family: Family, n: int = 24, seed: int = 1, **more: object) -> list[FamilyInstance]:
    return generate(family, n, np.random.default_rng(seed), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def instances() -> list[FamilyInstance]:
    return draw_some(yard(), 40)


def things(arena: Arena, name: str) -> list[Item]:
    return [item for item in arena.items if item.name == name]


def test_instances_are_explicit_and_clean(instances: list[FamilyInstance]) -> None:
    assert len({to_yaml(one.arena) for one in instances}) == 40
    for one in instances:
        placement = place(one.arena, np.random.default_rng(0))
        assert (placement.drawn, placement.skipped) == ({}, ()), one.name
        assert check_arena(one.arena, np.random.default_rng(0)) == (), one.name
        loaded = load_text(to_yaml(one.arena), one.name, strict=True)
        assert loaded.config == ArenaConfig(arenas={0: one.arena})


def test_parameters_are_in_their_ranges(instances: list[FamilyInstance]) -> None:
    for one in instances:
        values = one.parameters
        distance, width = float(values["distance"]), float(values["width"])
        assert 8 <= distance <= 20
        assert (10 <= width <= 14) if one.paradigm == "wide" else (2 <= width <= 10)
        assert distance + width < 26
        assert values["middle"] == pytest.approx(distance / 2)
        assert values["limit"] == one.arena.time_limit == (150 if distance > 14 else 100)
        posts = [item for item in things(one.arena, "Wall") if item.sizes[0].x == 0.5]
        assert len(posts) == float(values["posts"]) - (float(values["posts"]) > 2)
    assert Counter(one.paradigm for one in instances) == {"plain": 30, "wide": 10}
    assert {one.parameters["size"] for one in instances} == {1.0, 2.0}
    glass = sum(one.parameters["wall"] == "WallTransparent" for one in instances)
    assert 3 <= glass <= 20


def test_variants_are_the_same_arena_seen_from_elsewhere(instances: list[FamilyInstance]) -> None:
    plain = Counter(one.variant for one in instances if one.paradigm == "plain")
    assert set(plain) == {
        f"{mirror}{turn}".replace("mirrorturn", "mirror-turn")
        for mirror in ("", "mirror")
        for turn in ("", "turn90", "turn180", "turn270")
    }
    for one in instances[:8]:
        before = measure_features(place(one.arena, np.random.default_rng(0))).values
        for quarters in (1, 2, 3):
            arena = turn_arena(one.arena, quarters)
            after = measure_features(place(arena, np.random.default_rng(0))).values
            assert after["wayLength"] == pytest.approx(before["wayLength"], abs=0.05)
            assert after["goalBearing"] == pytest.approx(before["goalBearing"], abs=1e-3)
        after = measure_features(place(mirror_arena(one.arena), np.random.default_rng(0))).values
        assert after["goalBearing"] == pytest.approx(-before["goalBearing"], abs=1e-3)
        assert mirror_arena(mirror_arena(one.arena)) == one.arena
        assert turn_arena(one.arena, 4) == one.arena


def test_mirror_images_of_blocks_have_mirrored_bodies() -> None:
    """Every solid of the mirror image is where the mirror shows it."""

    def corners(arena: Arena) -> list[tuple[float, ...]]:
        placed = place(arena, np.random.default_rng(0))
        assert not placed.skipped
        found: list[tuple[float, ...]] = []
        for thing in placed.objects:
            for solid in thing.solids():
                sin, cos = math.sin(math.radians(solid.yaw)), math.cos(math.radians(solid.yaw))
                wide = abs(solid.half.x * cos) + abs(solid.half.z * sin)
                deep = abs(solid.half.x * sin) + abs(solid.half.z * cos)
                found.append((solid.center.x, solid.center.z, wide, deep))
        return sorted(found)

    def item(name: str, x: float, z: float, turn: float) -> Item:
        size = Vector3(x=3, y=1, z=8)
        return Item(name=name, positions=(Vector3(x=x, z=z),), rotations=(turn,), sizes=(size,))

    agent = Item(name="Agent", positions=(Vector3(x=2, z=2),), rotations=(0.0,))
    names = ("LBlock", "JBlock", "UBlock", "Ramp", "SpawnerDispenserTall", "SpawnerContainerShort")
    for turn in (0.0, 30.0, 100.0):
        items = [item(n, 8 + 12 * (k % 3), 12 + 16 * (k // 3), turn) for k, n in enumerate(names)]
        items = [
            i.model_copy(update={"sizes": (), "colors": ()} if "Spawner" in i.name else {})
            for i in items
        ]
        arena = Arena(items=(agent, *items))
        for x, z, wide, deep in corners(arena):
            assert any(
                math.dist((40 - x, z, wide, deep), other) < 0.12
                for other in corners(mirror_arena(arena))
            ), (turn, x, z)


def test_parts_share_no_instance_whatever_the_seed() -> None:
    few = yard(
        ("distance: {uniform: [8, 20]}", "distance: {integers: [8, 12]}"),
        ("width: {log_uniform: [2, 10]}", "width: {integers: [2, 5]}"),
        (", parameters: {width: {normal: [12, 3], between: [10, 14]}}", ""),
        ("[grey, blue, random]", "[grey, blue]"),
    )
    practice = draw_some(few, 12, seed=1, part="practice")
    test = draw_some(few, 40, seed=2, part="test")
    assert {one.part for one in practice} == {"practice"}
    assert {one.part for one in test} == {"test"}
    varied = ("paint",)

    def draws(made: list[FamilyInstance]) -> set[tuple[tuple[str, object], ...]]:
        return {tuple((k, v) for k, v in m.parameters.items() if k not in varied) for m in made}

    assert not draws(practice) & draws(test)
    assert {one.part for one in draw_some(few, 30)} == {"practice", "test"}


def test_controls_differ_in_what_they_take_alone() -> None:
    made = draw_some(yard(), 6, controls=("open", "glass"), measure=measure_geometry)
    for one, other, glass in zip(made[::3], made[1::3], made[2::3], strict=True):
        assert (other.control_of, other.control, one.control_of) == (one.name, "open", "")
        rest = [item for item in one.arena.items if item.sizes[:1] != other.arena.items[-1:]]
        kept = [item for item in rest if item in other.arena.items]
        assert len(kept) == len(one.arena.items) - 1 == len(other.arena.items)
        pairs = zip(one.arena.items, glass.arena.items, strict=True)
        changed = [(a, b) for a, b in pairs if a != b]
        assert all(b.name == "WallTransparent" for _, b in changed)
        assert len(changed) == 1
        assert (other.variant, other.part, other.task) == (one.variant, one.part, one.task)


def test_a_claim_that_is_not_so_is_an_error() -> None:
    wrong = yard(("wallsInWay: {least: 1}", "wallsInWay: {is: 2, within: 0.5}"))
    with pytest.raises(ClaimError) as caught:
        draw_some(wrong, 2, measure=measure_geometry)
    first, *more = str(caught.value).splitlines()
    assert len(more) == 1
    assert first.startswith("family yard, instance yard-1 (plain): wallsInWay is claimed to be 2")
    assert "(yard.yaml:44)" in first
    assert first.endswith("1 is measured")
    absent = yard(("wallsInWay: {least: 1}", "wayLength: none"))
    with pytest.raises(ClaimError, match="wayLength is claimed to be without a value m"):
        draw_some(absent, 1, measure=measure_geometry)
    present = yard(("wallsInWay: {least: 1}", "lavaMargin: {least: 1}"))
    with pytest.raises(ClaimError, match=r"at least 1 m .* does not apply \(no lava\)"):
        draw_some(present, 1, measure=measure_geometry)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("middle: distance / 2", "middle: distence / 2", r"yard.yaml:10: derived.middle: .*'dist"),
        (
            "distance / 2\n  limit: 100 + 50 * (distance > 14)",
            "limit / 2\n  limit: 3 * middle",
            "depend on each other: (middle -> limit -> middle|limit -> middle -> limit)",
        ),
        ("[8, 20]", "[20, 8]", r"parameters.distance.uniform\[0\]: the low end 20 is above"),
        ("[2, 10]}", "[0, 10]}", "0 is not above 0"),
        ("posts: {integers: [0, 4]}", "posts: {integer: [0, 4]}", "expected a number, a formula"),
        ("weights: [3, 1]", "weights: [3]", "expected 2 weights"),
        ("mirror: true", "mirror: maybe", "expected true or false"),
        ("name: GoodGoal", "name: GoodGaol", r"line 0|Did you mean 'GoodGoal'"),
        ("sizes: [size]", "size: [size]", r"items\[1\].size: there is no such key. Did .*'sizes'"),
        ("name: $wall", "name: $wal", "no parameter 'wal'. Did you mean 'wall'"),
        ("colors: [$paint]", "colors: [gray]", "no colour 'gray'. Did you mean 'grey'"),
        ("goalSide: -1", "goalSid: -1", "no demand 'goalSid'. Did you mean 'goalSide'"),
        ("takes: [wallsInWay]", "takes: [wallInWay]", "no demand 'wallInWay'"),
        ("remove: [wall]", "remove: [post]", "no item has the id 'post'"),
        ("if: i != 2", "if: j != 2", "unknown name 'j'"),
        ("positions: [[12, 8]]", "positions: [[12, __import__(0)]]", "unknown; it may hold"),
        ("positions: [[12, 8]]", "positions: [[12, 8, 9, 1]]", "expected .x, z. or .x, y, z."),
        ("timeLimit: limit", "timelimit: limit", "Did you mean 'timeLimit'"),
        ("name: yard", "name: yard\nname: yard", "given already in line 1"),
        ("parameters:\n    paint", "parameters:\n    size", "a parameter of this name already"),
        ("middle: distance / 2", "middle: distance / (paint == blue)", "which is for variants"),
        ("weight: 3", "weight: -3", "expected a number above 0"),
        ("{name: wide, weight: 1", "{name: plain, weight: 1", "'plain' is there already"),
        ("parameters: {width: {n", "parameters: {witdh: {n", "no parameter 'witdh'. Did .*'width'"),
        ("distance: {", "mirror: {", "'mirror' has a meaning of its own"),
        ("derived:", "derived: 3\nclaimed:", "expected keys and values|no such key"),
        ("name: yard", "name: !!python/object:os.system x", "python|name"),
        ("arena:", "arena: [", "yard.yaml"),
    ],
)
def test_bad_families_say_where(old: str, new: str, message: str) -> None:
    with pytest.raises(ArenaError, match=message) as caught:
        yard((old, new))
    assert str(caught.value).startswith("yard.yaml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            [("  - width + distance < 26", "  - width > 8\n  - distance > 9\n  - width < 7")],
            r"constraints\[0\] \(`width > 8`, line 13\) and constraints\[2\] .* never hold tog",
        ),
        ([("width + distance < 26", "width > 30")], r"`width > 30`, line 13\) never holds in 2000"),
        ([("[2, 10]", "[distance, 6]")], "a range never has a value: width"),
        ([("positions: [[12, 8]]", "positions: [[12 - 20, 8]]")], "stands outside the arena"),
        ([("positions: [[12, 8]]", "positions: [[12, 1 / (size - size)]]")], "has no value"),
        ([("repeat: posts", "repeat: posts + 0.5")], "not how often to repeat"),
        ([("repeat: posts", "repeat: wall")], "is the word"),
        ([("passMark: 0.999 * size - 1", "passMark: 9")], "no play can pass"),
        ([("sizes: [size]", "skins: []")], "leaves to chance: items"),
    ],
)
def test_families_without_arenas_say_why(changes: list[tuple[str, str]], message: str) -> None:
    with pytest.raises(ArenaError, match=message):
        draw_some(yard(*changes), 2)


def test_operations_and_colours_are_templates_as_well() -> None:
    text = """
name: button
description: A button that makes food.
parameters: {reward: {choice: [GoodGoal, GoodGoalMulti]}, far: {uniform: [5, 9]}}
arena:
  timeLimit: 200
  items:
    - {name: Agent, positions: [[20, 5]]}
    - {name: Wall, positions: [{x: 5, z: 5}], sizes: [2], colors: [[10 * far, 0, 255]]}
    - name: SpawnerButton
      positions: !Vector3Bad [[20, 5 + far]]
"""
    good = text.replace("!Vector3Bad ", "") + (
        "      operations:\n"
        "      - !toggleObject {spawnable: !Item {name: $reward, positions: [[30, 5 + far]], "
        "sizes: [2]}, spawnAndForget: true}\n"
    )
    for one in draw_some(read_family(good, "button.yaml"), 4):
        (button,) = things(one.arena, "SpawnerButton")
        spawned = button.operations[0].spawnable  # type: ignore[union-attr]
        far = float(one.parameters["far"])
        assert spawned.name == one.parameters["reward"]  # type: ignore[union-attr]
        assert spawned.positions[0].z == pytest.approx(5 + far, abs=1e-3)  # type: ignore[union-attr]
        (wall,) = things(one.arena, "Wall")
        assert wall.colors == (RGB(r=round(10 * far, 3), g=0, b=255),)


TRIALS = """\
name: trials
description: Food to the left again and again, and then to the right.
parameters:
  before: {integers: [1, 3]}
variants: {mirror: true, turns: true}
arena:
  trials: before + 1
  timeLimit: 300
  passMark: trial
  items:
    - {name: Agent, positions: [[20, 5]]}
    - id: food
      name: GoodGoal
      positions: [[20 + (5 if trial == before else -5), 25]]
      sizes: [1.5]
    - {name: Wall, if: trial, positions: [[5, 35]], sizes: [[1, 1, 1]]}
claims:
  rewards: before + 1
controls:
  large:
    description: With larger food.
    items: {food: {sizes: [2 + 0.5 * trial]}}
    takes: [rewardSum]
"""


def test_trials_are_one_episode() -> None:
    family = read_family(TRIALS, "trials.yaml")
    rng = np.random.default_rng(0)
    for one in generate(family, 8, rng, controls=["large"], measure=measure_geometry):
        number = int(one.parameters["before"]) + 1
        parts = episode_arenas(one.arena)
        assert [part.merge_next_arena for part in parts] == [True] * (number - 1) + [False]
        assert [part.pass_mark for part in parts] == [*range(number)]
        assert [len(part.items) for part in parts] == [2 + (k > 0) for k in range(number)]
        flipped, quarters = variant_of(one.variant)
        for k, part in enumerate(parts):
            size = 2 + 0.5 * k if one.control else 1.5
            assert part.items[1].sizes[0].x == size
            x = 20.0 + (5 if k == number - 1 else -5) * (-1 if flipped else 1)
            goal = Item(name="GoodGoal", positions=(Vector3(x=x, z=25),), rotations=(0.0,))
            moved = turn_arena(Arena(items=(goal,)), quarters).items[0]
            assert part.items[1].positions == moved.positions


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("before + 1", "before / 2", "is 0.5; expected a whole number of trials from 1 to 20"),
        ("before + 1", "20 + before", "is 21; expected a whole number of trials"),
        ("  trials: before + 1\n", "", "'trial'"),
        ("  before: {", "  trial: 1\n  before: {", "'trial'"),
        (
            "passMark: trial",
            "passMark: 9",
            "no play can pass: the best return is .*, and it must exceed 9",
        ),
    ],
)
def test_trials_that_cannot_be(was: str, now: str, message: str) -> None:
    text = TRIALS.replace(was, now).replace("{integers: [1, 3]}", "1")
    with pytest.raises(ArenaError, match=message):
        generate(read_family(text, "trials.yaml"), 1, np.random.default_rng(0))
