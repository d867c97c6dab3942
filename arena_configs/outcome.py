"""What is observed of an episode: whether it was passed, and other outcomes for layouts.

The whole project uses these definitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

SOURCES: Final = ("success", "return", "time_left", "rewards", "choice")
"""Sources of outcomes that can be observed in an episode, in the order of tables."""


def success(episode_return: float, pass_mark: float) -> bool:
    """Whether an episode that the arena itself ended was a success.

    Faults and voids are not failures; do not pass them to this function.

    Args:
        episode_return: Sum of the rewards of the episode.
        pass_mark: The arena's pass mark.
    """
    return episode_return > pass_mark


class MarkFault(NamedTuple):
    """What is wrong with a pass mark: nobody can pass the arena, hardly anybody, or everybody.

    Attributes:
        code: Its kind, as `arena check` lists it.
        severity: An error where no play can pass, else a warning.
        message: What is wrong, with the numbers.
    """

    code: Literal["unreachable-pass-mark", "tight-pass-mark", "sure-pass"]
    severity: Literal["error", "warning"]
    message: str


def mark_fault(
    least: float, greatest: float, pass_mark: float, likely: float = math.nan
) -> MarkFault | None:
    """Say what is wrong with a pass mark, as far as the bounds of an episode's return tell.

    Args:
        least: No episode returns less; NaN or -inf if that is not known.
        greatest: No episode returns more; NaN or inf if that is not known.
        pass_mark: The arena's pass mark.
        likely: About what the reference agent returns; NaN if that is not known.
    """
    if greatest <= pass_mark:
        message = f"no play can pass: the best return is {greatest:.4g}, and it must exceed "
        return MarkFault("unreachable-pass-mark", "error", f"{message}{pass_mark:g}")
    if likely <= pass_mark:
        message = (
            f"almost no play passes: the best return is {greatest:.4g}, that of an agent which "
        )
        message += f"looks around before it runs is about {likely:.4g}, and it must exceed "
        return MarkFault("tight-pass-mark", "warning", f"{message}{pass_mark:g}")
    if success(least, pass_mark):
        message = f"every play passes: no return is below {least:.4g}, and that exceeds "
        return MarkFault("sure-pass", "warning", f"{message}{pass_mark:g}")
    return None


NO_REWARD: Final = "nothing gives reward: a goal is missing, or found no place as it was drawn"
"""What is said of an arena that nobody can pass, since no return exceeds 0."""
NO_LIMIT: Final = (
    "an agent that stands still there plays on until its allowance is spent (--episode-seconds), "
    "if it has one"
)
"""What it means that no time limit ends an episode."""


class MarkedPlace(NamedTuple):
    """A disc on the floor; entering it counts as a choice.

    Attributes:
        right: Whether it is a right choice.
        x: x of its centre, in metres.
        z: z of its centre, in metres.
        radius: In metres.
    """

    right: bool
    x: float
    z: float
    radius: float

    def holds(self, x: float, z: float) -> bool:
        """Whether a position is in it."""
        return math.hypot(x - self.x, z - self.z) <= self.radius


class PlaceWatch:
    """Notices which of some marked places an agent is in first.

    It has to be told of every physics step, because an agent may run through a place between two
    decisions.

    Attributes:
        places: The places.
        reached: Number of that place, from 1; 0 while the agent has been in none.
    """

    __slots__ = ("places", "reached")

    def __init__(self, places: Sequence[MarkedPlace] = ()) -> None:
        self.places = tuple(places)
        self.reached = 0

    @property
    def over(self) -> bool:
        """Whether there is nothing more to look for."""
        return self.reached > 0 or not self.places

    def look(self, x: float, z: float) -> None:
        """Take in where the agent is."""
        if not self.reached:
            numbers = (number for number, place in enumerate(self.places, 1) if place.holds(x, z))
            self.reached = next(numbers, 0)

    def away(self, x: float, z: float) -> float:
        """Metres from a position to the nearest place; infinite if there is none."""
        gaps = (math.hypot(x - place.x, z - place.z) - place.radius for place in self.places)
        return min(gaps, default=math.inf)


class OutcomeRules(NamedTuple):
    """What an instance defines about the outcomes of its episodes.

    Attributes:
        pass_mark: Return that an episode must exceed.
        time_limit_steps: Physics steps until the time limit; 0 for no limit.
        least_return: Least return that an episode may have; NaN if unknown.
        greatest_return: Greatest return that an episode may have; NaN if unknown.
        rewards: Number of rewards in the arena; NaN if unknown.
        places: Places that count as choices.
    """

    pass_mark: float
    time_limit_steps: int = 0
    least_return: float = math.nan
    greatest_return: float = math.nan
    rewards: float = math.nan
    places: Sequence[MarkedPlace] = ()

    @property
    def observes(self) -> frozenset[str]:
        """The sources of outcomes that can be observed in its episodes."""
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
    """Follows an episode decision by decision, for outcomes that its return does not show."""

    def __init__(self, task: OutcomeRules) -> None:
        self._task = task
        self._rewards = 0
        self._reached = 0

    def see(self, reward: float, reached: int = 0) -> None:
        """Take in the result of a decision.

        Args:
            reward: Sum of rewards since the decision before; above 0 only if a reward was taken.
            reached: Number, from 1, of the place that the agent was in first, as `PlaceWatch` says;
                0 if it has been in none.
        """
        self._rewards += reward > 0.0
        self._reached = reached

    def outcomes(self, episode_return: float, physics_steps: int) -> dict[str, float]:
        """Outcomes by source, of an episode that the arena itself ended.

        Outcomes that do not apply are absent: "return" if its bounds are not known, "time_left" if
        the episode was not passed or has no limit, and "choice" if no place was reached. Rewards
        that are taken within one decision count as one.

        Args:
            episode_return: Sum of the rewards of the episode.
            physics_steps: Number of physics steps that it took.
        """
        task, possible = self._task, self._task.observes
        passed = success(episode_return, task.pass_mark)
        outcomes = {"success": float(passed)}
        if "return" in possible:
            share = (episode_return - task.least_return) / (
                task.greatest_return - task.least_return
            )
            outcomes["return"] = min(max(share, 0.0), 1.0)
        if "time_left" in possible and passed:
            outcomes["time_left"] = max(0.0, 1.0 - physics_steps / task.time_limit_steps)
        if "rewards" in possible:
            outcomes["rewards"] = min(float(self._rewards), task.rewards)
        if "choice" in possible and self._reached:
            outcomes["choice"] = float(task.places[self._reached - 1].right)
        return outcomes
