"""Meta-features of object permanence as Burden et al. 2023, Table 4, define them.

Their names are those of the layout `object-permanence`. When and how long the goal is hidden takes
playing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from animalcat.arena_configs.features.definition import FeatureDefinition, Reading, of_goal
from animalcat.arena_configs.features.start import asked_size, bearing, side_code
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.placement import PlacedObject
from animalcat.arena_configs.routes import is_lava


def _manhattan(survey: Survey, goal: PlacedObject) -> float:
    start = survey.placement.agent.position
    return abs(goal.position.x - start.x) + abs(goal.position.z - start.z)


def _presence(of: Callable[[PlacedObject], bool]) -> Callable[[Survey], Reading]:
    return lambda survey: float(any(map(of, survey.placement.objects)))


def _platform(survey: Survey) -> Reading:
    # Nothing can be stood on where there is nothing flat that is higher than a step.
    if not any(_flat_top(thing) for thing in survey.placement.objects):
        return 0.0
    terrain = survey.terrain
    if terrain.safe is None:
        return "the agent starts inside something"
    return float(bool((terrain.ground.platform & np.isfinite(terrain.safe.metres)).any()))


def _flat_top(thing: PlacedObject) -> bool:
    return not thing.kind.goal and not thing.kind.zone and not thing.kind.name.startswith("Cyl")


def _row(
    name: str,
    unit: str,
    description: str,
    measure: Callable[[Survey], Reading],
    low: float = 0.0,
    high: float = 1.0,
) -> FeatureDefinition:
    return FeatureDefinition(name, unit, description, measure, low, high, "object permanence")


PERMANENCE: Final = (
    _row(
        "goalDistance",
        "m",
        "Manhattan distance from the start to the goal, the nearest reward by way",
        of_goal(_manhattan),
        high=math.inf,
    ),
    _row(
        "goalSize",
        "m",
        "diameter of the goal before Unity's 0.1 % off",
        of_goal(lambda _, goal: asked_size(goal)),
        high=math.inf,
    ),
    _row(
        "rightLeftPosition",
        "",
        "-1: the goal is to the left of the line of the heading, 1: to the right, 0: within 5 "
        "degrees of it",
        of_goal(lambda survey, goal: side_code(bearing(survey.placement, goal))),
        low=-1.0,
    ),
    _row("lavaPresence", "", "1: there is lava", _presence(is_lava)),
    _row(
        "platformPresence",
        "",
        "1: there is something flat, higher than a step of 0.25 m, that the agent can come to "
        "stand on",
        _platform,
    ),
    _row("rampPresence", "", "1: there is a ramp", _presence(lambda thing: thing.name == "Ramp")),
    _row(
        "transparentPresence",
        "",
        "1: there is a transparent wall",
        _presence(lambda thing: thing.name == "WallTransparent"),
    ),
)
