"""The templates of all pages: `base.html.j2` with the styles of `page.css`, which pages extend."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates() -> Environment:
    """Templates that escape every value, and refuse names that nobody gave."""
    return Environment(
        loader=PackageLoader("animalcat.service.reporting", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
