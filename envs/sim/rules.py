"""Health, reward and the end of an episode: the bookkeeping of Unity's training agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.arena_configs.model import STEPS_PER_UNIT
from animalcat.envs.types import PHYSICS_STEP, EndedBy

if TYPE_CHECKING:
    from collections.abc import Sequence

REVISION: Final = "5"
"""Raised whenever the simulator moves or rewards anything otherwise. Recordings keep it, so that
those made under other rules are not said to differ."""

LONGEST_WAIT: Final = 1e9
"""Seconds that replace any longer time."""

_LARGEST_GRANT: Final = 1e30
"""Keeps rewards finite in float32, however many are granted."""
_FULL: Final = np.float32(100.0)
_ZERO: Final = np.float32(0.0)
_HOT_FLOOR: Final = np.float32(-0.001)
_DEATH: Final = np.float32(-1.0)


@dataclass(frozen=True, slots=True)
class Pickup:
    """What touching a goal does.

    Attributes:
        reward: Reward that is added.
        ends: Whether it alone completes the arena.
        needs: How many pickups, including this one, complete the arena; None for one for each goal
            that counts (green and yellow ones). Unity's goals each hold this number, and only those
            that count are ever told another one than 1 (inferred, section 2.1).
        kind: Name of the goal, for logs.
    """

    reward: float
    ends: bool
    needs: float | None = None
    kind: str = ""


class EpisodeState:
    """Health and reward of one episode, in float32, rounded after each operation as in Unity.

    Source: reference/animal-ai.md sections 2.1, 4.1 to 4.4.

    Attributes:
        health: 0 to 100.
        total: Sum of all rewards.
        ended_by: Why it ended; None while it runs.
        passed: Whether the arena is completed and its successor must be built now.
        steps: Number of physics steps begun.
    """

    def __init__(
        self,
        time_limit: int,
        goals: int,
        frozen_seconds: float = 0.0,
        merge_at: float | None = None,
    ) -> None:
        """Start at full health.

        Args:
            time_limit: The arena's time limit, in its own unit; 0 for none.
            goals: Number of positive goals that were spawned.
            frozen_seconds: How long the agent can neither move, gain nor lose at the start.
            merge_at: Pass mark at which completing the arena leads into the next one instead of
                ending the episode; 0 is always passed; None if there is no next one.
        """
        budget = time_limit * STEPS_PER_UNIT
        self._decay = np.float32(-1.0) / np.float32(budget) if budget > 0 else _ZERO
        self._health_decay = _FULL * self._decay
        self._hot = min(np.float32(10.0) * self._decay, _HOT_FLOOR)
        self._collected = 0
        self._since = _ZERO
        self.health = _FULL
        self.total = _ZERO
        self.steps = 0
        self.ended_by: EndedBy | None = None
        self._harmed = self._harmed_before = False
        self._held_until = -1
        self.enter(goals, frozen_seconds, merge_at)

    def enter(self, goals: int, frozen_seconds: float, merge_at: float | None) -> None:
        """Begin another arena; health, rewards, pickups and the decay per step stay as they are."""
        self.passed = False
        self._goals = goals
        self._merge_at = merge_at
        wait = round(min(frozen_seconds, LONGEST_WAIT) / PHYSICS_STEP)
        self._frozen_until = self.steps + wait if wait else -1

    @property
    def frozen(self) -> bool:
        """Whether the agent cannot move in the step now begun."""
        return self.steps <= self._frozen_until or self.steps <= self._held_until

    @property
    def frozen_next(self) -> bool:
        """Whether the agent cannot move in the step that has not begun yet."""
        return self.steps < self._frozen_until or self.steps < self._held_until

    def freeze(self, steps: int) -> None:
        """Keep the agent from moving in the next steps; its health continues to fall."""
        self._held_until = max(self._held_until, self.steps + steps)

    def add_goals(self, number: int) -> None:
        """Count goals that have been spawned."""
        self._goals += number

    def tick(self) -> None:
        """Begin a physics step, in which health decays."""
        self.steps += 1
        if self.steps > self._frozen_until and self.ended_by is None:
            # `_update` without what cannot happen here: this runs at every physics step.
            self.health += self._health_decay
            self.total += self._decay
            self._since += self._decay
            if self.health <= _ZERO:
                self.health = _ZERO
                # Where something burns, whether it or time comes last is chance (`EndedBy`).
                harmed = self._harmed or self._harmed_before
                self.ended_by = EndedBy.DEATH if harmed else EndedBy.TIME_LIMIT

    def glide(self, steps: int) -> bool:
        """Begin physics steps as `tick` does, if in all of them the agent can move and lives on.

        Returns:
            Whether it can; if not, nothing has been done.
        """
        if self.frozen_next or self.ended_by is not None:
            return False
        health, total, since = self.health, self.total, self._since
        decay, health_decay = self._decay, self._health_decay
        for _ in range(steps):
            health += health_decay
            total += decay
            since += decay
        if health <= _ZERO:
            return False
        self.health, self.total, self._since = health, total, since
        self.steps += steps
        return True

    def collect(self, pickup: Pickup) -> None:
        """Take a goal that the agent touched."""
        if pickup.reward > 0.0:
            self._collected += 1
        needs = max(1, self._goals) if pickup.needs is None else pickup.needs
        ends = pickup.ends or self._collected >= needs
        self._update(np.float32(pickup.reward), completes=ends)

    def grant(self, reward: float, *, completes: bool = False) -> None:
        """Add the reward of an operation, which may complete the arena."""
        bounded = min(max(reward, -_LARGEST_GRANT), _LARGEST_GRANT)
        self._update(np.float32(bounded), completes=completes)

    def burn(self) -> None:
        """Apply a hot zone for this step."""
        self._update(self._hot)

    def die(self) -> None:
        """Apply a death zone that the agent entered."""
        self._update(_DEATH)

    def take_reward(self) -> float:
        """The reward since the last call, with which a decision is over."""
        reward, self._since = float(self._since), _ZERO
        self._harmed, self._harmed_before = False, self._harmed
        return reward

    def _update(self, amount: np.float32, *, completes: bool = False) -> None:
        if self.ended_by is not None or self.passed:
            return
        if self.steps > self._frozen_until:
            self.health = min(self.health + _FULL * amount, _FULL)
            self.total += amount
            self._since += amount
            self._harmed = self._harmed or amount < _ZERO
        if self.health <= _ZERO:
            self.health = _ZERO
            self.ended_by = EndedBy.DEATH
        elif completes:
            mark = self._merge_at
            self.passed = mark is not None and (mark == 0.0 or self.total >= mark)
            self.ended_by = None if self.passed else EndedBy.GOAL


def is_dark(blackouts: Sequence[int], steps: int) -> bool:
    """Whether the lights are off.

    Args:
        blackouts: As the arena says: times at which the light toggles, or one negative number,
            the period of toggling for ever (reference/animal-ai.md section 1.8).
        steps: Physics steps since the episode began.
    """
    if not blackouts:
        return False
    if blackouts[0] < 0:
        return steps // (-blackouts[0] * STEPS_PER_UNIT) % 2 == 1
    return sum(steps >= time * STEPS_PER_UNIT for time in blackouts) % 2 == 1
