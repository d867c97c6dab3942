"""Colours by name, for families of arenas."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

COLOURS: Final[Mapping[str, tuple[int, int, int]]] = MappingProxyType(
    {
        "grey": (153, 153, 153),
        "pink": (255, 0, 255),
        "blue": (0, 0, 255),
        "black": (20, 20, 20),
        "white": (240, 240, 240),
        "brown": (120, 80, 40),
        "beige": (222, 204, 170),
        "orange": (255, 140, 0),
        "purple": (110, 40, 160),
        "navy": (20, 30, 90),
        "teal": (0, 128, 128),
        "red": (200, 30, 30),
        "green": (60, 160, 60),
        "yellow": (230, 200, 40),
    }
)
"""Name -> red, green and blue from 0 to 255."""

DEFAULTS: Final[Mapping[str, str]] = MappingProxyType({"Wall": "grey", "Ramp": "pink"})
"""Colours of objects whose colour a build draws where it is not given: those of the testbed."""
