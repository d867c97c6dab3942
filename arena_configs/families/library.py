"""Loads families: of the project, of other packages, and of files of one's own."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

from animalcat.arena_configs.families.language import Family
from animalcat.arena_configs.families.reader import read_family
from animalcat.arena_configs.model import ArenaError
from animalcat.extending import plugins


def _shipped_names() -> tuple[str, ...]:
    folder = files("animalcat.arena_configs").joinpath("families")
    names = (Path(file.name) for file in folder.iterdir())
    return tuple(sorted(path.stem for path in names if path.suffix == ".yaml"))


FAMILIES: Final = _shipped_names()
"""Names of the families that come with the project, one for each file."""


def is_family(name: str) -> bool:
    """Whether a family of this name comes with the project or another package. No code is run.

    Raises:
        ArenaError: Several packages have one.
    """
    try:
        return name in FAMILIES or plugins.find("family", name) is not None
    except plugins.PluginError as error:
        raise ArenaError(str(error)) from None


@cache
def load_family(name: str) -> Family:
    """Load a family that comes with the project, or with another package.

    Args:
        name: One of `FAMILIES`, or the name of a plugin (`animalcat.extending.plugins`).

    Raises:
        ArenaError: There is no such family, or its text is wrong.
    """
    text = family_text(name)
    if name in FAMILIES:
        return read_family(text, f"{name}.yaml")
    family = read_family(text, f"plugin {name}")
    if family.name != name:
        raise ArenaError(
            f"the plugin of the family {name!r} calls itself {family.name!r} in its text; both "
            "have to be the same name"
        )
    return family


def family_text(name: str) -> str:
    """Read the text of what `load_family` loads.

    Raises:
        ArenaError: There is no such family.
    """
    if name in FAMILIES:
        return files("animalcat.arena_configs").joinpath(f"families/{name}.yaml").read_text("utf-8")
    if not is_family(name):
        there = ", ".join((*FAMILIES, *plugins.names("family")))
        raise ArenaError(f"no family {name!r}; there are: {there}")
    try:
        return plugins.text("family", name)
    except plugins.PluginError as error:
        raise ArenaError(str(error)) from error


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
