"""Loads families: those that come with the project, and files of one's own."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.families.reader import read_family
from animalcat.arena_configs.model import ArenaError


def _shipped() -> tuple[str, ...]:
    folder = files("animalcat.arena_configs").joinpath("families")
    names = (Path(file.name) for file in folder.iterdir())
    return tuple(sorted(path.stem for path in names if path.suffix == ".yaml"))


FAMILIES: Final = _shipped()
"""Names of the families that come with the project, one for each file."""


@cache
def load_family(name: str) -> Family:
    """Load a family that comes with the project.

    Args:
        name: One of `FAMILIES`.

    Raises:
        ArenaError: There is no such family, or its file is wrong.
    """
    if name not in FAMILIES:
        raise ArenaError(f"no family {name!r}; there are: {', '.join(FAMILIES)}")
    text = files("animalcat.arena_configs").joinpath(f"families/{name}.yaml").read_text("utf-8")
    return read_family(text, f"{name}.yaml")


def load_family_file(path: Path) -> Family:
    """Load a family of one's own.

    Args:
        path: A YAML file.

    Raises:
        ArenaError: It cannot be read, or is no family; the message says line and key.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ArenaError(f"{path}: {error.strerror or 'not readable'}") from None
    except UnicodeDecodeError:
        raise ArenaError(f"{path}: the file is not UTF-8 text") from None
    return read_family(text, str(path))
