"""A person plays an arena, in the browser or in a terminal; recorded as any episode is.

`game` is what is played, `web` and `terminal` show it; `recordings` lists what was played.
"""

from animalcat.service.person.game import ACTIONS_PER_SECOND, Game, View
from animalcat.service.person.web import PageServer

__all__ = ["ACTIONS_PER_SECOND", "Game", "PageServer", "View"]
