"""Death and hot zones: PhysX here has no triggers, so the overlap is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from animalcat.envs.sim.physics import AGENT_RADIUS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from animalcat.envs.sim.physics import Vector


@dataclass(frozen=True, slots=True)
class Zone:
    """A box that the agent's sphere may overlap.

    Attributes:
        center: Metres.
        half: Half extents, metres.
        yaw: Degrees clockwise seen from above.
        deadly: Whether entering it ends the episode; else it burns.
    """

    center: Vector
    half: Vector
    yaw: float
    deadly: bool

    def gap(self, position: Vector) -> float:
        """Distance from a point to the box in metres; 0.0 inside."""
        x, y, z = (p - c for p, c in zip(position, self.center, strict=True))
        angle = math.radians(self.yaw)
        sin, cos = math.sin(angle), math.cos(angle)
        local = (x * cos - z * sin, y, x * sin + z * cos)
        return math.hypot(*(max(0.0, abs(c) - h) for c, h in zip(local, self.half, strict=True)))

    def holds(self, position: Vector) -> bool:
        """Whether the agent's sphere at this position overlaps the zone."""
        return self.gap(position) <= AGENT_RADIUS


class Zones:
    """All zones of an arena, and a quick way to leave out those out of reach."""

    def __init__(self, zones: Sequence[Zone]) -> None:
        self._zones = tuple(zones)
        self._center = np.array([z.center for z in zones]).reshape(-1, 3)
        self._half = np.array([z.half for z in zones]).reshape(-1, 3)
        yaw = np.radians([z.yaw for z in zones])
        self._sin, self._cos = np.sin(yaw), np.cos(yaw)

    def near(self, position: Vector, reach: float) -> tuple[Zone, ...]:
        """The zones that the agent may overlap before it has moved `reach` metres."""
        if not self._zones:
            return ()
        x, y, z = (np.asarray(position) - self._center).T
        local = np.stack([x * self._cos - z * self._sin, y, x * self._sin + z * self._cos], 1)
        gap = np.maximum(np.abs(local) - self._half, 0.0)
        limit = reach + AGENT_RADIUS
        close = np.flatnonzero((gap * gap).sum(1) <= limit * limit)
        return tuple(self._zones[i] for i in close)
