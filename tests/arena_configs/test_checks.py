from __future__ import annotations

import math

import numpy as np
import pytest

from animalcat.arena_configs.checks import check_arena, check_loaded
from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import (
    Arena,
    GrantContinuousReward,
    GrantReward,
    Item,
    LimitedInvocations,
    OperationFromList,
    Vector3,
)
from animalcat.arena_configs.placement import place
from animalcat.arena_configs.returns import max_return

AGENT = Item(name="Agent", positions=(Vector3(x=20, z=1),), rotations=(0.0,))


def ball(name: str, size: float = 1.0, x: float = 20, z: float = 20) -> Item:
    side = Vector3(x=size, y=size, z=size)
    return Item(name=name, positions=(Vector3(x=x, z=z),), sizes=(side,), rotations=(0.0,))


def box(name: str, x: float, z: float, *size: float) -> Item:
    side = Vector3(x=size[0], y=size[1], z=size[2])
    return Item(name=name, positions=(Vector3(x=x, z=z),), sizes=(side,), rotations=(0.0,))


def changing(name: str, initial: float, final: float) -> Item:
    values = {"initial_values": (initial,), "final_values": (final,)}
    return ball(name).model_copy(update=values)


def arena(*items: Item, time_limit: int = 250, **fields: object) -> Arena:
    values = {"time_limit": time_limit, "items": items, **fields}
    return Arena.model_validate(values)


def find_problems(subject: Arena) -> list[tuple[str, str, str]]:
    problems = check_arena(subject, np.random.default_rng(0))
    return [(p.severity, p.code, p.field) for p in problems]


def best(*items: Item, time_limit: int = 0) -> float:
    return max_return(place(arena(*items, time_limit=time_limit), np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (arena(AGENT, box("Wall", 20, 1, 3, 3, 3)), ("warning", "not-spawned", "items[1]")),
        (
            arena(AGENT, ball("GoodGoal", x=-10)),
            ("warning", "drawn-position", "items[1].positions[0]"),
        ),
        (
            arena(AGENT, ball("GoodGoal").model_copy(update={"rotations": (1.5708,)})),
            ("warning", "small-rotation", "items[1].rotations"),
        ),
        (
            arena(AGENT, box("Wall", 50, 20, 1, 1, 1)),
            ("warning", "clamped-position", "items[1].positions[0]"),
        ),
        (
            arena(AGENT, box("Wall", 20, 20, 1, 30, 1)),
            ("warning", "clamped-size", "items[1].sizes[0].y"),
        ),
        (arena(AGENT, Item(name="Unicorn")), ("warning", "unknown-object", "items[1].name")),
        (arena(AGENT, box("UBlock", 8, 1.1, 5, 1, 5)), ("warning", "out-of-bounds", "items[1]")),
        (arena(AGENT, AGENT), ("warning", "second-agent", "items[1]")),
        (arena(ball("GoodGoal")), ("warning", "no-agent", "items")),
        (
            arena(Item(name="Agent", positions=(Vector3(x=0, z=5),))),
            ("warning", "agent-moved", "items[0].positions[0]"),
        ),
        (arena(AGENT, box("DeathZone", 20, 2, 4, 1, 3)), ("error", "starts-dead", "items[1]")),
        (arena(AGENT, blackouts=(10, 5)), ("error", "bad-blackouts", "blackouts")),
        (arena(AGENT, blackouts=(10, 300)), ("error", "bad-blackouts", "blackouts")),
        (arena(AGENT, blackouts=(10,), time_limit=0), ("error", "bad-blackouts", "blackouts")),
        (arena(AGENT, time_limit=-5), ("error", "bad-time-limit", "timeLimit")),
        (
            arena(AGENT, ball("GoodGoal"), pass_mark=1),
            ("error", "unreachable-pass-mark", "passMark"),
        ),
        (
            arena(AGENT, changing("RipenGoal", 0.5, 2.5), pass_mark=1),
            ("error", "unreachable-pass-mark", "passMark"),
        ),
        (arena(box("Wall", 20, 20, 40, 1, 40)), ("error", "no-room", "items")),
    ],
)
def test_problems(subject: Arena, expected: tuple[str, str, str]) -> None:
    assert expected in find_problems(subject)


def test_operations_that_do_nothing_are_named_wherever_they_are() -> None:
    pays = GrantContinuousReward(reward_per_step=0.1)
    nested = OperationFromList(operations=(LimitedInvocations(operation=pays), GrantReward()))
    button = ball("SpawnerButton").model_copy(update={"operations": (GrantReward(), pays, nested)})
    zone = box("DataZone", 5, 30, 2, 2, 2).model_copy(update={"operations": (pays,)})
    wall = box("Wall", 30, 30, 2, 2, 2).model_copy(update={"operations": (GrantReward(),)})
    assert find_problems(arena(AGENT, button, zone, wall)) == [
        ("warning", "no-effect", "items[1].operations[1]"),
        ("warning", "no-effect", "items[1].operations[2].operations[0].operation"),
        ("warning", "no-effect", "items[3].operations"),
    ]


def test_problems_of_a_file_have_lines_and_come_once() -> None:
    text = """!ArenaConfig
arenas:
  0: !Arena
    t: 250
    items:
    - !Item {name: Unicorn}
    - !Item
      name: Wall
      positions: [!Vector3 {x: 9, y: 0, z: 9}]
      sizes:
      - !Vector3 {x: 1, y: 99, z: 1}
"""
    loaded = load_text(text, "f.yml")
    problems = check_loaded(loaded, np.random.default_rng(0), file="f.yml")
    assert [(p.line, p.code) for p in problems] == [
        (3, "unreachable-pass-mark"),
        (5, "no-agent"),
        (5, "no-reward"),
        (6, "unknown-object"),
        (7, "left-to-chance"),
        (11, "clamped-size"),
    ]


NOTHING_LEFT = """!ArenaConfig
arenas:
  0: !Arena
    timeLimit: 250
    items:
    - !Item
      name: Agent
      positions: [!Vector3 {x: 20, y: 0, z: 5}]
      rotations: [0]
    - !Item
      name: GoodGoal
      positions: [!Vector3 {x: 20, y: 0, z: 25}]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}]
    - !Item
      name: Wall
      positions: [!Vector3 {x: 9, y: 0, z: 9}, !Vector3 {x: 30, y: 0, z: 9}]
      rotations: [0, 90]
      sizes: [!Vector3 {x: 1, y: 1, z: 1}, !Vector3 {x: 1, y: 1, z: 1}]
      colors: [!RGB {r: 1, g: 1, b: 1}, !RGB {r: 1, g: 1, b: 1}]
    - !Item
      name: SignBoard
      positions: [!Vector3 {x: 9, y: 0, z: 30}]
      rotations: [0]
      symbolNames: ["01/10"]
    - !Item
      name: SpawnerButton
      positions: [!Vector3 {x: 33, y: 0, z: 30}]
      rotations: [0]
      operations: [!grantReward {reward: 1}]
"""
CHOICE = "[!operationFromList {operations: [!grantReward {reward: 1}, !endEpisode {}]}]"


@pytest.mark.parametrize(
    ("given", "left", "words"),
    [
        ("rotations: [0, 90]", "rotations: [0, -1]", "1 rotation is"),
        ("rotations: [0, 90]", "rotations: [-1, -1]", "2 rotations are"),
        ("x: 9, y: 0, z: 9", "x: -1, y: 0, z: 9", "1 position is"),
        ("z: 25}]", "z: -1}]", "1 position is"),
        ("      sizes: [!Vector3 {x: 1, y: 1, z: 1}]\n", "", "1 size is"),
        (
            "sizes: [!Vector3 {x: 1, y: 1, z: 1}, ",
            "sizes: [!Vector3 {x: 1, y: -1, z: 1}, ",
            "1 size",
        ),
        (
            "colors: [!RGB {r: 1, g: 1, b: 1}, ",
            "colors: [!RGB {r: -1, g: 1, b: 1}, ",
            "1 colour is",
        ),
        ("      colors: [!RGB {r: 1, g: 1, b: 1}, !RGB {r: 1, g: 1, b: 1}]\n", "", "2 colours are"),
        ('"01/10"', '"3x3"', "1 picture of a sign is"),
        ("[!grantReward {reward: 1}]", CHOICE, "1 operation in play is"),
    ],
)
def test_what_is_left_to_chance_is_said(given: str, left: str, words: str) -> None:
    def codes(text: str) -> list[tuple[str, str, int | None, str]]:
        found = check_loaded(load_text(text, "f.yml"), np.random.default_rng(0), file="f.yml")
        return [(p.severity, p.code, p.line, p.message) for p in found]

    assert codes(NOTHING_LEFT) == []
    assert NOTHING_LEFT.count(given) == 1
    ((severity, code, line, message),) = codes(NOTHING_LEFT.replace(given, left))
    assert (severity, code) == ("warning", "left-to-chance")
    assert message.startswith(words)
    assert message.endswith("left to chance")
    assert line


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ((ball("GoodGoal", 3.0),), 2.997),
        ((ball("GoodGoal", 3.0), ball("GoodGoal", 2.0, x=5)), 2.997),
        ((ball("GoodGoalMulti", 2.0), ball("GoodGoalMultiBounce", 1.0, x=5)), 2.997),
        ((ball("GoodGoalMulti", 2.0), ball("GoodGoal", 1.0, x=5)), 2.997),
        ((ball("GoodGoal", 1.0), ball("BadGoal", 4.0, x=5)), 0.999),
        ((ball("DecoyGoal"), ball("BadGoal", 2.0, x=5)), 0.0),
        ((ball("BadGoal", 2.0),), 0.0),
        ((Item(name="SpawnerTree", positions=(Vector3(x=20, z=20),)),), math.inf),
        ((Item(name="GrowGoal", positions=(Vector3(x=20, z=20),)),), 2.5),
        ((changing("GrowGoal", 0.5, 2.0),), 2.0),
        ((changing("ShrinkGoal", 2.0, 0.5),), 2.0),
        ((changing("DecayGoal", 2.0, 0.5),), 2.0),
        # These never gain: builds ship them so.
        ((changing("DecayGoal", 0.5, 2.0),), 0.5),
        ((changing("RipenGoal", 0.5, 2.0),), 0.5),
        ((changing("DecayGoalEpEnding", 0.5, 2.0),), 0.5),
        ((changing("RipenGoalEpEnding", 0.5, 2.0),), 0.5),
    ],
)
def test_best_return_without_a_time_limit(items: tuple[Item, ...], expected: float) -> None:
    assert best(AGENT, *items) == pytest.approx(expected)
