"""What documentation shows as output, compared with what a run prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

NUMBER: Final = re.compile(r"(?<![\w.])[-+]?\d+(?:\.(\d+))?(?![\w])")
GAP: Final = "..."


@dataclass(frozen=True)
class Tolerance:
    """How far apart numbers may be that count as the same: rounding differs between processors.

    Attributes:
        share: By which share of itself a number may differ.
        least: By how much any may differ; those with decimals may by one in the last place.
    """

    share: float = 0.02
    least: float = 0.0

    def allows(self, shown: re.Match[str], seen: re.Match[str]) -> bool:
        last = 10.0 ** -len(shown[1]) if shown[1] else 0.0
        a, b = float(shown[0]), float(seen[0])
        return abs(a - b) <= max(last, self.least, self.share * abs(a)) + 1e-9


def agrees(shown: str, seen: str, tolerance: Tolerance | None = None) -> bool:
    """Compare what a page shows with what a run prints.

    A line `...` stands for any number of lines. Empty lines and the widths of columns play no part.

    Args:
        shown: The text in the documentation.
        seen: The text of the run.
        tolerance: How far apart numbers may be.

    Returns:
        Whether they say the same.
    """
    return _agree(_lines(shown), _lines(seen), tolerance or Tolerance())


def _lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def _agree(shown: list[str], seen: list[str], tolerance: Tolerance) -> bool:
    if not shown:
        return not seen
    if shown[0] == GAP:
        return any(_agree(shown[1:], seen[skip:], tolerance) for skip in range(len(seen) + 1))
    same = bool(seen) and _same_line(shown[0], seen[0], tolerance)
    return same and _agree(shown[1:], seen[1:], tolerance)


def _same_line(shown: str, seen: str, tolerance: Tolerance) -> bool:
    if NUMBER.sub("#", shown) != NUMBER.sub("#", seen):
        return False
    pairs = zip(NUMBER.finditer(shown), NUMBER.finditer(seen), strict=True)
    return all(tolerance.allows(*pair) for pair in pairs)
