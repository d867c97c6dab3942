"""The templates of all pages: `base.html.j2` with the styles of `page.css`, which pages extend."""

from __future__ import annotations

from pathlib import Path

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined


def templates(*folders: Path) -> Environment:
    """Templates that escape every value, and refuse names that nobody gave.

    Args:
        folders: Further folders with templates, which may extend ours.
    """
    ours = PackageLoader("animalcat.service.reporting", ".")
    return Environment(
        loader=ChoiceLoader([ours, FileSystemLoader(folders)]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
