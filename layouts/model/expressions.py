"""Expressions as data: the common form of all linking functions, and the grammar of formulas.

An expression consists of numbers, names of nodes and calls of a few functions. So the compiled
program and the PyMC graph can both evaluate it, and no code of a user is ever run.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Function: TypeAlias = Literal["add", "mul", "min", "max", "pow", "logistic", "exp", "log"]
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
    "logistic": expit,
    "exp": np.exp,
    "log": np.log,
}
"""Functions of one argument on arrays."""

ONE: Final = "1"
"""The unit of a quantity without a unit."""

_GRAMMAR: Final = (
    "numbers, names of nodes, + - * / **, parentheses, and "
    "logistic(x), exp(x), log(x), sqrt(x), abs(x), min(x, ...), max(x, ...), clip(x, low, high)"
)
"""The grammar of formulas, for messages."""

_LONGEST: Final = 1000
_DEEPEST: Final = 50


@dataclass(frozen=True, slots=True)
class Call:
    """A function applied to expressions.

    Attributes:
        function: `add`, `mul`, `min` and `max` take one or more arguments; `pow` takes a base and a
            number; the others take one argument.
        arguments: Numbers, names of nodes, or calls.
    """

    function: Function
    arguments: tuple[Expression, ...]


Expression: TypeAlias = float | str | Call


class FormulaError(ValueError):
    """A formula is not in the grammar, or is not defined everywhere."""


def add(*terms: Expression) -> Expression:
    """Sum."""
    return Call("add", terms)


def mul(*factors: Expression) -> Expression:
    """Product."""
    return Call("mul", factors)


def power(base: Expression, exponent: float) -> Expression:
    """Raise a base to a fixed power."""
    return Call("pow", (base, float(exponent)))


def logistic(margin: Expression) -> Expression:
    """1 / (1 + exp(-margin))."""
    return Call("logistic", (margin,))


def names(expression: Expression) -> tuple[str, ...]:
    """Names of the nodes in an expression, each once, in order of first appearance."""
    if isinstance(expression, str):
        return (expression,)
    if isinstance(expression, Call):
        return tuple(dict.fromkeys(n for a in expression.arguments for n in names(a)))
    return ()


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
                return np.power(given[0], given[1])
            return ONE_ARGUMENT[function](given[0])
        case _:
            return np.float64(expression)


def substitute(expression: Expression, meaning: Mapping[str, Expression]) -> Expression:
    """Replace names in an expression by the expressions that they stand for."""
    match expression:
        case str():
            return meaning.get(expression, expression)
        case Call(function, arguments):
            return Call(function, tuple(substitute(a, meaning) for a in arguments))
        case _:
            return expression


def parse_formula(formula: str) -> Expression:
    """Parse a formula in the safe grammar; nothing is ever executed.

    Args:
        formula: For example "0.5 * (sight + hearing) / 2".

    Raises:
        FormulaError: The formula is not in the grammar; the message says what is wrong and where.
    """
    if len(formula) > _LONGEST:
        raise FormulaError(f"formula of {len(formula)} characters; at most {_LONGEST}")
    try:
        tree = ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise FormulaError(f"formula {formula!r} cannot be read; it may hold {_GRAMMAR}") from None
    return _parsed(tree.body, formula, 0)


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


def text(expression: Expression) -> str:
    """Write the expression as a formula."""
    match expression:
        case str():
            return expression
        case Call("add", arguments):
            return "(" + " + ".join(text(a) for a in arguments) + ")"
        case Call("mul", arguments):
            return " * ".join(text(a) for a in arguments)
        case Call("pow", (base, exponent)):
            return f"({text(base)}) ** {text(exponent)}"
        case Call(function, arguments):
            return f"{function}({', '.join(text(a) for a in arguments)})"
        case _:
            return f"{expression:g}"


def _parsed(node: ast.expr, formula: str, depth: int) -> Expression:
    if depth > _DEEPEST:
        raise FormulaError(f"formula is nested more than {_DEEPEST} deep")

    def inner(child: ast.expr) -> Expression:
        return _parsed(child, formula, depth + 1)

    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if not math.isfinite(value):
                raise FormulaError(f"{value} in {formula!r} is not finite")
            return float(value)
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _negative(inner(operand))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return add(inner(left), inner(right))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return add(inner(left), _negative(inner(right)))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return mul(inner(left), inner(right))
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return mul(inner(left), power(inner(right), -1.0))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            exponent = inner(right)
            if not isinstance(exponent, float):
                raise FormulaError(f"an exponent in {formula!r} is not a number")
            return power(inner(left), exponent)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _applied(name, [inner(a) for a in arguments], formula)
        case _:
            part = ast.unparse(node)
            raise FormulaError(f"{part!r} has no place in a formula; it may hold {_GRAMMAR}")


def _negative(value: Expression) -> Expression:
    return -value if isinstance(value, float) else mul(-1.0, value)


def _applied(name: str, arguments: list[Expression], formula: str) -> Expression:
    match name, arguments:
        case "logistic" | "exp" | "log", [x]:
            return Call(name, (x,))
        case "min" | "max", [_, *_]:
            return Call(name, tuple(arguments))
        case "sqrt", [x]:
            return power(x, 0.5)
        case "abs", [x]:
            return Call("max", (x, _negative(x)))
        case "clip", [x, low, high]:
            return Call("max", (low, Call("min", (high, x))))
        case _:
            raise FormulaError(
                f"{name} of {len(arguments)} arguments in {formula!r}: unknown; it may hold "
                f"{_GRAMMAR}"
            )


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
            return (math.log(low), math.log(high))
        case "pow":
            return _power_bounds((low, high), given[1][0], where)


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
    return math.exp(value) if value < 700.0 else math.inf


def _pow(base: float, exponent: float) -> float:
    try:
        return base**exponent
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
