"""Distributions of a family's parameters; each turns a uniform number into a value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from animalcat.arena_configs.families.scope import EASE, Formula, Scope, Value
from animalcat.portable import arrays as portable
from animalcat.portable import scalars

_LAST: Final = 1.0 - 1e-12
"""The share of the greatest number of a range."""
_STEPS: Final = 15
"""Parts into which a range is divided by the numbers that stand for it."""


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

    def share(self, value: float, scope: Scope) -> float:
        """The share at which `value` gives a number, or the nearest number that there is.

        Args:
            value: The number.
            scope: Values of the parameters that its formulas name.

        Returns:
            At least 0 and less than 1.

        Raises:
            EmptyRangeError: There is no value.
            ArenaError: A formula has no value.
        """
        ...

    def spread(self, scope: Scope) -> list[Value]:
        """Values from the least to the greatest, near enough to each other to stand for all.

        Args:
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

    def share(self, value: float, scope: Scope) -> float:
        """No share makes a difference."""
        return 0.0

    def spread(self, scope: Scope) -> list[Value]:
        """The value."""
        return [self.formula.value(scope)]


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
        low, high = self._limits(scope)
        if self.kind == "integers":
            return low + math.floor(share * (high - low + 1.0))
        if self.kind == "log_uniform":
            return low * scalars.power(high / low, share)
        return low + (high - low) * share

    def share(self, value: float, scope: Scope) -> float:
        """The share at which it is a number, or the nearest to it."""
        low, high = self._limits(scope)
        value = min(max(value, low), high)
        if self.kind == "integers":
            return (round(value) - low + 0.5) / (high - low + 1.0)
        if low == high:
            return 0.0
        if self.kind == "log_uniform":
            return min(scalars.log(value / low) / scalars.log(high / low), _LAST)
        return min((value - low) / (high - low), _LAST)

    def spread(self, scope: Scope) -> list[Value]:
        """Numbers that differ by a part of the whole, or of its logarithm: by what is less."""
        low, high = self._limits(scope)
        step = (high - low) / _STEPS
        if step == 0.0:
            return [low]
        if self.kind == "integers":
            step = max(1.0, math.ceil(step))
            return [*np.arange(low, high, step).tolist(), high]
        if self.kind == "uniform":
            return _plain(np.linspace(low, high, _STEPS + 1))
        # Below the turn a part of the logarithm is less, above it a part of the whole.
        rate = scalars.log(high / low) / _STEPS
        turn = min(max(step / rate, low), high)
        below, above = scalars.log(turn / low) / rate, (high - turn) / step
        steps = np.linspace(0.0, below + above, math.ceil(below + above - EASE) + 1)
        up = low * portable.exp(rate * np.minimum(steps, below)) + step * np.maximum(
            steps - below, 0.0
        )
        return _plain(up.clip(low, high))

    def _limits(self, scope: Scope) -> tuple[float, float]:
        low, high = _ends(self.low, self.high, scope)
        if self.kind == "integers":
            return self._whole(low, high)
        if self.kind == "log_uniform" and low <= 0.0:
            raise self.low.place.error(f"`{self.low.text}` is {low:g}; it has to be above 0")
        return low, high

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
        mean, sd = self._center(scope)
        first, last = (float(portable.ndtr((end - mean) / sd)) for end in (low, high))
        return min(
            high, max(low, mean + sd * float(portable.ndtri(first + share * (last - first))))
        )

    def share(self, value: float, scope: Scope) -> float:
        """The share at which it is a number, or the nearest to it."""
        low, high = _ends(self.low, self.high, scope)
        mean, sd = self._center(scope)
        value = min(max(value, low), high)
        first, here, last = (float(portable.ndtr((end - mean) / sd)) for end in (low, value, high))
        return min((here - first) / (last - first), _LAST) if last > first else 0.0

    def spread(self, scope: Scope) -> list[Value]:
        """Numbers at equal distances."""
        low, high = _ends(self.low, self.high, scope)
        return _plain(np.linspace(low, high, _STEPS + 1))

    def _center(self, scope: Scope) -> tuple[float, float]:
        mean, sd = self.mean.number(scope), self.sd.number(scope)
        if sd <= 0.0:
            raise self.sd.place.error(f"`{self.sd.text}` is {sd:g}; it has to be above 0")
        return mean, sd


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

    def share(self, value: float, scope: Scope) -> float:
        """The middle of the shares of the option that is nearest to a number."""
        ends = [0.0, *accumulate(self.weights)]
        gaps = [
            abs(option - value) if weight > 0.0 and not isinstance(option, str) else math.inf
            for option, weight in zip(self.options, self.weights, strict=True)
        ]
        k = gaps.index(min(gaps))
        return (ends[k] + ends[k + 1]) / (2.0 * ends[-1])

    def spread(self, scope: Scope) -> list[Value]:
        """The options that are drawn."""
        return [one for one, weight in zip(self.options, self.weights, strict=True) if weight > 0.0]


def _plain(numbers: npt.NDArray[np.float64]) -> list[Value]:
    """Numbers between the first and the last, rounded to a hundredth of their distance or so."""
    low, *inner, high = numbers.tolist()
    gap = float(np.diff(numbers).min())
    if gap <= 0.0:
        return [low]
    digits = 1 - math.floor(math.log10(gap))
    return [low, *(min(max(round(one, digits), low), high) for one in inner), high]


def _ends(low: Formula, high: Formula, scope: Scope) -> tuple[float, float]:
    ends = low.number(scope), high.number(scope)
    if ends[0] > ends[1]:
        raise EmptyRangeError(
            f"the low end `{low.text}` is {ends[0]:g}, above the high end `{high.text}`: "
            f"{ends[1]:g}"
        )
    return ends
