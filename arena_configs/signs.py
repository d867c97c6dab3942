"""Symbols of sign boards, as pictures of 7 x 7 squares: drawn anew, after their names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SYMBOLS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        name: tuple(rows.split())
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
        }.items()
    }
)
"""Name -> rows from the top, each from left to right as one reads it; # is the symbol."""
