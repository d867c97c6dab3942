"""Makes arenas for given demands, on a family's open floor: the inverse of `features`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice, product
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.families.polar import (
    GAP,
    TRIES,
    Pose,
    cube,
    load_polar,
    open_arena,
)
from animalcat.arena_configs.families.polar_template import Paradigm, PolarFamily, range_limits
from animalcat.arena_configs.features import BEHIND, CENTRED, IN_FRONT, nearest_reward
from animalcat.arena_configs.model import ARENA_SIDE, Arena, ArenaError, Item, Vector3
from animalcat.arena_configs.placement import AGENT_RADIUS, place

TOLERANCE: Final = 0.002
"""Metres by which the distance of a solved arena may differ, since positions are whole millimetres.
"""
MARGIN: Final = 2.0
"""Degrees between solved bearings and the angle where a code changes.

At the least distance, 1 m, a millimetre of rounding turns a bearing by less than 0.1 degrees."""
_DIRECTIONS: Final = np.arange(0.0, 360.0, 0.5)
"""Candidate directions; they include the diagonals, where the longest distances fit."""


class SolvedArena(NamedTuple):
    """An arena for given demands.

    Attributes:
        arena: The arena; every value is explicit.
        paradigm: The paradigm of the family that it belongs to.
    """

    arena: Arena
    paradigm: str


class Place(NamedTuple):
    """Where rewards can be, as codes of the layout AAIO, and which paradigm places them there.

    Attributes:
        behind: `rewardBehind`: 0, 0.5 or 1.
        side: `XPos`: -1, 0 or 1.
        paradigm: Name of the paradigm.
        angles: Least and greatest degrees off the heading.
    """

    behind: float
    side: float
    paradigm: str
    angles: tuple[float, float]


def solve(
    family: str | PolarFamily, demands: Mapping[str, float], rng: np.random.Generator
) -> SolvedArena:
    """Make an arena whose meta-features are the demands; pose and direction are drawn.

    Args:
        family: Name of a family, or a template; only its paradigms without obstacles are used.
        demands: `rewardDistance`, `rewardSize`, `rewardBehind` and `XPos`, as returned by
            `features.measure_features`.
        rng: Source of all randomness.

    Returns:
        The arena. Its distance is the requested one within `TOLERANCE`, its size is within half a
        millimetre, and its codes are exact.

    Raises:
        ArenaError: The family has no such arena; the message says what it has.
    """
    template = load_polar(family) if isinstance(family, str) else family
    distance, size = demands["rewardDistance"], demands["rewardSize"]
    behind, side = demands["rewardBehind"], demands["XPos"]
    spot = next((p for p in places(template) if (p.behind, p.side) == (behind, side)), None)
    if spot is None:
        there = ", ".join(f"({p.behind:g}, {p.side:g})" for p in places(template))
        raise ArenaError(
            f"family {template.name} has no open floor with (rewardBehind, XPos) = "
            f"({behind:g}, {side:g}); it has {there}"
        )
    smallest, largest = sizes(template)
    if not smallest <= size <= largest:
        raise ArenaError(
            f"rewardSize {size:g} is out of the range of family {template.name}: "
            f"{smallest:g} to {largest:g} m"
        )
    nearest, farthest = distances(template, size)
    if not nearest <= distance <= farthest:
        raise ArenaError(
            f"rewardDistance {distance:g} is out of the range of family {template.name} for a "
            f"reward of {size:g} m: {nearest:.3f} to {farthest:.3f} m"
        )
    way = math.sqrt(distance**2 - rise(template.goal, size) ** 2)
    sign = side or (float(rng.choice([-1.0, 1.0])) if template.mirror else 1.0)
    angle = sign * rng.uniform(*spot.angles)
    paradigm = next(p for p in template.paradigms if p.name == spot.paradigm)
    for _ in range(TRIES):
        arena = open_arena(template, paradigm, _pose(way, size, rng), way, size, angle)
        # Unity tests boxes: a large reward that is near fits in some directions only.
        if not place(arena, rng).skipped:
            return SolvedArena(arena, spot.paradigm)
    raise ArenaError(f"family {template.name}: found no arena for {dict(demands)} in {TRIES} tries")


def places(family: PolarFamily) -> tuple[Place, ...]:
    """Where rewards can be on a family's open floor, in order of codes."""
    made: list[Place] = []
    for behind, side in product((0.0, 0.5, 1.0), (-1.0, 0.0, 1.0)):
        if side < 0.0 and not family.mirror:
            continue
        made += islice(_of_codes(family, behind, side), 1)
    return tuple(made)


def sizes(family: PolarFamily) -> tuple[float, float]:
    """Least and greatest diameter of the reward in metres."""
    return range_limits(family.size)


def distances(family: PolarFamily, size: float) -> tuple[float, float]:
    """Least and greatest `rewardDistance` of a reward of some diameter, in metres.

    The family's limits are narrowed so that agent and reward do not touch and both are in the
    arena.
    """
    low, high = range_limits(family.distance)
    above = rise(family.goal, size)
    touching = AGENT_RADIUS + size / 2 + GAP
    across = ARENA_SIDE - (AGENT_RADIUS + GAP) - (size / 2 + GAP)
    # A millimetre off both, for what rounding takes.
    nearest = math.hypot(max(touching, low) + 1e-3, above)
    farthest = math.hypot(min(across * math.sqrt(2.0), high) - 1e-3, above)
    return nearest, farthest


def _of_codes(family: PolarFamily, behind: float, side: float) -> Iterator[Place]:
    """The angles at which a reward has both codes, according to the paradigms on open floor."""
    sector = {0.0: (0.0, IN_FRONT), 0.5: (IN_FRONT, BEHIND), 1.0: (BEHIND, 180.0)}[behind]
    aside = [(CENTRED, 180.0 - CENTRED)] if side else [(0.0, CENTRED), (180.0 - CENTRED, 180.0)]
    for paradigm, beside in product(filter(_is_open, family.paradigms), aside):
        ends = zip(_shrunk(sector), _shrunk(beside), range_limits(paradigm.angle), strict=True)
        low, high = (pick(end) for pick, end in zip((max, min), ends, strict=True))
        if low < high:
            yield Place(behind, side, paradigm.name, (low, high))


def _shrunk(sector: tuple[float, float]) -> tuple[float, float]:
    """A sector without the margins at its ends; the line of the heading is not an end."""
    low, high = sector
    return low + MARGIN * (low > 0.0), high - MARGIN * (high < 180.0)


def _is_open(paradigm: Paradigm) -> bool:
    return not paradigm.obstacles and paradigm.distance is None and paradigm.size is None


def _pose(way: float, size: float, rng: np.random.Generator) -> Pose:
    """Draw a start and a direction with both ends in the arena, which always exist."""
    start, end = AGENT_RADIUS + GAP, size / 2 + GAP
    radians = np.radians(_DIRECTIONS)
    spans = [_span(way * trend, start, end) for trend in (np.sin(radians), np.cos(radians))]
    fits = np.logical_and.reduce([low <= high for low, high in spans])
    k = int(rng.choice(np.flatnonzero(fits)))
    x, z = (float(rng.uniform(float(low[k]), float(high[k]))) for low, high in spans)
    return Pose(x, z, float(_DIRECTIONS[k]))


Floats = npt.NDArray[np.float64]


def _span(step: Floats, start: float, end: float) -> tuple[Floats, Floats]:
    """Range of starts along one axis, given the step to the goal."""
    low = np.maximum(start, end - step)
    high = np.minimum(ARENA_SIDE - start, ARENA_SIDE - end - step)
    return low, high


@cache
def rise(goal: str, size: float) -> float:
    """Metres by which the reward's centre is above (or below) the agent's."""
    agent = Item(name="Agent", positions=(Vector3(x=10.0, z=10.0),))
    ball = Item(name=goal, positions=(Vector3(x=30.0, z=30.0),), sizes=(cube(size),))
    placement = place(Arena(items=(agent, ball)), np.random.default_rng(0))
    reward = nearest_reward(placement)
    assert reward is not None, "a family's goal gives a reward"
    return reward.position.y - placement.agent.position.y
