"""What a meta-feature is, and what measuring gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.placement import PlacedObject
from animalcat.arena_configs.routes import Route

Reading: TypeAlias = float | str
"""A measured value, or why the feature does not apply."""

Measured: TypeAlias = Literal["placement", "playing"]

InChain: TypeAlias = Literal["", "first", "sum", "greatest", "least", "whole"]
"""How the readings of arenas that merge into one episode add up: as in the first arena, by sum,
greatest or least; "whole": the definition itself is about all arenas of an episode. Empty: it is
not measured where arenas merge."""

ALONG_WAY: Final = 2
"""Version of how a way is drawn, and so of what is measured along it.

With 2, one of several equally long ways over the grid is taken by a rule that a mirror or a turn
does not change.
"""


@dataclass(frozen=True, slots=True)
class FeatureDefinition:
    """The definition of a meta-feature, and how it is measured.

    Attributes:
        name: Its name.
        unit: Its unit; "" for codes, counts, shares and rewards.
        description: What it means.
        measure: The function that measures it; None where the arena must be played: whoever plays
            it gives the reading to `measure_features`.
        low: Least possible value.
        high: Greatest possible value.
        group: What it is about, for tables and pages.
        version: Version of its definition; a later one may give other values for the same arena.
        chain: How its readings add up where arenas merge into one episode.
    """

    name: str
    unit: str
    description: str
    measure: Callable[[Survey], Reading] | None = None
    low: float = 0.0
    high: float = math.inf
    group: str = "arena"
    version: int = 1
    chain: InChain = ""

    @property
    def measured(self) -> Measured:
        """How it is measured: from the placement alone, or by playing the arena."""
        return "playing" if self.measure is None else "placement"


class MeasuredFeatures(NamedTuple):
    """Meta-features of one instance.

    Attributes:
        values: Those that apply, by name, each in its unit.
        missing: By name, why any other does not apply.
    """

    values: dict[str, float]
    missing: dict[str, str]


def of_goal(reading: Callable[[Survey, PlacedObject], float]) -> Callable[[Survey], Reading]:
    """Make a feature function from one about the goal."""

    def read(survey: Survey) -> Reading:
        return "no reward" if survey.goal is None else reading(survey, survey.goal)

    return read


def of_way(reading: Callable[[Survey, Route], float]) -> Callable[[Survey], Reading]:
    """Make a feature function from one about the way."""

    def read(survey: Survey) -> Reading:
        way = survey.way
        return way if isinstance(way, str) else reading(survey, way)

    return read
