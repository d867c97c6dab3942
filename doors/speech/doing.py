"""A deed as one action after the other, steered by what is perceived on the way."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from typing import Final

from animalcat.doors.speech.body import TURN, Body
from animalcat.doors.speech.reading import Deed, Go, Press, Turn, Wait
from animalcat.envs.answers import MAX_ACTIONS
from animalcat.envs.types import PHYSICS_STEP, Observation

NOTHING: Final = 0
TURN_RIGHT: Final = 1
TURN_LEFT: Final = 2
FORWARD: Final = 3
BACKWARD: Final = 6
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
        body: What becomes of the agent's body.
    """

    deed: Deed
    body: Body
    _taken: int = -1
    _before: float = 0.0
    _stuck: int = 0
    _braking: bool = False
    _blocked: bool = False

    def next(self, observation: Observation) -> bytes:
        """Say the next actions, a byte each, 0 to 8; none once the deed is done.

        Waiting is said at once. What moves is said one by one, for each is measured.
        """
        if self._taken < 0:
            self._taken = 0
            self.body.start(observation)
        else:
            self.body.perceive(observation)
        match self.deed:
            case Go(metres):
                action = None if self.body.elsewhere else self._go(metres, observation)
                actions = b"" if action is None else bytes([action])
            case Turn(degrees):
                way = TURN_RIGHT if degrees > 0 else TURN_LEFT
                actions = self._repeat(way, self._decisions(abs(degrees) / TURN))
            case Wait(seconds):
                # Waiting takes a decision at least, so that no answer costs nothing.
                most = max(1, self._decisions(seconds / PHYSICS_STEP))
                actions = self._repeat(NOTHING, most)
            case Press(action=pressed, decisions=decisions):
                actions = self._repeat(pressed, decisions)
        self._taken += len(actions)
        return self.body.act(actions)

    def report(self) -> str:
        """What came of it, in a sentence, once `next` has returned none."""
        moved = "You were put elsewhere. " * self.body.elsewhere
        match self.deed:
            case Go(metres):
                return moved + self._report_way(metres)
            case Turn(degrees):
                turned, doubt = self.body.turned, self.body.doubt
                way = "right" if (turned or degrees) > 0 else "left"
                return f"{moved}You turned {abs(turned):.0f}°{doubt} to the {way}."
            case Wait():
                return f"{moved}You waited {self._taken * self.body.period * PHYSICS_STEP:.2g} s."
            case Press():
                return f"{moved}You did it for {self._taken} of {self.deed.decisions} frames."

    def _report_way(self, metres: float) -> str:
        forward, right = self.body.way
        if self.body.straight:
            way = "forward" if (forward if abs(forward) >= 0.05 else metres) >= 0 else "backward"
            parts = [f"You went {abs(forward):.1f} m {way}"]
        else:
            parts = [f"You moved {hypot(forward, right):.1f} m"]
        if abs(right) >= 0.5:  # as well as it is known
            parts.append(f"slid some {abs(right):.0f} m to the {'right' if right > 0 else 'left'}")
        if self._blocked:
            met = self.body.met and metres > 0
            parts.append("something is in the way" if met else "came no further")
        return f"{', '.join(parts[:-1])}, and {parts[-1]}." if parts[1:] else f"{parts[0]}."

    def _repeat(self, action: int, decisions: int) -> bytes:
        return bytes([action]) * min(decisions - self._taken, 1 if action else MAX_ACTIONS)

    def _decisions(self, physics_steps: float) -> int:
        return round(physics_steps / self.body.period)

    def _go(self, metres: float, observation: Observation) -> int | None:
        """Go until the way that is left is what braking takes."""
        sign = 1.0 if metres >= 0 else -1.0
        speed = sign * float(observation.velocity[2])
        covered = hypot(*self.body.way)
        self._stuck = 0 if covered > self._before + _PROGRESS else self._stuck + 1
        self._before = covered
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
        for _ in range(self.body.period):
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
