"""The parts of a server's pages, in the order of the bar; a new part is one more line here."""

from __future__ import annotations

from collections.abc import Sequence

from animalcat.extending.doorways import entries
from animalcat.service.web.application import MakePart
from animalcat.service.web.batteries import batteries
from animalcat.service.web.filming import filming
from animalcat.service.web.watching import watching


def all_parts() -> Sequence[MakePart]:
    """Return what makes the parts, those of doors last."""
    of_doors = (way.load() for way in entries("pages").values())
    return (watching, batteries, filming, *of_doors)
