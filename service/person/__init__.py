"""Lets a person play an arena in the browser or in a terminal, recorded like any episode.

`game` is what the person plays, `shows` gives it to a page (`animalcat.service.web`) and `terminal`
to a terminal, and `recordings` lists what was played. `replaying` gives a page a recorded episode.
"""

from animalcat.service.person.game import ACTIONS_PER_SECOND, Game, View
from animalcat.service.person.shows import GameShow, Show, Shown

__all__ = ["ACTIONS_PER_SECOND", "Game", "GameShow", "Show", "Shown", "View"]
