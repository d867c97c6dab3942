"""Finds goals that the agent cannot reach: a flood fill that errs toward reachable.

The floor is a grid. A cell is blocked if the agent's sphere, anywhere in the cell, would overlap
something that it can neither push, roll over nor walk through. So a path that exists is always
found; gaps up to some 0.3 m too narrow pass as well. Anything that lifts the agent (a ramp, a
tunnel's back, a step less than half a metre above where it starts) sends it flying over walls at
full speed: once it can reach one of these, nothing is reported about the arena. From a height it
passes over everything lower, zones too. If there are blocks to push, a DeathZone is no barrier:
they bridge it, or push the goal out. A goal that bounces may be wherever its own flood fill leads.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.geometry import Solid, covers
from animalcat.arena_configs.model import ARENA_SIDE, Point
from animalcat.arena_configs.placement import AGENT_RADIUS, LIFT, PlacedObject, Placement
from animalcat.portable import scalars

_CELL: Final = 0.2
"""Side of a cell in metres."""
_FIRM_MASS: Final = 10_000.0
"""Mass in kg from which the agent's push moves nothing; objects that cannot move at all have mass
0."""
RAMP_MASS: Final = 1_000.0
"""Mass in kg below which an object is a block that is there to be pushed."""
_FLAT_TOP: Final = 0.05
"""Height in metres below which an object does not lift the agent off the floor."""

_SLOPING: Final = ("wedge", "shell")
_CELLS: Final = round(ARENA_SIDE / _CELL)
_SLACK: Final = _CELL * math.sqrt(0.5)
_CENTERS: Final = (np.arange(_CELLS) + 0.5) * _CELL
_DIAGONALLY: Final = np.ones((3, 3), np.int_)

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def unreachable_goals(placement: Placement) -> tuple[PlacedObject, ...]:
    """Find goals with a positive reward that the agent cannot touch, as far as the floor tells.

    Goals that may be anywhere are left out: those above a ramp or a tunnel, and those that bounce
    and may reach something that throws them up. Arenas in which something may appear later give no
    goals either.

    Args:
        placement: The placed arena.
    """
    goals = [
        thing
        for thing in placement.objects
        if thing.kind.goal and thing.reward > 0 and not _on_slope(placement, thing)
    ]
    if not goals or any(t.item.operations or t.kind.reward == "button" for t in placement.objects):
        return ()
    if not any(thing.kind.reward == "death" or _firm(thing) for thing in placement.objects):
        return ()  # nothing bars a way
    start = placement.agent.position
    foot = _height(start, AGENT_RADIUS)
    ways = _ways(placement, start, AGENT_RADIUS, foot, by_zones=foot == 0.0)
    if ways is None:
        return ()
    from scipy import ndimage

    away = ndimage.distance_transform_edt(~ways) * _CELL
    firm = [solid for thing in placement.objects if _firm(thing) for solid in thing.solids()]
    return tuple(goal for goal in goals if not _may_touch(placement, goal, away, firm, foot))


def _on_slope(placement: Placement, goal: PlacedObject) -> bool:
    """Whether a goal lies on a ramp or a tunnel, rather than on the floor inside the tunnel."""
    lies_low = goal.position.y - goal.size.x / 2 <= _FLAT_TOP
    slopes = (s for t in placement.objects for s in t.solids() if s.shape in _SLOPING)
    return any(
        covers(slope, goal.position) and not (lies_low and slope.shape == "shell")
        for slope in slopes
    )


def _ways(
    placement: Placement, start: Point, radius: float, foot: float, *, by_zones: bool
) -> Mask | None:
    """Cells, by x and z, that a ball can reach along the floor; None if it may fly.

    Args:
        placement: The arena.
        start: Where the ball is.
        radius: Its radius, in metres.
        foot: Height above the floor at which it starts; what it stands on and what is lower does
            not block it.
        by_zones: Whether a DeathZone blocks it, if there is no block to bridge the zone.
    """
    slack = radius - _SLACK
    free = np.ones((_CELLS, _CELLS), np.bool_)
    edge = max(0, int(slack / _CELL + 0.5))
    free[:edge] = free[_CELLS - edge :] = free[:, :edge] = free[:, _CELLS - edge :] = False
    blocks = any(0.0 < t.kind.mass < RAMP_MASS and not t.kind.goal for t in placement.objects)
    step = foot + radius + 2 * LIFT
    lifting: list[Solid] = []
    for thing in placement.objects:
        deadly = thing.kind.reward == "death" and by_zones and not blocks
        bars = deadly or _firm(thing)
        for solid in thing.solids():
            top = solid.center.y + solid.half.y
            if bars and (deadly or top > step):
                free[_within(solid, _reach(solid, radius) - _SLACK)] = False
            elif thing.kind.zone or thing.kind.goal or _under(solid, start, foot):
                continue
            elif solid.shape in _SLOPING or _FLAT_TOP < top <= step:
                lifting.append(solid)
    from scipy import ndimage

    labels, _ = ndimage.label(free, _DIAGONALLY)
    # Its start may be blocked, by a zone that it only leaves: then it starts from all around.
    around = _near(start.x, start.z, radius + _SLACK)
    here = np.unique(labels[around])
    ways = np.isin(labels, here[here > 0])
    return None if any(ways[_within(solid, 0.0)].any() for solid in lifting) else ways


def _height(center: Point, radius: float) -> float:
    """Height of a ball above the floor, in metres; 0 for one that stands on it."""
    height = center.y - radius - LIFT
    return height if height > _FLAT_TOP else 0.0


def _under(solid: Solid, start: Point, foot: float) -> bool:
    """Whether a ball that starts at a height stands on this solid: it can roll off, not back."""
    top = solid.center.y + solid.half.y
    flat = solid.shape not in _SLOPING
    return flat and foot > 0.0 and top <= foot + 2 * LIFT and covers(solid, start)


def _firm(thing: PlacedObject) -> bool:
    """Whether an object stands upright on the floor and the agent cannot move it."""
    kind = thing.kind
    fixed = kind.mass == 0.0 or kind.mass >= _FIRM_MASS
    boxes = all(solid.shape == "box" for solid in thing.solids())
    foot = min(solid.center.y - solid.half.y for solid in thing.solids())
    return fixed and boxes and not kind.zone and foot <= _FLAT_TOP


def _reach(solid: Solid, radius: float) -> float:
    """Horizontal distance at which the centre of a ball on the floor touches a solid."""
    above = radius - (solid.center.y + solid.half.y)
    below = solid.center.y - solid.half.y - radius
    gap = max(above, below, 0.0)
    return math.sqrt(max(0.0, radius * radius - gap * gap))


def _within(solid: Solid, margin: float) -> tuple[slice, slice] | Mask:
    """Cells whose centre is within a margin of a solid's footprint."""
    sin, cos = scalars.sin(math.radians(solid.yaw)), scalars.cos(math.radians(solid.yaw))
    x = (_CENTERS - solid.center.x)[:, None]
    z = (_CENTERS - solid.center.z)[None, :]
    right = np.maximum(np.abs(x * cos - z * sin) - solid.half.x, 0.0)
    ahead = np.maximum(np.abs(x * sin + z * cos) - solid.half.z, 0.0)
    return right * right + ahead * ahead <= scalars.square(max(margin, 0.0))


def _near(x: float, z: float, distance: float) -> Mask:
    return np.hypot((_CENTERS - x)[:, None], (_CENTERS - z)[None, :]) <= distance


def _may_touch(
    placement: Placement, goal: PlacedObject, away: Array, firm: list[Solid], foot: float
) -> bool:
    """Whether the agent may touch a goal.

    Args:
        placement: The arena.
        goal: The goal.
        away: Metres from each cell to the nearest one that the agent can reach.
        firm: Objects that nothing moves.
        foot: Height above the floor at which the agent may be.
    """
    radius = goal.size.x / 2
    reach = AGENT_RADIUS + radius + _SLACK
    x, _, z = goal.position
    if goal.kind.bounce:
        height = _height(goal.position, radius)
        rolls = _ways(placement, goal.position, radius, height, by_zones=False)
        return rolls is None or bool((away[rolls] <= reach + _SLACK).any())
    low = max((_top_under(goal, solid) for solid in firm), default=0.0)
    height = max(0.0, min(goal.position.y, low + radius) - AGENT_RADIUS - LIFT - foot)
    span = scalars.square(AGENT_RADIUS + radius) - height * height
    if span <= 0.0:
        return False
    return bool((away[_near(x, z, math.sqrt(span) + _SLACK)] == 0.0).any())


def _top_under(goal: PlacedObject, solid: Solid) -> float:
    """Height of a solid if a goal rests on it, else 0: a goal that hangs falls, also off a pole.

    A goal that extends beyond what it lies on may be touched from below or knocked down.
    """
    rests = min(solid.half.x, solid.half.z) >= goal.size.x / 2 and covers(solid, goal.position)
    return solid.center.y + solid.half.y if rests else 0.0
