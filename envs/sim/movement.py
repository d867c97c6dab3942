"""How the agent moves: thrust, quick stop, turning, and friction as a closed law.

The law is that of reference/animal-ai.md section 3.3; contacts come from PhysX, where the agent
slides without friction, because PhysX 5 leaves out the friction of a contact's first step.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
from numba import njit

from animalcat.envs.sim.friction import along, rub
from animalcat.envs.sim.physics import (
    AGENT_DRAG,
    AGENT_MASS,
    AGENT_RADIUS,
    FRICTION,
    GRAVITY,
    Physics,
    Vector,
)
from animalcat.envs.types import PHYSICS_STEP

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
_GROUND_GAP: Final = 0.0195
"""A contact closer than this at the start of its step counts as ground."""

_REST: Final = 1.05 * GRAVITY * PHYSICS_STEP * (1.0 - AGENT_DRAG * PHYSICS_STEP)
"""Upward velocity in m/s, with a margin, that level ground gives back in a step to an agent resting
on it."""
_PUSH_OUT: Final = 0.8 / PHYSICS_STEP
"""m/s by which PhysX parts bodies for each metre that they are in each other. It moves them and
leaves no velocity, yet friction acts on it: so a step's way feels more friction than its velocity
(inferred: on the trace up a ramp it takes the error of the decision that meets the ramp from
0.017 m to 0.001 m, of the one that hits a wall in flight from 0.019 m to 0.0002 m, and of a
landing from 0.0025 m to 0.0001 m)."""
_DEEP: Final = -1e-4
"""Metres: bodies deeper in each other than this at the start of a step are pushed apart in it."""


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
        "_depth",
        "_duration",
        "_fall",
        "_keep",
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
        self._depth = 0.0
        self._duration = duration = _single(physics.duration)
        self._thrust = _single(_single(_PUSH * duration) * duration)
        self._fall = _single(GRAVITY * duration)
        self._keep = _single(1.0 - AGENT_DRAG * duration)
        self.turn = _SPIN * duration

    @property
    def local_velocity(self) -> Vector:
        """Velocity in the agent's coordinate frame: right, up, forward."""
        return to_local(self.velocity, self.yaw)

    def put(self, position: Vector, velocity: Vector, yaw: float, grounded: bool) -> None:
        """Set the whole state, as when a recorded trajectory is followed."""
        self._physics.place_agent(position)
        self.position, self.velocity, self.yaw = position, velocity, yaw
        self.grounded = grounded
        self._depth = _DEEP  # unknown, so the next step looks

    def step(self, move: int, turn: int, *, steps: int = 1, coast: bool = False) -> None:
        """Take physics steps.

        Args:
            move: 0 none, 1 forward, 2 backward.
            turn: 0 none, 1 right, 2 left.
            steps: How many.
            coast: Whether the agent is frozen: neither thrust, nor quick stop, nor turning.
        """
        physics, duration = self._physics, self._duration
        fall, keep = self._fall, self._keep
        position, velocity = self.position, self.velocity
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
            before = (vx, vy, vz)
            after = x, y, z = physics.advance(before)
            ox, oy, oz = position
            level, sx, sz, px, pz = _settle(
                x, y, z, vx, vy, vz, ox, oy, oz, self._depth, fall, keep, duration
            )
            position = physics.agent_position
            if level:
                self.grounded = True
                velocity = (sx, y, sz)
                if sx != x or sz != z:
                    position = (px, position[1], pz)
                    physics.place_agent(position)
            else:
                velocity, shift = self._rub(before, after)
                if shift != after:
                    (px, py, pz), (sx, sy, sz) = position, shift
                    position = (
                        _single(px + (sx - x) * duration),
                        _single(py + (sy - y) * duration),
                        _single(pz + (sz - z) * duration),
                    )
                    physics.place_agent(position)
            if self._landed:
                self.grounded, self._landed = True, False
        self.position, self.velocity = position, velocity

    def _rub(self, before: Vector, after: Vector) -> tuple[Vector, Vector]:
        """Apply the friction of all contacts to a step's velocity and displacement.

        Args:
            before: As for `rub`.
            after: The velocity after the step, m/s.

        Returns:
            The velocity, and the displacement that the step should have made divided by its
            duration; m/s.
        """
        self.grounded = False
        self._depth = 0.0
        changed = shift = after
        physics = self._physics
        for contact in physics.contacts():
            self.grounded |= contact.separation < _GROUND_GAP and contact.normal[1] > 0.0
            if contact.impulse <= 0.0 and contact.separation >= 0.0:
                continue
            self._depth = min(self._depth, contact.separation)
            limit = _single(_single(contact.friction) * contact.impulse)
            point = along(physics.agent_position, contact.normal, -AGENT_RADIUS)
            grip = physics.grip(contact.body, point, limit * AGENT_MASS)
            slower = rub(changed, before, contact.normal, limit, AGENT_MASS, grip)
            if slower != changed:
                lost = along(changed, slower, -1.0)
                drag = along((0.0, 0.0, 0.0), lost, AGENT_MASS)
                physics.push(contact.body, point, drag)
                changed = slower
            limit += contact.friction * max(0.0, -contact.separation) * _PUSH_OUT
            shift = rub(shift, before, contact.normal, limit, AGENT_MASS, grip)
        return _all_single(changed), _all_single(shift)


@njit(cache=True)
def _settle(
    x: float,
    y: float,
    z: float,
    vx: float,
    vy: float,
    vz: float,
    ox: float,
    oy: float,
    oz: float,
    depth: float,
    fall: float,
    keep: float,
    duration: float,
) -> tuple[bool, float, float, float, float]:
    """Apply the friction of level ground, in single precision as PhysX computes it.

    Args:
        x: Velocity after the step without friction, m/s.
        y: As x.
        z: As x.
        vx: Velocity before the step.
        vy: As vx.
        vz: As vx.
        ox: Where the agent was, in metres.
        oy: As ox.
        oz: As ox.
        depth: Least separation of its contacts before the step.
        fall: m/s that gravity takes in a step.
        keep: Share of the velocity that drag leaves.
        duration: Of the step, in seconds.

    Returns:
        Whether the agent met nothing but level ground; if so its velocity along x and z, and where
        it is along them.
    """
    # Reading the contacts costs more than the step: do it only where the velocity shows more
    # than gravity, drag and the push of level ground at rest.
    odd = abs(x - vx * keep) + abs(z - vz * keep) > 1e-6 * (1.0 + abs(x) + abs(z))
    lift = y - (vy - fall) * keep
    on_floor = oy < AGENT_RADIUS  # not on something that it might drag along
    if odd or not (on_floor and 1e-4 < lift < _REST and depth > _DEEP):
        return False, x, z, ox, oz
    single = np.float32
    free = single(single(single(vy) - single(fall)) * single(keep))
    loss = single(single(FRICTION) * single(single(y) - free))
    slip = np.sqrt(x * x + z * z)
    part = 1.0 - loss / slip if slip > loss else 0.0
    sx, sz = single(x * part), single(z * part)
    # PhysX moves the agent by nothing but its velocity.
    px = single(single(ox) + single(sx * single(duration)))
    pz = single(single(oz) + single(sz * single(duration)))
    return True, float(sx), float(sz), float(px), float(pz)


def _all_single(vector: Vector) -> Vector:
    x, y, z = vector
    return _single(x), _single(y), _single(z)


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
    return math.sin(angle), math.cos(angle)
