"""What the way to a single reward leaves of it, to the fastest body and to the reference agent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from animalcat.arena_configs.placement import AGENT_RADIUS
from animalcat.arena_configs.routes import STEP_SECONDS, run_seconds

NEEDED: Final = (
    *("rewards", "rewardSum", "rewardSize", "wayLength", "greatestReturn"),
    *("ramps", "movables", "raisedRewards", "bouncingRewards", "changingRewards"),
)
"""The demands from which it follows."""
REFERENCE_SECONDS: Final = 3.3
"""Seconds by which the scout is later than the fastest body, to look around and to turn: the middle
of the 25 arenas that it passed in its reference profile on navigation, of 2.6 to 3.9."""
_LESS: Final = 0.99
"""Share of the measured way that the shortest one may have, which is drawn tight within 1 %."""


class Returns(NamedTuple):
    """What an episode may return.

    Attributes:
        greatest: No episode returns more; NaN where that is not known.
        likely: About what the reference agent returns that finds the way; NaN too.
    """

    greatest: float
    likely: float


def returns_in_time(demands: Mapping[str, float], time_limit_steps: int) -> Returns:
    """Return what an arena gives at most to a body that runs to its reward at full thrust.

    The bound by the way is for a single reward on the floor that stays what and where it is, with
    nothing to push or to run down; other arenas have the bound that their objects give.

    Args:
        demands: Demands of the arena, by name.
        time_limit_steps: Physics steps until the time limit; 0 for none.
    """
    known = [demands.get(name, math.nan) for name in NEEDED]
    rewards, value, size, way, greatest, *others = known
    if time_limit_steps <= 0 or rewards != 1.0 or any(others) or not math.isfinite(way):
        return Returns(greatest, math.nan)
    metres = max(0.0, _LESS * (way - AGENT_RADIUS - size / 2.0))
    left = value - run_seconds(metres) / STEP_SECONDS / time_limit_steps
    return Returns(min(greatest, left), left - REFERENCE_SECONDS / STEP_SECONDS / time_limit_steps)
