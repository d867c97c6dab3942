"""Families of arenas: YAML templates with ranges, and the instances drawn from them."""

from animalcat.arena_configs.families.generate import (
    FAMILIES,
    FamilyInstance,
    generate,
    load_family,
)

__all__ = ["FAMILIES", "FamilyInstance", "generate", "load_family"]
