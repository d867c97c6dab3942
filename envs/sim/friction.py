"""Friction of the agent's contacts: how much speed each removes, and what it sets in motion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from animalcat.envs.sim.vector import Vector

    Matrix = npt.NDArray[np.floating[Any]]


class Grip(NamedTuple):
    """A point of a movable body, as friction at this point needs it.

    Attributes:
        velocity: Velocity of the point, m/s.
        give: (3, 3), 1/kg: inverse effective mass; times an impulse on the point, it is the change
            of the point's velocity.
    """

    velocity: Vector
    give: Matrix


FIXED: Grip = Grip((0.0, 0.0, 0.0), np.zeros((3, 3)))
"""A point of an immovable body."""


def give(mass: float, inertia: Matrix, axes: Matrix, arm: Matrix) -> Matrix:
    """Inverse effective mass of a free body at a point, as in `Grip`.

    Args:
        mass: In kg.
        inertia: (3,) moments about the body's principal axes, kg m2.
        axes: (3, 3); its columns are the principal axes.
        arm: (3,) from the centre of mass to the point, in metres, in the coordinate frame of
            `axes`.
    """
    x, y, z = arm.tolist()
    turned = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]) @ axes
    return np.eye(3) / mass + (turned / inertia) @ turned.T


def rub(
    velocity: Vector, before: Vector, normal: Vector, limit: float, mass: float, grip: Grip = FIXED
) -> Vector:
    """Velocity after the friction of one contact, which acts on two axes independently.

    The first axis is the direction along the surface of `before`, relative to the velocity of what
    is touched; the second is across it. On each axis, friction makes both sides equally fast if it
    can, and each side gives way according to its mass, as in PhysX's solver for one contact
    (inferred for bodies that can move: no trace has a push).

    Args:
        velocity: After the contacts' normal impulses, m/s.
        before: With thrust, without gravity and contacts, m/s.
        normal: Unit vector away from the surface.
        limit: Greatest change on each axis, m/s.
        mass: Mass of what has the velocity, kg.
        grip: What is touched.
    """
    slip = along(velocity, grip.velocity, -1.0)
    for travel in (along(before, grip.velocity, -1.0), slip):
        tangent = along(travel, normal, -_dot(travel, normal))
        length = math.sqrt(_dot(tangent, tangent))
        if length > 1e-9:
            break
    else:
        return velocity
    first = along((0.0, 0.0, 0.0), tangent, 1.0 / length)
    (nx, ny, nz), (tx, ty, tz) = normal, first
    for axis in (first, (ny * tz - nz * ty, nz * tx - nx * tz, nx * ty - ny * tx)):
        share = 1.0
        if grip is not FIXED:
            share += mass * float(np.array(axis) @ grip.give @ axis)
        loss = max(-limit, min(limit, _dot(slip, axis) / share))
        velocity = along(velocity, axis, -loss)
    return velocity


def along(start: Vector, direction: Vector, times: float) -> Vector:
    """The point `start` + `times` x `direction`."""
    return (
        start[0] + direction[0] * times,
        start[1] + direction[1] * times,
        start[2] + direction[2] * times,
    )


def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
