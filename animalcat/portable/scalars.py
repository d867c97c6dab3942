"""Functions of one number that give the same bits on every processor, without any library.

Errors are below one unit in the last place of sines, cosines, exponentials and logarithms, and
below three of the others. The series are those of Taylor, after a reduction of the argument.
"""

from __future__ import annotations

import math
from typing import Final

_QUARTERS: Final = 0.6366197723675814
"""2 / pi."""
_QUARTER: Final = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
"""pi / 2 in three parts, the first two of 33 bits, so that multiples of them are exact."""
_FAR: Final = 1e5
"""Angles beyond are first brought into one turn."""
_SINES: Final = tuple((-1.0) ** n / math.factorial(2 * n + 1) for n in range(8, 0, -1))
_COSINES: Final = tuple((-1.0) ** n / math.factorial(2 * n) for n in range(9, 1, -1))
_ARCS: Final = tuple((-1.0) ** n / (2 * n + 1) for n in range(20, 0, -1))
_EXPONENTIALS: Final = tuple(1.0 / math.factorial(n) for n in range(13, 1, -1))
_LOGARITHMS: Final = tuple(2.0 / (2 * n + 1) for n in range(11, 0, -1))
_EIGHTH: Final = 0.41421356237309503
"""tan(pi / 8)."""
_LOG2E: Final = 1.4426950408889634
_LN2: Final = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
"""ln 2 in two parts, the first of 33 bits."""


def _series(coefficients: tuple[float, ...], x: float) -> float:
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


def _reduce_turn(x: float) -> tuple[int, float, float]:
    """Quarters of a turn that were taken off, and the rest in two parts, within pi / 4."""
    if abs(x) > _FAR:
        x = x - math.floor(x / math.tau) * math.tau
    quarters = math.floor(x * _QUARTERS + 0.5)
    near = x - quarters * _QUARTER[0]
    second, third = quarters * _QUARTER[1], quarters * _QUARTER[2]
    high = near - second
    low = (near - high) - second
    rest = high - third
    return quarters, rest, low + ((high - rest) - third)


def _sine(high: float, low: float) -> float:
    square = high * high
    return high + (high * square * _series(_SINES, square) + low * (1.0 - 0.5 * square))


def _cosine(high: float, low: float) -> float:
    square = high * high
    half = 0.5 * square
    near = 1.0 - half
    rest = square * square * _series(_COSINES, square) - high * low
    return near + (((1.0 - near) - half) + rest)


def sin(x: float) -> float:
    """Sine of an angle in radians."""
    quarters, high, low = _reduce_turn(x)
    value = _cosine(high, low) if quarters & 1 else _sine(high, low)
    return -value if quarters & 2 else value


def cos(x: float) -> float:
    """Cosine of an angle in radians."""
    quarters, high, low = _reduce_turn(x)
    value = _sine(high, low) if quarters & 1 else _cosine(high, low)
    return -value if (quarters + 1) & 2 else value


def tan(x: float) -> float:
    """Tangent of an angle in radians."""
    return sin(x) / cos(x)


def _arc(x: float) -> float:
    """Arc tangent of a number in [0, 1]."""
    if x <= _EIGHTH:
        return x + x * (x * x) * _series(_ARCS, x * x)
    near = (x - 1.0) / (x + 1.0)
    return math.pi / 4.0 + (near + near * (near * near) * _series(_ARCS, near * near))


def atan2(y: float, x: float) -> float:
    """Angle of the point (x, y) in radians, from -pi to pi, with the signs of `math.atan2`."""
    if math.isnan(x) or math.isnan(y):
        return math.nan
    along, across = abs(x), abs(y)
    if across == 0.0:
        angle = 0.0
    elif math.isinf(along) or math.isinf(across):
        angle = math.pi / 4.0 if along == across else (math.pi / 2.0 if across > along else 0.0)
    elif across <= along:
        angle = _arc(across / along)
    else:
        angle = math.pi / 2.0 - _arc(along / across)
    return math.copysign(math.pi - angle if math.copysign(1.0, x) < 0.0 else angle, y)


def atan(x: float) -> float:
    """Arc tangent of a number, in radians."""
    return atan2(x, 1.0)


def asin(x: float) -> float:
    """Arc sine of a number in [-1, 1], in radians."""
    return atan2(x, math.sqrt((1.0 - x) * (1.0 + x)))


def exp(x: float) -> float:
    """The exponential of a number; infinite above 709.78."""
    if not -746.0 < x < 710.0:
        return x if math.isnan(x) else (0.0 if x < 0.0 else math.inf)
    doublings = math.floor(x * _LOG2E + 0.5)
    rest = (x - doublings * _LN2[0]) - doublings * _LN2[1]
    value = 1.0 + (rest + rest * rest * _series(_EXPONENTIALS, rest))
    try:
        return math.ldexp(value, doublings)
    except OverflowError:
        return math.inf


def log(x: float) -> float:
    """The natural logarithm of a number above 0.

    Raises:
        ValueError: The number is 0 or below.
    """
    if not x > 0.0:
        if math.isnan(x):
            return x
        raise ValueError(f"the logarithm of {x:g} is not a number")
    if math.isinf(x):
        return x
    mantissa, doublings = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa, doublings = 2.0 * mantissa, doublings - 1
    above = mantissa - 1.0
    share = above / (2.0 + above)
    square = share * share
    rest = share * (above - square * _series(_LOGARITHMS, square))
    return doublings * _LN2[0] + (above - (rest - doublings * _LN2[1]))


def power(x: float, exponent: float) -> float:
    """A number to some power, as `math.pow`; whole exponents up to 64 by products.

    Raises:
        ValueError: A negative number to a power that is not whole, or 0 to a negative power.
    """
    whole = int(exponent) if abs(exponent) <= 64.0 and exponent == int(exponent) else None
    if whole is None:
        if x == 0.0 and exponent > 0.0:
            return 0.0
        if x < 0.0:
            raise ValueError(f"{x:g} to the power of {exponent:g} is not a number")
        return exp(exponent * log(x))
    if x == 0.0 and whole < 0:
        raise ValueError("it divides by zero, which gives no number")
    value, base, left = 1.0, x, abs(whole)
    while left:
        if left & 1:
            value *= base
        left >>= 1
        if left:
            base *= base
    return 1.0 / value if whole < 0 else value


def square(x: float) -> float:
    """A number times itself; `x**2` asks the C library."""
    return x * x


PARTS: Final = (_series, _reduce_turn, _sine, _cosine, _arc)
"""What the functions of angles call."""
