"""A deed as one action after the other, steered by what is perceived on the way."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from typing import Final

from animalcat.doors.speech.reading import Deed, Go, Press, Turn, Wait
from animalcat.envs.answers import MAX_ACTIONS
from animalcat.envs.types import PHYSICS_STEP, Observation

NOTHING: Final = 0
TURN_RIGHT: Final = 1
TURN_LEFT: Final = 2
FORWARD: Final = 3
BACKWARD: Final = 6
DEGREES: Final = 2.0
"""Degrees that the agent turns in one physics step (100 degrees a second, Animal-AI)."""
_DRAG: Final = 0.968
_FRICTION: Final = 0.113953
_THRUST: Final = 1.0
_STOP: Final = 0.9
"""Law of motion on a flat floor, a physics step: what drag and braking leave of the speed, and what
friction takes and thrust gives, in m/s (../shared/reference, measured on traces of the build)."""
_STILL: Final = 0.05
"""Speed in m/s from which on the agent stands."""
_BLOCKED: Final = 4
"""Decisions without progress after which a way is blocked."""
_PROGRESS: Final = 0.02
"""Metres a decision that count as progress."""


@dataclass(slots=True)
class Doing:
    """One deed that is being done.

    Ask `next` for actions at each observation until it returns none; `report` says what came of
    it. It knows what the agent perceives, and nothing of the arena: on ice it would slip.

    Attributes:
        deed: What is done.
        period: Physics steps of one decision.
    """

    deed: Deed
    period: int
    _taken: int = 0
    _start: tuple[float, float] | None = None
    _before: float = 0.0
    _stuck: int = 0
    _braking: bool = False
    _blocked: bool = False
    _covered: float = 0.0

    def next(self, observation: Observation) -> bytes:
        """Say the next actions, a byte each, 0 to 8; none once the deed is done.

        What does not hang on what is perceived meanwhile is said at once.
        """
        match self.deed:
            case Go(metres):
                action = self._go(metres, observation)
                actions = b"" if action is None else bytes([action])
            case Turn(degrees):
                way = TURN_RIGHT if degrees > 0 else TURN_LEFT
                actions = self._repeat(way, self._decisions(abs(degrees) / DEGREES))
            case Wait(seconds):
                # Waiting takes a decision at least, so that no answer costs nothing.
                most = max(1, self._decisions(seconds / PHYSICS_STEP))
                actions = self._repeat(NOTHING, most)
            case Press(action=pressed, decisions=decisions):
                actions = self._repeat(pressed, decisions)
        self._taken += len(actions)
        return actions

    def report(self) -> str:
        """What came of it, in a sentence, once `next` has returned None."""
        match self.deed:
            case Go(metres):
                way = "forward" if metres >= 0 else "backward"
                blocked = ", and something is in the way" if self._blocked else ""
                return f"You went {self._covered:.1f} m {way}{blocked}."
            case Turn(degrees):
                turned = self._taken * self.period * DEGREES
                return f"You turned {turned:.0f}° to the {'right' if degrees > 0 else 'left'}."
            case Wait():
                return f"You waited {self._taken * self.period * PHYSICS_STEP:.2g} s."
            case Press():
                return f"You did it for {self._taken} of {self.deed.decisions} frames."

    def _repeat(self, action: int, decisions: int) -> bytes:
        return bytes([action]) * min(decisions - self._taken, MAX_ACTIONS)

    def _decisions(self, physics_steps: float) -> int:
        return round(physics_steps / self.period)

    def _go(self, metres: float, observation: Observation) -> int | None:
        """Go until the way that is left is what braking takes."""
        place = float(observation.position[0]), float(observation.position[2])
        sign = 1.0 if metres >= 0 else -1.0
        speed = sign * float(observation.velocity[2])
        if self._start is None:
            self._start = place
        covered = hypot(place[0] - self._start[0], place[1] - self._start[1])
        self._stuck = 0 if covered > self._before + _PROGRESS else self._stuck + 1
        self._before = self._covered = covered
        self._blocked = self._blocked or self._stuck > _BLOCKED
        standing = hypot(float(observation.velocity[0]), speed) < _STILL
        if not self._blocked and (standing or not self._braking):
            left = abs(metres) - covered
            ahead, faster = self._move_once(speed, _THRUST)
            # Whichever ends nearer: to brake now, or after one more decision.
            further = abs(left - ahead - self._braking_way(faster))
            self._braking = abs(left - self._braking_way(speed)) <= further
        if not self._braking and not self._blocked:
            return FORWARD if sign > 0 else BACKWARD
        done = (standing and self._taken > 0) or self._stuck > 2 * _BLOCKED
        return None if done else NOTHING

    def _move_once(self, speed: float, thrust: float) -> tuple[float, float]:
        """Way and speed after one decision on a flat floor."""
        way = 0.0
        for _ in range(self.period):
            speed = _after(speed, thrust)
            way += speed * PHYSICS_STEP
        return way, speed

    def _braking_way(self, speed: float) -> float:
        """Way until the agent stands."""
        way = 0.0
        while abs(speed) > _STILL:
            gone, speed = self._move_once(speed, 0.0)
            way += gone
        return way


def _after(speed: float, thrust: float) -> float:
    """Speed after one physics step on a flat floor."""
    pushed = (speed + thrust) * _DRAG if thrust else speed * _STOP * _DRAG
    return max(0.0, abs(pushed) - _FRICTION) * (1.0 if pushed >= 0.0 else -1.0)
