"""Families of arenas: files with parameters and formulas, and the instances drawn from them.

`language` defines what a family is, with `ranges` for its parameters and `scope` for its formulas;
`reader` reads its file. `build` makes an arena for given values, with the colours of `palette`,
`variants` mirrors and turns it, and `generate` draws instances. `claims` compares what a family
says of its arenas with what is measured, and `search` finds an instance for given demands.

Families that go to one goal over open floor have an older template, `polar_template`: `polar` draws
from it, and `polar_solve` makes an arena for given demands at once.
"""

from animalcat.arena_configs.families.claims import ClaimError, Measure, measure_geometry
from animalcat.arena_configs.families.generate import (
    FAMILIES,
    AnyFamily,
    FamilyInstance,
    check_claims,
    claim_errors,
    generate,
    load_family,
    load_family_file,
)
from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.families.polar import POLAR, load_polar
from animalcat.arena_configs.families.polar_solve import (
    SolvedArena,
    distances,
    places,
    sizes,
    solve,
)
from animalcat.arena_configs.families.polar_template import PolarFamily
from animalcat.arena_configs.families.reader import read_family

__all__ = [
    "FAMILIES",
    "POLAR",
    "AnyFamily",
    "ClaimError",
    "Family",
    "FamilyInstance",
    "Measure",
    "PolarFamily",
    "SolvedArena",
    "check_claims",
    "claim_errors",
    "distances",
    "generate",
    "load_family",
    "load_family_file",
    "load_polar",
    "measure_geometry",
    "places",
    "read_family",
    "sizes",
    "solve",
]
