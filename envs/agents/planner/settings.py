"""The abilities of the planner that can be taken away one by one."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """What a planner can do; the defaults are all that it can.

    It always knows walls, ramps, lava and itself. The limits concern what it knows of goals, and
    where it goes. It looks all round at once, so nothing is behind it.

    Attributes:
        memory_seconds: Seconds for which it knows where a goal is that is hidden. A goal that it
            has not seen yet is not known either.
        permanence: Whether it knows where a hidden goal has gone. Without, it goes to the place
            where it last saw the goal.
        searches: Whether it looks for goals in places that it has not seen. With a side, it never
            does.
        fears_lava: Whether it notices lava. Without, lava is floor to it.
        climbs: Whether it goes onto slopes.
        platforms: Whether it moves on raised level ground, and goes down from it.
        patience_s: Seconds for which it waits, in an episode, before it takes a goal that ends it.
        sight_m: Metres as far as which it sees goals.
        resolution_degrees: Visual angle below which it sees no goal.
        smallest_m: Diameter below which it sees no goal.
        places: How many other places may hide a goal without its losing track of the goal. With
            more, it takes the farthest of them for the goal's place, and holds on to that.
        side: The side on which it takes goals to be, whatever it sees; empty for where they are.
    """

    memory_seconds: float = inf
    permanence: bool = True
    searches: bool = True
    fears_lava: bool = True
    climbs: bool = True
    platforms: bool = True
    patience_s: float = inf
    sight_m: float = inf
    resolution_degrees: float = 0.0
    smallest_m: float = 0.0
    places: float = inf
    side: Literal["", "left", "right"] = ""

    @property
    def looks(self) -> bool:
        """Whether it must see goals to know them, so that walls and the dark hide them."""
        return self.memory_seconds < inf or not self.permanence or self.places < inf

    @property
    def knows_all(self) -> bool:
        """Whether it knows every goal at every time."""
        seen = self.sight_m == inf and not self.resolution_degrees and not self.smallest_m
        return seen and not self.looks and not self.side
