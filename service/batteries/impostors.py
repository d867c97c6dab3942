"""Says by which cues an agent could pass a battery's arenas without what they ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any, Final, NamedTuple

from animalcat.arena_configs.instance import Instance

ENOUGH: Final = 60
"""Instances from which a cue is told apart: sessions of 200 episodes then meet some of them."""
_STRONG: Final = 200.0
"""Redness or greenness of an occluder above which agents 7 and 8 of Burden et al. (2023) fail."""

_Row = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class _Cue:
    """What an impostor goes by.

    Attributes:
        agent: What it does, in words.
        needs: Demands that tell where the cue and the goal part.
        either: For each instance, whether it is on the first or the second side of what the cue
            divides: -1.0 and 1.0; 0.0 where the cue says nothing.
        both: Whether it takes instances on both sides to see the cue. If not, those on the first
            side tell the impostor, whatever the others are.
    """

    agent: str
    needs: tuple[str, ...]
    either: Callable[[_Row], float]
    both: bool = False


def _is_hidden(row: _Row) -> bool:
    return row.get("occluderPresence", 0.0) == 1.0


def _fails_at(channel: str) -> Callable[[_Row], float]:
    def side(row: _Row) -> float:
        if not _is_hidden(row) or f"occluder{channel}" not in row:
            return 0.0
        return -1.0 if row[f"occluder{channel}"] > _STRONG else 1.0

    return side


def _there(count: str, needed: str) -> Callable[[_Row], float]:
    """The cue that something is there; it misleads where nothing asks for it."""

    def side(row: _Row) -> float:
        return -1.0 if row.get(count, 0.0) > 0.0 and row.get(needed, nan) == 0.0 else 0.0

    return side


_CUES: Final = (
    _Cue(
        "goes to where it last saw the goal",
        ("lastPlaceShows",),
        lambda row: -1.0 if row.get("lastPlaceShows", nan) == 0.0 else 0.0,
    ),
    _Cue(
        "goes to the left",
        ("rightLeftPosition",),
        lambda row: -1.0 if row.get("rightLeftPosition", nan) > 0.0 else 0.0,
    ),
    _Cue(
        "goes to the right",
        ("rightLeftPosition",),
        lambda row: -1.0 if row.get("rightLeftPosition", nan) < 0.0 else 0.0,
    ),
    _Cue("fails where red hides the goal", ("occluderRed",), _fails_at("Red"), both=True),
    _Cue("fails where green hides the goal", ("occluderGreen",), _fails_at("Green"), both=True),
    _Cue("fails wherever a ramp is", ("ramps", "rampNeeded"), _there("ramps", "rampNeeded")),
    _Cue("fails wherever lava is", ("lava", "lavaToAvoid"), _there("lava", "lavaToAvoid")),
)


class Impostor(NamedTuple):
    """A kind of agent that goes by a cue.

    Attributes:
        agent: What it does, in words.
        parting: Instances in which the cue and what is asked for part, so that its outcomes
            differ from those of an agent that goes by the latter.
    """

    agent: str
    parting: int

    @property
    def verdict(self) -> str:
        """Whether a battery tells it from agents that go by what is asked for, in words."""
        if self.parting == 0:
            return "cannot be told apart"
        return "can hardly be told apart" if self.parting < ENOUGH else "can be told apart"

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values."""
        return {"agent": self.agent, "parting": self.parting, "verdict": self.verdict}


def impostors(instances: Iterable[Instance]) -> tuple[Impostor, ...]:
    """Count for each cue the instances in which it and the goal part.

    Args:
        instances: The instances of a battery, those that a session may play.

    Returns:
        One for each cue of which the demands are known, and one for the apparatus.
    """
    known = list(instances)
    rows = [one.features for one in known]
    found: list[Impostor] = []
    for cue in _CUES:
        if not all(any(name in row for row in rows) for name in cue.needs):
            continue
        sides = [cue.either(row) for row in rows]
        first, second = sides.count(-1.0), sides.count(1.0)
        found.append(Impostor(cue.agent, min(first, second) if cue.both else first))
    by_paradigm: dict[str, list[bool]] = {}
    for one in known:
        if "occluderPresence" in one.features:
            by_paradigm.setdefault(one.paradigm, []).append(_is_hidden(one.features))
    if any(map(any, by_paradigm.values())):
        open_ = sum(row.count(False) for row in by_paradigm.values() if any(row))
        found.append(Impostor("fails at an apparatus in which the goal is hidden", open_))
    return tuple(found)
