"""A layout lowered to straight-line code for the kernel: what depends on instance and agent both.

Whatever depends on instances alone is worked out once per instance (a *column*), whatever depends
on the agent alone once per draw (a *row*); only the rest becomes instructions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import IntEnum
from functools import reduce
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.expressions import FOLDS, ONE_ARGUMENT, Call, Expression
from animalcat.layouts.links import LogisticMargin
from animalcat.layouts.spec import Beta, Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Fill: TypeAlias = Callable[[list[Floats]], Floats]
"""Works out one column (or row) from the columns (or rows) before it."""


class Op(IntEnum):
    """Instructions: V operands are vectors over draws, S operands are numbers of the instance."""

    MUL_VV = 0
    MUL_VS = 1
    ADD_VV = 2
    ADD_VS = 3
    SIGMOID = 4
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
"""A product whose only use is in the sum right after it joins that instruction."""
_REACH: Final = 345.0
"""Largest exponent of a factor of odds: the product of two stays finite."""
_INSTRUCTIONS: Final[Mapping[str, Op]] = {"logistic": Op.SIGMOID, "exp": Op.EXP, "log": Op.LOG}
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
    """A value that depends on the agent; `mixed`: on the instance too."""

    index: int
    mixed: bool


Value: TypeAlias = float | Column | Vector


@dataclass(frozen=True, slots=True)
class Program:
    """What the kernel runs.

    Attributes:
        columns: How to fill each column from features and earlier columns.
        rows: How to fill each row from latents and earlier rows.
        code: (instructions, 5) int64: op, target, up to three operands. Vectors below
            `len(rows)` are rows, those from there on are scratch.
        scratch: Number of scratch vectors.
        result: The vector that holds the probability, or the mean score.
        size: The vector that holds the sample size of scores; -1 where outcomes are no scores.
        demands: Per capability, column and node of the margins with demands that it meets.
    """

    columns: tuple[Fill, ...]
    rows: tuple[Fill, ...]
    code: npt.NDArray[np.int64]
    scratch: int
    result: int
    size: int
    demands: tuple[tuple[tuple[int, str], ...], ...]


def compile_program(layout: Layout) -> Program:
    """Lower a layout."""
    builder = _Builder()
    values: dict[str, Value] = {}
    for i, name in enumerate(layout.feature_names):
        values[name] = builder.column(_pick(i))
    for i, name in enumerate(layout.latent_names):
        values[name] = builder.row(_pick(i))
    demands: dict[str, list[tuple[int, str]]] = {
        layout.latent_names[i]: [] for i in layout.capabilities
    }
    for node in layout.ordered:
        values[node.name] = _lower(builder, node.link.expression, values)
        if isinstance(node.link, LogisticMargin) and node.link.ability in demands:
            demand = values[node.link.demand]
            assert isinstance(demand, Column)  # the specification's check says so
            demands[node.link.ability].append((demand.index, node.name))
    result = builder.vector(values[layout.outcome.parents[0]])
    size = None
    if isinstance(layout.outcome, Beta):
        size = builder.vector(values[layout.outcome.sample_size])
    return builder.finish(result, size, demands)


def _lower(b: _Builder, expression: Expression, values: Mapping[str, Value]) -> Value:
    match expression:
        case str():
            return values[expression]
        case Call("pow", (base, float() as exponent)):
            return b.power(_lower(b, base, values), exponent)
        case Call("logistic", (Call("add", terms),)):
            return b.logistic([_lower(b, a, values) for a in terms])
        case Call(function, arguments):
            given = [_lower(b, a, values) for a in arguments]
            if function in _FOLDS:
                return b.fold(function, given)
            return b.apply(function, given[0])
        case _:
            return float(expression)


Operand: TypeAlias = Column | Vector
Instruction: TypeAlias = tuple[Op, Vector, tuple[Operand, ...]]


@dataclass(slots=True)
class _Builder:
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

    def vector(self, value: Value) -> Vector:
        """The value as a vector, even where it depends on the instance alone."""
        if isinstance(value, Vector):
            return value
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

    def logistic(self, terms: Sequence[Value]) -> Value:
        """Logistic of a sum; without a mixed term as 1 / (1 + exp(-row) x exp(-column))."""
        rows = [v for v in terms if isinstance(v, Vector) and not v.mixed]
        others = [v for v in terms if not isinstance(v, Vector)]
        if not rows or not others or len(rows) + len(others) < len(terms):
            return self.apply("logistic", self.fold("add", terms))
        row, number = self.fold("add", rows), self.fold("add", others)
        assert isinstance(row, Vector)  # sums of rows are rows
        column = self.number(number) if isinstance(number, float | Column) else None
        assert column is not None  # sums of numbers and columns are no vectors
        return self.emit(
            Op.ODDS_VS,
            self.row(lambda made: _odds(made[row.index])),
            self.column(lambda made: _odds(made[column.index])),
        )

    def apply(self, name: str, value: Value) -> Value:
        """A function of one argument."""
        function, op = ONE_ARGUMENT[name], _INSTRUCTIONS[name]
        match value:
            case Column(i):
                return self.column(lambda made: function(made[i]))
            case Vector(i, False):
                return self.row(lambda made: function(made[i]))
            case Vector():
                return self.emit(op, value)
            case _:
                return float(function(np.array([value]))[0])

    def power(self, base: Value, exponent: float) -> Value:
        """A fixed power."""
        match base:
            case Column(i):
                return self.column(lambda made: np.power(made[i], exponent))
            case Vector(i, False):
                return self.row(lambda made: np.power(made[i], exponent))
            case Vector():
                return self.emit(Op.POW_VS, base, self.number(exponent))
            case _:
                return float(np.power(base, exponent))

    def fold(self, name: str, values: Sequence[Value]) -> Value:
        """A function of any number of arguments.

        Numbers, columns and rows are first taken each among themselves.
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
            number = self.column(_folded(function, columns, constant))
        elif rows and constant != neutral:
            number = neutral
        if rows:
            alone = not columns and constant != neutral
            if len(rows) > 1 or alone:
                mixed.append(self.row(_folded(function, rows, constant if alone else neutral)))
            else:
                mixed.append(Vector(rows[0], mixed=False))
        if not mixed:
            return number
        result = reduce(lambda a, b: self.emit(op_vectors, a, b), mixed)
        if isinstance(number, Column) or number != neutral:
            assert not isinstance(number, Vector)
            result = self.emit(op_number, result, self.number(number))
        return result

    def finish(
        self, result: Vector, size: Vector | None, demands: Mapping[str, list[tuple[int, str]]]
    ) -> Program:
        """Give scratch vectors their places after the rows, each free again after its last use."""
        code = _fused(self.code, {result, size})
        last = {v: i for i, (_, _, operands) in enumerate(code) for v in operands}
        free: list[int] = []
        places: dict[Operand, int] = {}
        top = len(self.rows)

        def place(value: Operand) -> int:
            return places[value] if _is_scratch(value) else value.index

        placed = np.zeros((len(code), 5), dtype=np.int64)
        for i, (op, target, operands) in enumerate(code):
            placed[i, 2 : 2 + len(operands)] = [place(v) for v in operands]
            done = [v for v in dict.fromkeys(operands) if _is_scratch(v) and last[v] == i]
            free.extend(places[v] for v in done if v not in (result, size))
            if not free:
                free.append(top)
                top += 1
            places[target] = free.pop()
            placed[i, :2] = op, places[target]
        return Program(
            columns=tuple(self.columns),
            rows=tuple(self.rows),
            code=placed,
            scratch=top - len(self.rows),
            result=place(result),
            size=-1 if size is None else place(size),
            demands=tuple(tuple(pairs) for pairs in demands.values()),
        )


def _pick(i: int) -> Fill:
    return lambda given: given[i]


def _constant_row(value: float) -> Fill:
    return lambda made: np.full_like(made[0], value)


def _folded(function: Callable[[Floats, Floats], Floats], indices: list[int], start: float) -> Fill:
    def fill(made: list[Floats]) -> Floats:
        total = np.full_like(made[0], start)
        for i in indices:
            total = function(total, made[i])
        return total

    return fill


def _odds(values: Floats) -> Floats:
    return np.exp(-np.clip(values, -_REACH, _REACH))


def _is_scratch(value: Operand) -> bool:
    return isinstance(value, Vector) and value.mixed


def _fused(code: Sequence[Instruction], kept: Set[Vector | None]) -> list[Instruction]:
    """The code with products that are used once, by the sum right after them, joined to it."""
    uses = Counter(v for _, _, operands in code for v in operands)
    fused: list[Instruction] = []
    for op, target, operands in code:
        before, product, factors = fused[-1] if fused else (op, target, operands)
        joined = _FUSED.get((before, op))
        if (
            joined is not None
            and product in operands
            and uses[product] == 1
            and product not in kept
        ):
            rest = next(v for v in operands if v != product)
            fused[-1] = (joined, target, (*factors, rest))
        else:
            fused.append((op, target, operands))
    return fused
