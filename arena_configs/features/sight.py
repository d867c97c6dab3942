"""Meta-features of what the agent can see of the goal, with everything as it is placed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice, pairwise, takewhile
from typing import Final

from animalcat.arena_configs.features.definition import ALONG_WAY, FeatureDefinition, Reading
from animalcat.arena_configs.features.start import SECONDS_PER_UNIT
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.sightlines import SEEN, Look

_FOREVER: Final = 1e9
_MANY: Final = 10_000
"""Times of darkness after which no longer one comes: lights that toggle for ever do so evenly."""


def dark_times(survey: Survey) -> Iterator[tuple[float, float]]:
    """When the light goes out and comes back, in seconds, until the time limit."""
    placement = survey.placement
    lights = list(placement.blackouts)
    end = placement.time_limit * SECONDS_PER_UNIT if placement.time_limit > 0 else math.inf
    if lights and lights[0] < 0:
        every = -lights[0] * SECONDS_PER_UNIT
        off = every
        while off < min(end, _FOREVER if math.isfinite(end) else 3 * every):
            yield off, min(off + every, end)
            off += 2 * every
        return
    times = [time * SECONDS_PER_UNIT for time in sorted(lights)]
    for off, on in pairwise([*times, end]) if len(times) % 2 else pairwise(times):
        if times.index(off) % 2 == 0 and off < end:
            yield off, min(on, end)


def dark_at(survey: Survey, time: float) -> float | None:
    """When the light comes back that is out at a time, in seconds; None if it is on."""
    begun = takewhile(lambda dark: dark[0] <= time, dark_times(survey))
    return next((on for _, on in begun if time < on), None)


def _at_start(reading: Callable[[Look], float]) -> Callable[[Survey], Reading]:
    def read(survey: Survey) -> Reading:
        look = survey.start_look
        return "no reward" if look is None else reading(look)

    return read


def _frame_reading(survey: Survey) -> Reading:
    if survey.start_look is None:
        return "no reward"
    if dark_at(survey, 0.0) is not None:
        return 0.0
    return survey.start_look.framed


def _at_choice(survey: Survey) -> Reading:
    if isinstance(survey.way, str):
        return survey.way
    choice = survey.choice
    if choice is None:
        assert survey.start_look is not None  # a way leads to a goal
        return survey.start_look.clear
    return survey.sight.look(choice.at, survey.way.goal, survey.way.end).clear


def _on_way(survey: Survey) -> Reading:
    if isinstance(survey.way, str):
        return survey.way
    looks = survey.way_looks
    return sum(way_look.look.clear >= SEEN for way_look in looks) / len(looks)


def _first_dark(survey: Survey) -> Reading:
    return next((off for off, _ in dark_times(survey)), "the light stays on")


def _longest_dark(survey: Survey) -> Reading:
    times = islice(dark_times(survey), _MANY)
    longest = max((on - off for off, on in times), default=0.0)
    return longest if math.isfinite(longest) else "the light stays out"


def _dark_at_choice(survey: Survey) -> Reading:
    if isinstance(survey.way, str):
        return survey.way
    agent, choice = survey.placement.agent, survey.choice
    along = 0.0 if choice is None else choice.metres
    # The light keeps its time while the agent is frozen.
    time = max(0.0, agent.frozen_seconds) + survey.way.seconds(agent.yaw, along)
    return float(dark_at(survey, time) is not None)


def _row(
    name: str,
    unit: str,
    description: str,
    measure: Callable[[Survey], Reading],
    high: float = math.inf,
    version: int = 1,
) -> FeatureDefinition:
    return FeatureDefinition(name, unit, description, measure, 0.0, high, "sight", version)


SIGHT: Final = (
    _row(
        "goalAngle",
        "deg",
        "visual angle of the goal at the start, hidden or not",
        _at_start(lambda look: look.degrees),
        high=180.0,
    ),
    _row(
        "goalSeen",
        "",
        "share of the goal's disc that nothing opaque hides from the start, wherever it looks",
        _at_start(lambda look: look.clear),
        high=1.0,
    ),
    _row(
        "goalInView",
        "",
        "share of the goal's disc that the camera shows at the start: nothing hides it, the "
        "heading is right and the light is on",
        _frame_reading,
        high=1.0,
    ),
    _row(
        "goalSeenAtChoice",
        "",
        "share of the goal's disc that nothing opaque hides where the agent has to choose for "
        "good; at the start if it never has to",
        _at_choice,
        high=1.0,
        version=ALONG_WAY,
    ),
    _row(
        "goalSeenOnWay",
        "",
        "share of the way from which a twentieth of the goal's disc or more is not hidden",
        _on_way,
        high=1.0,
        version=ALONG_WAY,
    ),
    _row(
        "glassInSight",
        "",
        "transparent objects between the start and the goal's centre",
        _at_start(lambda look: float(len(look.glass))),
    ),
    _row("darkFrom", "s", "when the light first goes out", _first_dark),
    _row("darkLongest", "s", "longest time that the light is out", _longest_dark),
    _row(
        "darkAtChoice",
        "",
        "1: the light is out when an agent that loses no time has to choose for good, or at its "
        "first move if it never has to",
        _dark_at_choice,
        high=1.0,
        version=ALONG_WAY,
    ),
)
