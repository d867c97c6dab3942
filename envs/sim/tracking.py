"""Keeps the rows of a scene at the positions of the physics' bodies."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.envs.sim.physics import STATE
from animalcat.envs.sim.scene import Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.envs.sim.physics import Physics
    from animalcat.envs.sim.scene import Scene
    from animalcat.envs.sim.vector import Vector

_STILL: Final = -1


class Tracker:
    """Writes bodies' poses into a scene.

    Attributes:
        fastest: Speed of the fastest body other than the agent at the last refresh, m/s.
    """

    def __init__(
        self, physics: Physics, scene: Scene, owners: Sequence[int], offsets: Sequence[Vector]
    ) -> None:
        """Begin to follow bodies.

        Args:
            physics: The bodies.
            scene: The scene to write into.
            owners: For each row of the scene the body that carries it, or -1.
            offsets: For each row its centre in its body's coordinate frame, in metres.
        """
        self._physics = physics
        self.fastest = 0.0
        self.follow(scene, owners, offsets)
        self.refresh()

    def follow(self, scene: Scene, owners: Sequence[int], offsets: Sequence[Vector]) -> None:
        """Write into another scene from now on; arguments as for the constructor."""
        self._scene = scene
        self._owners = np.array(owners, np.int64)
        self._offsets = np.array(offsets, np.float32).reshape(-1, 3)
        # A scene's wedge is high at local -z, a body's at +z: half a turn about y.
        self._turned = scene.kind == Shape.WEDGE
        self._state: bytes = b""
        self._dynamic: tuple[int, ...] = ()
        self._which = np.full(len(owners), _STILL, np.int64)

    def refresh(self) -> None:
        """Write what has moved since the last time."""
        state = self._physics.state()
        if state == self._state:
            return
        self._state = state
        dynamic = self._physics.dynamic
        if dynamic != self._dynamic:
            self._dynamic = dynamic
            place = {body: index for index, body in enumerate(dynamic)}
            self._which[:] = [place.get(owner, _STILL) for owner in self._owners.tolist()]
        self.fastest = _write(
            np.frombuffer(state, np.float32).reshape(-1, STATE),
            self._which,
            self._offsets,
            self._turned,
            self._scene.center,
            self._scene.rotation,
        )


@njit(cache=True, no_cfunc_wrapper=True)
def _write(
    states: npt.NDArray[np.float32],
    which: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.float32],
    turned: npt.NDArray[np.bool_],
    center: npt.NDArray[np.float32],
    rotation: npt.NDArray[np.float32],
) -> float:
    """Poses of rows from PhysX's states; returns the greatest speed.

    A state is a rotation (w, x, y, z), a position and two velocities.
    """
    for row in range(len(which)):
        if which[row] < 0:
            continue
        state = states[which[row]]
        w, x, y, z = state[0], state[1], state[2], state[3]
        turn = rotation[row]
        turn[0, 0] = 1 - 2 * (y * y + z * z)
        turn[0, 1] = 2 * (x * y - w * z)
        turn[0, 2] = 2 * (x * z + w * y)
        turn[1, 0] = 2 * (x * y + w * z)
        turn[1, 1] = 1 - 2 * (x * x + z * z)
        turn[1, 2] = 2 * (y * z - w * x)
        turn[2, 0] = 2 * (x * z - w * y)
        turn[2, 1] = 2 * (y * z + w * x)
        turn[2, 2] = 1 - 2 * (x * x + y * y)
        a, b, c = offsets[row]
        for axis in range(3):
            moved = turn[axis, 0] * a + turn[axis, 1] * b + turn[axis, 2] * c
            center[row, axis] = state[4 + axis] + moved
            if turned[row]:
                turn[axis, 0] = -turn[axis, 0]
                turn[axis, 2] = -turn[axis, 2]
    fastest = 0.0
    for state in states:
        fastest = max(fastest, state[7] ** 2 + state[8] ** 2 + state[9] ** 2)
    return sqrt(fastest)
