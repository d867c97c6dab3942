from __future__ import annotations

from pathlib import Path

import pytest

from animalcat.arena_configs.loader import load_config, load_text
from animalcat.arena_configs.model import ArenaError

OLD = """!ArenaConfig
arenas:
  0: !Arena
    pass_mark: -.5
    t: 250
    blackouts: [-20]
    items:
    - !Item
      name: Cardbox1
      positions:
      - !Vector3 {x: .5, y: 0, z: 2}
      rotations: [45]
      sizes:
      - !Vector3 {x: 1, y: 1, z: 1}
      colors:
      - !RGB {r: 0, g: 10, b: 255}
"""


def codes(text: str) -> list[tuple[int | None, str, str]]:
    return [(p.line, p.field, p.code) for p in load_text(text, "f.yml").problems]


def refusal_of(text: str, *, strict: bool = False) -> list[tuple[int | None, str]]:
    with pytest.raises(ArenaError) as caught:
        load_text(text, "f.yml", strict=strict)
    assert all(p.file == "f.yml" for p in caught.value.problems)
    return [(p.line, p.code) for p in caught.value.problems if p.severity == "error"]


def arena(*lines: str) -> str:
    return (
        "\n".join(["!ArenaConfig", "arenas:", "  0: !Arena", *(f"    {x}" for x in lines)]) + "\n"
    )


def test_new_grammar_and_root_fields() -> None:
    text = "!ArenaConfig\nrandomizeArenas: true\n" + arena(
        "timeLimit: 100", "passMark: 2", "randomSeed: 7", "mergeNextArena: no"
    ).removeprefix("!ArenaConfig\n")
    config = load_text(text, "f.yml", strict=True).config
    assert config.randomize_arenas
    first = config.first
    assert (first.time_limit, first.pass_mark, first.random_seed) == (100, 2.0, 7)
    assert not first.merge_next_arena


def test_duplicate_and_negative_arena_numbers() -> None:
    text = "!ArenaConfig\narenas:\n" + "".join(
        f"  {number}: !Arena {{t: {limit}}}\n" for number, limit in ((3, 1), (-1, 2), (-1, 3))
    )
    loaded = load_text(text, "f.yml")
    assert {n: a.time_limit for n, a in loaded.config.arenas.items()} == {3: 1, 4: 3}
    assert sorted(p.code for p in loaded.problems) == ["arena-number", "duplicate-key"]
    assert loaded.config.first.time_limit == 1


def test_item_lost_in_a_comment() -> None:
    text = arena(
        "items:",
        "- !Item",
        "  name: Wall",
        "  positions:",
        "  - !Vector3 {x: 1, y: 0, z: 1} #end.    - !Item",
        "  name: DeathZone",
        "  positions:",
        "  - !Vector3 {x: 9, y: 0, z: 9}",
    )
    (item,) = load_text(text, "f.yml").config.first.items
    assert (item.name, item.positions[0].x) == ("DeathZone", 9.0)
    assert codes(text) == [
        (8, "arenas[0].items[0]", "lost-item"),
        (9, "arenas[0].items[0].name", "duplicate-key"),
        (10, "arenas[0].items[0].positions", "duplicate-key"),
    ]


@pytest.mark.parametrize("mark", ["", "---\n"])
def test_second_configuration_is_cut_off(mark: str) -> None:
    text = OLD + mark + OLD.replace("t: 250", "t: 999")
    loaded = load_text(text, "f.yml")
    assert loaded.config == load_text(OLD, "f.yml").config
    line = OLD.count("\n") + 1
    assert [(p.line, p.code) for p in loaded.problems] == [(line, "second-document")]


def test_unknown_object_is_kept_and_named() -> None:
    text = arena("items:", "- !Item {name: GoodGoalMultibOUNCE}")
    loaded = load_text(text, "f.yml")
    (problem,) = loaded.problems
    assert (problem.line, problem.code) == (5, "unknown-object")
    assert "GoodGoalMulti" in problem.message
    assert refusal_of(text, strict=True) == [(5, "unknown-object")]


def test_unknown_field_is_refused_with_a_hint() -> None:
    text = arena("t: 5", "items:", "- !Item {name: Wall, rotation: [1]}")
    with pytest.raises(ArenaError, match="write `rotations`") as caught:
        load_text(text, "f.yml")
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (6, "arenas[0].items[0].rotation")


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("items: [{name: Wall}]",), "missing-tag"),
        (("items: [!Item {name: Wall, positions: [!Vector3 {x: 1, z: 1}]}]",), "missing-component"),
        (("random_seed: 3",), "old-field"),
        (("canResetEpisode: false",), "old-field"),
        (("blackouts:",), "empty-field"),
    ],
)
def test_leniencies(lines: tuple[str, ...], code: str) -> None:
    text = arena(*lines)
    assert [c for _, _, c in codes(text)] == [code]
    assert code in [c for _, c in refusal_of(text, strict=True)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("t: soon",), (4, "wrong-type")),
        (("t: 2.5",), (4, "wrong-type")),
        (("t: 250.0",), (4, "wrong-type")),
        (("pass_mark: .inf",), (4, "wrong-type")),
        (("pass_mark: nan",), (4, "wrong-type")),
        (("pass_mark: 1e999",), (4, "too-large")),
        (("t: 1e99",), (4, "wrong-type")),
        (("items: 3",), (4, "wrong-type")),
        (("items: [!Item {name: [a]}]",), (4, "wrong-type")),
        (("items: [!Vector3 {x: 1}]",), (4, "wrong-tag")),
        (("items: [!Item {name: Wall, positions: [[1, 2, 3]]}]",), (4, "wrong-type")),
        (("items: [!Item {name: DataZone, operations: [!explode {}]}]",), (4, "wrong-tag")),
    ],
)
def test_refused(lines: tuple[str, ...], expected: tuple[int, str]) -> None:
    assert expected in refusal_of(arena(*lines))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: mine\nentries: []\n", "recipe of a battery, which `animalcat battery build"),
        ("name: mine\narena: {items: []}\n", "a family, of which `animalcat arena make"),
    ],
)
def test_other_files_of_ours_are_told_from_arenas(text: str, words: str) -> None:
    with pytest.raises(ArenaError, match=words):
        load_text(text, "f.yaml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ArenaError, match="not-readable"):
        load_config(tmp_path / "absent.yml")
    latin = tmp_path / "latin.yml"
    latin.write_bytes(b"# caf\xe9\n")
    with pytest.raises(ArenaError, match="not-utf8"):
        load_config(latin)
    dos = tmp_path / "dos.yml"
    dos.write_bytes(b"\xef\xbb\xbf" + OLD.replace("\n", "\r\n").encode())
    assert load_config(dos, strict=True).config == load_text(OLD, "f").config
