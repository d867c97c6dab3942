"""Why an arena's demands are what they are: the way, its turns, the choice, what hides the goal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from animalcat.arena_configs.features.definition import Reading
from animalcat.arena_configs.features.start import SECONDS_PER_UNIT, bearing
from animalcat.arena_configs.features.survey import Survey
from animalcat.arena_configs.features.way import pushed_blocks
from animalcat.arena_configs.model import Point
from animalcat.arena_configs.placement import PlacedObject
from animalcat.arena_configs.sightlines import SEEN

if TYPE_CHECKING:
    from animalcat.envs.measure import PlayMeasurement

MOVED: Final = 0.25
"""Metres from which on it is told that a goal moves."""


def explanation(placed: Survey, played: PlayMeasurement) -> dict[str, Any]:
    """What the measured values of an arena come from, as plain data and in words.

    Args:
        placed: The arena as it is placed.
        played: What playing it told, with the rewards where they come to rest.
    """
    survey = played.at_rest
    way, goal = survey.way, survey.goal
    told: dict[str, Any] = {
        "goal": None if goal is None else _thing(goal),
        "no_way": way if isinstance(way, str) else None,
        "way": None,
        "turns": [],
        "choice": None,
        "pushed": [],
        "occluders": [_thing(thing) for thing in survey.occluders],
        "seen": [],
        "best_order": [],
    }
    if not isinstance(way, str):
        told["way"] = [_round(point) for point in way.points]
        told["turns"] = [
            {"at": _round(turn.at), "degrees": round(turn.degrees, 1)} for turn in way.turns()
        ]
        if survey.pushes:
            told["pushed"] = [_thing(thing) for thing in pushed_blocks(survey, way)]
        if (choice := survey.choice) is not None:
            told["choice"] = {
                "at": _round(choice.at),
                "metres": round(choice.metres, 2),
                "ways": choice.ways,
                "right": choice.right,
            }
        told["seen"] = _stretches(survey)
    if not isinstance(survey.order, str):
        told["best_order"] = [_thing(thing) for thing in survey.order.best]
    told["words"] = [*_sentences(placed, played)]
    return told


def _sentences(placed: Survey, played: PlayMeasurement) -> Iterator[str]:
    survey = played.at_rest
    way, goal = survey.way, survey.goal
    if goal is None:
        yield "There is no reward."
        return
    side = bearing(survey.placement, goal)
    turned = f"{abs(side):.0f}° to the {'right' if side > 0 else 'left'}"
    yield f"The goal is {_name_of(goal)}, {turned} of the agent's heading."
    if isinstance(way, str):
        yield f"There is no way to measure: {way}."
    else:
        yield from _of_way(survey)
    yield from _of_hiding(played.readings)
    look = placed.start_look
    if look is not None:
        yield (
            f"From the start {look.clear:.0%} of the goal's disc is not hidden, and the camera "
            f"shows {look.framed:.0%}; its visual angle is {look.degrees:.1f}°."
        )
    if survey.occluders:
        yield f"Hidden by: {', '.join(map(_name_of, survey.occluders))}."
    if not isinstance(way, str):
        seen = _stretches(survey)
        ranges = ", ".join(f"{a:.1f} to {b:.1f} m" for a, b in seen)
        yield f"On the way the goal is in sight {f'from {ranges}' if ranges else 'nowhere'}."
    order = survey.order
    if not isinstance(order, str) and len(survey.terrain.goals) > 1:
        yield (
            f"Best order: {', '.join(map(_name_of, order.best))}; it returns "
            f"{order.best_return:.3g}, the nearest first {order.near_return:.3g}."
        )


def _of_hiding(readings: Mapping[str, Reading]) -> Iterator[str]:
    """When and how long the reward is hidden that is hidden longest."""
    travel, since = readings["goalTravel"], readings["hiddenFrom"]
    still, moving = readings["hiddenStanding"], readings["hiddenMoving"]
    if not isinstance(travel, str) and travel >= MOVED:
        yield f"It comes to rest {travel:.1f} m from where it is placed, if the agent stands still."
    if not isinstance(since, str):
        yield f"To an agent that stands still it is hidden after {since:.2f} s, for {still:.2f} s."
    elif isinstance(still, str):
        yield f"It is hidden, for how long is not known: {still}."
    if not isinstance(moving, str) and moving > 0.0:
        yield f"On its way the agent loses sight of it for {moving:.2f} s."


def _of_way(survey: Survey) -> Iterator[str]:
    way = survey.way
    assert not isinstance(way, str)
    bends = " - ".join(map(_place, way.points))
    yield f"The way is {way.length:.2f} m long, {way.straight:.2f} m as the crow flies: {bends}."
    for turn in way.turns():
        hand = "right" if turn.degrees > 0 else "left"
        yield f"It turns {abs(turn.degrees):.0f}° to the {hand} at {_place(turn.at)}."
    if survey.pushes:
        names = ", ".join(map(_name_of, pushed_blocks(survey, way)))
        yield f"It leads through what has to be pushed aside: {names}."
    if (choice := survey.choice) is not None:
        yield (
            f"After {choice.metres:.1f} m, at {_place(choice.at)}, the agent leaves a place that "
            f"it cannot come back to: for one of {choice.ways} regions, {choice.right} of which "
            "lead to the goal."
        )
    seconds = way.seconds(survey.placement.agent.yaw)
    limit = survey.placement.time_limit * SECONDS_PER_UNIT
    yield f"It takes {seconds:.1f} s" + (
        f" of {limit:g} s." if limit > 0 else "; there is no limit."
    )


def _stretches(survey: Survey) -> list[tuple[float, float]]:
    """From where to where on the way the goal is seen, in metres."""
    way = survey.way
    looks = survey.way_looks
    if isinstance(way, str) or not looks:
        return []
    half = (way.length - way.touch) / len(looks) / 2
    found: list[tuple[float, float]] = []
    for one in looks:
        if one.look.clear < SEEN:
            continue
        low, high = one.metres - half, one.metres + half
        if found and low - found[-1][1] < half:
            found[-1] = found[-1][0], high
        else:
            found.append((low, high))
    return [(round(low, 2), round(high, 2)) for low, high in found]


def _thing(thing: PlacedObject) -> dict[str, Any]:
    index, copy = thing.source
    return {"name": thing.name, "item": index, "copy": copy, "at": _round(thing.position)}


def _name_of(thing: PlacedObject) -> str:
    return f"{thing.name} at ({thing.position.x:.4g}, {thing.position.z:.4g})"


def _place(point: Point) -> str:
    high = f", {point.y - 0.5:.1f} m up" if point.y > 1.0 else ""
    return f"({point.x:.4g}, {point.z:.4g}{high})"


def _round(point: Point) -> list[float]:
    return [round(value, 3) for value in point]
