"""Families of arenas: YAML templates with ranges, and the instances drawn from them.

`templates` defines what a family's file may contain, `generate` draws instances from it, and
`solve` makes an arena for given demands.
"""

from animalcat.arena_configs.families.generate import (
    FAMILIES,
    FamilyInstance,
    generate,
    load_family,
)
from animalcat.arena_configs.families.solve import SolvedArena, distances, places, sizes, solve

__all__ = [
    "FAMILIES",
    "FamilyInstance",
    "SolvedArena",
    "distances",
    "generate",
    "load_family",
    "places",
    "sizes",
    "solve",
]
