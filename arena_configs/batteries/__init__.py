"""Recipes of batteries: files that say which families give how many arenas, and what is drawn.

`language` defines what a recipe is, `reader` reads its file, and `library` finds it. `sizing`
scales its counts, and `drawing` draws its instances.
"""

from animalcat.arena_configs.batteries.drawing import RecipeInstance, draw
from animalcat.arena_configs.batteries.language import Entry, Recipe
from animalcat.arena_configs.batteries.library import (
    RECIPES,
    RecipeFiles,
    load_recipe,
    recipe_files,
    shipped_recipe,
)
from animalcat.arena_configs.batteries.reader import read_recipe
from animalcat.arena_configs.batteries.sizing import (
    Counts,
    counts_for,
    full_counts,
    full_size,
    total,
)

__all__ = [
    "RECIPES",
    "Counts",
    "Entry",
    "Recipe",
    "RecipeFiles",
    "RecipeInstance",
    "counts_for",
    "draw",
    "full_counts",
    "full_size",
    "load_recipe",
    "read_recipe",
    "recipe_files",
    "shipped_recipe",
    "total",
]
