"""What a speaker said, read as deeds; what cannot be read is refused in words that help it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from animalcat.doors.speech.tongue import Tongue
from animalcat.envs.types import ACTIONS

GO_METRES: Final = 35.0
"""The farthest that one deed goes, as in published work on language models in Animal-AI."""
TURN_DEGREES: Final = 360.0
"""The most that one deed turns; of the same source."""
WAIT_SECONDS: Final = 10.0
"""The longest that one deed waits."""
PRESS_DECISIONS: Final = 100
"""The most decisions for which one action is repeated."""
MOST_LETTERS: Final = 100_000
"""Letters of an answer from which on it is not read at all."""
MOST_THOUGHT: Final = 2000
"""Letters of a thought that are kept."""
FRAMES: Final[Mapping[str, int]] = {
    "NOOP": 0,
    "TURN_RIGHT": 1,
    "TURN_LEFT": 2,
    "FORWARD": 3,
    "FORWARD_RIGHT": 4,
    "FORWARD_LEFT": 5,
    "BACKWARD": 6,
}
"""Names of actions, as in the scaffold of animalai 6.2, and their numbers."""


@dataclass(frozen=True, slots=True)
class Go:
    """Go straight ahead, or backward if it is negative, in metres."""

    metres: float

    def __post_init__(self) -> None:
        _insist("go", "metres", self.metres, GO_METRES)


@dataclass(frozen=True, slots=True)
class Turn:
    """Turn on the spot, to the left if it is negative, in degrees."""

    degrees: float

    def __post_init__(self) -> None:
        _insist("turn", "degrees", self.degrees, TURN_DEGREES)


@dataclass(frozen=True, slots=True)
class Wait:
    """Stand still, in seconds."""

    seconds: float

    def __post_init__(self) -> None:
        _insist("wait", "seconds", self.seconds, WAIT_SECONDS, low=0.0)


@dataclass(frozen=True, slots=True)
class Press:
    """Take one action, 0 to 8, for a number of decisions."""

    action: int
    decisions: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.action < ACTIONS:
            raise UnreadableError(f"There is no action {self.action}.")
        if not 1 <= self.decisions <= PRESS_DECISIONS:
            raise UnreadableError(
                f"An action is repeated 1 to {PRESS_DECISIONS} times, and not {self.decisions}."
            )


Deed: TypeAlias = Go | Turn | Wait | Press


class UnreadableError(ValueError):
    """What was said is no answer; the text tells the speaker what was wrong, and what is right."""


@dataclass(frozen=True, slots=True)
class Said:
    """An answer that was read.

    Attributes:
        deeds: What to do, in order; at least one.
        thought: What the speaker thought aloud, at most `MOST_THOUGHT` letters.
    """

    deeds: tuple[Deed, ...]
    thought: str = ""


def read(text: str, tongue: Tongue) -> Said:
    """Read an answer in text.

    Commands are read in order, and nothing may stand beside them but white space, semicolons and a
    code fence. So an answer that talks is told apart from one that acts.

    Args:
        text: `Think('...');Go(3);Turn(-30);Wait(1)` for the form "script", or lines such as
            `FORWARD 5` for "frames".
        tongue: How the speaker answers.

    Raises:
        UnreadableError: It is no such answer.
        ValueError: The form is "tools", which is answered by calls.
    """
    if tongue.form == "tools":
        raise ValueError("a speaker with tools answers by calls: use read_call")
    if len(text) > MOST_LETTERS:
        raise UnreadableError(f"The answer has {len(text)} letters, more than can be read.")
    bare = _FENCE.sub("", text).strip()
    if not bare:
        raise UnreadableError(f"The answer is empty. {_EXAMPLES[tongue.form]}")
    said = _script(bare) if tongue.form == "script" else _frames(bare)
    if not said.deeds:
        raise UnreadableError(f"The answer has thoughts alone. {_EXAMPLES[tongue.form]}")
    if len(said.deeds) > tongue.deeds:
        raise UnreadableError(
            f"The answer has {len(said.deeds)} commands, and may have {tongue.deeds} at most."
        )
    return said


def read_call(name: str, arguments: Mapping[str, Any]) -> Deed:
    """Read the call of a tool.

    Args:
        name: "go", "turn" or "wait".
        arguments: What it was called with.

    Raises:
        UnreadableError: There is no such tool, or an argument is missing, unknown or out of range.
    """
    if name not in TOOLS:
        raise UnreadableError(f"There is no tool {_cut(name)}. There are go, turn, wait and look.")
    (argument,), make = TOOLS[name], _TOOL_DEEDS[name]
    extra = sorted(set(arguments) - {argument})
    if extra or argument not in arguments:
        what = f"has no argument {_cut(extra[0])}" if extra else f"needs the argument {argument}"
        raise UnreadableError(f"The tool {name} {what}. Call it as {name}({argument}=...).")
    value = arguments[argument]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadableError(f"{argument} is {_cut(repr(value))}, and it must be a number.")
    try:
        return make(float(value))
    except OverflowError:
        raise UnreadableError(f"{argument} is too large a number.") from None


TOOLS: Final[Mapping[str, tuple[str]]] = {
    "go": ("metres",),
    "turn": ("degrees",),
    "wait": ("seconds",),
}
"""The tools that act, and the argument of each."""
_TOOL_DEEDS: Final[Mapping[str, Callable[[float], Deed]]] = {"go": Go, "turn": Turn, "wait": Wait}
_FENCE: Final = re.compile(r"^\s*```\w*\s*$", re.MULTILINE)
_COMMAND: Final = re.compile(r"\s*(Think|Go|Turn|Wait)\s*\(\s*")
_NUMBER: Final = re.compile(r"([+-]?\d{1,6}(?:\.\d{1,6})?)\s*\)")
_BETWEEN: Final = re.compile(r"\s*;?\s*")
_QUOTES: Final = ("'", '"')
# A thought may hold its own quotation mark, as in 'I don't see it': so it ends where the mark is
# followed by a bracket and by what may stand behind a command.
_END: Final[Mapping[str, re.Pattern[str]]] = {
    mark: re.compile(rf"{mark}\s*\)(?=\s*(?:;|\n|$))") for mark in _QUOTES
}
_FRAME: Final = re.compile(r"([A-Z_]+)(?:\s+(\d{1,6}))?")
_EXAMPLES: Final[Mapping[str, str]] = {
    "script": "Write for example: Think('It is to the left.');Turn(-30);Go(5)",
    "frames": "Write for example: FORWARD 5",
}


def _script(text: str) -> Said:
    deeds: list[Deed] = []
    thoughts: list[str] = []
    place = 0
    while place < len(text):
        command = _COMMAND.match(text, place)
        if command is None:
            raise UnreadableError(f"{_cut(text[place:])} is no command. {_EXAMPLES['script']}")
        name = command[1]
        if name == "Think":
            thought, place = _read_thought(text, command.end())
            thoughts.append(thought)
        else:
            number = _NUMBER.match(text, command.end())
            if number is None:
                shown = _cut(text[command.start() :].strip())
                raise UnreadableError(f"{shown}: {name} takes one number. {_EXAMPLES['script']}")
            deeds.append(_TOOL_DEEDS[name.lower()](float(number[1])))
            place = number.end()
        between = _BETWEEN.match(text, place)
        assert between is not None  # it matches nothing too
        place = between.end()
    return Said(tuple(deeds), " ".join(thoughts)[:MOST_THOUGHT])


def _read_thought(text: str, place: int) -> tuple[str, int]:
    """A thought, and where it ends; `place` is where its quotation mark should be."""
    mark = text[place : place + 1]
    if mark not in _QUOTES:
        raise UnreadableError(f"Think takes a text in quotation marks. {_EXAMPLES['script']}")
    end = _END[mark].search(text, place + 1)
    if end is None:
        raise UnreadableError(f"The text of Think does not end. {_EXAMPLES['script']}")
    return text[place + 1 : end.start()], end.end()


def _frames(text: str) -> Said:
    deeds: list[Deed] = []
    for line in re.split(r"[\n;,]+", text):
        if not line.strip():
            continue
        match = _FRAME.fullmatch(line.strip())
        if match is None or match[1] not in FRAMES:
            raise UnreadableError(
                f"{_cut(line.strip())} is no action. {_EXAMPLES['frames']} There are "
                f"{', '.join(FRAMES)}, each with the number of times."
            )
        deeds.append(Press(FRAMES[match[1]], int(match[2] or 1)))
    return Said(tuple(deeds))


def _insist(name: str, unit: str, value: float, high: float, low: float | None = None) -> None:
    low = -high if low is None else low
    if not (math.isfinite(value) and low <= value <= high):
        raise UnreadableError(f"{name} takes {low:g} to {high:g} {unit}, and not {value:g}.")


def _cut(text: str) -> str:
    """As much of what was said as a message shows."""
    line = " ".join(text[:200].split())
    return line if len(line) <= 60 else f"{line[:57]}..."
