"""Finds recipes of batteries: those that come with the project, and files of one's own."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from animalcat.arena_configs.batteries.language import Recipe
from animalcat.arena_configs.batteries.reader import named_files, read_recipe
from animalcat.arena_configs.model import ArenaError


class RecipeFiles(NamedTuple):
    """The texts that a recipe consists of.

    Attributes:
        file: Name of its file.
        text: The recipe.
        families: Texts of families of the user's own, by the name that the recipe gives the file.
    """

    file: str
    text: str
    families: dict[str, str]

    def read(self) -> Recipe:
        """Read the recipe.

        Raises:
            ArenaError: It is not a recipe; the message says line and key.
        """
        return read_recipe(self.text, self.file, self.families)


def _shipped_names() -> tuple[str, ...]:
    folder = files("animalcat.arena_configs").joinpath("batteries")
    names = (Path(file.name) for file in folder.iterdir())
    return tuple(sorted(path.stem for path in names if path.suffix == ".yaml"))


RECIPES: Final = _shipped_names()
"""Names of the recipes that come with the project, one for each file."""


def shipped_recipe(name: str) -> RecipeFiles:
    """The text of a recipe that comes with the project.

    Args:
        name: One of `RECIPES`.

    Raises:
        ArenaError: There is no such recipe.
    """
    if name not in RECIPES:
        raise ArenaError(f"no recipe {name!r}; there are: {', '.join(RECIPES)}")
    file = files("animalcat.arena_configs").joinpath(f"batteries/{name}.yaml")
    return RecipeFiles(f"{name}.yaml", file.read_text("utf-8"), {})


def load_recipe(name: str) -> Recipe:
    """Load a recipe that comes with the project.

    Args:
        name: One of `RECIPES`.

    Raises:
        ArenaError: There is no such recipe, or its file is wrong.
    """
    return shipped_recipe(name).read()


def recipe_files(path: Path) -> RecipeFiles:
    """Read the file of a recipe, and the files of families that it names.

    Args:
        path: The recipe; names of files in it are relative to its folder.

    Raises:
        ArenaError: A file cannot be read; the message names it.
    """
    text = _text(path)
    names = named_files(text, str(path))
    return RecipeFiles(str(path), text, {name: _text(path.parent / name) for name in names})


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise ArenaError(f"{path}: {error.strerror or 'not readable'}") from None
    except UnicodeDecodeError:
        raise ArenaError(f"{path}: the file is not UTF-8 text") from None
