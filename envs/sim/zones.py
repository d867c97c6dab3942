"""Death and hot zones: PhysX here has no triggers, so the overlap is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from animalcat.envs.sim.physics import AGENT_RADIUS
from animalcat.portable import scalars

if TYPE_CHECKING:
    from animalcat.envs.sim.vector import Vector


@dataclass(frozen=True, slots=True)
class Zone:
    """A box that the agent's sphere may overlap.

    Attributes:
        center: In metres.
        half: Half extents, in metres.
        yaw: Degrees clockwise seen from above.
        deadly: Whether entering it ends the episode; otherwise it burns.
    """

    center: Vector
    half: Vector
    yaw: float
    deadly: bool
    _heading: tuple[float, float] = field(init=False, repr=False, compare=False)
    _radius: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        angle = math.radians(self.yaw)
        object.__setattr__(self, "_heading", (scalars.sin(angle), scalars.cos(angle)))
        object.__setattr__(self, "_radius", math.hypot(*self.half))

    def gap(self, position: Vector) -> float:
        """Distance from a point to the box in metres; 0.0 inside."""
        (cx, cy, cz), (hx, hy, hz), (sin, cos) = self.center, self.half, self._heading
        x, z = position[0] - cx, position[2] - cz
        right = max(0.0, abs(x * cos - z * sin) - hx)
        up = max(0.0, abs(position[1] - cy) - hy)
        ahead = max(0.0, abs(x * sin + z * cos) - hz)
        return math.hypot(right, up, ahead)

    def holds(self, position: Vector) -> bool:
        """Whether the agent's sphere at this position overlaps the zone."""
        # As `gap`, but most positions are told apart by one axis: this runs at every physics step.
        (cx, cy, cz), (hx, hy, hz), (sin, cos) = self.center, self.half, self._heading
        x, z = position[0] - cx, position[2] - cz
        right = abs(x * cos - z * sin) - hx
        if right > AGENT_RADIUS:
            return False
        ahead = abs(x * sin + z * cos) - hz
        if ahead > AGENT_RADIUS:
            return False
        up = abs(position[1] - cy) - hy
        return math.hypot(max(0.0, right), max(0.0, up), max(0.0, ahead)) <= AGENT_RADIUS

    def within(self, reach: float, position: Vector) -> bool:
        """Whether the agent's sphere may overlap the zone before it has moved `reach` metres."""
        far = reach + AGENT_RADIUS
        # Most are told apart by their centres alone.
        if math.dist(position, self.center) > far + self._radius:
            return False
        return self.gap(position) <= far
