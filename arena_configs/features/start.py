"""Meta-features of what stands in an arena at the start: where the reward is, and what there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from animalcat.arena_configs.features.definition import FeatureDefinition, Reading
from animalcat.arena_configs.features.survey import Survey, nearest_reward
from animalcat.arena_configs.geometry import Solid, overlaps
from animalcat.arena_configs.model import Point
from animalcat.arena_configs.placement import AGENT_RADIUS, LIFT, PlacedObject, Placement
from animalcat.arena_configs.returns import (
    CHANGING,
    best_value,
    ends_alone,
    grants,
    max_return,
    min_return,
)
from animalcat.arena_configs.routes import is_lava, is_movable
from animalcat.portable import scalars

IN_FRONT: Final = 50.0
"""Degrees off the heading up to which the reward counts as in front: half the camera's field of
view of 100."""
BEHIND: Final = 130.0
"""Degrees off the heading from which the reward counts as behind: a sector as wide as the one in
front.

On the 69 instances of the layout every reward is within 34 degrees of the heading or beyond 135, so
the values do not depend on where exactly the limits are."""
CENTRED: Final = 5.0
"""Degrees off the line of the heading up to which the reward counts as neither left nor right.

On the 69 instances rewards are within 1 degree of that line or at least 14 degrees off it."""
_ABOVE_FLOOR: Final = 0.05
"""Metres above the floor up to which something still counts as standing on it."""
SECONDS_PER_UNIT: Final = 0.1
"""Seconds in one unit of an arena's time limit."""


def asked_size(thing: PlacedObject) -> float:
    """A ball's diameter in metres as its item specifies it, within the limits of its kind."""
    item, kind = thing.item, thing.kind
    asked = item.sizes[0].x if item.sizes else item.initial_values[0]
    return min(max(asked, kind.size_min.x), kind.size_max.x)


def bearing(placement: Placement, thing: PlacedObject) -> float:
    """Degrees from the agent's heading to an object, clockwise, in [-180, 180)."""
    start = placement.agent
    direction = scalars.atan2(
        thing.position.x - start.position.x, thing.position.z - start.position.z
    )
    return (math.degrees(direction) - start.yaw + 180.0) % 360.0 - 180.0


def dark_share(blackouts: Sequence[int], time_limit: int) -> float:
    """Share of the time in which the light is off.

    Args:
        blackouts: Times at which it toggles, as in `Arena`.
        time_limit: In the same unit; 0 for no limit.
    """
    if not blackouts:
        return 0.0
    if blackouts[0] < 0 and time_limit <= 0:
        return 0.5
    if time_limit <= 0:
        return float(len(blackouts) % 2)
    if blackouts[0] < 0:
        whole, rest = divmod(time_limit, -2 * blackouts[0])
        return (-whole * blackouts[0] + max(0, rest + blackouts[0])) / time_limit
    ends = [min(max(0, time), time_limit) for time in sorted(blackouts)]
    if len(ends) % 2:
        ends.append(time_limit)
    return sum(on - off for off, on in zip(ends[::2], ends[1::2], strict=True)) / time_limit


def _of_reward(
    reading: Callable[[Placement, PlacedObject], float],
) -> Callable[[Survey], Reading]:
    """Make a feature function from one about the nearest reward."""

    def read(survey: Survey) -> Reading:
        reward = nearest_reward(survey.placement)
        return "no reward" if reward is None else reading(survey.placement, reward)

    return read


def _count(counts: Callable[[PlacedObject], bool]) -> Callable[[Survey], Reading]:
    """Make a feature function that counts objects of some sort."""
    return lambda survey: float(sum(map(counts, survey.placement.objects)))


def _distance(placement: Placement, reward: PlacedObject) -> float:
    return math.dist(placement.agent.position, reward.position)


def behind_code(angle: float) -> float:
    """0: a bearing in front, 1: behind, 0.5: to a side."""
    away = abs(angle)
    return 0.0 if away <= IN_FRONT else 1.0 if away >= BEHIND else 0.5


def side_code(angle: float) -> float:
    """-1: a bearing to the left, 1: to the right, 0: on the line of the heading."""
    away = abs(angle)
    return 0.0 if min(away, 180.0 - away) <= CENTRED else math.copysign(1.0, angle)


def _in_way(
    stands: Callable[[PlacedObject], bool],
) -> Callable[[Placement, PlacedObject], float]:
    """Make a feature function that counts objects of some sort on a straight path to the reward."""

    def count(placement: Placement, reward: PlacedObject) -> float:
        body = _straight_way(placement.agent.position, reward)
        met = (
            any(overlaps(body, solid) for solid in thing.solids())
            for thing in placement.objects
            if stands(thing)
        )
        return float(sum(met))

    return count


def _straight_way(start: Point, reward: PlacedObject) -> Solid:
    """The box through which the agent passes on a straight path to the middle of a reward."""
    goal = reward.position
    feet = start.y - AGENT_RADIUS, goal.y - reward.size.x / 2
    # What is flat enough to stand on does not block the way.
    low, high = min(feet) + _ABOVE_FLOOR, max(feet) + 2 * AGENT_RADIUS
    length = math.hypot(goal.x - start.x, goal.z - start.z)
    return Solid(
        "box",
        Point((start.x + goal.x) / 2, (low + high) / 2, (start.z + goal.z) / 2),
        Point(AGENT_RADIUS, (high - low) / 2, length / 2),
        math.degrees(scalars.atan2(goal.x - start.x, goal.z - start.z)),
    )


def _is_solid(thing: PlacedObject) -> bool:
    return not thing.kind.goal and not thing.kind.zone


def _is_reward(thing: PlacedObject) -> bool:
    return thing.kind.goal and best_value(thing) > 0


def _is_raised(thing: PlacedObject) -> bool:
    return _is_reward(thing) and thing.position.y - thing.size.x / 2 > LIFT + _ABOVE_FLOOR


def _least(survey: Survey) -> Reading:
    placement = survey.placement
    bound = min_return(placement)
    return bound if math.isfinite(bound) else "a button or a zone may take any reward"


def _greatest(survey: Survey) -> Reading:
    placement = survey.placement
    bound = max_return(placement)
    return bound if math.isfinite(bound) else "a spawner, a button or a zone may give any reward"


def _sum_of_rewards(survey: Survey) -> Reading:
    placement = survey.placement
    if grants(placement):
        return "a spawner, a button or a zone may give any reward"
    return sum((best_value(thing) for thing in placement.objects if _is_reward(thing)), 0.0)


def _time_limit(survey: Survey) -> Reading:
    placement = survey.placement
    return placement.time_limit * SECONDS_PER_UNIT if placement.time_limit > 0 else "no time limit"


START: Final = (
    FeatureDefinition(
        "rewardDistance",
        "m",
        "Euclidean distance from the centre of the agent at its start to that of the "
        "nearest reward",
        _of_reward(_distance),
    ),
    FeatureDefinition(
        "rewardSize",
        "m",
        "diameter of the nearest reward before Unity's 0.1 % off",
        _of_reward(lambda _, reward: asked_size(reward)),
    ),
    FeatureDefinition(
        "rewardBehind",
        "",
        "0: the nearest reward is in front (within 50 degrees of the heading), 1: behind "
        "(beyond 130 degrees), 0.5: to a side",
        _of_reward(lambda placement, reward: behind_code(bearing(placement, reward))),
        high=1.0,
    ),
    FeatureDefinition(
        "XPos",
        "",
        "-1: the nearest reward is to the left of the line of the heading, 1: to the "
        "right, 0: within 5 degrees of it",
        _of_reward(lambda placement, reward: side_code(bearing(placement, reward))),
        low=-1.0,
        high=1.0,
    ),
    FeatureDefinition(
        "wallsInWay",
        "",
        "solid objects that the agent's body meets on a straight way to the nearest reward",
        _of_reward(_in_way(_is_solid)),
    ),
    FeatureDefinition(
        "lavaInWay",
        "",
        "deadly zones on a straight way of the agent's body to the nearest reward",
        _of_reward(_in_way(is_lava)),
    ),
    FeatureDefinition(
        "rewards",
        "",
        "goals that give a positive reward, at the start or later",
        _count(_is_reward),
    ),
    FeatureDefinition(
        "endingRewards",
        "",
        "of the rewards, those that end the episode whatever else is there",
        _count(lambda thing: _is_reward(thing) and ends_alone(thing)),
    ),
    FeatureDefinition(
        "rewardSum",
        "",
        "the most that the rewards give together, all of which no play need get",
        _sum_of_rewards,
    ),
    FeatureDefinition(
        "raisedRewards",
        "",
        "rewards that lie or hang above the floor at the start",
        _count(_is_raised),
    ),
    FeatureDefinition(
        "bouncingRewards",
        "",
        "rewards that move from the start on",
        _count(lambda thing: _is_reward(thing) and thing.kind.bounce),
    ),
    FeatureDefinition(
        "changingRewards",
        "",
        "goals whose value changes with time: they decay, ripen, grow or shrink",
        _count(lambda thing: thing.kind.reward in CHANGING),
    ),
    FeatureDefinition(
        "badGoals",
        "",
        "goals that take reward",
        _count(lambda thing: thing.kind.reward == "bad"),
    ),
    FeatureDefinition(
        "decoys",
        "",
        "goals that give nothing",
        _count(lambda thing: thing.kind.reward == "decoy"),
    ),
    FeatureDefinition(
        "leastReturn",
        "",
        "a bound: no episode returns less, few as little",
        _least,
        low=-math.inf,
    ),
    FeatureDefinition(
        "greatestReturn",
        "",
        "a bound: no episode returns more, few as much",
        _greatest,
        low=-math.inf,
    ),
    FeatureDefinition(
        "obstacles",
        "",
        "solid objects besides the fence of the arena, wherever they stand",
        _count(_is_solid),
    ),
    FeatureDefinition(
        "transparentWalls",
        "",
        "solid objects that can be seen through",
        _count(lambda thing: _is_solid(thing) and thing.kind.alpha < 1.0),
    ),
    FeatureDefinition(
        "movables",
        "",
        "blocks and boxes that the agent can push",
        _count(is_movable),
    ),
    FeatureDefinition("ramps", "", "ramps", _count(lambda thing: thing.name == "Ramp")),
    FeatureDefinition(
        "tunnels",
        "",
        "cylinder tunnels",
        _count(lambda thing: thing.name.startswith("CylinderTunnel")),
    ),
    FeatureDefinition("lava", "", "deadly zones", _count(is_lava)),
    FeatureDefinition(
        "hotZones",
        "",
        "zones that take reward as long as the agent is in them",
        _count(lambda thing: thing.kind.reward == "hot"),
    ),
    FeatureDefinition(
        "spawners",
        "",
        "trees, dispensers and containers that goals come out of",
        _count(lambda thing: thing.kind.reward == "spawner"),
    ),
    FeatureDefinition(
        "operated",
        "",
        "buttons and zones that do something when the agent gets to them",
        _count(lambda thing: thing.kind.reward == "button" or bool(thing.item.operations)),
    ),
    FeatureDefinition(
        "darkness",
        "",
        "share of the time until the time limit in which the light is out",
        lambda survey: dark_share(survey.placement.blackouts, survey.placement.time_limit),
        high=1.0,
    ),
    FeatureDefinition("timeLimit", "s", "time until the episode ends by itself", _time_limit),
    FeatureDefinition(
        "frozenTime",
        "s",
        "how long the agent cannot move at the start",
        lambda survey: float(survey.placement.agent.frozen_seconds),
    ),
    FeatureDefinition(
        "agentHeight",
        "m",
        "how high above the floor the agent starts",
        lambda survey: max(0.0, round(survey.placement.agent.position.y - AGENT_RADIUS - LIFT, 6)),
    ),
)
