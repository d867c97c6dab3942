"""References of agents: their kind and name, and behind it limits or what a door reads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from animalcat.envs.agents.limits.catalogue import (
    LAST_PLACE,
    LIMITS,
    PRIVILEGED,
    SIDES,
    cues_of,
    limits_of,
)
from animalcat.extending.doorways import entries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animalcat.envs.agents.base import Agent
    from animalcat.envs.agents.limits.catalogue import Limit
    from animalcat.envs.types import ObservationSpec

Strength: TypeAlias = float | str
Expected: TypeAlias = tuple[int, int, int]
"""Tokens that a session gives to a model at most and that it returns, and answers an episode."""


class AgentLoadError(ValueError):
    """The agent cannot be loaded; the message says why and what to do."""


class DoorAgent(Protocol):
    """What a door has read of a reference: an agent that runs elsewhere, such as a model."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def picture(self) -> int:
        """Side of the pictures that it is to be shown, in pixels; 0 for none."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """All that makes it another agent, for its fingerprint."""
        ...

    def check(self) -> None:
        """Look for what it needs; a ValueError says what is missing."""
        ...

    def make(self) -> Agent:
        """Make the agent; a ValueError or an AnimalcatError says why that is not possible."""
        ...

    def expected(self, spec: ObservationSpec, episodes: int) -> Expected:
        """Say what a session takes at most."""
        ...


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference that was read.

    Attributes:
        where: `builtin`, `plugin`, the path of a file, or the beginning of an agent of a door.
        name: Of the built-in agent, of the plugin, of the class or of a door's agent.
        limits: Name of each limit -> its strength, in the order in which they were written.
        door: What a door has read of it; None for others.
    """

    where: str
    name: str
    limits: Mapping[str, Strength]
    door: DoorAgent | None = None

    @property
    def builtin(self) -> str:
        """Name of the built-in agent; empty for an agent of one's own."""
        return self.name if self.where == "builtin" else ""

    @property
    def plugin(self) -> str:
        """Name of the plugin (`animalcat.extending.plugins`) that it is; empty for any other."""
        return self.name if self.where == "plugin" else ""

    @property
    def ours(self) -> bool:
        """Whether its code comes with animalcat, and so may be trusted like it."""
        return bool(self.builtin) or self.door is not None

    @property
    def in_file(self) -> bool:
        """Whether it is a class of a file."""
        return not (self.ours or self.plugin)

    @property
    def privileged(self) -> bool:
        """Whether the agent plays only where it is shown the arena's true state."""
        return self.builtin in PRIVILEGED

    def number(self, name: str, otherwise: float) -> float:
        """Strength of a limit that takes numbers, or what it is without the limit."""
        value = self.limits.get(name, otherwise)
        assert not isinstance(value, str)
        return value


def read_reference(text: str) -> Reference:
    """Read a reference, and check its limits; nothing is loaded.

    Args:
        text: Such as `builtin:scout+sight=8+lapses=.1`, or `llm:openai/gpt-4o+script,words=no`.

    Raises:
        AgentLoadError: It has another form; a limit is unknown, the agent does not take it, its
            strength is not one that it takes, or two limits contradict each other; a door cannot
            read it.
    """
    if (way := entries("agents").get(text.partition(":")[0])) is not None:
        try:
            read = way.load().read(text.partition(":")[2])
        except ValueError as error:
            raise AgentLoadError(f"agent {text!r}: {error}") from None
        return Reference(way.name, read.name, {}, read)
    where, separator, rest = text.rpartition(":")
    name, *written = rest.split("+")
    if not separator or not where or not name:
        raise AgentLoadError(f"agent {text!r}: {forms()}")
    limits: dict[str, Strength] = {}
    for part in written:
        limit, equals, value = part.partition("=")
        if limit in limits:
            raise AgentLoadError(f"agent {text!r}: {limit} is given twice; give it once")
        limits[limit] = _strength(text, limit, value if equals else None)
    reference = Reference(where, name, limits)
    _check_taken(text, reference)
    _check_together(text, reference)
    return reference


def forms() -> str:
    """Return what references look like, in words."""
    of_doors = (f"{name}:{way.help}" for name, way in entries("agents").items())
    known = ", ".join(("builtin:NAME", "plugin:NAME", *of_doors))
    return f"expected {known} or path/to/file.py:ClassName"


def is_privileged(text: str) -> bool:
    """Whether an agent plays only where it is shown the arena's true state.

    Args:
        text: A reference, or any name of an agent that runs elsewhere.
    """
    try:
        return read_reference(text).privileged
    except AgentLoadError:
        return False


def pictures_of(text: str) -> int:
    """Side of the pictures that an agent of a door is to be shown, in pixels; 0 for others.

    Args:
        text: A reference, or any name of an agent that runs elsewhere.
    """
    try:
        read = read_reference(text)
    except AgentLoadError:
        return 0
    return 0 if read.door is None else read.door.picture


def _strength(text: str, name: str, value: str | None) -> Strength:
    """The strength of a limit, of the range that it takes."""
    limit = LIMITS.get(name)
    if limit is None:
        raise AgentLoadError(
            f"agent {text!r}: no limit is named {name!r}; there are: {', '.join(LIMITS)} "
            "(animalcat agent list AGENT says what each does)"
        )
    if value is None:
        if limit.otherwise is None:
            raise AgentLoadError(f"agent {text!r}: {name} needs a strength: {_takes(limit)}")
        return limit.otherwise
    if limit.words:
        if value not in limit.words:
            raise AgentLoadError(f"agent {text!r}: {name}={value} is unknown; {_takes(limit)}")
        return value
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    inside = limit.low <= number <= limit.high and not (limit.above and number == limit.low)
    if not inside or (limit.whole and number != round(number)):
        raise AgentLoadError(f"agent {text!r}: {name}={value} is out of range; {_takes(limit)}")
    return number


def _takes(limit: Limit) -> str:
    unit = f" ({limit.unit})" if limit.unit else ""
    return f"{limit.name} takes {limit.range}{unit}, as in {limit.name}={limit.example}"


def _check_taken(text: str, reference: Reference) -> None:
    """Raise if the agent does not take one of its limits."""
    taken = limits_of(reference.builtin)
    who = "an agent of a file" if reference.in_file else f"{reference.where}:{reference.name}"
    for name in reference.limits:
        if name not in taken:
            raise AgentLoadError(
                f"agent {text!r}: {name} needs a switch that {who} does not have; it takes: "
                f"{', '.join(taken)}"
            )
    cue = reference.limits.get("follows")
    cues = cues_of(reference.builtin)
    if cue is not None and cue not in cues:
        raise AgentLoadError(
            f"agent {text!r}: {who} cannot follow {cue}; it can follow: {', '.join(cues)}"
        )


_APART: Final = (
    ("memory", "no-permanence", "without permanence a hidden goal has no time of being known"),
    ("places", "no-permanence", "without permanence no place of a hidden goal is known"),
    ("left", "right", "it would turn to neither side"),
    ("tires", "learns", "one undoes the other"),
)


def _check_together(text: str, reference: Reference) -> None:
    """Raise if two limits contradict each other."""
    limits = reference.limits
    for limit, other, why in _APART:
        if limit in limits and other in limits:
            raise AgentLoadError(
                f"agent {text!r}: {limit} and {other} contradict each other: {why}; leave one out"
            )
    if limits.get("follows") == LAST_PLACE:
        for name in ("memory", "places", "no-permanence", "no-search"):
            if name in limits:
                raise AgentLoadError(
                    f"agent {text!r}: {name} and follows={LAST_PLACE} contradict each other: who "
                    "goes only to where it last saw the goal has neither permanence nor search "
                    "already; leave one out"
                )
    if reference.builtin == "planner" and limits.get("follows") in SIDES:
        for name in SIDES:
            if name in limits:
                raise AgentLoadError(
                    f"agent {text!r}: {name} and follows={limits['follows']} both say on which "
                    "side it takes goals to be; leave one out"
                )
    if "only-with" in limits and limits["only-with"] == limits.get("not-with"):
        raise AgentLoadError(
            f"agent {text!r}: only-with and not-with name the same kind, so it would never play; "
            "leave one out"
        )
    if reference.number("delay", 0.0) >= reference.number("gives-up", math.inf):
        raise AgentLoadError(
            f"agent {text!r}: delay and gives-up contradict each other: it would give up before "
            "it first acts; let gives-up be more than delay"
        )
    if "seed" in limits and "days" not in limits:
        raise AgentLoadError(
            f"agent {text!r}: seed concerns the days alone, and there are none; add days=0.3, or "
            "leave seed out"
        )
