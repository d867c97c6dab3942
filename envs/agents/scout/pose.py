"""Where the agent is and where it looks, from its position, its velocity and its own turns.

The position is observed; the heading is not. Up to a constant it is the sum of the turns; the
constant follows from the first movement, whose direction is known in both coordinate frames. Later
movements correct the sum, so that an action which was not carried out as chosen does no lasting
harm.
"""

from __future__ import annotations

from math import degrees, hypot, radians
from typing import TYPE_CHECKING, Final

from animalcat.envs.types import PHYSICS_STEP
from animalcat.portable.scalars import atan2, cos, sin

if TYPE_CHECKING:
    from animalcat.envs.types import Observation

_TURN_PER_STEP: Final = 2.0
"""Degrees that the agent turns in a physics step (reference/animal-ai.md, 3.3)."""
_MOVED: Final = 0.02
"""Metres in a decision from which a direction of movement is taken."""
_FAST: Final = 2.0
"""m/s from which a movement corrects the heading."""
_OFF: Final = 3.5
"""Degrees of disagreement that are corrected, when they last."""


class Pose:
    """The agent's pose.

    Attributes:
        x, y, z: Its middle in metres.
        heading: Degrees clockwise from +z; while `known` is false, from the first heading.
        known: Whether the heading is that of the arena.
        held: Whether it cannot move yet, as far as its health tells.
        speed: m/s along the floor.
        vx, vz: Velocity in m/s, in the same directions as `heading`.
        vy: Upward velocity in m/s.
        travelled: Metres moved along the floor in this episode.
    """

    def __init__(self, period: int, limited: bool) -> None:
        """Start an episode.

        Args:
            period: Physics steps in a decision.
            limited: Whether time is limited, so that health falls as soon as it can move.
        """
        self.turn = period * _TURN_PER_STEP
        self.length = period * PHYSICS_STEP
        self.x = self.y = self.z = 0.0
        self.vx = self.vy = self.vz = self.speed = 0.0
        self.heading = 0.0
        self.known = False
        self.held = limited
        self.travelled = 0.0
        self._began = False
        self._health = 100.0
        self._off = 0
        self._turned = 0

    def update(self, observation: Observation, action: int) -> float:
        """Take in an observation.

        Args:
            observation: What is observed.
            action: The action that led to it.

        Returns:
            Degrees by which everything that was noted so far has to be turned about the agent,
            because the heading became known; 0.0 otherwise.
        """
        x, y, z = (float(v) for v in observation.position)
        right, up, ahead = (float(v) for v in observation.velocity)
        dx, dz = (x - self.x, z - self.z) if self._began else (0.0, 0.0)
        moved = hypot(dx, dz)
        speed = hypot(right, ahead)
        if self.held and (observation.health != self._health or moved > _MOVED):
            self.held = False
        turned = action % 3
        if turned and not self.held and self._began:
            self.heading += self.turn if turned == 1 else -self.turn
        rotation = 0.0
        # A movement from rest goes straight on only if it does not turn meanwhile.
        if moved > _MOVED and speed > 0.3 and not turned and not self._turned:
            off = angle_between(degrees(atan2(dx, dz) - atan2(right, ahead)) - self.heading)
            if not self.known:
                rotation = off
                self.heading += off
                self.known = True
            elif abs(off) > _OFF and speed > _FAST:
                self._off += 1
                if self._off > 2:
                    self.heading += off
                    self._off = 0
            else:
                self._off = 0
        self.heading %= 360.0
        self._turned = turned
        self.travelled += moved
        self.x, self.y, self.z = x, y, z
        self.vy, self.speed = up, speed
        self._health = observation.health
        self._began = True
        self._place(right, ahead)
        return rotation

    def _place(self, right: float, ahead: float) -> None:
        s, c = sin(radians(self.heading)), cos(radians(self.heading))
        self.vx, self.vz = right * c + ahead * s, ahead * c - right * s


def angle_between(degrees_: float) -> float:
    """An angle between -180 and 180 degrees."""
    return (degrees_ + 180.0) % 360.0 - 180.0
