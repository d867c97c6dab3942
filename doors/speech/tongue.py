"""The options of a tongue, which say what a speaker is told and in which form it answers."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, Self, TypeAlias, get_args

from animalcat.text.ranges import Range, check_ranges

Form: TypeAlias = Literal["tools", "script", "frames"]
"""How a speaker answers: by calls of tools, by a script of several deeds, or by names of actions
that are taken frame by frame."""


@dataclass(frozen=True, slots=True)
class Tongue:
    """How a speaker is told what it perceives, and how it answers.

    Two agents that differ in any of these are two agents: published results of language models
    could not be repeated where the options were not recorded.

    Attributes:
        form: How it answers.
        words: Whether it is told in words what its rays meet and how it moves. Its health it is
            always told.
        picture: Side of the pictures that it is shown, in pixels; 0 for none.
        history: How many pictures it keeps before it, the newest among them.
        deeds: The most deeds in one answer.
        answers: The most answers in one episode; then it stands still until the episode is over.
        prompt: What it is told first, in place of our own words; empty for these.
    """

    form: Form = "tools"
    words: bool = True
    picture: Annotated[int, Range(0, 512)] = 256
    history: Annotated[int, Range(1, 100)] = 4
    deeds: Annotated[int, Range(1, 50)] = 8
    answers: Annotated[int, Range(1, 10_000)] = 40
    prompt: str = ""

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.form not in get_args(Form):
            raise ValueError(f"tongue: {self.form!r} is no form; there are {_join(_FORMS)}")
        if not self.words and not self.picture:
            raise ValueError("tongue: without words and pictures a speaker perceives nothing")
        if 0 < self.picture < 4:
            raise ValueError(
                f"tongue: picture {self.picture}; a picture has 4 to 512 pixels a side"
            )

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a tongue from text: its form, and behind commas options that differ.

        Args:
            text: Such as "script" or "tools,words=no,picture=84".

        Raises:
            ValueError: A form or option is unknown, named twice, or has no such value.
        """
        form, *options = [part.strip() for part in text.split(",")]
        given: dict[str, Any] = {"form": form}
        known = {field.name: field.default for field in fields(cls)}
        for option in options:
            name, equals, value = (part.strip() for part in option.partition("="))
            if not equals or name not in known or name == "form":
                near = difflib.get_close_matches(name, known, 1)
                meant = f"; did you mean {near[0]}?" if near else ""
                raise ValueError(
                    f"tongue {text!r}: {option!r} is no option{meant} There are "
                    f"{_join([name for name in known if name != 'form'])}, each as NAME=VALUE."
                )
            if name in given:
                raise ValueError(f"tongue {text!r}: {name} is given twice")
            given[name] = _value(text, name, value, known[name])
        return cls(**given)

    @property
    def options(self) -> Mapping[str, str]:
        """All options as text, for an agent's fingerprint."""
        return {field.name: _format_value(getattr(self, field.name)) for field in fields(self)}

    def __str__(self) -> str:
        """The form and the options that differ, as `of` reads them, but for the prompt."""
        return ",".join(
            [
                self.form,
                *(
                    f"{field.name}={_format_value(getattr(self, field.name))}"
                    for field in fields(self)
                    if field.name not in ("form", "prompt")
                    and getattr(self, field.name) != field.default
                ),
            ]
        )


_FORMS = get_args(Form)
_SWITCHES = {"yes": True, "no": False}


def _value(text: str, name: str, value: str, default: object) -> object:
    if isinstance(default, bool):
        if value not in _SWITCHES:
            raise ValueError(f"tongue {text!r}: {name} is {value!r}; it is yes or no")
        return _SWITCHES[value]
    if isinstance(default, int):
        if not value.isdecimal():
            raise ValueError(f"tongue {text!r}: {name} is {value!r}; it is a whole number")
        return int(value)
    return value


def _format_value(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


def _join(names: Any) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}"
