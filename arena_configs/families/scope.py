"""Formulas with their place in a file, and their values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from animalcat.arena_configs.model import ArenaError, Problem
from animalcat.formulas import Call, Expression, FormulaError, text

Value: TypeAlias = float | str
"""A number, or a word such as the name of an object or of a paradigm."""
Scope: TypeAlias = Mapping[str, Value]

EASE: Final = 1e-9
"""What rounding of sums may be off by: 0.1 + 0.2 counts as 0.3, and 2.9999999999 as 3."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a family's file.

    Attributes:
        file: Name of the file.
        line: Line, from 1.
        path: Keys that lead there, such as `arena.items[2].positions[0].x`.
    """

    file: str
    line: int
    path: str

    def error(self, message: str, code: str = "bad-family") -> ArenaError:
        """Make an error about what is here."""
        problem = Problem(self.file, self.line, self.path, "error", code, message)
        return ArenaError(str(problem), (problem,))


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula of a family.

    Attributes:
        expression: The formula as data.
        text: As it was written.
        place: Where.
    """

    expression: Expression
    text: str
    place: Place

    def value(self, scope: Scope) -> Value:
        """Its value.

        Raises:
            ArenaError: It has none: it divides by 0, or reckons with a word.
        """
        try:
            return value_of(self.expression, scope)
        except (FormulaError, ArithmeticError, ValueError) as error:
            raise self.place.error(f"`{self.text}` has no value: {error}", "no-value") from None

    def number(self, scope: Scope) -> float:
        """Its value, which has to be a number.

        Raises:
            ArenaError: It has none, or it is a word.
        """
        value = self.value(scope)
        if isinstance(value, str):
            raise self.place.error(f"`{self.text}` is the word {value!r}, not a number")
        return value

    def holds(self, scope: Scope) -> bool:
        """Whether it is true, which is any number but 0."""
        return self.number(scope) != 0.0


def value_of(expression: Expression, scope: Scope) -> Value:
    """Evaluate an expression for single numbers and words.

    Args:
        expression: The expression.
        scope: A value for every name in it.

    Raises:
        FormulaError: It reckons with a word.
        ArithmeticError: It divides by 0, or overflows.
        ValueError: A root or logarithm is not defined.
    """
    match expression:
        case str():
            return scope[expression]
        case Call("choose", (test, then, otherwise)):
            return value_of(then if _number(test, scope) != 0.0 else otherwise, scope)
        case Call("pick", (index, *options)):
            number = _number(index, scope)
            if not 0 <= number < len(options) or number != int(number):
                raise FormulaError(f"pick has options 0 to {len(options) - 1}, not {number:g}")
            return value_of(options[int(number)], scope)
        case Call("equal", (left, right)):
            return float(_equal(value_of(left, scope), value_of(right, scope)))
        case Call("all", parts):
            return float(all(_number(part, scope) != 0.0 for part in parts))
        case Call("any", parts):
            return float(any(_number(part, scope) != 0.0 for part in parts))
        case Call(function, arguments):
            return _applied(function, [_number(argument, scope) for argument in arguments])
        case _:
            return expression


def _number(expression: Expression, scope: Scope) -> float:
    value = value_of(expression, scope)
    if isinstance(value, str):
        raise FormulaError(f"{text(expression)} is the word {value!r}, not a number")
    return value


def _equal(left: Value, right: Value) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    return math.isclose(left, right, rel_tol=EASE, abs_tol=EASE)


def _applied(function: str, given: list[float]) -> float:
    match function, given:
        case "add", _:
            return math.fsum(given)
        case "mul", _:
            return math.prod(given)
        case "min", _:
            return min(given)
        case "max", _:
            return max(given)
        case "pow", [base, exponent]:
            return math.pow(base, exponent)
        case "exp", [x]:
            return math.exp(x)
        case "log", [x]:
            return math.log(x)
        case "less", [a, b]:
            return float(a < b and not _equal(a, b))
        case "at_most", [a, b]:
            return float(a < b or _equal(a, b))
        case "not", [x]:
            return float(x == 0.0)
        case "sin", [x]:
            return math.sin(math.radians(x))
        case "cos", [x]:
            return math.cos(math.radians(x))
        case "heading", [x, z]:
            return math.degrees(math.atan2(x, z))
        case "hypot", [x, z]:
            return math.hypot(x, z)
        case "floor", [x]:
            return float(math.floor(x + EASE))
        case "ceil", [x]:
            return float(math.ceil(x - EASE))
        case "round", [x]:
            return float(math.floor(x + 0.5 + EASE))
        case "mod", [a, b]:
            rest = a - b * math.floor(a / b + EASE)
            return max(0.0, rest) if b > 0 else rest
        case _:
            raise FormulaError(f"{function} of {len(given)} numbers is not known")
