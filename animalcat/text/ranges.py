"""Ranges of numbers, which stand beside the type of a field and are checked when a value is made.

@dataclass(frozen=True)
class Rule:
share: Annotated[float, Range(0, 1)] = 0.5

def __post_init__(self) -> None:
check_ranges(self)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, get_type_hints


@dataclass(frozen=True, slots=True)
class Range:
    """From which number to which a field goes.

    Attributes:
        low: Least number.
        high: Greatest number; infinite where there is none. Infinity itself is never in a range.
        above: Whether the least number itself is out of it.
        below: Whether the greatest number itself is out of it.
    """

    low: float
    high: float = math.inf
    above: bool = False
    below: bool = False

    def has(self, number: float) -> bool:
        """Whether a number is in it; what is not a number (NaN) never is."""
        low = self.low < number if self.above else self.low <= number
        high = self.below or math.isinf(self.high)
        return low and (number < self.high if high else number <= self.high)

    def __str__(self) -> str:
        low, high = self.low, f"less than {self.high}" if self.below else str(self.high)
        if math.isinf(self.high):
            return f"more than {low}" if self.above else f"{low} or more"
        if self.above:
            return f"more than {low}, and {high if self.below else f'at most {high}'}"
        return f"{low} to {high}"


@cache
def ranges_of(kind: type) -> Mapping[str, Range]:
    """The ranges of a class's fields, by name."""
    hints = get_type_hints(kind, include_extras=True)
    found = ((name, getattr(hint, "__metadata__", ())) for name, hint in hints.items())
    return {name: part for name, parts in found for part in parts if isinstance(part, Range)}


def check_ranges(value: Any) -> None:
    """Check the fields of a value that have a range.

    Raises:
        ValueError: One is out of it; the message says which, and what to give.
    """
    kind: type = value.__class__
    for name, span in ranges_of(kind).items():
        if not span.has(number := getattr(value, name)):
            raise ValueError(f"{name} {number} is out of range; give {span}")
