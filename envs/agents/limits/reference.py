"""References of agents: their kind and name, and behind it limits or the tongue of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from animalcat.envs.agents.limits.catalogue import (
    LAST_PLACE,
    LIMITS,
    PRIVILEGED,
    SIDES,
    cues_of,
    limits_of,
)
from animalcat.speech.tongue import Tongue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from animalcat.envs.agents.limits.catalogue import Limit

FORMS: Final = "expected builtin:NAME, plugin:NAME, llm:MODEL or path/to/file.py:ClassName"
MODEL: Final = "llm:"
"""Beginning of a reference of a language model."""
Strength: TypeAlias = float | str


class AgentLoadError(ValueError):
    """The agent cannot be loaded; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference that was read.

    Attributes:
        where: `builtin`, `plugin`, `llm`, or the path of a file.
        name: Of the built-in agent, of the plugin, of the model or of the class.
        limits: Name of each limit -> its strength, in the order in which they were written.
        tongue: How a language model is told what it perceives, and how it answers; None for
            others.
    """

    where: str
    name: str
    limits: Mapping[str, Strength]
    tongue: Tongue | None = None

    @property
    def builtin(self) -> str:
        """Name of the built-in agent; empty for an agent of one's own."""
        return self.name if self.where == "builtin" else ""

    @property
    def plugin(self) -> str:
        """Name of the plugin that the agent is (`animalcat.plugins`); empty for any other."""
        return self.name if self.where == "plugin" else ""

    @property
    def ours(self) -> bool:
        """Whether its code comes with animalcat, and so may be trusted like it."""
        return bool(self.builtin) or self.tongue is not None

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
            strength is not one that it takes, or two limits contradict each other; a model's
            tongue is none.
    """
    if text.startswith(MODEL):
        return _model(text)
    where, separator, rest = text.rpartition(":")
    name, *written = rest.split("+")
    if not separator or not where or not name:
        raise AgentLoadError(f"agent {text!r}: {FORMS}")
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


def _model(text: str) -> Reference:
    """Read the reference of a language model, whose name may have colons."""
    name, _, spoken = text.removeprefix(MODEL).partition("+")
    if not name:
        raise AgentLoadError(f"agent {text!r}: name the model, as in llm:openai/gpt-4o")
    try:
        return Reference("llm", name, {}, Tongue.of(spoken or "tools"))
    except ValueError as error:
        raise AgentLoadError(f"agent {text!r}: {error}") from None


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
    """Side of the pictures that a language model is to be shown, in pixels; 0 for other agents.

    Args:
        text: A reference, or any name of an agent that runs elsewhere.
    """
    try:
        read = read_reference(text)
    except AgentLoadError:
        return 0
    return 0 if read.tongue is None else read.tongue.picture


def _strength(text: str, name: str, value: str | None) -> Strength:
    """The strength of a limit, of the range that it takes."""
    limit = LIMITS.get(name)
    if limit is None:
        raise AgentLoadError(
            f"agent {text!r}: no limit is named {name!r}; there are: {', '.join(LIMITS)} "
            "(animalcat agent limits says what each does)"
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
