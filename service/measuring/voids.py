"""Counts the attempts that agents voided by what their arenas demanded.

A void does not count. If voids go with a demand, what counts is no fair sample of it: an agent
that leaves where it is dark is measured where it is light.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from animalcat.layouts.model.spec import Layout
from animalcat.values import Cause, Episode, Ruling

_SAID: Final = {
    "repeat": "repeated because a person said so",
    "failure": "judged to be a failure",
    "fault": "judged to be a fault",
    "awaited": "not judged, and so not counted",
}
"""What becomes of attempts at which the agent's code failed, by what a person says."""


class Voids(NamedTuple):
    """How many attempts were voided on one side of a demand and on the other.

    The battery's arenas are split at the median of the demand, or above their least value where
    that is the median, as with what is present or not.

    Attributes:
        demand: The demand, as the layout names it.
        unit: Its unit; empty where it has none.
        split: Where it is split, in the unit.
        voids_below: Attempts below the split that were voided, the first void and the second.
        attempts_below: Those and the attempts there that came to their end.
        voids_from: Voided attempts from the split on.
        attempts_from: All attempts from the split on.
    """

    demand: str
    unit: str
    split: float
    voids_below: int
    attempts_below: int
    voids_from: int
    attempts_from: int

    @property
    def words(self) -> str:
        """The counts as a phrase."""
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.voids_from} of {self.attempts_from} where {self.demand} is {self.split:.3g}"
            f"{unit} or more, {self.voids_below} of {self.attempts_below} where it is less"
        )


def is_void(episode: Episode) -> bool:
    """Return whether the agent ended an attempt, also where that counts as a failure."""
    return episode.agents_void or episode.by_default or episode.ruling is Ruling.FAILURE


def voids_by_demand(
    layout: Layout, covered: Mapping[str, Sequence[float]], attempts: Sequence[Episode]
) -> list[Voids]:
    """Count the attempts of a session by every demand that varies in its battery.

    Args:
        layout: The layout, which says what the demands are.
        covered: Features of the battery's instances by name, in the order of the layout's columns.
        attempts: All attempts of the session.

    Returns:
        The demands, those first where the shares of voids differ most; empty without a void.
    """
    ended = [(is_void(e), _demands(e, layout, covered)) for e in attempts if _has_ended(e)]
    return counted_voids(layout, covered, ended)


def counted_voids(
    layout: Layout,
    covered: Mapping[str, Sequence[float]],
    ended: Sequence[tuple[bool, Sequence[float]]],
) -> list[Voids]:
    """Count what is void by every demand that varies.

    Args:
        layout: The layout, which says what the demands are.
        covered: Features of all instances by name, in the order of the layout's columns.
        ended: Whether each attempt that has ended is void, and its features.

    Returns:
        As `voids_by_demand`.
    """
    if not any(void for void, _ in ended):
        return []
    voids: list[Voids] = []
    for column, feature in enumerate(layout.features):
        values = [row[column] for row in covered.values() if math.isfinite(row[column])]
        if column in layout.taught or len(set(values)) < 2:
            continue
        split = statistics.median(values)
        if split == min(values):
            split = min(v for v in values if v > split)
        sides = [[0, 0], [0, 0]]
        for void, row in ended:
            if column < len(row) and math.isfinite(row[column]):
                side = sides[row[column] >= split]
                side[0] += void
                side[1] += 1
        unit = "" if feature.unit == "1" else feature.unit
        voids.append(Voids(feature.name, unit, split, *sides[0], *sides[1]))
    return sorted(voids, key=lambda counts: -_difference(counts))


def voids_to_dict(
    voids: Sequence[Voids], what: str = "Attempts that the agent voided"
) -> dict[str, Any]:
    """Return what the profile says of voids: words for the widest difference, and all counts."""
    words = ""
    if voids:
        words = f"{what}, by demand: {voids[0].words}"
        if len(voids) > 1:
            words += f"; {voids[1].words}"
        words += (
            ". Where voids depend on a demand, the episodes that count are not a fair sample of it."
        )
    return {"words": words, "demands": [void._asdict() for void in voids]}


def failures_to_dict(attempts: Sequence[Episode]) -> dict[str, Any]:
    """Return what the profile says of attempts at which the agent's code failed.

    Args:
        attempts: All attempts of the session that are not declared invalid.

    Returns:
        How many a person said are what, how many nobody spoke of ("awaited"), how many episodes
        that count were played on an arena that had been seen so ("seen"), and words.
    """
    rulings = [e.ruling for e in attempts if e.ruling is not None and not e.practice]
    counts = {ruling.name.lower(): rulings.count(ruling) for ruling in Ruling}
    failed = {e.number for e in attempts if e.ruling is not None}
    shown_before = sum(e.seen and e.counts and e.number in failed for e in attempts)
    words = ""
    if rulings:
        said = [f"{counts[ruling]} {word}" for ruling, word in _SAID.items() if counts[ruling]]
        what = "1 attempt" if len(rulings) == 1 else f"{len(rulings)} attempts"
        words = f"The agent's code failed in {what}: {', '.join(said)}."
        if shown_before:
            words += f" {_say_seen(shown_before)}"
    return {"words": words, **counts, "seen": shown_before}


def looks_to_dict(attempts: Sequence[Episode]) -> dict[str, Any]:
    """Return what the profile says of arenas that an agent was shown and withdrew from.

    Args:
        attempts: All attempts of the session that are not declared invalid.

    Returns:
        How often it withdrew ("withdrawn"), how many episodes that count had an arena that it had
        been shown so ("seen"), and words.
    """
    looked = [e for e in attempts if e.kind is Cause.LOOKED and not e.practice]
    numbers = {e.number for e in looked}
    shown_before = sum(e.seen and e.counts and e.number in numbers for e in attempts)
    words = ""
    if looked:
        times = "once" if len(looked) == 1 else f"{len(looked)} times"
        words = (
            f"The agent withdrew {times} from an arena that it had been shown. "
            f"{_say_seen(shown_before)}"
        )
    return {"words": words, "withdrawn": len(looked), "seen": shown_before}


def _say_seen(number: int) -> str:
    return f"Of the episodes that count, {number} had an arena that was seen before in this way."


def _has_ended(episode: Episode) -> bool:
    return not episode.practice and (episode.counts or is_void(episode))


def _demands(
    episode: Episode, layout: Layout, covered: Mapping[str, Sequence[float]]
) -> Sequence[float]:
    made = episode.decision.made
    if made is None:
        return covered.get(episode.decision.instance, ())
    return [made.instance.features.get(name, math.nan) for name in layout.feature_names]


def _difference(voids: Voids) -> float:
    """Return by how much the shares of voids differ; each is drawn towards a half by one attempt.

    So one attempt on a side does not stand before ten.
    """
    below = (voids.voids_below + 0.5) / (voids.attempts_below + 1)
    above = (voids.voids_from + 0.5) / (voids.attempts_from + 1)
    return abs(above - below)
