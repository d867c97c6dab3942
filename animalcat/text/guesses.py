"""Guesses what the author of a file meant by text that is no YAML, or by a key that is no field."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final

_WORD: Final = r"[A-Za-z_]\w*"
_GLUED: Final = re.compile(rf"\s*({_WORD})\s*[:=]\s*(\S.*)", re.DOTALL)
_GLUED_LINE: Final = re.compile(rf"\s*(?:-\s+)?(?:!\w+\s+)?({_WORD}|-?[0-9]+):([^\s/].*)")
_GLUED_DASH: Final = re.compile(r"\s*-(![A-Za-z]\w*|[A-Za-z_]\w*:)(?=\s|$)")
_GLUED_TAG: Final = re.compile(r"(![A-Za-z]\w*)([{\[])")
_SHOWN: Final = 40


def closest(written: str, names: Iterable[str]) -> str:
    """The name that was probably meant; "" if none is near."""
    by_letters = {name.casefold(): name for name in names}
    same = by_letters.get(written.casefold())
    if same is not None or len(written) > _SHOWN:
        return same or ""
    near = difflib.get_close_matches(written.casefold(), by_letters, 1)
    return by_letters[near[0]] if near else ""


def apart(written: str, names: Iterable[str]) -> str:
    """The field and value that were written as one word, as in `x:2`; "" if they were not."""
    match = _GLUED.fullmatch(written)
    name = closest(match[1], names) if match else ""
    return f"{name}: {match[2][:_SHOWN]}" if match and name else ""


def broken_line(text: str, line: int, since: int | None, column: int) -> tuple[int, str] | None:
    """Find what makes a text no YAML, near where its parser gave up.

    Args:
        text: The text.
        line: The line in which the parser gave up, from 1.
        since: The line at which the node that it was reading begins; None if it does not say.
        column: The column in which it gave up, from 0.

    Returns:
        The line to blame, and what to write in it; None if nothing is found.
    """
    lines = text.splitlines()
    if not lines:
        return None
    line = min(line, len(lines))  # an error at the very end is reported behind it
    if lines[line - 1][column : column + 1] == "\t":
        return line, "a tab stands where YAML takes spaces alone: put spaces in its place"
    first = since or _before(lines, line)
    return next(
        (
            (number, f"a space is missing: write `{meant[:_SHOWN]}`")
            for number in range(first, line + 1)
            if (meant := _add_space(lines[number - 1]))
        ),
        None,
    )


def _before(lines: list[str], line: int) -> int:
    """The first of the lines right above one that lack a space; else the line itself."""
    first = line
    for number in range(line - 1, 0, -1):
        content = lines[number - 1].strip()
        if content and not content.startswith("#"):
            if not _add_space(lines[number - 1]):
                break
            first = number
    return first


def _add_space(line: str) -> str:
    """A line with the space that it lacks; "" if it lacks none."""
    if match := _GLUED_DASH.match(line):
        return f"- {match[1]}"
    if match := _GLUED_LINE.match(line):
        return f"{match[1]}: {match[2]}"
    if match := _GLUED_TAG.search(line.split(" #")[0]):
        return f"{match[1]} {match[2]}"
    return ""


def owner(written: str, fields: Mapping[str, Iterable[str]]) -> str:
    """The tag of the first thing that has a field of this name; "" if there is none."""
    return next((tag for tag, names in fields.items() if written in names), "")


def hint(name: str, known: Iterable[str]) -> str:
    """What may have been meant by an unknown name, as the rest of a message."""
    listed = sorted(known)
    close = difflib.get_close_matches(name, listed, 1)
    if close:
        return f" Did you mean {close[0]!r}?"
    return f" There are: {', '.join(listed)}." if 0 < len(listed) <= 20 else ""
