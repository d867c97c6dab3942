"""Lets a person play an arena in the browser or in a terminal, recorded like any episode.

`game` is what the person plays, `web` and `terminal` show it, and `recordings` lists what was
played. `replaying` shows a recorded episode on the same page, with a time line.
"""

from animalcat.service.person.game import ACTIONS_PER_SECOND, Game, View
from animalcat.service.person.web import PageServer, WebGame

__all__ = ["ACTIONS_PER_SECOND", "Game", "PageServer", "View", "WebGame"]
