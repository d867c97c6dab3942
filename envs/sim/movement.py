"""How the agent moves: thrust, quick stop and turning; the rest is left to the physics.

The law is that of reference/animal-ai.md section 3.3.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from animalcat.portable import scalars

if TYPE_CHECKING:
    from animalcat.envs.sim.physics import Physics
    from animalcat.envs.sim.vector import Vector

THRUST: Final = 1.0
"""m/s a physics step of 0.02 s: acceleration 25 x 100 x 0.02, for 0.02 s."""
_PUSH: Final = 2500.0
"""m/s^2 of thrust for each second of a physics step."""
_SPIN: Final = 100.0
"""Degrees a second."""
QUICK_STOP: Final = float(np.float32(0.9))
"""Share of its velocity that an agent on the ground keeps in a physics step without an action."""
_START_HEIGHT: Final = 0.5101
"""Metres, with a margin: height at which an agent starts that is to stand on the ground."""


class AgentBody:
    """The agent's body: its state and its movement in one arena.

    Attributes:
        position: Its centre in metres, in Unity's coordinate frame.
        velocity: In m/s, in the world's coordinate frame.
        yaw: Degrees clockwise from +z.
        grounded: Whether it may push off in the next step.
        turn: Degrees by which it can turn in a physics step.
    """

    __slots__ = (
        "_landed",
        "_physics",
        "_thrust",
        "grounded",
        "position",
        "turn",
        "velocity",
        "yaw",
    )

    def __init__(self, physics: Physics, yaw: float, *, landed: bool = False) -> None:
        """Start where `physics` has the agent, at rest and not grounded.

        Args:
            physics: The bodies.
            yaw: Degrees clockwise from +z.
            landed: Whether it stood on the ground just before, in an earlier episode of a process.
                Unity then goes on reporting that contact although the agent now starts a contact
                gap above the ground (so in all six logs of the real build that there are).
        """
        self._landed = landed and physics.agent_position[1] < _START_HEIGHT
        self._physics = physics
        self.yaw = yaw
        self.position: Vector = physics.agent_position
        self.velocity: Vector = (0.0, 0.0, 0.0)
        self.grounded = False
        duration = _single(physics.duration)
        self._thrust = _single(_single(_PUSH * duration) * duration)
        self.turn = _SPIN * duration

    def put(self, position: Vector, velocity: Vector, yaw: float, grounded: bool) -> None:
        """Set the whole state, as when a recorded trajectory is followed."""
        self._physics.place_agent(position)
        self.position, self.velocity, self.yaw = position, velocity, yaw
        self.grounded = grounded

    def step(self, move: int, turn: int, *, steps: int = 1, coast: bool = False) -> None:
        """Take physics steps.

        Args:
            move: 0 none, 1 forward, 2 backward.
            turn: 0 none, 1 right, 2 left.
            steps: How many.
            coast: Whether the agent is frozen: neither thrust, nor quick stop, nor turning.
        """
        physics, velocity = self._physics, self.velocity
        for _ in range(steps):
            vx, vy, vz = velocity
            if self.grounded and not coast:
                if move:
                    sin, cos = _heading(self.yaw)
                    thrust = self._thrust if move == 1 else -self._thrust
                    vx += thrust * sin
                    vz += thrust * cos
                else:
                    vx, vy, vz = vx * QUICK_STOP, vy * QUICK_STOP, vz * QUICK_STOP
            if turn and not coast:
                self.yaw = (self.yaw + (self.turn if turn == 1 else -self.turn)) % 360.0
            velocity = physics.advance((vx, vy, vz))
            self.grounded = physics.supported() or self._landed
            self._landed = False
        self.velocity, self.position = velocity, physics.agent_position


def _single(value: float) -> float:
    """A number as single precision has it."""
    return float(np.float32(value))


def to_local(velocity: Vector, yaw: float) -> Vector:
    """A velocity in the coordinate frame of an agent with this yaw: right, up, forward."""
    x, y, z = velocity
    sin, cos = _heading(yaw)
    return x * cos - z * sin, y, x * sin + z * cos


@lru_cache(maxsize=1024)
def _heading(yaw: float) -> tuple[float, float]:
    """Sine and cosine of a yaw in degrees; an episode has some 180 of them."""
    angle = math.radians(yaw)
    return scalars.sin(angle), scalars.cos(angle)
