"""Distributions of a family's parameters; each turns a uniform number into a value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from scipy.special import ndtr, ndtri

from animalcat.arena_configs.families.scope import EASE, Formula, Scope, Value


class EmptyRangeError(ValueError):
    """The low end of a range is above its high end, for these values of other parameters."""


class Range(Protocol):
    """What a parameter is drawn from."""

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The formulas in it."""
        ...

    def value(self, share: float, scope: Scope) -> Value:
        """The value below which a share of all draws are.

        Args:
            share: At least 0 and less than 1.
            scope: Values of the parameters that its formulas name.

        Raises:
            EmptyRangeError: There is no value.
            ArenaError: A formula has no value.
        """
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """One value.

    Attributes:
        formula: The value.
    """

    formula: Formula

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The formula."""
        return (self.formula,)

    def value(self, share: float, scope: Scope) -> Value:
        """The value; the share makes no difference."""
        return self.formula.value(scope)


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers between two ends.

    Attributes:
        low: Least number.
        high: Greatest number.
        kind: uniform; log_uniform: uniform in the logarithm; integers: whole numbers, the ends
            among them where they are whole.
    """

    low: Formula
    high: Formula
    kind: str

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """Both ends."""
        return self.low, self.high

    def value(self, share: float, scope: Scope) -> Value:
        """The number below which a share of all draws are."""
        low, high = _ends(self.low, self.high, scope)
        if self.kind == "integers":
            low, high = self._whole(low, high)
            return low + math.floor(share * (high - low + 1.0))
        if self.kind == "log_uniform":
            if low <= 0.0:
                raise self.low.place.error(f"`{self.low.text}` is {low:g}; it has to be above 0")
            return low * (high / low) ** share
        return low + (high - low) * share

    def _whole(self, low: float, high: float) -> tuple[float, float]:
        """The least and the greatest whole number between two ends."""
        least, most = float(math.ceil(low - EASE)), float(math.floor(high + EASE))
        if least > most:
            raise EmptyRangeError(
                f"the low end `{self.low.text}`, rounded up, is {least:g}, above the high end "
                f"`{self.high.text}`, rounded down: {most:g}"
            )
        return least, most


@dataclass(frozen=True, slots=True)
class TruncatedNormal:
    """A normal distribution, cut off at two ends.

    Attributes:
        mean: Its mean before it is cut off.
        sd: Its standard deviation before that.
        low: Least number.
        high: Greatest number.
    """

    mean: Formula
    sd: Formula
    low: Formula
    high: Formula

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """Mean, standard deviation and both ends."""
        return self.mean, self.sd, self.low, self.high

    def value(self, share: float, scope: Scope) -> Value:
        """The number below which a share of all draws are."""
        low, high = _ends(self.low, self.high, scope)
        mean, sd = self.mean.number(scope), self.sd.number(scope)
        if sd <= 0.0:
            raise self.sd.place.error(f"`{self.sd.text}` is {sd:g}; it has to be above 0")
        first, last = (float(ndtr((end - mean) / sd)) for end in (low, high))
        return min(high, max(low, mean + sd * float(ndtri(first + share * (last - first)))))


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of several numbers or words.

    Attributes:
        options: They.
        weights: How often each is drawn, beside the others.
    """

    options: tuple[Value, ...]
    weights: tuple[float, ...]

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """None."""
        return ()

    def value(self, share: float, scope: Scope) -> Value:
        """The option below which a share of all draws are."""
        total = sum(self.weights)
        upto = accumulate(self.weights)
        index = (
            option for option, end in zip(self.options, upto, strict=True) if share * total < end
        )
        return next(index, self.options[-1])


def _ends(low: Formula, high: Formula, scope: Scope) -> tuple[float, float]:
    ends = low.number(scope), high.number(scope)
    if ends[0] > ends[1]:
        raise EmptyRangeError(
            f"the low end `{low.text}` is {ends[0]:g}, above the high end `{high.text}`: "
            f"{ends[1]:g}"
        )
    return ends
