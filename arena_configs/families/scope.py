"""Formulas with their place in a file, and their values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from animalcat.arena_configs.model import ArenaError, Problem
from animalcat.portable import scalars
from animalcat.text.formulas import Call, Expression, FormulaError, text

Value: TypeAlias = float | str
"""A number, or a word such as the name of an object or of a paradigm."""
Scope: TypeAlias = Mapping[str, Value]
_Run: TypeAlias = Callable[[Scope], Value]
_Reckon: TypeAlias = Callable[[Scope], float]

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
    _run: _Run = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare the formula, since most are worked out thousands of times."""
        object.__setattr__(self, "_run", _prepare(self.expression))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it was made from."""
        return Formula, (self.expression, self.text, self.place)

    def value(self, scope: Scope) -> Value:
        """Its value.

        Raises:
            ArenaError: It has none: it divides by 0, or reckons with a word.
        """
        try:
            return self._run(scope)
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


def _prepare(expression: Expression) -> _Run:
    """Return a function from a value for every name to the value of an expression.

    The function raises FormulaError if it reckons with a word, ArithmeticError if it divides by 0
    or overflows, and ValueError where a root or logarithm is not defined.
    """
    match expression:
        case str(name):
            return itemgetter(name)
        case Call("choose", (test, then, otherwise)):
            is_so, if_so, if_not = _number(test), _prepare(then), _prepare(otherwise)
            return lambda scope: if_so(scope) if is_so(scope) != 0.0 else if_not(scope)
        case Call("pick", (index, *options)):
            return _pick(_number(index), [_prepare(one) for one in options])
        case Call("equal", (left, right)):
            one, other = _prepare(left), _prepare(right)
            return lambda scope: float(_equal(one(scope), other(scope)))
        case Call("all", parts):
            tests = [_number(part) for part in parts]
            return lambda scope: float(all(test(scope) != 0.0 for test in tests))
        case Call("any", parts):
            tests = [_number(part) for part in parts]
            return lambda scope: float(any(test(scope) != 0.0 for test in tests))
        case Call("add", (left, right)):
            first, second = _number(left), _number(right)
            return lambda scope: first(scope) + second(scope)
        case Call("mul", (left, right)):
            first, second = _number(left), _number(right)
            return lambda scope: first(scope) * second(scope)
        case Call(function, arguments):
            given = [_number(one) for one in arguments]
            apply = _FUNCTIONS.get((function, len(given))) or _FUNCTIONS.get((function, 0))
            if apply is None:
                raise FormulaError(f"{function} of {len(given)} numbers is not known")
            return lambda scope: apply(*[one(scope) for one in given])
        case _:
            return lambda scope: expression


def _pick(index: _Reckon, options: Sequence[_Run]) -> _Run:
    def run(scope: Scope) -> Value:
        number = index(scope)
        if not 0 <= number < len(options) or number != int(number):
            raise FormulaError(f"pick has options 0 to {len(options) - 1}, not {number:g}")
        return options[int(number)](scope)

    return run


def _number(expression: Expression) -> _Reckon:
    """Return a function from a value for every name to the number that an expression is."""
    if isinstance(expression, float | int):
        return lambda scope: expression
    run = _prepare(expression)

    def reckon(scope: Scope) -> float:
        value = run(scope)
        if isinstance(value, str):
            raise FormulaError(f"{text(expression)} is the word {value!r}, not a number")
        return value

    return reckon


def _equal(left: Value, right: Value) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    return math.isclose(left, right, rel_tol=EASE, abs_tol=EASE)


def _mod(a: float, b: float) -> float:
    rest = a - b * math.floor(a / b + EASE)
    return max(0.0, rest) if b > 0 else rest


def _less(a: float, b: float) -> float:
    return float(a < b and not _equal(a, b))


def _at_most(a: float, b: float) -> float:
    return float(a < b or _equal(a, b))


def _sin(x: float) -> float:
    return scalars.sin(math.radians(x))


def _cos(x: float) -> float:
    return scalars.cos(math.radians(x))


def _heading(x: float, z: float) -> float:
    return math.degrees(scalars.atan2(x, z))


def _floor(x: float) -> float:
    return float(math.floor(x + EASE))


def _ceil(x: float) -> float:
    return float(math.ceil(x - EASE))


def _round(x: float) -> float:
    return float(math.floor(x + 0.5 + EASE))


def _least(*given: float) -> float:
    return min(given)


def _most(*given: float) -> float:
    return max(given)


def _sum(*given: float) -> float:
    return math.fsum(given)


def _product(*given: float) -> float:
    return math.prod(given)


def _not(x: float) -> float:
    return float(x == 0.0)


_FUNCTIONS: Final[Mapping[tuple[str, int], Callable[..., float]]] = MappingProxyType(
    {
        ("add", 0): _sum,
        ("mul", 0): _product,
        ("min", 0): _least,
        ("max", 0): _most,
        ("pow", 2): scalars.power,
        ("exp", 1): scalars.exp,
        ("log", 1): scalars.log,
        ("less", 2): _less,
        ("at_most", 2): _at_most,
        ("not", 1): _not,
        ("sin", 1): _sin,
        ("cos", 1): _cos,
        ("heading", 2): _heading,
        ("hypot", 2): math.hypot,
        ("floor", 1): _floor,
        ("ceil", 1): _ceil,
        ("round", 1): _round,
        ("mod", 2): _mod,
    }
)
"""What the functions of formulas do, by name and number of arguments; 0 for any number."""
