"""What nothing in an arena can move: walls that stand on the floor or on one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from animalcat.arena_configs.geometry import Solid, rotate, solids
from animalcat.arena_configs.model import Point
from animalcat.envs.sim.physics import FLOOR_TOP

if TYPE_CHECKING:
    from animalcat.arena_configs.placement import PlacedObject

IMMOVABLE_MASS: Final = 10000.0
"""Kilograms from which a body that stands on something is made static.

The agent's push (5000 N) is under a wall's friction on the floor (58,860 N), and running into
one at full speed (26.7 m/s) would shift it by 6 mm. As dynamic bodies, walls side by side keep
each other awake for ever, at a hundred times the cost; on the trace `ramp-and-wall` every
decision comes out the same."""

DROP: Final = 0.05
"""Metres that a wall may hang above what it is going to stand on (as spawned, some 0.03)."""


class Ground:
    """The floor and the tops of walls that stand firm, to which others are added."""

    def __init__(self) -> None:
        self._walls: list[Solid] = []

    def settle(self, thing: PlacedObject) -> tuple[Point, float]:
        """Origin and mass of an object: with mass 0, and lowered to its stand, if it is firm.

        It is firm if it is heavy and the floor or a firm wall is under its centre; what has
        nothing there falls, as in Unity.
        """
        origin, mass = thing.position, thing.kind.mass
        if mass < IMMOVABLE_MASS:
            return origin, mass
        foot = min(solid.center.y - solid.half.y for solid in thing.solids())
        top = self._under(origin.x, origin.z, foot)
        if top is None:
            return origin, mass
        settled = Point(origin.x, origin.y + top - foot, origin.z)
        boxes = solids(thing.kind, settled, thing.size, thing.yaw)
        self._walls.extend(solid for solid in boxes if solid.shape == "box")
        return settled, 0.0

    def _under(self, x: float, z: float, foot: float) -> float | None:
        if foot <= FLOOR_TOP + DROP:
            return FLOOR_TOP
        for wall in self._walls:
            top = wall.center.y + wall.half.y
            if 0.0 <= foot - top <= DROP:
                right, ahead = rotate(x - wall.center.x, z - wall.center.z, -wall.yaw)
                if abs(right) <= wall.half.x and abs(ahead) <= wall.half.z:
                    return top
        return None
