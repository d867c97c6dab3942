from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import ArenaError
from animalcat.text.marked_yaml import MAX_BYTES

BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 60)
)

HOSTILE = {
    "alias bomb": (BOMB, "too-large"),
    "self reference": ("a: &a [*a]\n", "bad-alias"),
    "unknown alias": ("a: *b\n", "bad-alias"),
    "deep flow": ("[" * 200_000, "too-deep"),
    "deep block": ("- " * 200_000, "too-deep"),
    "deep mapping": ("? " * 200_000, "too-deep"),
    "deep aliases": (
        "".join(f"a{k}: &a{k} {'[' * 28}{'*a' * (k > 0)}{k - 1}{']' * 28}\n" for k in range(40)),
        "too-deep",
    ),
    "too long": ("#" * (MAX_BYTES + 1), "too-large"),
    "no mapping": ("[" + "1," * 50_000 + "]", "wrong-type"),
    "null byte": ("!ArenaConfig\narenas: \x00\n", "not-yaml"),
    "open quote": ("'" + "a" * 100_000, "not-yaml"),
    "many anchors": ("&a " * 100_000, "not-yaml"),
    "python object": ("!!python/object/apply:os.system ['false']\n", "wrong-tag"),
    "python tag": ("!ArenaConfig\narenas: {0: !!python/name:os.system {t: 1}}\n", "wrong-tag"),
    "surrogate": ("!ArenaConfig\n# \udc80\n", "not-utf8"),
}


@pytest.mark.timeout(30)  # what an alias bomb would take is beyond all measure
@pytest.mark.parametrize("name", HOSTILE)
def test_refused_and_never_unfolded(name: str) -> None:
    text, code = HOSTILE[name]
    with pytest.raises(ArenaError) as caught:
        load_text(text, "hostile.yml")
    assert code in {problem.code for problem in caught.value.problems}


def test_scalars_with_foreign_tags_are_refused() -> None:
    text = "!ArenaConfig\narenas:\n  0: !Arena\n    t: !!python/object:os.system 5\n"
    with pytest.raises(ArenaError, match="wrong-tag"):
        load_text(text, "hostile.yml")


def test_aliases_work_as_in_unity() -> None:
    text = (
        "!ArenaConfig\narenas:\n  0: !Arena\n    items:\n"
        "    - !Item {name: Wall, sizes: [&s !Vector3 {x: 1, y: 2, z: 3}]}\n"
        "    - !Item {name: Ramp, sizes: [*s]}\n"
    )
    wall, ramp = load_text(text, "f.yml", strict=True).config.first.items
    assert wall.sizes == ramp.sizes


ALPHABET = st.sampled_from(
    [
        *"!&*[]{}:,-#?|>'\"%@ \n0aA.~",
        "!ArenaConfig\n",
        "arenas:",
        " 0:",
        " !Arena",
        "items:",
        "\n- ",
    ]
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(ALPHABET, max_size=40).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ArenaError):
        assert load_text(text, "any.yml").config.arenas
