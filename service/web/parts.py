"""The parts of a server's pages, in the order of the bar; a new part is one more line here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from animalcat.service.web.application import MakePart
from animalcat.service.web.batteries import batteries
from animalcat.service.web.filming import filming
from animalcat.service.web.playing import playing
from animalcat.service.web.watching import watching

ALL: Final[Sequence[MakePart]] = (watching, batteries, filming, playing)
"""Make the parts."""
