"""Meta-features of how things look: colours and patterns, which should not matter to an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from animalcat.arena_configs.features.definition import ALONG_WAY, FeatureDefinition, Reading
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.placement import PlacedObject

_WITHOUT_RAMPS: Final = 3
"""Version of colours: those of ramps are left out, since their pink says what they are."""
_CHANNELS: Final = ("Red", "Green", "Blue")


def _walls(survey: Survey) -> list[PlacedObject]:
    return [thing for thing in survey.placement.objects if thing.name == "Wall"]


def _hiding_walls(survey: Survey) -> list[PlacedObject]:
    return [thing for thing in survey.occluders if thing.name != "Ramp"]


def _color(thing: PlacedObject) -> tuple[float, float, float]:
    return thing.color or thing.kind.color


def _channel(
    of: Callable[[Survey], Sequence[PlacedObject]], channel: int, none: str
) -> Callable[[Survey], Reading]:
    def read(survey: Survey) -> Reading:
        things = of(survey)
        if not things:
            return none
        return 255.0 * sum(_color(thing)[channel] for thing in things) / len(things)

    return read


def _occluders(survey: Survey) -> Reading:
    return "no reward" if survey.goal is None else float(len(survey.occluders))


def _patterns(survey: Survey) -> float:
    boards = (t for t in survey.placement.objects if t.kind.tag == "SignPoster")
    return float(len({thing.item.symbol_names[:1] for thing in boards}))


LOOKS: Final = (
    FeatureDefinition(
        "occluders",
        "",
        "opaque objects that hide some of the goal from the start or from its way, where "
        "everything is as it is placed",
        _occluders,
        group="sight",
        version=ALONG_WAY,
    ),
    *(
        FeatureDefinition(
            f"occluder{name}",
            "",
            f"how {name.lower()} the occluders but ramps are on average, before their texture",
            _channel(_hiding_walls, channel, "no occluder but ramps"),
            high=255.0,
            group="look",
            version=_WITHOUT_RAMPS,
        )
        for channel, name in enumerate(_CHANNELS)
    ),
    *(
        FeatureDefinition(
            f"wall{name}",
            "",
            f"how {name.lower()} opaque walls are on average, before their texture",
            _channel(_walls, channel, "no wall"),
            high=255.0,
            group="look",
            version=_WITHOUT_RAMPS,
        )
        for channel, name in enumerate(_CHANNELS)
    ),
    FeatureDefinition(
        "wallColours",
        "",
        "different colours of opaque walls",
        lambda survey: float(len({_color(thing) for thing in _walls(survey)})),
        group="look",
        version=_WITHOUT_RAMPS,
    ),
    FeatureDefinition("patterns", "", "different pictures on sign boards", _patterns, group="look"),
)
