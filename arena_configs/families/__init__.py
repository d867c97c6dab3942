"""Families of arenas: files with parameters and formulas, and the instances drawn from them.

`language` defines what a family is, with `ranges` for its parameters and `scope` for its formulas;
`reader` reads its file, with `arena_reader` for the arena and `part_reader` for keys, formulas and
ranges, and `library` finds the file. `build` makes an arena for given values, with the colours of
`palette`, `variants` mirrors and turns it, `sampling` draws parameters, and `generate` draws
instances, which `instance` describes. `claims` compares what a family says of its arenas with what
is measured, and `search` finds an instance for given demands. `twins` makes an arena with the
demands of another one; `variations` turns, shifts and paints arenas of which no family is known.

Families that go to one goal over open floor have an older template, `polar_template`: `polar` draws
from it, `polar_solve` makes an arena for given demands at once, and `polar_twins` makes twins.
"""

from animalcat.arena_configs.families.claims import (
    ClaimError,
    Measure,
    check_claims,
    claim_errors,
    measure_geometry,
)
from animalcat.arena_configs.families.generate import generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.families.library import (
    FAMILIES,
    AnyFamily,
    load_family,
    load_family_file,
)
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
