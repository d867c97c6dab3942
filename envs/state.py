"""The true state of an arena, as a privileged agent is shown it: one row of numbers an object.

The first row is the agent. The others are what sensors could see: the solid parts of objects, the
balls and the zones, where they are now. What was taken or has vanished has no row.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from animalcat.envs.types import STATE_COLUMNS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    State = npt.NDArray[np.float32]
    """(n, STATE_COLUMNS) numbers; the columns are those of `Column`."""


class Column(IntEnum):
    """The first column of each thing that is told of an object."""

    NUMBER = 0
    """Number of the object, which it keeps for the episode; -1 for the agent."""
    SHAPE = 1
    """Its shape: a number of `envs.sim.scene.Shape`."""
    TAG = 2
    """Index of its tag in `arena_configs.catalogue.LOGGED_TAGS`; -1: none."""
    CENTER = 3
    """Three columns: x, y and z of its centre in metres."""
    HALF = 6
    """Three columns: its half extents in metres along its own axes; a ball's radius first."""
    ROTATION = 9
    """Nine columns: the rows of the matrix from its own axes to the world's."""
    REWARD = 18
    """What touching it gives now; 0 for what is no goal."""
    ENDS = 19
    """1 if taking it ends the episode, whatever was taken before; else 0."""
    FINAL = 20
    """The reward that it will have when it has stopped changing."""
    RATE = 21
    """By how much its reward changes in a physics step, once it changes."""
    WAIT = 22
    """Physics steps until it begins to change; of the agent, until it may move: 1 while frozen."""
    HIDES = 23
    """1 if it hides what is behind it, 0 for glass, zones and goals; of the agent, 1 while the
    light is out."""


assert Column.HIDES + 1 == STATE_COLUMNS

AGENT: Final = 0
"""The agent's row."""
