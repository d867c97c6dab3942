"""What a speaker said, read as deeds; what cannot be read is refused in words that help it."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

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

    Models seldom write a script and nothing else. So a code fence alone counts where there is one
    with commands, what was thought between tags does not, and lines of talk are passed over. A
    command counts at the beginning of a line, behind a colon, or behind another command. One in
    the middle of a sentence is talk.

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
    bare = _THOUGHT.sub("\n", _plain(text))
    fenced = "\n".join(part for part in _BLOCK.findall(bare) if _ACTS[tongue.form].search(part))
    bare = _MARKS.sub("", fenced or _FENCE.sub("\n", bare)).strip()
    if not bare:
        raise UnreadableError(f"The answer is empty. {EXAMPLES[tongue.form]}")
    said = _calls(bare) or (_script(bare) if tongue.form == "script" else _frames(bare))
    if not said.deeds:
        raise UnreadableError(f"The answer has thoughts alone. {EXAMPLES[tongue.form]}")
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
    name = name.lower()
    if name not in TOOLS:
        raise UnreadableError(f"There is no tool {_cut(name)}. There are go, turn, wait and look.")
    (argument,), make = TOOLS[name], _TOOL_DEEDS[name]
    extra = sorted(set(arguments) - {argument})
    if extra or argument not in arguments:
        what = f"has no argument {_cut(extra[0])}" if extra else f"needs the argument {argument}"
        raise UnreadableError(f"The tool {name} {what}. Call it as {name}({argument}=...).")
    value = arguments[argument]
    if isinstance(value, str) and (number := re.fullmatch(_DIGITS, _plain(value[:20]).strip())):
        value = _number(number[0])
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
_SIGNS: Final = str.maketrans(
    "\u2212\u2012\u2013\u2014\u201c\u201d\u2018\u2019\u061b", "----\"\"'';"
)
"""Minus signs, quotation marks and a semicolon of other keyboards, and ours."""
_THOUGHT: Final = re.compile(r"<(think\w*|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"(?:```|~~~)(?:\w+(?=[ \t]*\n))?")
_BLOCK: Final = re.compile(rf"{_FENCE.pattern}(.*?)(?:```|~~~)", re.DOTALL)
_MARKS: Final = re.compile(r"</?[a-z]\w*>|[`*]", re.IGNORECASE)
_COMMAND: Final = re.compile(r"\b(Think|Go|Turn|Wait)\s*\(\s*", re.IGNORECASE)
_DIGITS: Final = r"[+-]?(?:\d{1,6}(?:\.\d{0,6}|,\d{1,2})?|\.\d{1,6})"
_NUMBER: Final = re.compile(
    r"(?:(?:metres|meters|distance|degrees|angle|seconds|time|duration)\s*[=:]\s*)?"
    rf"['\"]?({_DIGITS})\s*(?:°|deg\w*|m|met\w+|s|sec\w*)?['\"]?\s*\)",
    re.IGNORECASE,
)
_LEAD: Final = re.compile(r"(?:[^()\n]*:)?[\W\d]*")
"""What may stand before the first command of a line."""
_LINK: Final = re.compile(r"(?:[\W\d]|\band\b|\bthen\b|\bnext\b)*", re.IGNORECASE)
"""What may stand between two commands of a line."""
_QUOTES: Final = ("'", '"')
# A thought may hold its own quotation mark, as in 'I don't see it': so it ends where the mark is
# followed by a bracket and by what may stand behind a command.
_END: Final[Mapping[str, re.Pattern[str]]] = {
    mark: re.compile(rf"{mark}\s*\)(?=\s*(?:;|\n|$))") for mark in _QUOTES
}
_BRACKET: Final = re.compile(r"\)")
_BULLET: Final = re.compile(r"^\s*(?:[-+>]\s+|\d+[.)]\s)?")
_NAMES: Final = "|".join(re.sub("_", "[ _-]?", name) for name in sorted(FRAMES, key=len)[::-1])
_FRAME: Final = re.compile(
    rf"({_NAMES})\b[\s:(x\u00d7]*(\d{{1,6}})?\)?\s*(?:frames?|times|steps?)?\.?", re.IGNORECASE
)
_SPELT: Final = {name.replace("_", ""): number for name, number in FRAMES.items()}
_ACTION: Final = re.compile(rf"\b(?:{_NAMES})\b|^[A-Z_]+\s+\d+$", re.IGNORECASE)
"""What is meant as an action, whether or not it can be read."""
_ACTS: Final = {
    "script": re.compile(rf"{_COMMAND.pattern}|\"name\"", re.IGNORECASE),
    "frames": _ACTION,
}
EXAMPLES: Final[Mapping[str, str]] = {
    "script": "Write for example: Think('It is to the left.');Turn(-30);Go(5)",
    "frames": "Write for example: FORWARD 5",
    "tools": "Call a tool, for example go with metres=5.",
}
"""The form of an answer, for whoever gave another."""


def _plain(text: str) -> str:
    """The same with letters, digits and signs of other languages in the place of their like."""
    plain = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    if plain.isascii():
        return plain
    return "".join(str(unicodedata.decimal(one)) if one.isdecimal() else one for one in plain)


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def _calls(text: str) -> Said | None:
    """An answer that is written as calls in JSON; None if it is not."""
    if text[0] not in "[{":
        return None
    try:
        read: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    calls: list[Any] = cast("list[Any]", read) if isinstance(read, list) else [read]
    deeds: list[Deed] = []
    for call in calls:
        if not isinstance(call, dict):
            return None
        about = cast("dict[str, Any]", call)
        name, given = about.get("name"), about.get("arguments", about.get("parameters"))
        if not isinstance(name, str) or not isinstance(given, dict):
            return None
        deeds.append(read_call(name, cast("dict[str, Any]", given)))
    return Said(tuple(deeds))


def _script(text: str) -> Said:
    deeds: list[Deed] = []
    thoughts: list[str] = []
    place = at = 0
    while command := _COMMAND.search(text, at):
        _, line, before = text[place : command.start()].rpartition("\n")
        at = command.end()
        if not (_LEAD if line or not place else _LINK).fullmatch(before):
            if line or not place:
                continue  # it is spoken of
            raise UnreadableError(f"{_cut(before.strip())} is no command. {EXAMPLES['script']}")
        name = command[1].capitalize()
        if name == "Think":
            thought, at = _read_thought(text, at)
            thoughts.append(thought)
        else:
            number = _NUMBER.match(text, at)
            if number is None:
                shown = _cut(text[command.start() :].strip())
                raise UnreadableError(f"{shown}: {name} takes one number. {EXAMPLES['script']}")
            deeds.append(_TOOL_DEEDS[name.lower()](_number(number[1])))
            at = number.end()
        place = at
    if not deeds and not thoughts:
        raise UnreadableError(f"{_cut(text)} is no command. {EXAMPLES['script']}")
    return Said(tuple(deeds), " ".join(thoughts)[:MOST_THOUGHT])


def _read_thought(text: str, place: int) -> tuple[str, int]:
    """A thought, and where it ends; `place` is where its quotation mark should be."""
    mark = text[place : place + 1]
    quoted = mark in _QUOTES
    end = _END[mark].search(text, place + 1) if quoted else _BRACKET.search(text, place)
    if end is None:
        raise UnreadableError(f"The text of Think does not end. {EXAMPLES['script']}")
    return text[place + quoted : end.start()], end.end()


def _frames(text: str) -> Said:
    deeds: list[Deed] = []
    for line in re.split(r"[\n;,]+", text):
        part = _BULLET.sub("", line).strip()
        match = _FRAME.fullmatch(part)
        if match is not None:
            name = re.sub("[ _-]", "", match[1].upper())
            deeds.append(Press(_SPELT[name], int(match[2] or 1)))
        elif _ACTION.search(part):
            raise _no_action(part)
    if not deeds:
        raise _no_action(text)
    return Said(tuple(deeds))


def _no_action(text: str) -> UnreadableError:
    return UnreadableError(
        f"{_cut(text)} is no action. {EXAMPLES['frames']} There are {', '.join(FRAMES)}, each with "
        "the number of times."
    )


def _insist(name: str, unit: str, value: float, high: float, low: float | None = None) -> None:
    low = -high if low is None else low
    if not (math.isfinite(value) and low <= value <= high):
        raise UnreadableError(f"{name} takes {low:g} to {high:g} {unit}, and not {value:g}.")


def _cut(text: str) -> str:
    """As much of what was said as a message shows."""
    line = " ".join(text[:200].split())
    return line if len(line) <= 60 else f"{line[:57]}..."
