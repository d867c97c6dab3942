"""Formulas as data: the one safe grammar of layouts and of families of arenas.

A formula becomes a tree of numbers, names and calls of a few functions. Nothing that a user wrote
is ever run. Layouts use its arithmetic; families may also compare, choose and turn.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Arithmetic: TypeAlias = Literal["add", "mul", "min", "max", "pow", "logistic", "exp", "log"]
Deciding: TypeAlias = Literal[
    "less",
    "at_most",
    "equal",
    "all",
    "any",
    "not",
    "choose",
    "pick",
    "sin",
    "cos",
    "heading",
    "hypot",
    "floor",
    "ceil",
    "round",
    "mod",
]
Function: TypeAlias = Arithmetic | Deciding


@dataclass(frozen=True, slots=True)
class Call:
    """A function applied to expressions.

    Attributes:
        function: `add`, `mul`, `min` and `max` take one or more arguments; `pow` takes a base and a
            number; `logistic`, `exp` and `log` take one argument. For the others see `DECIDING`.
        arguments: Numbers, names, or calls.
    """

    function: Function
    arguments: tuple[Expression, ...]


Expression: TypeAlias = float | str | Call


class FormulaError(ValueError):
    """A formula is not in the grammar, or is not defined everywhere."""


DECIDING: Final[Mapping[str, tuple[int, int]]] = {
    "pick": (2, 100),
    "sin": (1, 1),
    "cos": (1, 1),
    "heading": (2, 2),
    "hypot": (2, 2),
    "floor": (1, 1),
    "ceil": (1, 1),
    "round": (1, 1),
}
"""Functions of formulas that decide, with the least and greatest number of their arguments.

`pick(i, a, b, ...)` is a if i is 0, b if it is 1; angles are in degrees; `heading(x, z)` is the
clockwise angle from +z to a direction.
"""

_ARITHMETIC: Final = (
    "numbers, names of nodes, + - * / **, parentheses, and "
    "logistic(x), exp(x), log(x), sqrt(x), abs(x), min(x, ...), max(x, ...), clip(x, low, high)"
)
_DECIDING: Final = (
    "numbers, names, + - * / // % **, parentheses, comparisons, and, or, not, `a if b else c`, "
    "sqrt(x), abs(x), exp(x), log(x), min(x, ...), max(x, ...), clip(x, low, high), floor(x), "
    "ceil(x), round(x), sin(degrees), cos(degrees), heading(x, z), hypot(x, z) and "
    "pick(i, first, second, ...)"
)
"""The grammars, for messages."""

_LONGEST: Final = 1000
_DEEPEST: Final = 50
_LARGEST: Final = 10_000
"""Most parts of what a formula becomes, in which `abs` and `in` write some of them again."""


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
    """Names in an expression, each once, in order of first appearance."""
    if isinstance(expression, str):
        return (expression,)
    if isinstance(expression, Call):
        return tuple(dict.fromkeys(n for a in expression.arguments for n in names(a)))
    return ()


def substitute(expression: Expression, meaning: Mapping[str, Expression]) -> Expression:
    """Replace names in an expression by the expressions that they stand for."""
    match expression:
        case str():
            return meaning.get(expression, expression)
        case Call(function, arguments):
            return Call(function, tuple(substitute(a, meaning) for a in arguments))
        case _:
            return expression


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


def parse_formula(formula: str, *, deciding: bool = False) -> Expression:
    """Parse a formula in the safe grammar; nothing is ever executed.

    Args:
        formula: For example "0.5 * (sight + hearing) / 2".
        deciding: Whether it may also compare, choose, round and turn, as in families of arenas. A
            word in quotes is then a name as well.

    Raises:
        FormulaError: The formula is not in the grammar; the message says what is wrong and where.
    """
    if len(formula) > _LONGEST:
        raise FormulaError(f"formula of {len(formula)} characters; at most {_LONGEST}")
    reader = _Reader(formula, deciding)
    try:
        tree = ast.parse(formula.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise FormulaError(
            f"formula {formula!r} cannot be read; it may hold {reader.grammar}"
        ) from None
    expression = reader.read(tree.body, 0)
    if _size(expression, {}) > _LARGEST:
        raise FormulaError(f"formula {_cut(formula)} repeats too much of itself; write it in parts")
    return expression


def _size(expression: Expression, known: dict[int, int]) -> int:
    """The number of parts of an expression, of which equal ones are looked at once."""
    if not isinstance(expression, Call):
        return 1
    if id(expression) not in known:
        known[id(expression)] = 1 + sum(_size(part, known) for part in expression.arguments)
    return known[id(expression)]


def _cut(formula: str) -> str:
    return repr(formula if len(formula) <= 80 else formula[:77] + "...")


def _among(
    side: Expression, operator: ast.In | ast.NotIn, options: Iterable[Expression]
) -> Expression:
    """Whether a side is one of some options, or none of them."""
    found = Call("any", tuple(Call("equal", (side, option)) for option in options))
    return found if isinstance(operator, ast.In) else Call("not", (found,))


@dataclass(frozen=True, slots=True)
class _Reader:
    formula: str
    deciding: bool

    @property
    def grammar(self) -> str:
        return _DECIDING if self.deciding else _ARITHMETIC

    def read(self, node: ast.expr, depth: int) -> Expression:
        if depth > _DEEPEST:
            raise FormulaError(f"formula is nested more than {_DEEPEST} deep")

        def inner(child: ast.expr) -> Expression:
            return self.read(child, depth + 1)

        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self._number(value)
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
                    raise FormulaError(f"an exponent in {self.formula!r} is not a number")
                return power(inner(left), exponent)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._apply(name, [inner(a) for a in arguments])
            case _ if self.deciding:
                return self._decision(node, depth)
            case _:
                raise self._misplaced_error(node)

    def _number(self, value: float) -> float:
        try:
            number = float(value)
        except OverflowError:  # an integer of more than 308 digits
            number = math.inf
        if not math.isfinite(number):
            raise FormulaError(f"a number in {_cut(self.formula)} is too large; at most 1.8e308")
        return number

    def _decision(self, node: ast.expr, depth: int) -> Expression:
        def inner(child: ast.expr) -> Expression:
            return self.read(child, depth + 1)

        match node:
            case ast.Constant(value=str() as word):
                return word
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return Call("mod", (inner(left), inner(right)))
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return Call("floor", (mul(inner(left), power(inner(right), -1.0)),))
            case ast.BoolOp(op=operator, values=values):
                both = "all" if isinstance(operator, ast.And) else "any"
                return Call(both, tuple(map(inner, values)))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Call("not", (inner(operand),))
            case ast.IfExp(test=test, body=body, orelse=other):
                return Call("choose", (inner(test), inner(body), inner(other)))
            case ast.Compare(left=left, ops=operators, comparators=others):
                side, found = inner(left), list[Expression]()
                for k, (operator, other) in enumerate(zip(operators, others, strict=True), 1):
                    if isinstance(operator, ast.In | ast.NotIn):
                        if not isinstance(other, ast.Tuple | ast.List) or k < len(others):
                            raise self._misplaced_error(other)
                        found.append(_among(side, operator, map(inner, other.elts)))
                    else:
                        # Read once, though it may stand in two comparisons.
                        right = inner(other)
                        found.append(self._compare(side, operator, right, other))
                        side = right
                return found[0] if len(found) == 1 else Call("all", tuple(found))
            case _:
                raise self._misplaced_error(node)

    def _compare(
        self, left: Expression, operator: ast.cmpop, right: Expression, other: ast.expr
    ) -> Expression:
        match operator:
            case ast.Lt():
                return Call("less", (left, right))
            case ast.Gt():
                return Call("less", (right, left))
            case ast.LtE():
                return Call("at_most", (left, right))
            case ast.GtE():
                return Call("at_most", (right, left))
            case ast.Eq():
                return Call("equal", (left, right))
            case ast.NotEq():
                return Call("not", (Call("equal", (left, right)),))
            case _:
                raise self._misplaced_error(other)

    def _apply(self, name: str, arguments: list[Expression]) -> Expression:
        match name, arguments:
            case "exp" | "log", [x]:
                return Call(name, (x,))
            case "logistic", [x] if not self.deciding:
                return logistic(x)
            case "min" | "max", [_, *_]:
                return Call(name, tuple(arguments))
            case "sqrt", [x]:
                return power(x, 0.5)
            case "abs", [x]:
                return Call("max", (x, _negative(x)))
            case "clip", [x, low, high]:
                return Call("max", (low, Call("min", (high, x))))
            case (
                (
                    "pick" | "sin" | "cos" | "heading" | "hypot" | "floor" | "ceil" | "round"
                ) as chosen,
                _,
            ) if self.deciding:
                least, most = DECIDING[chosen]
                if least <= len(arguments) <= most:
                    return Call(chosen, tuple(arguments))
            case _:
                pass
        raise FormulaError(
            f"{name} of {len(arguments)} arguments in {self.formula!r}: unknown; it may hold "
            f"{self.grammar}"
        )

    def _misplaced_error(self, node: ast.expr) -> FormulaError:
        part = ast.unparse(node)
        return FormulaError(f"{part!r} has no place in a formula; it may hold {self.grammar}")


def _negative(value: Expression) -> Expression:
    return -value if isinstance(value, float) else mul(-1.0, value)
