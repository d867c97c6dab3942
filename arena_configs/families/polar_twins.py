"""Makes twins of arenas that go to one goal: its place is drawn anew from the agent's start."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from animalcat.arena_configs.families.claims import Measure
from animalcat.arena_configs.families.generate import part_of
from animalcat.arena_configs.families.language import Part
from animalcat.arena_configs.families.polar import polar_arena
from animalcat.arena_configs.families.polar_solve import MARGIN, rise
from animalcat.arena_configs.families.polar_template import (
    Paradigm,
    PolarFamily,
    UniformRange,
    range_limits,
)
from animalcat.arena_configs.families.twins import LOOKS, POOL, Twin, Wanted
from animalcat.arena_configs.features import BEHIND, CENTRED, IN_FRONT
from animalcat.arena_configs.model import Arena, ArenaError

PLACED: Final = ("rewardDistance", "rewardSize", "rewardBehind", "XPos")
"""Demands by which a goal is placed."""


class PolarStratum:
    """A paradigm of a family that goes to one goal, from which twins are made."""

    def __init__(self, family: PolarFamily, paradigm: Paradigm, measure: Measure) -> None:
        """Draw and measure the pool, always the same one.

        Args:
            family: The template.
            paradigm: The paradigm.
            measure: Measures the demands of an arena.

        Raises:
            ArenaError: Its ranges leave no room.
        """
        rng = np.random.default_rng(0)
        drawn = [
            polar_arena(family, paradigm, family.mirror and k % 2 == 1, rng) for k in range(POOL)
        ]
        self.pool = tuple((arena, measure(arena)) for arena in drawn)
        self.family = family
        self.paradigm = paradigm

    def twin(
        self,
        like: Mapping[str, float],
        demands: Mapping[str, Wanted],
        rng: np.random.Generator,
        measure: Measure,
        part: Part | None = None,
    ) -> Twin | None:
        """Make an arena with given demands; see `polar_twin`."""
        return polar_twin(self.family, self.paradigm, like, demands, rng, measure, part)


def polar_twin(
    family: PolarFamily,
    paradigm: Paradigm,
    like: Mapping[str, float],
    demands: Mapping[str, Wanted],
    rng: np.random.Generator,
    measure: Measure,
    part: Part | None = None,
) -> Twin | None:
    """Make an arena with the demands of another one of a family that goes to one goal.

    Args:
        family: The template.
        paradigm: The paradigm.
        like: All demands of the other arena.
        demands: What the new one has to have.
        rng: Source of all randomness.
        measure: Measures the demands of an arena.
        part: The part that it has to be of; None for any.

    Returns:
        The first arena whose demands are as wanted, else the nearest of all that were measured;
        None if none could be built, or the other arena has no goal with a place.
    """
    if any(name not in like for name in PLACED):
        return None
    distance, size = like["rewardDistance"], like["rewardSize"]
    way = math.sqrt(max(distance**2 - rise(family.goal, size) ** 2, 0.0))
    pieces = _angles(like["rewardBehind"], like["XPos"], range_limits(paradigm.angle))
    if not pieces:
        return None
    straight = demands.get("goalDistance")

    def suits(arena: Arena) -> bool:
        if part is not None and part_of(arena) != part:
            return False
        if straight is None:
            return True
        start, goal = (item.positions[0] for item in arena.items[:2])
        return straight.off(abs(goal.x - start.x) + abs(goal.z - start.z)) <= 1.0

    best: Twin | None = None
    for _ in range(LOOKS):
        angle = UniformRange(uniform=pieces[int(rng.integers(len(pieces)))])
        narrow = paradigm.model_copy(update={"distance": way, "size": size, "angle": angle})
        side = like["XPos"]
        flipped = side < 0.0 or (side == 0.0 and family.mirror and bool(rng.integers(2)))
        try:
            arena = polar_arena(family, narrow, flipped, rng, suits)
        except ArenaError:
            continue
        measured = measure(arena)
        off = {name: one.off(measured.values.get(name)) for name, one in demands.items()}
        made = Twin(arena, paradigm.name, "mirror" if flipped else "", measured, off)
        if best is None or made.worst < best.worst:
            best = made
        if best.equal:
            break
    return best


def _angles(behind: float, side: float, ends: tuple[float, float]) -> list[tuple[float, float]]:
    """Ranges of degrees off the heading at which a goal has both codes."""
    sector = {0.0: (0.0, IN_FRONT), 0.5: (IN_FRONT, BEHIND), 1.0: (BEHIND, 180.0)}.get(behind)
    if sector is None:
        return []
    beside = [(CENTRED, 180.0 - CENTRED)] if side else [(0.0, CENTRED), (180.0 - CENTRED, 180.0)]
    pieces: list[tuple[float, float]] = []
    for one in beside:
        low = max(sector[0], one[0])
        high = min(sector[1], one[1])
        low, high = (
            max(low + MARGIN * (low > 0.0), ends[0]),
            min(high - MARGIN * (high < 180.0), ends[1]),
        )
        if low < high:
            pieces.append((low, high))
    return pieces
