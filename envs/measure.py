"""Measures by playing what an arena's placement does not tell: when and how long goals are hidden.

The arena is simulated around an agent that stands still (`watch`), until everything is at rest. A
goal's ball counts as seen while a twentieth of its disc shows in any direction and the light is on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.features.chains import chain_features
from animalcat.arena_configs.features.definition import MeasuredFeatures, Reading
from animalcat.arena_configs.features.registry import measure_features
from animalcat.arena_configs.features.sight import dark_at
from animalcat.arena_configs.features.start import SECONDS_PER_UNIT
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.ground import TooMuchError
from animalcat.arena_configs.model import ARENA_SIDE, Point
from animalcat.arena_configs.placement import AGENT_RADIUS, PlacedObject, Placement
from animalcat.arena_configs.routes import positive_goals, run_seconds
from animalcat.arena_configs.sightlines import SEEN
from animalcat.envs.sim.scene import Scene, Shape
from animalcat.envs.sim.visibility import clear_share, clear_shares, has_room, hiders
from animalcat.envs.sim.world import World
from animalcat.envs.types import PHYSICS_STEP

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LONGEST: Final = 60.0
"""Seconds of an arena that are simulated at most."""
DECISION: Final = 3
"""Physics steps between looks: the usual time of a decision."""
AT_REST: Final = 1.0
"""Seconds in which nothing may move for the arena to count as being at rest."""
MOST_WATCHED: Final = 12
"""Rewards, and decoys, that are watched at most."""

_MOVED: Final = 0.25
"""Metres by which a goal has to move for the way to lead elsewhere."""
_STILL: Final = 5e-4
"""Metres that something at rest moves at most between two looks."""
_APART: Final = 0.5
"""Metres between places that are looked at: where a goal could be, and where to look from."""
_LEVELS: Final = 12
"""Heights at which a goal could lie, at most."""
_WAY_STEP: Final = 0.25
"""Metres between looks along a way."""
_LEAST_PATCH: Final = 3
"""Hidden points side by side that count as a place where the ball could have rolled."""
_SMALL: Final = 0.25
"""Radius in metres of a ball that gets wherever a place is one."""
_ALL_ROUND: Final = np.ones((3, 3), np.int_)
_REACH: Final = 0.2
"""Metres that are allowed for the grid when the agent touches a goal."""
_RESTLESS: Final = ("size", "value", "spawner", "button")
"""Rules of objects that may change an arena which is at rest."""


class OcclusionInterval(NamedTuple):
    """A time, or a stretch of a way, during which something is not seen.

    Attributes:
        start: The last look before it, in seconds or metres.
        end: The first look after it, likewise; infinite if there is none.
    """

    start: float
    end: float

    @property
    def length(self) -> float:
        """Its length, in seconds or metres."""
        return self.end - self.start


@dataclass(frozen=True, slots=True, eq=False)
class GoalVisibility:
    """What shows of some goals while the agent stands still.

    Attributes:
        things: The goals.
        seconds: (n,) time of each look.
        shown: (n, goals) share of each goal's disc that shows; 0 in the dark.
        centers: (goals, 3) where they are at the last look, in metres.
        last_seen: (goals, 3) where each was at the last look at which `SEEN` of it showed; NaN for
            those that never showed.
        rows: Row of each goal in the scene.
        scene: The scene at the last look.
        eye: Where the agent's eye is then.
        rested: Whether everything was at rest at the end.
    """

    things: tuple[PlacedObject, ...]
    seconds: Floats
    shown: Floats
    centers: Floats
    last_seen: Floats
    rows: tuple[int, ...]
    scene: Scene
    eye: Point
    rested: bool


class EpisodeMeasurement(NamedTuple):
    """The demands of an episode, and what measuring each of its arenas gave.

    Attributes:
        features: The meta-features of the episode.
        surveys: Its arenas as they are placed, in the order of play.
        played: What playing each of them gave.
    """

    features: MeasuredFeatures
    surveys: tuple[Survey, ...]
    played: tuple[PlayMeasurement, ...]


def measure_episode(placed: Sequence[Placement], seed: int = 0) -> EpisodeMeasurement:
    """Measure every meta-feature of an episode, by playing each of its arenas.

    This is the one measurement: batteries, tables, maps and what commands show are made from it.

    Args:
        placed: Its arenas in the order of play: one, unless arenas merge.
        seed: Seed of what spawners and operations leave to chance.
    """
    surveys = tuple(map(Survey, placed))
    played = tuple(measure_playing(survey, seed) for survey in surveys)
    both = zip(surveys, played, strict=True)
    parts = [measure_features(survey, *told) for survey, told in both]
    return EpisodeMeasurement(chain_features(parts, placed), surveys, played)


def watch(survey: Survey, things: Sequence[PlacedObject], seed: int = 0) -> GoalVisibility:
    """Simulate an arena around an agent that stands still, and look at goals at each decision.

    It ends with the episode, when everything is at rest and no light will change, or after
    `LONGEST` seconds.

    Args:
        survey: The placed arena.
        things: The goals to look at, of its placement.
        seed: Seed of what spawners and operations leave to chance.
    """
    placement = survey.placement
    world = World([placement], np.random.default_rng(seed))
    first = dict(_rows(placement.objects))
    rows = tuple(first[id(thing)] for thing in things)
    restless = any(thing.kind.reward in _RESTLESS for thing in placement.objects)
    toggles = max((abs(time) for time in placement.blackouts), default=0) * SECONDS_PER_UNIT
    restless |= any(time < 0 for time in placement.blackouts)
    seconds: list[float] = []
    shown: list[list[float]] = []
    before, moved = world.scene.center.copy(), 0.0
    last_seen = np.full((len(rows), 3), np.nan)
    time, rested = 0.0, False
    while True:
        scene = world.scene
        here: list[float] = []
        for k, row in enumerate(rows):
            center, radius = scene.center[row], float(scene.half[row, 0])
            visible = bool(scene.active[row]) and not world.dark
            eye = world.agent.position
            here.append(clear_share(scene, hiders(scene, row), eye, center, radius) * visible)
            if here[k] >= SEEN:
                last_seen[k] = center
        seconds.append(time)
        shown.append(here)
        same = len(scene.center) == len(before)
        if not same or float(np.abs(scene.center - before).max(initial=0.0)) > _STILL:
            moved = time
        before = scene.center.copy()
        rested = not restless and time - max(moved, toggles) >= AT_REST
        if rested or world.episode.ended_by is not None or time >= LONGEST:
            break
        world.play(0, 0, DECISION)
        time = round(time + DECISION * PHYSICS_STEP, 6)
    centers = np.array([scene.center[row] for row in rows], np.float64).reshape(-1, 3)
    return GoalVisibility(
        tuple(things),
        np.array(seconds),
        np.array(shown).reshape(len(seconds), -1),
        centers,
        last_seen,
        rows,
        scene,
        Point(*world.agent.position),
        rested,
    )


def gaps(seconds: Floats, seen: Mask) -> list[OcclusionInterval]:
    """Find the times during which something that was seen before is not seen.

    Args:
        seconds: (n,) times of looks, which rise.
        seen: (n,) whether it is seen.
    """
    intervals: list[OcclusionInterval] = []
    lost: int | None = None
    for k in range(1, len(seen)):
        if seen[k - 1] and not seen[k]:
            lost = k - 1
        elif lost is not None and seen[k]:
            intervals.append(OcclusionInterval(float(seconds[lost]), float(seconds[k])))
            lost = None
    if lost is not None:
        intervals.append(OcclusionInterval(float(seconds[lost]), math.inf))
    return intervals


class PlayMeasurement(NamedTuple):
    """What is measured by playing an arena, for `measure_features`.

    Attributes:
        readings: Readings of the meta-features that take playing, by name.
        at_rest: The arena with its rewards where they are after the agent stood still.
    """

    readings: dict[str, Reading]
    at_rest: Survey


def measure_playing(survey: Survey, seed: int = 0) -> PlayMeasurement:
    """Play an arena without moving, and measure what takes playing.

    Args:
        survey: The placed arena.
        seed: Seed of what spawners and operations leave to chance.
    """
    rewards = _with_first(positive_goals(survey.placement), survey.goal)[:MOST_WATCHED]
    decoys = [t for t in survey.placement.objects if t.kind.reward == "decoy"][:MOST_WATCHED]
    if not rewards and not decoys:
        return PlayMeasurement(dict.fromkeys(_NAMES, "no reward") | {"decoysHidden": 0.0}, survey)
    watched = watch(survey, [*rewards, *decoys], seed)
    seen = watched.shown >= SEEN
    hidden = [gaps(watched.seconds, column) for column in seen.T]
    lures = {"decoysHidden": float(sum(map(bool, hidden[len(rewards) :])))}
    if not rewards:
        return PlayMeasurement(dict.fromkeys(_NAMES, "no reward") | lures, survey)
    longest = [
        max((gap.length for gap in intervals), default=0.0) for intervals in hidden[: len(rewards)]
    ]
    which = longest.index(max(longest))
    at_rest = _at_rest(survey, watched)
    alone = at_rest if len(rewards) == 1 else _at_rest(survey, watched, rewards[which])
    return PlayMeasurement(_of_goal(survey, watched, which, alone) | lures, at_rest)


def _with_first(things: Sequence[PlacedObject], first: PlacedObject | None) -> list[PlacedObject]:
    """The things, one of them before the others."""
    return sorted(things, key=lambda thing: thing is not first)


_NAMES: Final = (
    "goalTravel",
    "occluderPresence",
    "timeUnderOcc",
    "numPositions",
    "hiddenStanding",
    "hiddenFrom",
    "hiddenMoving",
    "hidingPlaces",
    "lastPlaceShows",
)


def _of_goal(
    survey: Survey, watched: GoalVisibility, which: int, at_rest: Survey
) -> dict[str, Reading]:
    """Readings about one of the rewards that were watched; `at_rest` has no other."""
    standing = _standing(survey, watched, which)
    moving, lost_at = _moving(at_rest, watched, which)
    by_itself = standing != 0.0
    still = standing.length if isinstance(standing, OcclusionInterval) else standing
    never = "the goal is never hidden by itself"
    readings: dict[str, Reading] = {
        "goalTravel": _travel(watched, which),
        "hiddenStanding": still,
        "hiddenFrom": standing.start
        if isinstance(standing, OcclusionInterval)
        else standing or never,
        "hiddenMoving": moving,
        "lastPlaceShows": _last_place_shows(survey, watched, which),
    }
    lost = [time for time in (still, moving) if not isinstance(time, str) and time > 0.0]
    if not by_itself and not lost:
        presence = moving if isinstance(moving, str) else 0.0
        reason = "the goal is never seen and then hidden"
        missing = dict.fromkeys(("timeUnderOcc", "hidingPlaces", "numPositions"), reason)
        return readings | {"occluderPresence": presence} | missing
    eye = watched.eye if by_itself else lost_at or watched.eye
    points = hiding_places(survey, watched, which, eye)
    places = points if isinstance(points, str) else float(max(len(points), 1))
    return readings | {
        "occluderPresence": 1.0,
        "timeUnderOcc": max(lost) if lost else still,
        "hidingPlaces": places,
        "numPositions": places if isinstance(places, str) else max(1.0, places - 1.0),
    }


def _travel(watched: GoalVisibility, which: int) -> float:
    """Metres from where a goal is placed to where it is at the end."""
    return math.dist(watched.things[which].position, watched.centers[which])


def _last_place_shows(survey: Survey, watched: GoalVisibility, which: int) -> Reading:
    """Whether who goes to where it last saw a goal sees it by that, and can still get to it."""
    x, _, z = watched.last_seen[which].tolist()
    row, center = watched.rows[which], watched.centers[which]
    if not watched.scene.active[row]:
        return "the goal is gone"
    if math.isnan(x):
        return "the goal never shows to an agent that stands still"
    radius = float(watched.scene.half[row, 0])
    if math.hypot(x - center[0], z - center[2]) < max(radius, _APART):
        return 1.0
    # The way to the place is that to the goal, if it lay there.
    thing = watched.things[which]
    there = replace(thing, position=Point(x, float(center[1]), z))
    others = [t for t in survey.placement.objects if not (t is thing or t.kind.goal)]
    way = Survey(replace(survey.placement, objects=(*others, there))).way
    if isinstance(way, str):
        return 0.0
    looks = np.linspace(0.0, way.length, max(2, math.ceil(way.length / _WAY_STEP) + 1))
    eyes = np.array([way.at(float(m)) for m in looks])
    rows = hiders(watched.scene, row)
    shown = clear_shares(watched.scene, rows, eyes, [center], radius, enough=SEEN)
    if shown[-1] < SEEN:
        return 0.0
    # It may have chosen for good, and see the goal through glass.
    try:
        terrain = survey.walked
        here = terrain.ground.under(way.at(float(looks[len(shown) - 1])))
    except TooMuchError as error:
        return str(error)
    if here is None:
        return 1.0
    contacts = terrain.ground.touching(Point(*center.tolist()), radius)
    return float(terrain.safe_moves.reached(here)[contacts].any())


def _at_rest(survey: Survey, watched: GoalVisibility, only: PlacedObject | None = None) -> Survey:
    """The arena with the goals that were watched where they are at the end.

    Args:
        survey: The arena.
        watched: What was watched.
        only: A reward; the other rewards are then left out.
    """
    moved = {
        # To millimetres: processors differ in the last digits of where something rolls.
        id(thing): replace(thing, position=Point(*center.round(3).tolist()))
        for k, (thing, center) in enumerate(zip(watched.things, watched.centers, strict=True))
        if _travel(watched, k) >= _MOVED
    }
    rewards = positive_goals(survey.placement)
    if not moved and (only is None or len(rewards) == 1):
        return survey
    others = {id(thing) for thing in rewards if only is not None and thing is not only}
    objects = [t for t in survey.placement.objects if id(t) not in others]
    placed = tuple(moved.get(id(thing), thing) for thing in objects)
    return Survey(replace(survey.placement, objects=placed))


def _standing(survey: Survey, watched: GoalVisibility, which: int) -> OcclusionInterval | Reading:
    """The longest time for which a goal is hidden from an agent that stands still; 0.0: none."""
    intervals = gaps(watched.seconds, watched.shown[:, which] >= SEEN)
    if not intervals:
        return 0.0
    if math.isinf(intervals[-1].end):  # no other has no end
        known = _time_of_next_sight(survey, watched, which, intervals[-1].start)
        if isinstance(known, str):
            return known
        intervals[-1] = OcclusionInterval(intervals[-1].start, known)
    return max(intervals, key=lambda gap: gap.length)


def _time_of_next_sight(
    survey: Survey, watched: GoalVisibility, which: int, lost: float
) -> float | str:
    """When an agent that goes and looks could see the goal again, where it is at the end."""
    try:
        terrain = survey.walked
        tree = terrain.safe
        if tree is None:
            return "the agent starts inside something"
        ground = terrain.ground
    except TooMuchError as error:
        return str(error)
    row, center = watched.rows[which], watched.centers[which]
    if not watched.scene.active[row]:
        return "the goal is gone"
    rows = hiders(watched.scene, row)
    radius = float(watched.scene.half[row, 0])
    begin = max(lost + DECISION * PHYSICS_STEP, survey.placement.agent.frozen_seconds)
    order = np.argsort(tree.metres, kind="stable")
    order = order[np.isfinite(tree.metres[order])]
    eyes = np.column_stack([ground.x, ground.height, ground.z])[order]
    shares = clear_shares(watched.scene, rows, eyes, [center], radius, enough=SEEN)
    if shares[-1] >= SEEN:
        there = begin + run_seconds(float(tree.metres[order[len(shares) - 1]]))
        return _first_light(survey, there)
    return "the hidden goal is not seen from anywhere that the agent can safely get to"


def _first_light(survey: Survey, time: float) -> float | str:
    """The first time at which the light is on, from a time on, in seconds."""
    limit = survey.placement.time_limit
    end = limit * SECONDS_PER_UNIT if limit > 0 else math.inf
    on = dark_at(survey, time)
    if on is None:
        return time
    return on if on < end else "the light stays out"


def _moving(survey: Survey, watched: GoalVisibility, which: int) -> tuple[Reading, Point | None]:
    """How long the goal, at rest, is out of sight on the way, and where it is last seen before.

    The longest time counts; 0.0 and None: it is never lost.
    """
    way = survey.way
    if isinstance(way, str):
        return way, None
    row = watched.rows[which]
    if not watched.scene.active[row]:
        return "the goal is gone", None
    rows, radius = hiders(watched.scene, row), float(watched.scene.half[row, 0])
    length = max(0.0, way.length - way.touch)
    metres = np.linspace(0.0, length, max(2, math.ceil(length / _WAY_STEP) + 1))
    center, yaw = watched.centers[which], survey.placement.agent.yaw
    eyes = [way.at(float(m)) for m in metres]
    shown = clear_shares(watched.scene, rows, np.array(eyes), [center], radius)
    lost = [OcclusionInterval(g.start, min(g.end, length)) for g in gaps(metres, shown >= SEEN)]
    if not lost:
        return 0.0, None
    taken = [(way.seconds(yaw, gap.end) - way.seconds(yaw, gap.start), gap.start) for gap in lost]
    seconds, start = max(taken)
    return seconds, way.at(start)


def hiding_places(
    survey: Survey, watched: GoalVisibility, which: int, eye: Point
) -> list[Point] | str:
    """Find the places where a hidden goal could be.

    A place is a patch of points at which a ball of the goal's size lies on something, is out of
    sight, and can be touched by the agent. Patches are apart where the ball would show between
    them. Where the agent has to choose for good, all patches behind one choice are one place.

    Args:
        survey: The placed arena.
        watched: What was seen of its goals.
        which: Number of the goal among those that were watched.
        eye: From where it was seen last.

    Returns:
        A point of each place, where the ball's centre could be; or why they are not known.
    """
    try:
        terrain = survey.walked
        if terrain.safe is None:
            return "the agent starts inside something"
        ground, metres = terrain.ground, terrain.safe.metres
    except TooMuchError as error:
        return str(error)
    scene, row = watched.scene, watched.rows[which]
    rows, radius = hiders(scene, row), float(scene.half[row, 0])
    axis = np.arange(_APART / 2, ARENA_SIDE, _APART)
    x, z = (grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij"))
    there = np.flatnonzero(np.isfinite(metres))
    from scipy.spatial import KDTree

    reachable = KDTree(np.column_stack([ground.x, ground.height, ground.z])[there])
    region, middles = np.zeros(len(x), np.int_), dict[tuple[float, ...], Point]()
    for level in _levels(scene, rows):
        balls = np.column_stack([x, np.full(len(x), level + radius), z])
        inside = (np.minimum(x, z) >= radius) & (np.maximum(x, z) <= ARENA_SIDE - radius)
        fits = np.flatnonzero(inside)
        fits = fits[has_room(scene, rows, balls[fits], radius)]
        if level > 0.0 and len(fits):
            below = balls[fits] - [0.0, 0.1, 0.0]
            fits = fits[~has_room(scene, rows, below, radius)]
        if len(fits):
            away, nearest = reachable.query(balls[fits])
            region[fits] = terrain.region[there[nearest]]
            fits = fits[away <= AGENT_RADIUS + radius + _REACH]
        free, hidden, joined = np.zeros((3, len(x)), np.bool_)
        free[fits] = True
        if len(fits):
            hidden[fits] = clear_shares(scene, rows, np.array([eye]), balls[fits], radius) < SEEN
        if hidden.any():
            inner = min(radius, _SMALL)
            low = np.flatnonzero(has_room(scene, rows, balls - [0.0, radius - inner, 0.0], inner))
            lying = balls[low] - [0.0, radius - inner, 0.0]
            joined[low] = clear_shares(scene, rows, np.array([eye]), lying, inner) < SEEN
        grids = (mask.reshape(len(axis), -1) for mask in (free, hidden, joined | hidden))
        for room, point in _patches(*grids).items():
            here = int(region[point])
            name = (here,) if _is_choice(survey, here) else (here, level, room)
            middles.setdefault(name, Point(*balls[point].tolist()))
    return list(middles.values())


def _is_choice(survey: Survey, region: int) -> bool:
    """Whether the agent gets to a region only by a choice for good among several."""
    terrain, choice = survey.walked, survey.choice
    if choice is None or terrain.start is None:
        return False
    before = (terrain.start, terrain.ground.under(choice.at))
    return region not in [int(terrain.region[place]) for place in before if place is not None]


def _patches(free: Mask, hidden: Mask, joined: Mask) -> dict[int, int]:
    """Patches of hidden points.

    Args:
        free: (n, n) points of a grid where the ball can be.
        hidden: (n, n) those of them where it is out of sight. Few of them side by side count only
            if the ball is confined there: else they are the edge of something.
        joined: (n, n) points where at least a small ball is out of sight; patches that these join
            are one, although the ball itself may not get from one to the other.

    Returns:
        By number of the patch, the point in its middle, as an index into the flat grid.
    """
    from scipy import ndimage

    labels, number = ndimage.label(hidden, _ALL_ROUND)
    leaks = ndimage.binary_dilation(free & ~hidden, _ALL_ROUND)
    rooms, _ = ndimage.label(joined, _ALL_ROUND)
    counted: dict[int, int] = {}
    for patch in range(1, number + 1):
        points = labels == patch
        if points.sum() >= _LEAST_PATCH or not (points & leaks).any():
            rows, columns = np.nonzero(points)
            off = (rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2
            middle = int(np.argmin(off))
            row, column = int(rows[middle]), int(columns[middle])
            counted[int(rooms[row, column])] = row * points.shape[1] + column
    return counted


def _levels(scene: Scene, rows: npt.NDArray[np.int64]) -> list[float]:
    """Heights of the floor and of the level tops of boxes, from below."""
    boxes = rows[(scene.kind[rows] == Shape.BOX) & (scene.rotation[rows, 1, 1] > 0.999)]
    tops: Floats = (scene.center[boxes, 1] + scene.half[boxes, 1]).astype(np.float64)
    heights = np.unique(tops.round(1))
    return [0.0, *heights[heights > 0.05][: _LEVELS - 1].tolist()]


def _rows(objects: Sequence[PlacedObject]) -> Iterator[tuple[int, int]]:
    """Identity of each object, and its first row in the scene that is built of them."""
    row = 0
    for thing in objects:
        yield id(thing), row
        row += len(thing.kind.parts)
