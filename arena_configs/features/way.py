"""Meta-features of the way to a reward: how long, how winding, over what, past what, in what time.

The way is the shortest safe one of the agent's body to any reward (`routes`); the goal is the
reward that it leads to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from animalcat.arena_configs.features.definition import (
    ALONG_WAY,
    FeatureDefinition,
    Reading,
    of_goal,
    of_way,
)
from animalcat.arena_configs.features.start import SECONDS_PER_UNIT, bearing, behind_code, side_code
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.geometry import Solid, overlaps
from animalcat.arena_configs.ground import Mask
from animalcat.arena_configs.model import Point
from animalcat.arena_configs.placement import AGENT_RADIUS, PlacedObject
from animalcat.arena_configs.returns import best_value, grants
from animalcat.arena_configs.routes import Route, Terrain, heading, is_lava, is_movable, leg_length

_BESIDE: Final = 1.0
"""Metres off the safe way within which lava has to be avoided: the agent's own breadth."""


def _detour(_: Survey, way: Route) -> float:
    shortest = max(0.0, way.straight - way.touch)
    return max(1.0, (way.length - way.touch) / shortest) if shortest > 1e-6 else 1.0


def _first_bearing(survey: Survey, way: Route) -> float:
    legs = [leg for leg in way.legs if leg_length(*leg) > 1e-6]
    if not legs:
        return bearing(survey.placement, way.goal)
    return (heading(*legs[0]) - survey.placement.agent.yaw + 180.0) % 360.0 - 180.0


def _feature_of_need(of: Callable[[Terrain], Mask]) -> Callable[[Survey], Reading]:
    """Make a feature function that tells whether there is no way without places of some sort."""

    def read(survey: Survey, way: Route) -> float:
        if not way.places:
            return 0.0
        terrain = survey.walked
        chosen = of(terrain)
        if not chosen[list(way.places)].any():
            return 0.0
        return 0.0 if not chosen[way.places[0]] and terrain.reaches_goal(chosen) else 1.0

    return of_way(read)


def _climb_of(survey: Survey, way: Route) -> float:
    """Metres that the way goes up."""
    if not way.places:
        return 0.0
    height = survey.walked.ground.height[list(way.places)]
    return float(max(0.0, height.max() - height[0]))


def _choice(part: Callable[[Survey], float]) -> Callable[[Survey], Reading]:
    return of_way(lambda survey, _: part(survey))


def _with_lava(reading: Callable[[Survey], Reading]) -> Callable[[Survey], Reading]:
    """A feature of lava, which needs no looking where there is none."""

    def read(survey: Survey) -> Reading:
        if survey.goal is None:
            return "no reward"
        if not any(map(is_lava, survey.placement.objects)):
            return 0.0
        return reading(survey)

    return read


def _lava_straight(survey: Survey) -> Reading:
    assert survey.goal is not None
    return survey.walked.lava_straight(survey.goal)


def _lava_shortest(survey: Survey) -> Reading:
    terrain = survey.walked
    way = terrain.reckless
    if way is None:
        return "the agent finds no way to any reward"
    return terrain.share_met(way.points, lambda: terrain.lava)


def _lava_detour(survey: Survey) -> Reading:
    way, reckless = survey.way, survey.walked.reckless
    if isinstance(way, str):
        return way
    return 0.0 if reckless is None else max(0.0, way.length - reckless.length)


def _lava_to_avoid(survey: Survey) -> Reading:
    """Lava on the straight way or on the shortest one, or beside the safe way."""
    met = [_lava_straight(survey), _lava_shortest(survey)]
    margin = _lava_margin(survey)
    beside = not isinstance(margin, str) and margin < _BESIDE
    return float(beside or any(not isinstance(one, str) and one > 0.0 for one in met))


def _lava_margin(survey: Survey) -> Reading:
    if not any(map(is_lava, survey.placement.objects)):
        return "no lava"
    if isinstance(survey.way, str):
        return survey.way
    margin = survey.walked.lava_margin
    return "no lava" if margin is None else margin


def _hot(survey: Survey, way: Route) -> float:
    if not any(thing.kind.reward == "hot" for thing in survey.placement.objects):
        return 0.0
    terrain = survey.walked
    return terrain.share_met(way.points, lambda: terrain.hot)


def pushed_blocks(survey: Survey, way: Route | None) -> list[PlacedObject]:
    """Blocks that a way leads through."""
    if way is None:
        return []
    bodies = [_body(a, b) for a, b in way.legs]
    return [
        thing
        for thing in survey.placement.objects
        if is_movable(thing)
        and any(overlaps(body, solid) for body in bodies for solid in thing.solids())
    ]


def _body(a: Point, b: Point) -> Solid:
    """The box through which the body passes on a straight part of a way."""
    low, high = min(a.y, b.y) - AGENT_RADIUS + 0.05, max(a.y, b.y) + AGENT_RADIUS
    return Solid(
        "box",
        Point((a.x + b.x) / 2, (low + high) / 2, (a.z + b.z) / 2),
        Point(AGENT_RADIUS, (high - low) / 2, math.hypot(b.x - a.x, b.z - a.z) / 2),
        heading(a, b),
    )


def _must_push(survey: Survey, way: Route) -> float:
    return float(len(pushed_blocks(survey, way))) if survey.pushes else 0.0


def _could_push(survey: Survey) -> Reading:
    if survey.goal is None:
        return "no reward"
    if not any(map(is_movable, survey.placement.objects)):
        return 0.0
    way = survey.emptied.route
    return (
        survey.way
        if way is None and isinstance(survey.way, str)
        else float(len(pushed_blocks(survey, way)))
    )


def _seconds(survey: Survey, way: Route) -> float:
    return way.seconds(survey.placement.agent.yaw)


def time_allowed(survey: Survey) -> Reading:
    """Seconds until the rewards together, less what time costs, no longer pass the pass mark."""
    placement = survey.placement
    if placement.time_limit <= 0:
        return "no time limit"
    if grants(placement):
        return "a spawner, a button or a zone may give any reward"
    best = sum(max(0.0, best_value(thing)) for thing in placement.objects if thing.kind.goal)
    limit = placement.time_limit * SECONDS_PER_UNIT
    return limit * min(1.0, max(0.0, best - placement.pass_mark))


def _time_share(survey: Survey) -> Reading:
    allowed = time_allowed(survey)
    if isinstance(survey.way, str):
        return survey.way
    if isinstance(allowed, str):
        return allowed
    return _seconds(survey, survey.way) / allowed if allowed > 0.0 else "no play can pass"


def _row(
    name: str,
    unit: str,
    description: str,
    measure: Callable[[Survey], Reading],
    low: float = 0.0,
    high: float = math.inf,
    version: int = ALONG_WAY,
) -> FeatureDefinition:
    return FeatureDefinition(name, unit, description, measure, low, high, "way", version)


WAY: Final = (
    _row(
        "wayLength",
        "m",
        "length of the shortest safe way of the agent's body, along slopes, from its centre to "
        "that of the nearest reward by way: the goal",
        of_way(lambda _, way: way.length),
    ),
    _row(
        "wayManhattan",
        "m",
        "metres of that way along the arena's two sides, seen from above",
        of_way(lambda _, way: way.manhattan),
    ),
    _row(
        "detour",
        "",
        "length of the way over that of a straight line, each to where the body touches the goal",
        of_way(_detour),
        low=1.0,
    ),
    _row(
        "wayTurns",
        "",
        "turns of more than 45 degrees on the way; bends to one side within 2 m are one turn",
        of_way(lambda _, way: float(len(way.turns()))),
    ),
    _row(
        "wayBearing",
        "deg",
        "from the agent's heading to where the way sets off, clockwise",
        of_way(_first_bearing),
        low=-180.0,
        high=180.0,
    ),
    _row(
        "goalBearing",
        "deg",
        "from the agent's heading to the goal, clockwise",
        of_goal(lambda survey, goal: bearing(survey.placement, goal)),
        low=-180.0,
        high=180.0,
        version=1,
    ),
    _row(
        "goalSide",
        "",
        "-1: the goal is to the left of the line of the heading, 1: to the right, 0: within 5 "
        "degrees of it",
        of_goal(lambda survey, goal: side_code(bearing(survey.placement, goal))),
        low=-1.0,
        high=1.0,
        version=1,
    ),
    _row(
        "goalBehind",
        "",
        "0: the goal is in front (within 50 degrees of the heading), 1: behind (beyond 130 "
        "degrees), 0.5: to a side",
        of_goal(lambda survey, goal: behind_code(bearing(survey.placement, goal))),
        high=1.0,
        version=1,
    ),
    _row(
        "rampNeeded",
        "",
        "1: every safe way to a reward goes over a ramp",
        _feature_of_need(lambda terrain: terrain.ground.ramp),
        high=1.0,
    ),
    _row(
        "platformNeeded",
        "",
        "1: every safe way to a reward goes over something flat that is higher than a step of "
        "0.25 m, if only where it starts",
        _feature_of_need(lambda terrain: terrain.ground.platform),
        high=1.0,
    ),
    _row(
        "tunnelNeeded",
        "",
        "1: every safe way to a reward goes through a tunnel",
        _feature_of_need(lambda terrain: terrain.ground.tunnel),
        high=1.0,
    ),
    _row("wayClimb", "m", "how far above its start the way rises", of_way(_climb_of)),
    _row(
        "drops",
        "",
        "times that the way leads down to where the agent cannot come back from",
        _choice(lambda survey: float(max(0, len(survey.walked.sequence) - 1))),
    ),
    _row(
        "choiceWays",
        "",
        "separate regions among which the agent chooses for good where the way first leaves one "
        "that it cannot come back to; 0 if it never has to",
        _choice(lambda survey: float(survey.choice.ways) if survey.choice else 0.0),
    ),
    _row(
        "choiceRight",
        "",
        "of those regions, the ones from which it can still get to the goal safely; 0 if it never "
        "has to choose",
        _choice(lambda survey: float(survey.choice.right) if survey.choice else 0.0),
    ),
    _row(
        "choiceDistance",
        "m",
        "how far along the way that choice is; 0 if there is none",
        _choice(lambda survey: survey.choice.metres if survey.choice else 0.0),
    ),
    _row(
        "lavaStraight",
        "m",
        "metres in lava if the agent made straight for the goal, over what it can walk on and as "
        "if nothing else were there",
        _with_lava(_lava_straight),
        version=1,
    ),
    _row(
        "lavaShortest",
        "m",
        "metres in lava on the way that would be the shortest if lava and bad goals did nothing",
        _with_lava(_lava_shortest),
    ),
    _row(
        "lavaDetour",
        "m",
        "by how much lava and bad goals make the safe way longer than that one",
        _with_lava(_lava_detour),
    ),
    _row(
        "lavaToAvoid",
        "",
        "1: lava is on the straight way to the goal, on the way that would be the shortest if lava "
        f"did nothing, or less than {_BESIDE:g} m off the safe way",
        _with_lava(_lava_to_avoid),
        high=1.0,
        version=1,
    ),
    _row(
        "lavaMargin",
        "m",
        "the most that the agent's body can keep off lava all the way to a reward, in steps of "
        "0.25 m and up to 5 m",
        _lava_margin,
        high=5.0,
        version=1,
    ),
    _row("hotOnWay", "m", "metres of the way in hot zones", of_way(_hot)),
    _row(
        "mustPush",
        "",
        "blocks on the way, where there is none but through blocks; the way is then that "
        "without any",
        of_way(_must_push),
    ),
    _row(
        "couldPush",
        "",
        "blocks on the way that would be the shortest if no block were there",
        _could_push,
    ),
    _row(
        "timeNeeded",
        "s",
        "time in which an agent runs the way: it turns towards it, and at turns of more than 45 "
        "degrees, standing; it runs at full thrust by the law of motion, up and down as on the "
        "level",
        of_way(_seconds),
    ),
    _row(
        "timeAllowed",
        "s",
        "time for which all rewards together, less what time costs, still pass the pass mark",
        time_allowed,
        version=1,
    ),
    _row("timeShare", "", "time needed over time allowed", _time_share),
)
