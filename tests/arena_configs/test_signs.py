"""Pictures of sign boards: names, codes, and what is left to chance."""

from __future__ import annotations

import numpy as np
import pytest

from animalcat.arena_configs.loader import load_text
from animalcat.arena_configs.model import Arena, Item, Vector3
from animalcat.arena_configs.placement import fix, place
from animalcat.arena_configs.signs import LARGEST, draw_sign, is_known, sign_picture
from animalcat.arena_configs.writer import to_yaml


def arena(*symbols: str) -> Arena:
    positions = tuple(Vector3(x=5.0 + 3 * i, y=0, z=20) for i in range(max(1, len(symbols))))
    rotations = (0.0,) * len(positions)
    agent = Item(name="Agent", positions=(Vector3(x=20, y=0, z=5),), rotations=(0.0,))
    sign = Item(name="SignBoard", positions=positions, rotations=rotations, symbol_names=symbols)
    return Arena(time_limit=100, items=(agent, sign))


def test_codes_are_rows_from_the_top() -> None:
    assert sign_picture("01/10").rows == ("01", "10")
    assert sign_picture("111/110/001").rows == ("111", "110", "001")
    assert sign_picture("01/10").color == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    "name",
    ["", "01", "01/1", "01/12", "0/", "0x3", "3x", "3x3x3", "-3x3", f"{LARGEST + 1}x2", "Star"],
)
def test_what_is_neither_symbol_nor_code_leaves_the_board_empty(name: str) -> None:
    assert not is_known(name)
    assert sign_picture(name).rows == ()
    assert draw_sign(name, np.random.default_rng(0)) == name


def test_random_squares_come_from_the_generator_and_are_reported() -> None:
    asked = arena("0*1/*1*", "3x2", "01/10")
    one, again, other = (place(asked, np.random.default_rng(seed)) for seed in (1, 1, 2))
    codes = [thing.item.symbol_names[0] for thing in one.objects]
    assert codes[2] == "01/10"
    top, bottom = codes[0].split("/")
    assert (top[0], top[2], bottom[1]) == ("0", "1", "1")
    assert one.drawn == again.drawn
    assert one.drawn != other.drawn
    rows = {f"items[1].symbolNames[{copy}].row{row}" for copy in (0, 1) for row in (0, 1)}
    assert set(one.drawn) == rows
    assert one.drawn["items[1].symbolNames[0].row0"] == int(top, 2)


def test_a_fixed_board_draws_nothing_and_is_written_in_the_real_grammar() -> None:
    fixed = fix(arena("4x1", "2x3"), np.random.default_rng(3))
    placement = place(fixed, np.random.default_rng(4))
    assert placement.drawn == {}
    back = load_text(to_yaml(fixed), "fixed.yml").config.arenas[0]
    assert back == fixed
    pictures = [sign_picture(thing.item.symbol_names[0]).rows for thing in placement.objects]
    assert pictures[0][0] == pictures[0][1], "a single row needs a separator, so it stands twice"
    assert len(pictures[0][0]) == 4
    assert [len(row) for row in pictures[1]] == [2, 2, 2]
