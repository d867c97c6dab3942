"""What sign boards show: named symbols, drawn by ourselves, and grids given by codes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

Color = tuple[float, float, float]

CLEAR: Final = "."
"""A square in which the board is seen."""
DARK: Final = "0"
"""A black square."""
OWN: Final = "1"
"""A square of the picture's own colour."""
RANDOM: Final = "*"
"""A square of a code that is drawn at random, dark or not."""

LARGEST: Final = 48
"""Greatest number of squares along a side of a code: a row is exact as a binary number in a float.
"""

SYMBOLS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        name: tuple(rows.replace("#", OWN).split())
        for name, rows in {
            "right-arrow": "....... ....#.. ....##. ####### ....##. ....#.. .......",
            "left-arrow": "....... ..#.... .##.... ####### .##.... ..#.... .......",
            "up-arrow": "...#... ..###.. .#####. ...#... ...#... ...#... ...#...",
            "down-arrow": "...#... ...#... ...#... ...#... .#####. ..###.. ...#...",
            "u-turn-arrow": ".#####. #.....# #.....# #...### #....#. #...... #......",
            "letter-a": "..###.. .#...#. .#...#. .#####. .#...#. .#...#. .#...#.",
            "letter-b": ".####.. .#...#. .#...#. .####.. .#...#. .#...#. .####..",
            "letter-c": "..####. .#..... .#..... .#..... .#..... .#..... ..####.",
            "square": "####### ####### ####### ####### ####### ####### #######",
            "triangle": "...#... ...#... ..###.. ..###.. .#####. .#####. #######",
            "circle": "..###.. .#####. ####### ####### ####### .#####. ..###..",
            "star": "...#... ...#... ####### .#####. ..###.. .##.##. #.....#",
            "tick": "......# .....## ....##. #..##.. ####... .##.... .......",
            "cross": "#.....# .#...#. ..#.#.. ...#... ..#.#.. .#...#. #.....#",
            "default": "",
        }.items()
    }
)
"""Name -> rows from the top, each from left to right as one reads it. The default is empty."""

_UNNAMED: Final = "right-arrow"
_COLORS: Final[Mapping[str, Color]] = {
    "u-turn-arrow": (0.943, 0.917, 0.101),
    "letter-a": (0.9, 0.315, 0.315),
    "letter-b": (0.255, 0.85, 0.425),
    "letter-c": (0.255, 0.699, 0.85),
    "tick": (0.106, 0.868, 0.044),
    "cross": (0.934, 0.083, 0.083),
}
"""The table of colours in the prefab; the others are tinted white there: drawn as they are."""
_WHITE: Final = (1.0, 1.0, 1.0)


class Picture(NamedTuple):
    """What a board shows.

    Attributes:
        rows: From the top, made of `CLEAR`, `DARK` and `OWN`; all of one length; none for an empty
            board.
        color: Colour of its `OWN` squares (sRGB, 0 to 1) if the item gives none; None for the
            board's own.
    """

    rows: tuple[str, ...]
    color: Color | None


def is_known(name: str) -> bool:
    """Whether a name is a symbol or a valid code."""
    return name in SYMBOLS or _squares(name) is not None


def sign_picture(name: str | None) -> Picture:
    """The picture that a name stands for.

    Args:
        name: A symbol, or a code without random squares; any other name gives an empty board. With
            None, no name is given, and the board shows an arrow, as the real build's does.
    """
    name = _UNNAMED if name is None else name
    rows = None if name in SYMBOLS else _squares(name)
    if rows is not None:
        return Picture(rows, _WHITE)
    return Picture(SYMBOLS.get(name, ()), _COLORS.get(name))


def draw_sign(name: str, rng: np.random.Generator) -> str:
    """Draw the random squares of a name, so that its picture leaves nothing to chance.

    Args:
        name: A name; one that is not a code with random squares is returned unchanged.
        rng: Source of randomness; squares are drawn row by row.
    """
    rows = None if name in SYMBOLS else _squares(name)
    if rows is None or not any(RANDOM in row for row in rows):
        return name
    white = rng.integers(2, size=(len(rows), len(rows[0]))).tolist()
    fixed = [
        "".join(
            str(chance) if square == RANDOM else square
            for square, chance in zip(row, chances, strict=True)
        )
        for row, chances in zip(rows, white, strict=True)
    ]
    # A code needs a separator; a row that stands twice gives the same picture.
    return "/".join(fixed * 2 if len(fixed) == 1 else fixed)


def _squares(code: str) -> tuple[str, ...] | None:
    """Rows of a code of squares; None if it is not a code, or is too large."""
    size = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})", code)
    if size is not None:
        columns, count = int(size[1]), int(size[2])
        fits = 0 < columns <= LARGEST and 0 < count <= LARGEST
        return (RANDOM * columns,) * count if fits else None
    rows = tuple(code.split("/"))
    if not 1 < len(rows) <= LARGEST or not 0 < len(rows[0]) <= LARGEST:
        return None
    valid = all(len(row) == len(rows[0]) and not set(row) - {DARK, OWN, RANDOM} for row in rows)
    return rows if valid else None
