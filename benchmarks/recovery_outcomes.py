"""What agents of `benchmarks recovery` have played, and for which other strengths it holds as well.

An agent without chance meets the strength of its limit only where it compares something with it:
the metres that it has gone, the seconds for which a goal has been hidden. With another strength for
which every comparison comes out the same, it does the same in the same arena, to the last action.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

Asked: TypeAlias = dict[tuple[str, float, bool], float]
"""Sign, what was taken away from the strength, answer -> the number that decides."""

COMPARED: Final = frozenset({"memory", "places", "smallest", "path"})
"""Limits whose strengths are only compared with something."""
_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Strength:
    """A strength that takes note of what it is compared with.

    It is no number: whatever else is done with it fails, so nothing can escape its notes.

    Attributes:
        asked: What it was asked. Of the questions of one kind with one answer it keeps that which
            holds for the fewest strengths.
    """

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, value: float, less: float = 0.0, asked: Asked | None = None) -> None:
        """Begin without notes.

        Args:
            value: The strength.
            less: What is taken away from it before it is compared.
            asked: Notes to go on with.
        """
        self._value, self._less = value, less
        self.asked: Asked = {} if asked is None else asked

    def _ask(self, sign: str, other: float) -> bool:
        answer = _SIGNS[sign](self._value - self._less, other)
        key = sign, self._less, answer
        # A strength that is more than 3 is more than 2 as well.
        tightest = max if (sign[0] == ">") == answer else min
        self.asked[key] = tightest(self.asked.get(key, other), other)
        return answer

    def __lt__(self, other: float) -> bool:
        return self._ask("<", other)

    def __le__(self, other: float) -> bool:
        return self._ask("<=", other)

    def __gt__(self, other: float) -> bool:
        return self._ask(">", other)

    def __ge__(self, other: float) -> bool:
        return self._ask(">=", other)

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, float | int)
        return self._ask(">=", other) and self._ask("<=", other)

    def __bool__(self) -> bool:
        return self != 0.0

    def __sub__(self, less: float) -> Strength:
        assert not self._less
        return Strength(self._value, less, self.asked)


def holds(asked: Asked, strength: float) -> bool:
    """Whether a strength would have answered everything the same way."""
    return all(
        _SIGNS[sign](strength - less, other) == answer
        for (sign, less, answer), other in asked.items()
    )


class Outcomes:
    """Outcomes of episodes without chance; several processes can share them by a file."""

    def __init__(self, file: Path | None = None) -> None:
        """Begin with what the file has.

        Args:
            file: The file; None to share nothing.
        """
        self._file, self._read = file, 0
        self._known: dict[str, list[tuple[dict[str, Asked], bool]]] = {}

    def find(self, key: str, strengths: Mapping[str, float]) -> bool | None:
        """Whether an agent passes; None if nothing is known that holds for it.

        Args:
            key: Says all but the strengths.
            strengths: By the name of the limit.
        """
        known = self._look(key, strengths)
        if known is None and self._file is not None and self._file.exists():
            self._read_on(self._file)
            known = self._look(key, strengths)
        return known

    def keep(self, key: str, strengths: Mapping[str, Strength], *, passed: bool) -> None:
        """Keep what was played.

        Args:
            key: Says all but the strengths.
            strengths: By the name of the limit, with their notes.
            passed: Whether the agent passed.
        """
        asked = {name: strength.asked for name, strength in strengths.items()}
        if self._file is None:
            self._known.setdefault(key, []).append((asked, passed))
            return
        told = {name: [[*k, other] for k, other in notes.items()] for name, notes in asked.items()}
        line = json.dumps([key, told, passed]) + "\n"
        # One write to the end of a file is not mixed with another's.
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    def _look(self, key: str, strengths: Mapping[str, float]) -> bool | None:
        for asked, passed in self._known.get(key, ()):
            if all(holds(notes, strengths[name]) for name, notes in asked.items()):
                return passed
        return None

    def _read_on(self, file: Path) -> None:
        """Take in the lines that are new and whole."""
        with file.open("rb") as lines:
            lines.seek(self._read)
            new = lines.read()
        new = new[: new.rfind(b"\n") + 1]
        self._read += len(new)
        for line in new.splitlines():
            key, told, passed = json.loads(line)
            asked = {
                name: {(sign, less, answer): other for sign, less, answer, other in notes}
                for name, notes in told.items()
            }
            self._known.setdefault(key, []).append((asked, passed))
