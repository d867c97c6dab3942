"""Families of arenas: files with parameters and formulas, and the instances drawn from them.

`language` defines what a family is, with `ranges` for its parameters and `scope` for its formulas;
`reader` reads its file, with `arena_reader` for the arena and `part_reader` for keys, formulas and
ranges, and `library` finds the file. `build` makes an arena for given values, with the colours of
`palette`, `variants` mirrors and turns it, `sampling` draws parameters, and `generate` draws
instances, which `instance` describes. `claims` compares what a family says of its arenas with what
is measured, and `search` finds an instance for given demands, of which `aims` sets those that are
parameters and `grid` combines them.
"""

from animalcat.arena_configs.families.claims import (
    ClaimError,
    Measure,
    check_claims,
    claim_errors,
    measure_geometry,
)
from animalcat.arena_configs.families.generate import drawing, generate
from animalcat.arena_configs.families.instance import FamilyInstance
from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.families.library import (
    FAMILIES,
    is_family,
    load_family,
    load_family_file,
)
from animalcat.arena_configs.families.reader import read_family

__all__ = [
    "FAMILIES",
    "ClaimError",
    "Family",
    "FamilyInstance",
    "Measure",
    "check_claims",
    "claim_errors",
    "drawing",
    "generate",
    "is_family",
    "load_family",
    "load_family_file",
    "measure_geometry",
    "read_family",
]
