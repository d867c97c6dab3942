"""What is observed of an episode: whether it was passed, and what else layouts may ask for.

These are the definitions that the whole project uses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

SOURCES: Final = ("success", "return", "time_left", "rewards", "choice")
"""Names of all that can be observed of an episode, in the order of tables."""


def success(episode_return: float, pass_mark: float) -> bool:
    """Whether an episode that ended in the arena's own way succeeded.

    Faults and voids are not failures; do not ask this about them.

    Args:
        episode_return: Sum of the rewards of the episode.
        pass_mark: The arena's pass mark.
    """
    return episode_return > pass_mark


class MarkedPlace(NamedTuple):
    """A place on the floor that is a choice: a disc.

    Attributes:
        right: Whether it is a right choice.
        x: Of its centre, in metres.
        z: Of its centre, in metres.
        radius: In metres.
    """

    right: bool
    x: float
    z: float
    radius: float

    def holds(self, x: float, z: float) -> bool:
        """Whether a position is in it."""
        return math.hypot(x - self.x, z - self.z) <= self.radius


class OutcomeRules(NamedTuple):
    """What an instance says of the outcomes that its episodes may have.

    Attributes:
        pass_mark: Return that an episode must exceed.
        time_limit_steps: Physics steps until the time limit; 0: none.
        least_return: Least return that an episode may have; NaN: not known.
        greatest_return: Greatest return that an episode may have; NaN: not known.
        rewards: How many rewards there are; NaN: not known.
        places: Places that are choices.
    """

    pass_mark: float
    time_limit_steps: int = 0
    least_return: float = math.nan
    greatest_return: float = math.nan
    rewards: float = math.nan
    places: Sequence[MarkedPlace] = ()

    @property
    def observes(self) -> frozenset[str]:
        """What can be observed of its episodes, by source."""
        spread = self.greatest_return - self.least_return
        there = {
            "success": True,
            "return": math.isfinite(spread) and spread > 0.0,
            "time_left": self.time_limit_steps > 0,
            "rewards": math.isfinite(self.rewards) and self.rewards > 0.0,
            "choice": bool(self.places),
        }
        return frozenset(source for source, given in there.items() if given)


class EpisodeMonitor:
    """Watches an episode decision by decision, for what its sum of rewards does not tell."""

    def __init__(self, task: OutcomeRules) -> None:
        self._task = task
        self._rewards = 0
        self._choice: bool | None = None

    def see(self, reward: float, x: float, z: float) -> None:
        """Take in what a decision led to.

        Args:
            reward: Sum of rewards since the decision before; above 0 only where a reward was taken.
            x: Where the agent is now, in metres.
            z: Where the agent is now, in metres.
        """
        self._rewards += reward > 0.0
        if self._choice is None:
            place = next((place for place in self._task.places if place.holds(x, z)), None)
            self._choice = None if place is None else place.right

    def outcomes(self, episode_return: float, physics_steps: int) -> dict[str, float]:
        """What was observed of an episode that has ended in the arena's own way, by source.

        What does not apply is not there: of "return" where the bounds are not known, of "time_left"
        where the episode was not passed or has no limit, of "choice" where no place was reached.
        Of rewards that are taken within one decision, one is counted.

        Args:
            episode_return: Sum of the rewards of the episode.
            physics_steps: How many it took.
        """
        task, possible = self._task, self._task.observes
        passed = success(episode_return, task.pass_mark)
        made = {"success": float(passed)}
        if "return" in possible:
            share = (episode_return - task.least_return) / (
                task.greatest_return - task.least_return
            )
            made["return"] = min(max(share, 0.0), 1.0)
        if "time_left" in possible and passed:
            made["time_left"] = max(0.0, 1.0 - physics_steps / task.time_limit_steps)
        if "rewards" in possible:
            made["rewards"] = min(float(self._rewards), task.rewards)
        if "choice" in possible and self._choice is not None:
            made["choice"] = float(self._choice)
        return made
