"""The abilities of the scout that can be taken away one by one."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class ScoutSettings:
    """What a scout can do; the defaults are all that it can.

    Attributes:
        memory_seconds: Seconds for which it remembers a goal that it does not sense.
        permanence: Whether it infers where a goal is that went out of sight. Without, it goes to
            where it last saw the goal, no farther than what hides it now, and looks behind nothing.
        searches: Whether it looks for goals elsewhere than where it has seen one. Without, it only
            looks around from where it is.
        fears_lava: Whether it notices lava. Without, lava is floor to it.
        climbs: Whether it goes onto slopes.
        platforms: Whether it moves on raised level ground, and goes down from it.
        longest_path_m: Metres after which it walks no further in an episode.
        patience_s: Seconds for which it puts off a green goal, which ends the episode, or waits for
            goals to fall. After that it takes the green goal that it knows.
    """

    memory_seconds: float = inf
    permanence: bool = True
    searches: bool = True
    fears_lava: bool = True
    climbs: bool = True
    platforms: bool = True
    longest_path_m: float = inf
    patience_s: float = inf

    def __post_init__(self) -> None:
        for name in ("memory_seconds", "longest_path_m", "patience_s"):
            value = getattr(self, name)
            if not value >= 0.0:
                raise ValueError(f"{name} is {value}: give a number of at least 0")
