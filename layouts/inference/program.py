"""A layout compiled to straight-line code for the kernel.

What depends on instances alone is computed once per instance (a *column*), and what depends on the
agent alone once per draw (a *row*). Only the rest becomes instructions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import reduce
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.expressions import FOLDS, ONE_ARGUMENT, Range, bounds
from animalcat.layouts.model.links import LogisticMargin
from animalcat.layouts.model.spec import Beta, Layout
from animalcat.portable import arrays as portable
from animalcat.text.formulas import Call, Expression, add

Code: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Fill: TypeAlias = Callable[[list[Floats]], Floats]
"""Works out one column (or row) from the columns (or rows) before it."""


class Op(IntEnum):
    """Instructions; V operands are vectors over draws, S operands are numbers of the instance."""

    MUL_VV = 0
    MUL_VS = 1
    ADD_VV = 2
    ADD_VS = 3
    ODDS = 4  # exp(-V)
    MIN_VV = 5
    MIN_VS = 6
    MAX_VV = 7
    MAX_VS = 8
    POW_VS = 9
    EXP = 10
    LOG = 11
    ODDS_VS = 12  # 1 / (1 + V x S): a logistic of draw and instance without an exponential
    MUL_VS_ADD_S = 13
    MUL_VS_ADD_V = 14
    MUL_VV_ADD_V = 15


_FUSED: Final[Mapping[tuple[Op, Op], Op]] = {
    (Op.MUL_VS, Op.ADD_VS): Op.MUL_VS_ADD_S,
    (Op.MUL_VS, Op.ADD_VV): Op.MUL_VS_ADD_V,
    (Op.MUL_VV, Op.ADD_VV): Op.MUL_VV_ADD_V,
}
"""Pairs of a product and the sum right after it, its only use, with the instruction that replaces
both."""
_REACH: Final = 345.0
"""Largest exponent of a factor of the odds that depends on the instance."""
_REACH_MIXED: Final = 700.0
"""Largest exponent of a factor of the odds that depends on the agent. Beyond it, a logistic is 0 or
1 whatever the other factor is."""
_INSTRUCTIONS: Final[Mapping[str, Op]] = {"exp": Op.EXP, "log": Op.LOG}
_FOLDS: Final[Mapping[str, tuple[float, Op, Op]]] = {
    "add": (0.0, Op.ADD_VV, Op.ADD_VS),
    "mul": (1.0, Op.MUL_VV, Op.MUL_VS),
    "min": (math.inf, Op.MIN_VV, Op.MIN_VS),
    "max": (-math.inf, Op.MAX_VV, Op.MAX_VS),
}
"""Functions of any number of arguments: neutral value, instructions."""


@dataclass(frozen=True, slots=True)
class Column:
    """A value that depends on the instance alone."""

    index: int


@dataclass(frozen=True, slots=True)
class Vector:
    """A value that depends on the agent, and if `mixed` on the instance too."""

    index: int
    mixed: bool


Value: TypeAlias = float | Column | Vector


@dataclass(frozen=True, slots=True)
class Program:
    """What the kernel runs.

    Attributes:
        columns: How to fill each column from features and earlier columns.
        rows: How to fill each row from latents and earlier rows.
        codes: For each outcome (instructions, 6) int64: op, up to three vectors, up to two columns,
            -1 if absent. Vectors below `len(rows)` are rows, the others are results of earlier
            instructions. The last instruction gives the probability, or the mean score.
        size_codes: Likewise for the sample size of scores; None for other outcomes.
        demands: For each capability, column and node of the margins that hold a demand on it.
    """

    columns: tuple[Fill, ...]
    rows: tuple[Fill, ...]
    codes: tuple[Code, ...]
    size_codes: tuple[Code | None, ...]
    demands: tuple[tuple[tuple[int, str], ...], ...]


def compile_program(layout: Layout) -> Program:
    """Compile a layout."""
    builder = _ProgramBuilder(_inner_products(layout))
    values: dict[str, Value] = {}
    ranges: dict[str, Range] = {node.name: (node.low, node.high) for node in layout.features}
    ranges |= {node.name: (node.prior.low, node.prior.high) for node in layout.latents}
    for i, name in enumerate(layout.feature_names):
        values[name] = builder.column(_pick(i))
    for i, name in enumerate(layout.latent_names):
        values[name] = builder.row(_pick(i))
    demands: dict[str, list[tuple[int, str]]] = {
        layout.latent_names[i]: [] for i in layout.capabilities
    }
    for node in layout.ordered:
        values[node.name] = _lower(builder, node.link.expression, values, ranges)
        ranges[node.name] = node.link.bounds(ranges)
        if isinstance(node.link, LogisticMargin) and node.link.ability in demands:
            demand = values[node.link.demand]
            assert isinstance(demand, Column)  # the specification's check says so
            demands[node.link.ability].append((demand.index, node.name))
    results: list[Vector] = []
    sizes: list[Vector | None] = []
    for outcome in layout.outcomes:
        results.append(builder.result(values[outcome.parents[0]]))
        scored = isinstance(outcome.likelihood, Beta)
        sizes.append(builder.result(values[outcome.parents[1]]) if scored else None)
    return Program(
        columns=tuple(builder.columns),
        rows=tuple(builder.rows),
        codes=tuple(builder.finish(result) for result in results),
        size_codes=tuple(None if size is None else builder.finish(size) for size in sizes),
        demands=tuple(tuple(pairs) for pairs in demands.values()),
    )


def operands(code: Code) -> npt.NDArray[np.int64]:
    """The columns that a program's instructions use."""
    numbers = np.unique(code[:, 4:])
    return numbers[numbers >= 0]


def _lower(
    b: _ProgramBuilder,
    expression: Expression,
    values: Mapping[str, Value],
    ranges: Mapping[str, Range],
) -> Value:
    match expression:
        case str():
            return values[expression]
        case Call("pow", (base, float() as exponent)):
            return b.power(_lower(b, base, values, ranges), exponent)
        case Call("logistic", (Call("add", terms),)):
            given = [_lower(b, a, values, ranges) for a in terms]
            known = [a for a, v in zip(terms, given, strict=True) if not isinstance(v, Vector)]
            low, high = bounds(add(0.0, *known), ranges)
            return b.logistic(given, apart=low >= -_REACH and high <= _REACH)
        case Call(function, arguments):
            if function == "mul":
                arguments = tuple(_factors(expression, b.inner))
            given = [_lower(b, a, values, ranges) for a in arguments]
            if function in _FOLDS:
                return b.fold(function, given)
            return b.apply(function, given[0])
        case _:
            return float(expression)


def _inner_products(layout: Layout) -> dict[str, Expression]:
    """Product nodes with a single use, whose factors may join another product."""
    uses = Counter(parent for node in layout.derived for parent in node.link.parents)
    for outcome in layout.outcomes:
        uses.update(outcome.parents)
    return {
        node.name: node.link.expression
        for node in layout.derived
        if uses[node.name] == 1
        and isinstance(node.link.expression, Call)
        and node.link.expression.function == "mul"
    }


def _factors(expression: Expression, inner: Mapping[str, Expression]) -> list[Expression]:
    """The factors of a product, including those of nested products."""
    if isinstance(expression, str) and expression in inner:
        return _factors(inner[expression], inner)
    if isinstance(expression, Call) and expression.function == "mul":
        return [factor for a in expression.arguments for factor in _factors(a, inner)]
    return [expression]


Operand: TypeAlias = Column | Vector
Instruction: TypeAlias = tuple[Op, Vector, tuple[Operand, ...]]


@dataclass(slots=True)
class _ProgramBuilder:
    inner: Mapping[str, Expression]
    columns: list[Fill] = field(default_factory=list[Fill])
    rows: list[Fill] = field(default_factory=list[Fill])
    code: list[Instruction] = field(default_factory=list["Instruction"])
    constants: dict[float, Column] = field(default_factory=dict[float, Column])

    def column(self, fill: Fill) -> Column:
        self.columns.append(fill)
        return Column(len(self.columns) - 1)

    def row(self, fill: Fill) -> Vector:
        self.rows.append(fill)
        return Vector(len(self.rows) - 1, mixed=False)

    def result(self, value: Value) -> Vector:
        """Turn a value into the result of an instruction, even if it needs none."""
        if isinstance(value, Vector) and value.mixed:
            return value
        if isinstance(value, Vector):
            return self.emit(Op.ADD_VS, value, self.number(0.0))
        return self.emit(Op.ADD_VS, self.row(_constant_row(0.0)), self.number(value))

    def number(self, value: float | Column) -> Column:
        if isinstance(value, Column):
            return value
        if value not in self.constants:
            self.constants[value] = self.column(_constant_row(value))
        return self.constants[value]

    def emit(self, op: Op, *operands: Operand) -> Vector:
        target = Vector(len(self.code), mixed=True)
        self.code.append((op, target, operands))
        return target

    def logistic(self, terms: Sequence[Value], *, apart: bool) -> Value:
        """Logistic function of a sum.

        If `apart` allows it, the terms of the agent and those of the instance are separated, as 1 /
        (1 + exp(-vector) x exp(-column)), so that few exponentials are needed.
        """
        vectors = [v for v in terms if isinstance(v, Vector)]
        others = [v for v in terms if not isinstance(v, Vector)]
        if not vectors or not others or not apart:
            return self.apply("logistic", self.fold("add", terms))
        vector, number = self.fold("add", vectors), self.fold("add", others)
        assert isinstance(vector, Vector)  # sums of vectors are vectors
        assert isinstance(number, float | Column)  # sums of numbers and columns are not vectors
        column = self.number(number)
        odds = self.column(lambda values: _odds(values[column.index], _REACH))
        if vector.mixed:
            return self.emit(Op.ODDS_VS, self.emit(Op.ODDS, vector), odds)
        row = self.row(lambda values: _odds(values[vector.index], _REACH_MIXED))
        return self.emit(Op.ODDS_VS, row, odds)

    def apply(self, name: str, value: Value) -> Value:
        """Apply a function of one argument."""
        function = ONE_ARGUMENT[name]
        match value:
            case Column(i):
                return self.column(lambda values: function(values[i]))
            case Vector(i, False):
                return self.row(lambda values: function(values[i]))
            case Vector() if name == "logistic":
                return self.emit(Op.ODDS_VS, self.emit(Op.ODDS, value), self.number(1.0))
            case Vector():
                return self.emit(_INSTRUCTIONS[name], value)
            case _:
                return float(function(np.array([value]))[0])

    def power(self, base: Value, exponent: float) -> Value:
        """Raise to a fixed power."""
        match base:
            case Column(i):
                return self.column(lambda values: portable.power(values[i], exponent))
            case Vector(i, False):
                return self.row(lambda values: portable.power(values[i], exponent))
            case Vector():
                return self.emit(Op.POW_VS, base, self.number(exponent))
            case _:
                return float(portable.power(base, exponent))

    def fold(self, name: str, values: Sequence[Value]) -> Value:
        """Apply a function of any number of arguments.

        Numbers, columns and rows are first combined among themselves.
        """
        neutral, op_vectors, op_number = _FOLDS[name]
        function = FOLDS[name]
        constant = reduce(
            lambda a, b: float(function(np.float64(a), np.float64(b))),  # pyright: ignore[reportArgumentType]
            [v for v in values if isinstance(v, int | float)],
            neutral,
        )
        columns = [v.index for v in values if isinstance(v, Column)]
        rows = [v.index for v in values if isinstance(v, Vector) and not v.mixed]
        mixed = [v for v in values if isinstance(v, Vector) and v.mixed]
        number: Value = constant
        if columns:
            # A number joins the columns, or else the rows, where it costs nothing per instance.
            number = self.column(_fold(function, columns, constant, neutral))
        elif rows and constant != neutral:
            number = neutral
        if rows:
            alone = not columns and constant != neutral
            if len(rows) > 1 or alone:
                known = constant if alone else neutral
                mixed.append(self.row(_fold(function, rows, known, neutral)))
            else:
                mixed.append(Vector(rows[0], mixed=False))
        if not mixed:
            return number
        result = reduce(lambda a, b: self.emit(op_vectors, a, b), mixed)
        if isinstance(number, Column) or number != neutral:
            assert not isinstance(number, Vector)
            result = self.emit(op_number, result, self.number(number))
        return result

    def finish(self, result: Vector) -> Code:
        """Return the instructions needed for the result, which the last one gives."""
        needed = {result}
        for _, target, operands in reversed(self.code):
            if target in needed:
                needed.update(v for v in operands if isinstance(v, Vector))
        code = _fuse_products(
            [instruction for instruction in self.code if instruction[1] in needed]
        )
        places = {target: len(self.rows) + i for i, (_, target, _) in enumerate(code)}
        placed = np.full((len(code), 6), -1, dtype=np.int64)
        for i, (op, _, operands) in enumerate(code):
            vectors = [places.get(v, v.index) for v in operands if isinstance(v, Vector)]
            columns = [v.index for v in operands if isinstance(v, Column)]
            placed[i, 0] = op
            placed[i, 1 : 1 + len(vectors)] = vectors
            placed[i, 4 : 4 + len(columns)] = columns
        return placed


def _pick(i: int) -> Fill:
    return lambda given: given[i]


def _constant_row(value: float) -> Fill:
    return lambda values: np.full_like(values[0], value)


def _fold(
    function: Callable[[Floats, Floats | float], Floats],
    indices: list[int],
    known: float,
    neutral: float,
) -> Fill:
    def fill(values: list[Floats]) -> Floats:
        total = reduce(function, [values[i] for i in indices])
        return total if known == neutral else function(total, known)

    return fill


def _odds(values: Floats, reach: float) -> Floats:
    return portable.exp(-np.clip(values, -reach, reach))


def _fuse_products(code: Sequence[Instruction]) -> list[Instruction]:
    """Fuse products that are used once, by the sum right after them, into that sum."""
    uses = Counter(v for _, _, operands in code for v in operands)
    fused: list[Instruction] = []
    for op, target, operands in code:
        before, product, factors = fused[-1] if fused else (op, target, operands)
        joined = _FUSED.get((before, op))
        if joined is not None and product in operands and uses[product] == 1:
            rest = next(v for v in operands if v != product)
            fused[-1] = (joined, target, (*factors, rest))
        else:
            fused.append((op, target, operands))
    return fused
