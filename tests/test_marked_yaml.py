"""All YAML is counted before anything is made of it, and every error has its line and key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field

from animalcat.text.marked_yaml import Marked, YamlError, load_yaml, validate

MERGED = """
one: &one {x: 1, y: 2}
two: &two {y: 3, z: [*one, 0x10, 1_000, no, ~, .inf]}
both: {<<: [*one, *two], w: "<<", x: 5}
more: {<<: *two, y: 010}
"""
BOMB = "a: &a {x: 1, y: 2}\n" + "".join(
    f"{new}: &{new} {{<<: [{', '.join([f'*{old}'] * 10)}]}}\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


ROOT = Path(__file__).resolve().parents[1]


def test_nothing_that_is_installed_reads_yaml_by_itself() -> None:
    read = re.compile(r"\byaml\.(safe_|full_|unsafe_)?(load|parse|compose|scan)")
    folders = ("animalcat", "arena_configs", "doors", "envs", "layouts", "service")
    modules = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    assert [p.name for p in modules if read.search(p.read_text())] == ["marked_yaml.py"]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: float
    name: str = ""


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")

    parts: tuple[Part, ...] = ()
    by_name: dict[str, Part] | None = None
    count: int = Field(default=1, ge=1)


def test_plain_data_are_what_the_usual_library_makes() -> None:
    marked, usual = load_yaml(MERGED, "m.yaml"), yaml.safe_load(MERGED)
    assert marked.data == usual
    assert [*marked.data["both"]] == [*usual["both"]]
    assert marked.lines["both",] == 4
    assert marked.lines["both", "y"] == 2  # where it is written


@pytest.mark.timeout(10)  # unfolded it would take hours
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "f:5: its aliases (*d) repeat more than 50000 values"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "f:4: b.c: given already in line 3"),
        ("a: 1\n---\nb: 2\n", "f:2: a second YAML document"),
        ("a: !!python/name:os.system x\n", "f:1: a: unexpected tag"),
        ("a: !own {b: 1}\n", "f:1: a: unexpected tag"),
        ("a: !!int x\n", "f:1: a: `x` is no int"),
        (f"a:\n  - {'9' * 5000}\n", "f:2: a[0]: `9999"),
        ("a: {<<: [1]}\n", "f:1: a.<<: merge keys and values"),
        ("? [a]\n: 1\n", "f:1: a key is one text"),
        ("[" + "1," * 100_000 + "]", "f:1: at most 100000 keys and values"),
    ],
)
def test_what_is_wrong_is_said_before_it_is_made(text: str, said: str) -> None:
    with pytest.raises(YamlError) as caught:
        load_yaml(text, "f")
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("parts:\n- {size: 1}\n- {siez: 1}\n", "f:3: parts[1].size: it is missing; say it; "),
        ("parts:\n- {siez: 1, size: 1}\n", "f:2: parts[0].siez: there is no such key."),
        ("by_name:\n  a:\n    size: big\n", "f:3: by_name.a.size: Input should be a valid number"),
        (
            "by_name:\n  a:\n    size: 1\n    named: x\n",
            "f:4: by_name.a.named: there is no such",
        ),
        (
            "parts:\n- {size: 1, name: NO}\n",
            "f:2: parts[0].name: it is read as 'False'",
        ),
        (
            "cuont: 1\ncount: 0\n",
            "f:1: cuont: there is no such key. Did you mean 'count'?; line 2",
        ),
        ("- 1\n", "f:1: the whole file: give keys and values"),
        ("", "f: the whole file: give keys and values"),
    ],
)
def test_what_a_model_refuses_has_its_line_and_key(text: str, said: str) -> None:
    with pytest.raises(YamlError) as caught:
        validate(Whole, load_yaml(text, "f"), help="docs/x.md says more")
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith(". docs/x.md says more")


def test_a_model_is_made_of_data_from_elsewhere_as_well() -> None:
    data: dict[str, Any] = {"parts": [{"size": 2}]}
    assert validate(Whole, Marked(data)).parts == (Part(size=2.0),)
    with pytest.raises(YamlError, match=r"^parts\[0\]\.size: it is missing"):
        validate(Whole, Marked({"parts": [{}]}))
