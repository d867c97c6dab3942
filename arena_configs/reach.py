"""Which goals the agent cannot get to: a flood fill of the floor that errs toward reachable.

The floor is a grid. A cell is taken where the agent's sphere, anywhere in the cell, would be in
something that can be neither pushed, nor rolled over, nor walked through, so a way that exists is
always found; gaps up to some 0.3 m too narrow pass as well. What the agent may rise on (a ramp, a
tunnel's back, a step lower than half a metre) sends it flying over walls at full speed: once it
can get to one of these, or starts on high, nothing is said about the arena. Where there are
blocks to push, a DeathZone is no bar: they bridge it, or bring the goal out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from animalcat.arena_configs.geometry import Solid, rotate
from animalcat.arena_configs.model import ARENA_SIDE, Point
from animalcat.arena_configs.placement import AGENT_RADIUS, LIFT, PlacedObject, Placement

CELL: Final = 0.2
"""Side of a cell in metres."""
FIRM_MASS: Final = 10_000.0
"""Kilograms from which the agent's push moves nothing; what cannot move at all has mass 0."""
RAMP_MASS: Final = 1_000.0
"""Kilograms below which an object is a block that is there to be pushed."""
STEP_TOP: Final = AGENT_RADIUS + 2 * LIFT
"""Metres: the agent's sphere can roll up on what is lower."""
FLAT_TOP: Final = 0.05
"""Metres: what is lower does not make the agent leave the floor."""

_SLOPING: Final = ("wedge", "shell")
_CELLS: Final = round(ARENA_SIDE / CELL)
_SLACK: Final = CELL * math.sqrt(0.5)
_CENTERS: Final = (np.arange(_CELLS) + 0.5) * CELL
_DIAGONALLY: Final = np.ones((3, 3), np.int_)

Mask = npt.NDArray[np.bool_]


def unreachable_goals(placement: Placement) -> tuple[PlacedObject, ...]:
    """Goals with a positive reward that the agent cannot touch, as far as the floor tells.

    Goals that move by themselves are left out: those that bounce, and those above a ramp or a
    tunnel. So are arenas in which something may appear later.

    Args:
        placement: An arena with everything in its place.
    """
    slopes = [s for t in placement.objects for s in t.solids() if s.shape in _SLOPING]
    goals = [
        thing
        for thing in placement.objects
        if thing.kind.goal and thing.reward > 0 and not thing.kind.bounce
        if not any(_covers(slope, thing.position) for slope in slopes)
    ]
    start = placement.agent.position
    if (
        not goals
        or start.y - AGENT_RADIUS > STEP_TOP
        or any(t.item.operations or t.kind.reward == "button" for t in placement.objects)
    ):
        return ()
    ways = _ways(placement)
    if any(ways[_within(solid, 0.0)].any() for solid in _lifting(placement)):
        return ()
    firm = [solid for thing in placement.objects if _firm(thing) for solid in thing.solids()]
    return tuple(goal for goal in goals if not _touched(goal, ways, firm))


def _ways(placement: Placement) -> Mask:
    """Cells, by x and z, that the agent can get to along the floor."""
    free = np.ones((_CELLS, _CELLS), np.bool_)
    edge = int((AGENT_RADIUS - _SLACK) / CELL + 0.5)
    free[:edge] = free[-edge:] = free[:, :edge] = free[:, -edge:] = False
    blocks = any(0.0 < t.kind.mass < RAMP_MASS and not t.kind.goal for t in placement.objects)
    for thing in placement.objects:
        deadly = thing.kind.reward == "death" and not blocks
        if not (deadly or _firm(thing)):
            continue
        for solid in thing.solids():
            if deadly or (solid.center.y + solid.half.y > STEP_TOP):
                free[_within(solid, _reach(solid) - _SLACK)] = False
    labels, _ = ndimage.label(free, _DIAGONALLY)
    start = placement.agent.position
    # Where it starts may be taken, by a zone that it only leaves: then from all around it.
    around = _near(start.x, start.z, AGENT_RADIUS + _SLACK)
    here = np.unique(labels[around])
    return np.isin(labels, here[here > 0])


def _firm(thing: PlacedObject) -> bool:
    """Whether it stands on the floor, upright, and the agent cannot move it."""
    kind = thing.kind
    fixed = kind.mass == 0.0 or kind.mass >= FIRM_MASS
    boxes = all(solid.shape == "box" for solid in thing.solids())
    foot = min(solid.center.y - solid.half.y for solid in thing.solids())
    return fixed and boxes and not kind.zone and foot <= FLAT_TOP


def _lifting(placement: Placement) -> Iterator[Solid]:
    """What the agent may rise on, if it gets there."""
    for thing in placement.objects:
        for solid in thing.solids():
            low = solid.center.y + solid.half.y <= STEP_TOP
            rises = solid.shape in _SLOPING or (low and solid.center.y + solid.half.y > FLAT_TOP)
            if rises and not thing.kind.zone and not thing.kind.goal:
                yield solid


def _reach(solid: Solid) -> float:
    """How near, seen from above, the centre of the agent on the floor comes to touch a solid."""
    above = AGENT_RADIUS - (solid.center.y + solid.half.y)
    below = solid.center.y - solid.half.y - AGENT_RADIUS
    gap = max(above, below, 0.0)
    return math.sqrt(max(0.0, AGENT_RADIUS**2 - gap**2))


def _within(solid: Solid, margin: float) -> tuple[slice, slice] | Mask:
    """Cells whose centre is less than a margin away from a solid's footprint."""
    sin, cos = math.sin(math.radians(solid.yaw)), math.cos(math.radians(solid.yaw))
    x = (_CENTERS - solid.center.x)[:, None]
    z = (_CENTERS - solid.center.z)[None, :]
    right = np.maximum(np.abs(x * cos - z * sin) - solid.half.x, 0.0)
    ahead = np.maximum(np.abs(x * sin + z * cos) - solid.half.z, 0.0)
    return right * right + ahead * ahead <= max(margin, 0.0) ** 2


def _near(x: float, z: float, distance: float) -> Mask:
    return np.hypot((_CENTERS - x)[:, None], (_CENTERS - z)[None, :]) <= distance


def _touched(goal: PlacedObject, ways: Mask, firm: list[Solid]) -> bool:
    """Whether the agent touches a goal from one of the cells that it can get to."""
    radius = goal.size.x / 2
    low = max((_top_under(goal, solid) for solid in firm), default=0.0)
    height = max(0.0, min(goal.position.y, low + radius) - AGENT_RADIUS - LIFT)
    span = (AGENT_RADIUS + radius) ** 2 - height**2
    if span <= 0.0:
        return False
    return bool(ways[_near(goal.position.x, goal.position.z, math.sqrt(span) + _SLACK)].any())


def _top_under(goal: PlacedObject, solid: Solid) -> float:
    """Height of a solid if a goal rests on it, else 0: what hangs falls, and so it may from a pole.

    A goal that reaches beyond what it lies on may be touched from below or knocked down.
    """
    rests = min(solid.half.x, solid.half.z) >= goal.size.x / 2 and _covers(solid, goal.position)
    return solid.center.y + solid.half.y if rests else 0.0


def _covers(solid: Solid, point: Point) -> bool:
    """Whether a point is within a solid's footprint."""
    right, ahead = rotate(point.x - solid.center.x, point.z - solid.center.z, -solid.yaw)
    return abs(right) <= solid.half.x and abs(ahead) <= solid.half.z
