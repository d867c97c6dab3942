"""What Unity's reader refuses is an error that says what to write; what it takes is read so."""

from __future__ import annotations

from pathlib import Path

import pytest

from animalcat.arena_configs.loader import LoadedConfig, load_config, load_text
from animalcat.arena_configs.model import ArenaError, Problem
from animalcat.text.marked_yaml import MAX_REPEATED

HEAD = "!ArenaConfig\narenas:\n  0: !Arena\n"


def item(*lines: str, name: str = "name: GoodGoal") -> str:
    body = "".join(f"      {line}\n" for line in lines)
    return f"{HEAD}    items:\n    - !Item\n      {name}\n{body}"


def refusal_of(text: str) -> list[Problem]:
    with pytest.raises(ArenaError) as caught:
        load_text(text, "f.yml")
    return [one for one in caught.value.problems if one.severity == "error"]


def read(text: str) -> tuple[LoadedConfig, list[str]]:
    loaded = load_text(text, "f.yml")
    return loaded, [one.code for one in loaded.problems]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (item("sizes: [!Vector3 {x:2, y:2, z:2}]"), 7, "space after the colon, `x: 2`"),
        (item("sizes: [!Vector3 {x=2, y: 2, z: 2}]"), 7, "space after the colon, `x: 2`"),
        (item("sizes: [!Vector3 {x :2, y: 2, z: 2}]"), 7, "space after the colon, `x: 2`"),
        (item("sizes:", "- !Vector3", "  x:2"), 8, "space after the colon, `x: 2`"),
        (item("sizes: [!Vector3 {X: 2, y: 2, z: 2}]"), 7, "write `x`"),
        (item("sizes: [!Vector3 {x: 2, y: 2, z: 1,5}]"), 7, "decimal point, `z: 1.5`"),
        (item("sizes:", "- !Vector3", "  z: 1,5"), 9, "`1,5`: write 1.5"),
        (item("sizes: [!Vector3 {x: 2, y: 2, w: 2}]"), 7, "its fields are `x`, `y`, `z`"),
        (item("colors: [!RGB {R: 2}]"), 7, "write `r`"),
        (item("colors: [!RGB {x: 2}]"), 7, "its fields are `r`, `g`, `b`"),
        (item("positions: [!RGB {r: 2}]"), 7, "expected !Vector3, got !RGB"),
        (item("rotation: [1]"), 7, "write `rotations`"),
        (item("rotations: 45"), 7, "expected a list: write `[45]`"),
        (item("timeLimit: 100"), 7, "it is a field of !Arena, so look at the indent"),
        (item(name="name:GoodGoal"), 5, "space after the colon, `name: GoodGoal`"),
        (f"{HEAD}    TimeLimit: 100\n", 4, "write `timeLimit`"),
        (f"{HEAD}    T: 100\n", 4, "write `t`"),
        (f"{HEAD}    pass_Mark: 1\n", 4, "write `pass_mark`"),
        (f"{HEAD}    <<: {{t: 100}}\n", 4, "no merge keys"),
        (f"{HEAD}    t: 250.0\n", 4, "write 250"),
        (f"{HEAD}    t: 0800\n", 4, "write 800"),
        (f"{HEAD}    timeLimit:100\n", 3, "space after the colon, `timeLimit: 100`"),
        (f"{HEAD}    t: 1\ncanResetArena: true\n", 5, "write `canResetEpisode`"),
        ("!ArenaConfig\nArenas:\n  0: !Arena {}\n", 2, "write `arenas`"),
    ],
)  # fmt: skip
def test_a_field_that_unity_does_not_know(text: str, line: int, says: str) -> None:
    told = [(one.line, one.message) for one in refusal_of(text)]
    assert any(at == line and says in message for at, message in told), told


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (f"{HEAD}    timeLimit:100\n    items: []\n", 4, "write `timeLimit: 100`"),
        (f"{HEAD}    t:100\n    pass_mark:0\n\n    # so\n    items: []\n", 4, "write `t: 100`"),
        (f"{HEAD}    items: []\n    t:100\n", 5, "write `t: 100`"),
        ("!ArenaConfig\narenas:\n  0:!Arena\n    t: 1\n", 3, "write `0: !Arena`"),
        (item("rotations: [0]", name="name:Wall"), 6, "write `name: Wall`"),
        (item("rotations:[0]", "sizes: []"), 7, "write `rotations: [0]`"),
        (item("sizes: [!Vector3{x: 1}]"), 7, "write `!Vector3 {`"),
        (f"{HEAD}    items:\n    -!Item\n      name: Wall\n", 5, "write `- !Item`"),
        ("!ArenaConfig\narenas:\n\t0: !Arena\n", 3, "a tab stands where"),
        (f"{HEAD}    t: 1\n\titems: []\n", 5, "a tab stands where"),
        (item("\trotations: [1]"), 7, "a tab stands where"),
        (f"{HEAD}    items:\n    -\t!Item\n      name: Wall\n", 5, "a tab stands where"),
        (item("sizes:", "- !Vector3 {x: 1", "colors: []"), 9, "that begins in line 8"),
    ],
)  # fmt: skip
def test_what_is_no_yaml_is_blamed_on_its_line(text: str, line: int, says: str) -> None:
    [problem] = refusal_of(text)
    assert (problem.line, problem.code) == (line, "not-yaml")
    assert says in problem.message


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"!ArenaConfig\n# caf\xe9\n", 2, "byte 0xe9 is no UTF-8 (in Latin-1 it is 'é')"),
        ("\ufeff!ArenaConfig\n".encode("utf-16-le"), 1, "UTF-16"),
        ("\ufeff!ArenaConfig\n".encode("utf-16-be"), 1, "UTF-16"),
        ("!ArenaConfig\n".encode("utf-16-le"), 1, "UTF-16"),
        (b"!ArenaConfig\narenas:\n  # \xc3\xa9\n  0: \x00\n", 4, "U+0000"),
    ],
)
def test_other_encodings_are_named_with_a_line(
    content: bytes, line: int, says: str, tmp_path: Path
) -> None:
    (tmp_path / "a.yml").write_bytes(content)
    with pytest.raises(ArenaError, match=rf"a\.yml:{line}: ") as caught:
        load_config(tmp_path / "a.yml")
    assert says in str(caught.value)


def test_colours_of_clients_of_2_x() -> None:
    text = item("colors: [!Vector3 {x: 100, y: 50, z: 0}]")
    loaded, codes = read(text)
    [color] = loaded.config.first.items[0].colors
    assert (color.r, color.g, color.b, codes) == (100, 50, 0, ["old-color"])
    assert "write `!RGB {r: 100, g: 50, b: 0}`" in loaded.problems[0].message
    with pytest.raises(ArenaError, match=r"f\.yml:7.*builds from 3 on refuse.*old-color"):
        load_text(text, "f.yml", by_build=True)


def test_what_is_written_is_not_limited_but_what_aliases_repeat_is() -> None:
    wall = f"    - !Item\n      name: Wall\n      rotations: [{'0, ' * 6000}]\n"
    text = "!ArenaConfig\narenas:\n" + "".join(
        f"  {n}: !Arena\n    items:\n{wall}" for n in range(9)
    )
    assert text.count(", ") > MAX_REPEATED
    assert len(read(text)[0].config.arenas) == 9
    anchored = wall.replace("!Item\n", "&wall !Item\n", 1)
    [problem] = refusal_of(f"{HEAD}    items:\n{anchored}" + "    - *wall\n" * 9)
    assert "aliases (*wall) repeat more than" in problem.message
