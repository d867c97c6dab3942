"""Draws arenas of a family that goes to one goal; each passes every check and can be solved."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
import shapely
import yaml
from pydantic import ValidationError

from animalcat.arena_configs.catalogue import SIZE_ADJUSTMENT
from animalcat.arena_configs.checks import check_arena
from animalcat.arena_configs.families.polar_template import (
    NameChoice,
    Obstacle,
    Paradigm,
    PolarFamily,
    draw_value,
)
from animalcat.arena_configs.model import ARENA_SIDE, RGB, Arena, ArenaError, Item, Vector3
from animalcat.arena_configs.placement import AGENT_RADIUS, Placement, fix, place

POLAR: Final = ("navigation",)
"""Names of the families that come with the project and have a polar template."""

_CLEARANCE: Final = 0.1
"""Metres that must be free on either side of the agent's path."""
GAP: Final = 0.25
"""Least distance in metres between agent and goal, and between either and the walls."""
TRIES: Final = 2000


class Pose(NamedTuple):
    """Where an agent starts, and in which direction its goal is.

    Attributes:
        x: In metres.
        z: In metres.
        direction: Degrees from the z axis to the goal, clockwise.
    """

    x: float
    z: float
    direction: float


def load_polar(name: str) -> PolarFamily:
    """Load the template of a family that goes to one goal.

    Args:
        name: One of `POLAR`.

    Raises:
        ArenaError: There is no such family, or its template is wrong.
    """
    if name not in POLAR:
        raise ArenaError(f"no family {name!r} with a polar template; there are: {', '.join(POLAR)}")
    text = files("animalcat.arena_configs").joinpath(f"families/{name}.yaml").read_text("utf-8")
    return parse_polar(text, f"{name}.yaml")


def parse_polar(text: str, name: str) -> PolarFamily:
    """Parse the template of a family that goes to one goal.

    Args:
        text: YAML.
        name: Name of the source, for errors.

    Raises:
        ArenaError: It is not YAML, or not such a family.
    """
    try:
        return PolarFamily.model_validate(yaml.safe_load(text))
    except (yaml.YAMLError, ValidationError) as error:
        raise ArenaError(f"{name}: {error}") from None


class PolarArena(NamedTuple):
    """An arena, and how it was drawn.

    Attributes:
        paradigm: Name of the paradigm.
        arena: The arena; every value is explicit.
        mirrored: Whether left and right are exchanged.
    """

    paradigm: str
    arena: Arena
    mirrored: bool


def polar_arenas(family: PolarFamily, n: int, rng: np.random.Generator) -> Iterator[PolarArena]:
    """Draw arenas of a family that goes to one goal.

    Args:
        family: The template.
        n: Number of arenas, divided among the paradigms by their weights.
        rng: Source of all randomness.

    Raises:
        ArenaError: A paradigm's ranges leave no room.
    """
    weights = [paradigm.weight for paradigm in family.paradigms]
    for paradigm, count in zip(family.paradigms, shares(weights, n), strict=True):
        for index in range(count):
            mirrored = family.mirror and index % 2 == 1
            arena = polar_arena(family, paradigm, mirrored, rng)
            yield PolarArena(paradigm.name, arena, mirrored)


def shares(weights: Sequence[float], n: int) -> Sequence[int]:
    """How many of n instances each paradigm gets: by weight, largest remainders first."""
    exact = n * np.array(weights) / np.sum(weights)
    counts = np.floor(exact).astype(int)
    extra = np.argsort(counts - exact, kind="stable")[: n - int(counts.sum())]
    counts[extra] += 1
    return [int(count) for count in counts]


def polar_arena(
    family: PolarFamily,
    paradigm: Paradigm,
    mirrored: bool,
    rng: np.random.Generator,
    suits: Callable[[Arena], bool] = lambda arena: True,
) -> Arena:
    """Draw one arena of a family that goes to one goal.

    Args:
        family: The template.
        paradigm: The paradigm.
        mirrored: Whether left and right are exchanged.
        rng: Source of all randomness.
        suits: Whether an arena is wanted; asked before the checks, which take longer.

    Raises:
        ArenaError: No arena was found.
    """
    for _ in range(TRIES):
        arena = _candidate(family, paradigm, mirrored, rng)
        if arena is None or not suits(arena):
            continue
        arena = fix(arena, rng)
        placement = place(arena, rng)
        expected = 1 + len(paradigm.obstacles)
        complete = len(placement.objects) == expected and not placement.drawn
        if complete and not check_arena(arena, rng) and passable(placement):
            return arena
    raise ArenaError(
        f"family {family.name}, paradigm {paradigm.name}: found no arena in {TRIES} tries; "
        "its ranges leave too little room"
    )


def _candidate(
    family: PolarFamily, paradigm: Paradigm, mirrored: bool, rng: np.random.Generator
) -> Arena | None:
    """Draw an arena from the template; None if agent and goal do not fit."""
    distance = draw_value(paradigm.distance or family.distance, rng)
    size = draw_value(paradigm.size or family.size, rng)
    angle = draw_value(paradigm.angle, rng) * (-1 if mirrored else 1)
    if distance < AGENT_RADIUS + size / 2 + GAP:
        return None
    pose = _pose(distance, size, rng)
    if pose is None:
        return None
    arena = open_arena(family, paradigm, pose, distance, size, angle)
    x, z, direction = pose
    sin, cos = math.sin(math.radians(direction)), math.cos(math.radians(direction))
    obstacles: list[Item] = []
    for obstacle in paradigm.obstacles:
        along, aside = draw_value(obstacle.along, rng) * distance, draw_value(obstacle.aside, rng)
        at_x, at_z = x + along * sin + aside * cos, z + along * cos - aside * sin
        if not (0 <= at_x <= ARENA_SIDE and 0 <= at_z <= ARENA_SIDE):
            return None
        obstacles.append(_obstacle(obstacle, at_x, at_z, direction, rng))
    return arena.model_copy(update={"items": (*arena.items, *obstacles)})


def open_arena(
    family: PolarFamily, paradigm: Paradigm, pose: Pose, distance: float, size: float, angle: float
) -> Arena:
    """Make a family's arena with nothing between the agent and the goal.

    Args:
        family: The family.
        paradigm: The paradigm that gives the time limit.
        pose: Where the agent starts, and in which direction the goal is.
        distance: Metres on the ground from the agent to the goal.
        size: Diameter of the goal in metres.
        angle: Degrees from the agent's heading to the goal, clockwise.
    """
    x, z, direction = pose
    sin, cos = math.sin(math.radians(direction)), math.cos(math.radians(direction))
    goal = Vector3(x=_round(x + distance * sin), z=_round(z + distance * cos))
    items = (
        Item(
            name="Agent",
            positions=(Vector3(x=_round(x), z=_round(z)),),
            rotations=(_round((direction - angle) % 360.0),),
        ),
        Item(name=family.goal, positions=(goal,), rotations=(0.0,), sizes=(cube(_round(size)),)),
    )
    # It is passed if reached before that time: its reward minus the decay until then.
    pass_mark = math.floor(1e3 * (_round(size) * SIZE_ADJUSTMENT - family.pass_within)) / 1e3
    time_limit = paradigm.time_limit or family.time_limit
    return Arena(time_limit=time_limit, pass_mark=pass_mark, items=items)


def _pose(distance: float, size: float, rng: np.random.Generator) -> Pose | None:
    """Draw a pose with agent and goal in the arena.

    Long distances fit in few poses, so the pose is drawn again instead of the distance, which keeps
    its distribution.
    """
    start, end = AGENT_RADIUS + GAP, size / 2 + GAP
    for _ in range(TRIES):
        x, z = rng.uniform(start, ARENA_SIDE - start, 2)
        direction = rng.uniform(0.0, 360.0)
        goal_x = x + distance * math.sin(math.radians(direction))
        goal_z = z + distance * math.cos(math.radians(direction))
        if end <= min(goal_x, goal_z) and max(goal_x, goal_z) <= ARENA_SIDE - end:
            return Pose(float(x), float(z), float(direction))
    return None


def _obstacle(
    obstacle: Obstacle, x: float, z: float, direction: float, rng: np.random.Generator
) -> Item:
    kind = obstacle.kind
    if isinstance(kind, NameChoice):
        kind = kind.choice[int(rng.integers(len(kind.choice)))]
    width, height, depth = (_round(draw_value(extent, rng)) for extent in obstacle.size)
    color = obstacle.color
    return Item(
        name=kind,
        positions=(Vector3(x=_round(x), z=_round(z)),),
        rotations=(_round((direction + draw_value(obstacle.turn, rng)) % 360.0),),
        sizes=(Vector3(x=width, y=height, z=depth),),
        colors=(RGB(r=color[0], g=color[1], b=color[2]),) if color else (),
    )


def passable(placement: Placement) -> bool:
    """Whether the agent can roll to some reward over open floor, past everything else.

    Everything but rewards counts as an obstacle, whatever its height; this is for flat arenas.

    Args:
        placement: The placed arena.
    """
    reach = AGENT_RADIUS + _CLEARANCE
    free = shapely.box(reach, reach, ARENA_SIDE - reach, ARENA_SIDE - reach)
    goals = [thing for thing in placement.objects if thing.kind.goal and thing.reward > 0]
    for thing in placement.objects:
        if thing in goals:
            continue
        for solid in thing.solids():
            half = solid.half
            base = shapely.box(-half.x, -half.z, half.x, half.z)
            # Shapely turns counter-clockwise seen with z up the page, Unity clockwise.
            turned = shapely.affinity.rotate(base, -solid.yaw, origin=(0, 0))
            moved = shapely.affinity.translate(turned, solid.center.x, solid.center.z)
            free = free.difference(moved.buffer(reach))
    start = shapely.Point(placement.agent.position.x, placement.agent.position.z)
    here = [part for part in shapely.get_parts(free) if part.distance(start) < _CLEARANCE]
    return any(
        part.distance(shapely.Point(goal.position.x, goal.position.z)) < goal.size.x / 2 + reach
        for part in here
        for goal in goals
    )


def cube(side: float) -> Vector3:
    """The size of a cube."""
    return Vector3(x=side, y=side, z=side)


def _round(value: float) -> float:
    """Round to a millimetre or a thousandth of a degree, so that files are easy to read."""
    return round(value, 3)
