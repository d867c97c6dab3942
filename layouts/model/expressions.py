"""Values, bounds and units of expressions, the common form of all linking functions.

An expression consists of numbers, names of nodes and calls of a few functions (`formulas`). So the
compiled program and the PyMC graph can both evaluate it, and no code of a user is ever run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import arrays as portable
from animalcat.portable import scalars
from animalcat.text.formulas import Call, Expression, FormulaError, Function, text

Range: TypeAlias = tuple[float, float]
"""Least and largest value; ends may be infinite."""

Values: TypeAlias = npt.NDArray[np.float64] | np.float64

FOLDS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
"""Functions of any number of arguments, as binary functions on arrays."""
ONE_ARGUMENT: Final[Mapping[str, Callable[[Any], Any]]] = {
    "logistic": portable.expit,
    "exp": portable.exp,
    "log": portable.log,
}
"""Functions of one argument on arrays."""

ONE: Final = "1"
"""The unit of a quantity without a unit."""


def evaluate(expression: Expression, values: Mapping[str, Values]) -> Values:
    """Evaluate an expression.

    Args:
        expression: The expression.
        values: A value for every name in it: numbers or arrays that broadcast together.
    """
    match expression:
        case str():
            return values[expression]
        case Call(function, arguments):
            given = [evaluate(a, values) for a in arguments]
            if function in FOLDS:
                return reduce(FOLDS[function], given)
            if function == "pow":
                return portable.power(given[0], given[1])
            return ONE_ARGUMENT[function](given[0])
        case _:
            return np.float64(expression)


def bounds(expression: Expression, ranges: Mapping[str, Range]) -> Range:
    """Range of an expression by interval arithmetic: never too narrow, sometimes too wide.

    Raises:
        FormulaError: A logarithm, root or quotient is not defined everywhere in the ranges.
    """
    match expression:
        case str():
            return ranges[expression]
        case Call("max", (a, Call("mul", (-1.0, b)))) if a == b:  # that is abs(a)
            low, high = bounds(a, ranges)
            return (max(low, -high, 0.0), max(-low, high))
        case Call(function, arguments):
            return _call_bounds(function, [bounds(a, ranges) for a in arguments], expression)
        case _:
            return (float(expression), float(expression))


def hull(ranges: list[Range]) -> Range:
    """The smallest range that contains all of the given ranges."""
    return (min(low for low, _ in ranges), max(high for _, high in ranges))


def unit_of(expression: Expression, units: Mapping[str, str]) -> str | None:
    """Unit of an expression; None for a bare number, which takes the unit that it is added to.

    Raises:
        FormulaError: Units are mixed.
    """
    match expression:
        case str():
            return units[expression]
        case Call(function, arguments):
            got = [unit_of(a, units) for a in arguments]
            return _call_unit(function, got, expression)
        case _:
            return None


def _product(a: Range, b: Range) -> Range:
    # 0 times an infinite end is 0, since an unbounded range holds only finite values.
    ends = [0.0 if 0.0 in (x, y) else x * y for x in a for y in b]
    return (min(ends), max(ends))


def _call_bounds(function: Function, given: list[Range], where: Expression) -> Range:
    low, high = given[0]
    match function:
        case "add":
            return (sum(r[0] for r in given), sum(r[1] for r in given))
        case "mul":
            return reduce(_product, given)
        case "min":
            return (min(r[0] for r in given), min(r[1] for r in given))
        case "max":
            return (max(r[0] for r in given), max(r[1] for r in given))
        case "logistic":
            return (0.0, 1.0)
        case "exp":
            return (_exp(low), _exp(high))
        case "log":
            if low <= 0.0:
                raise FormulaError(f"{text(where)}: its argument may be {low:g}, not above 0")
            return (scalars.log(low), scalars.log(high))
        case "pow":
            return _power_bounds((low, high), given[1][0], where)
        case _:
            raise FormulaError(f"{text(where)}: a layout has no function {function}")


def _power_bounds(base: Range, exponent: float, where: Expression) -> Range:
    low, high = base
    if not exponent.is_integer() and low < 0.0:
        raise FormulaError(f"{text(where)}: its base may be {low:g}, below 0")
    if exponent < 0.0 and low <= 0.0 <= high:
        raise FormulaError(f"{text(where)}: division by what may be 0 ({low:g} to {high:g})")
    ends = [_pow(low, exponent), _pow(high, exponent)]
    if exponent.is_integer() and exponent % 2 == 0 and exponent > 0 and low < 0.0 < high:
        ends.append(0.0)
    return (min(ends), max(ends))


def _exp(value: float) -> float:
    return scalars.exp(value) if value < 700.0 else math.inf


def _pow(base: float, exponent: float) -> float:
    try:
        return scalars.power(base, exponent)
    except OverflowError:
        return math.inf


def _call_unit(function: Function, given: list[str | None], where: Expression) -> str | None:
    named = [unit for unit in given if unit is not None]
    match function:
        case "add" | "min" | "max":
            if len(set(named)) > 1:
                raise FormulaError(f"{text(where)}: mixes {', '.join(map(repr, named))}")
            return named[0] if named else None
        case "mul":
            with_unit = [unit for unit in named if unit != ONE]
            if len(with_unit) > 1:
                raise FormulaError(f"{text(where)}: a product of {' and '.join(with_unit)}")
            return with_unit[0] if with_unit else (ONE if named else None)
        case "pow" | "logistic" | "exp" | "log":
            if named and named[0] != ONE:
                raise FormulaError(f"{text(where)}: its argument has the unit {named[0]!r}")
            return ONE
        case _:
            raise FormulaError(f"{text(where)}: a layout has no function {function}")
