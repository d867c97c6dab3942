"""The registry of meta-features, and measuring all of them, or some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from animalcat.arena_configs.features.chains import in_chain
from animalcat.arena_configs.features.definition import (
    FeatureDefinition,
    MeasuredFeatures,
    Reading,
)
from animalcat.arena_configs.features.hiding import HIDING
from animalcat.arena_configs.features.look import LOOKS
from animalcat.arena_configs.features.permanence import PERMANENCE
from animalcat.arena_configs.features.rewards import REWARDS
from animalcat.arena_configs.features.sight import SIGHT
from animalcat.arena_configs.features.start import (
    START,
)
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.features.way import WAY
from animalcat.arena_configs.ground import TooMuchError
from animalcat.arena_configs.placement import Placement

FEATURES: Final[Mapping[str, FeatureDefinition]] = MappingProxyType(
    {
        feature.name: replace(feature, chain=in_chain(feature.name))
        for feature in (*START, *WAY, *SIGHT, *REWARDS, *LOOKS, *PERMANENCE, *HIDING)
    }
)
"""Name -> meta-feature, in the order of tables."""

NOT_PLAYED: Final = "the arena was not played, which measuring this takes"


def measure_features(
    placement: Placement | Survey,
    played: Mapping[str, Reading] | None = None,
    at_rest: Survey | None = None,
) -> MeasuredFeatures:
    """Measure every meta-feature of an instance, as it was placed.

    Args:
        placement: The placed arena, or a survey of one.
        played: Readings of the features that are measured by playing, by name; None if the arena
            was not played.
        at_rest: The arena with rewards that roll or fall where they come to rest, to which the ways
            are then measured; None if it was not played.
    """
    survey = placement if isinstance(placement, Survey) else Survey(placement)
    end = at_rest or survey
    given = played or {}
    return _sort_features(
        {
            name: _round(given.get(name, NOT_PLAYED), 3)
            if feature.measure is None
            else _read(feature, end if feature.group == "way" else survey)
            for name, feature in FEATURES.items()
        }
    )


def read_features(survey: Survey, names: Iterable[str]) -> MeasuredFeatures:
    """Measure some meta-features that do not take playing.

    Args:
        survey: The placed arena.
        names: Their names.
    """
    return _sort_features({name: _read(FEATURES[name], survey) for name in names})


def _sort_features(readings: Mapping[str, Reading]) -> MeasuredFeatures:
    return MeasuredFeatures(
        {name: value for name, value in readings.items() if not isinstance(value, str)},
        {name: why for name, why in readings.items() if isinstance(why, str)},
    )


def _read(feature: FeatureDefinition, survey: Survey) -> Reading:
    assert feature.measure is not None  # those that are measured by playing are not read
    try:
        reading = feature.measure(survey)
    except TooMuchError as error:
        return str(error)
    return reading if feature.group == "arena" else _round(reading, 6)


def _round(reading: Reading, digits: int) -> Reading:
    """A reading without the digits in which processors differ: batteries go by their content."""
    return reading if isinstance(reading, str) else float(round(reading, digits)) + 0.0
