"""The log density of a layout's posterior and its gradient, compiled once for all layouts.

A layout becomes a list of steps for given outcomes (`tape`), which one compiled function carries
out forwards for the density and backwards for its gradient. The function is kept on disk, so that a
process that samples neither builds a PyMC model nor compiles. `graph` is the definition: the tests
hold both equal.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import carray, cfunc, njit, types

from animalcat.layouts.inference.backend.nuts import library
from animalcat.layouts.model.expressions import evaluate
from animalcat.layouts.model.priors import HalfNormal, Normal, Prior, ScaledBeta
from animalcat.layouts.model.spec import Bernoulli, Latent, Layout
from animalcat.portable.kernels import exp, log, ndtri
from animalcat.text.formulas import Call, Expression, names, substitute

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Features: TypeAlias = tuple[str, ...]
"""Names of features in the layout's order; there is one row for each combination of their values.
"""

_ADD, _MUL, _MIN, _MAX, _LOGISTIC, _EXP, _LOG, _POW, _SPREAD = range(9)
_FOLDS: Final = {"add": _ADD, "mul": _MUL, "min": _MIN, "max": _MAX}
_ONE_ARGUMENT: Final = {"logistic": _LOGISTIC, "exp": _EXP, "log": _LOG}
_NORMAL, _HALF_NORMAL, _BETA = range(3)
_HEADER: Final = 8
_STEP: Final = 7
_LATENT: Final = 7
_OUTCOME: Final = 5
_ROWS: Final = 256
"""Most instances of one tape, so that its numbers stay in a processor's nearest caches."""
_ONE: Final = 7
"""Where each tape has a 1."""
_ROOT: Final = 0.5 * math.log(2.0 * math.pi)
_HALF: Final = math.sqrt(0.5)
_FREE: Final = {"contract", "reassoc"}
"""What the compiler may do to sums: draws of NUTS follow the processor anyway."""


def covers(layout: Layout) -> bool:
    """Whether a layout's outcomes are among those that the compiled function knows."""
    return all(isinstance(one.likelihood, Bernoulli) for one in layout.outcomes)


def tape(
    layout: Layout,
    features: Floats,
    outcomes: Floats,
    weights: Floats | None,
    persons: Ints | None = None,
) -> Floats:
    """What `log_density` and `expand` are given: steps, priors and data of a layout, as numbers.

    Of many instances there are several tapes, one after the other, and equal ones are merged.

    Args:
        layout: One that `covers` says is covered.
        features: (instances, features), as returned by `Layout.check_features`.
        outcomes: (instances,) or (instances, outcomes), as returned by `Layout.check_outcomes`.
        weights: (instances,), how many outcomes each counts as; None for one each.
        persons: (instances,), which person of a group played each, from 0 on; None for one agent.
            Latent nodes are then those of the typical person. After all of them come, for each, the
            spread of the group, and by how many spreads each person is off.
    """
    many = 0 if persons is None else int(persons.max()) + 1
    if len(features) > _ROWS and not many:
        features, outcomes, weights = _merge_alike(features, outcomes, weights)
    starts = range(0, max(1, len(features)), _ROWS)
    return np.concatenate(
        [
            _tape(
                layout,
                features[start : start + _ROWS],
                outcomes[start : start + _ROWS],
                None if weights is None else weights[start : start + _ROWS],
                None if persons is None else persons[start : start + _ROWS],
                many,
                more=start != starts[-1],
            )
            for start in starts
        ]
    )


def _merge_alike(
    features: Floats, outcomes: Floats, weights: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Instances that are alike, and ended alike, as one that counts as often as they do."""
    each = np.column_stack([features, outcomes.reshape(len(features), -1)])
    alike = np.nan_to_num(each, nan=-1e300)
    _, first, place = np.unique(alike, axis=0, return_index=True, return_inverse=True)
    counts = np.bincount(np.ravel(place), weights)
    return features[first], outcomes[first], counts.astype(np.float64)


def _tape(
    layout: Layout,
    features: Floats,
    outcomes: Floats,
    weights: Floats | None,
    persons: Ints | None,
    many: int,
    *,
    more: bool,
) -> Floats:
    """The tape of some instances, which says whether that of more follows."""
    builder = _Builder(layout, features, persons, many)
    told: list[tuple[_Slot, _Slot, _Slot]] = []
    for outcome, y in zip(layout.outcomes, outcomes.reshape(len(features), -1).T, strict=True):
        there = ~np.isnan(y)
        counts = there * (1.0 if weights is None else weights)
        p = builder.value(outcome.likelihood.parents[0])
        told.append((p, builder.data(np.where(there, y, 0.0)), builder.data(counts)))
    return builder.packed(told, more=more)


def model(
    layout: Layout,
    features: Floats,
    outcomes: Floats,
    weights: Floats | None,
    persons: Ints | None = None,
) -> Any:
    """What nutpie samples from: the compiled functions, and the tape that they are given.

    Args:
        layout: One that `covers` says is covered.
        features: As `tape` takes them.
        outcomes: As `tape` takes them.
        weights: As `tape` takes them.
        persons: As `tape` takes them.
    """
    numbers = tape(layout, features, outcomes, weights, persons)
    nutpie, count, place = library(), int(numbers[2]), numbers.ctypes.data
    names = [*layout.latent_names, *map(str, range(count - len(layout.latents)))]
    plain = nutpie.PyVariable.new_variables(names, ["float64"] * count, [()] * count, {}, {})
    return nutpie.PyMcModel(
        nutpie.LogpFunc(log_density.address, place, numbers),  # which is kept as long as that is
        nutpie.ExpandFunc(count, count, expand.address, place, numbers),
        plain,
        count,
        {},
        {},
        partial(starts, count),
        None,
    )


def starts(count: int, seed: int) -> Floats:
    """Where a chain starts: near the middle of the priors, (latents,).

    Args:
        count: Number of latent nodes.
        seed: Of the chain.
    """
    return np.random.default_rng(seed).uniform(-1.0, 1.0, count)


class _Slot(NamedTuple):
    """Where a value is: a number, or one for each row.

    Attributes:
        offset: Among the data, or among the values that are worked out.
        size: How many numbers it is.
        given: Whether it is among the data.
    """

    offset: int
    size: int
    given: bool


class _Step(NamedTuple):
    op: int
    target: _Slot
    first: _Slot
    second: _Slot
    number: float


class _Builder:
    """Builds the steps of a layout for some instances, each value once."""

    def __init__(
        self, layout: Layout, features: Floats, persons: Ints | None = None, many: int = 0
    ) -> None:
        self._all = layout.feature_names
        self._tables = {self._all: features}
        self._places: dict[Features, _Slot] = {}
        self._data: list[Floats] = []
        self._given, self._made = 0, 0
        self._steps: list[_Step] = []
        self._values: dict[tuple[Expression, Features], _Slot] = {}
        self._links = {node.name: node.link.expression for node in layout.ordered}
        self._priors: list[tuple[Prior, int]] = []
        self._latents = {node.name: self._latent(node.prior) for node in layout.latents}
        self._alone: dict[str, Expression] = {name: name for name in self._all}
        self._reached = {name: frozenset([name]) for name in self._all}
        if persons is not None:
            rows, every = self.data(persons), frozenset(self._all)
            for node in layout.latents:
                self._latents[node.name] = self._of_persons(node, rows, many)
                self._reached[node.name] = every  # in each row it may be another person's
        for name, link in self._links.items():
            self._reached[name] = self._reach(link)
            if self._is_alone(link):
                self._alone[name] = substitute(link, self._alone)

    def data(self, values: Any) -> _Slot:
        """Keep numbers that depend on no latent node."""
        array = np.ravel(np.asarray(values, np.float64))
        slot = _Slot(self._given, len(array), True)
        self._data.append(array)
        self._given += len(array)
        return slot

    def value(self, expression: Expression, rows: Features | None = None) -> _Slot:
        """The value of an expression in rows, by default in one row per instance."""
        key = expression, self._all if rows is None else rows
        if key not in self._values:
            self._values[key] = self._make(*key)
        return self._values[key]

    def _latent(self, prior: Prior, many: int = 1) -> _Slot:
        slot = self._room(many)
        self._priors += [(prior, slot.offset + k) for k in range(many)]
        return slot

    def _of_persons(self, node: Latent, rows: _Slot, many: int) -> _Slot:
        """A node of the person of each row, who is around the typical one.

        What is off is added to the logit of a share of a range, to a normal variable in its
        deviations, and to the logarithm of a positive one.
        """
        typical, prior = self._latents[node.name], node.prior
        wide = math.pi / math.sqrt(3.0)  # deviation of the logit of a uniform share
        spread = self._latent(HalfNormal(wide if isinstance(prior, ScaledBeta) else 1.0))
        places = self._room(rows.size)
        self._steps.append(_Step(_SPREAD, places, self._latent(Normal(0.0, 1.0), many), rows, 0.0))
        off = self._emit(_MUL, places, spread)
        if isinstance(prior, HalfNormal):
            return self._emit(_MUL, self._emit(_EXP, off), typical)
        if isinstance(prior, Normal):
            return self._emit(_ADD, self._emit(_MUL, off, self.data(prior.sd)), typical)
        minus = self.data(-1.0)
        above = self._emit(_LOG, self._emit(_ADD, typical, self.data(-prior.low)))
        left = self._emit(_ADD, self._emit(_MUL, typical, minus), self.data(prior.high))
        logit = self._emit(_ADD, above, self._emit(_MUL, self._emit(_LOG, left), minus))
        share = self._emit(_LOGISTIC, self._emit(_ADD, off, logit))
        return self._emit(
            _ADD, self._emit(_MUL, share, self.data(prior.span)), self.data(prior.low)
        )

    def packed(self, told: list[tuple[_Slot, _Slot, _Slot]], *, more: bool) -> Floats:
        """All as one row of numbers: a header, steps, priors, outcomes and data."""
        steps = [
            (
                *(s.op, self._at(s.target), s.target.size),
                *(self._at(s.first), self._at(s.second), min(s.second.size - 1, 1), s.number),
            )
            for s in self._steps
        ]
        latents = [(*_pack_prior(prior), self._given + place) for prior, place in self._priors]
        ends = [
            (self._at(p), min(p.size - 1, 1), self._at(y), self._at(w), y.size) for p, y, w in told
        ]
        parts = [np.ravel(np.array(part, np.float64)) for part in (steps, latents, ends)]
        counts = (len(steps), len(latents), len(ends), self._given, self._made, more)
        length = _HEADER + sum(map(len, parts)) + self._given
        return np.concatenate([np.array([length, *counts, 1.0], np.float64), *parts, *self._data])

    def _at(self, slot: _Slot) -> int:
        return slot.offset if slot.given else self._given + slot.offset

    def _room(self, size: int) -> _Slot:
        slot = _Slot(self._made, size, False)
        self._made += size
        return slot

    def _emit(
        self, op: int, first: _Slot, second: _Slot | None = None, number: float = 0.0
    ) -> _Slot:
        many, few = first, second or first
        if many.size < few.size:
            many, few = few, many
        target = self._room(many.size)
        self._steps.append(_Step(op, target, many, few, number))
        return target

    def _make(self, expression: Expression, rows: Features) -> _Slot:
        if self._is_alone(expression):
            direct = substitute(expression, self._alone)
            columns = {name: self._tables[rows][:, i] for i, name in enumerate(rows)}
            return self.data(evaluate(direct, columns))
        if isinstance(expression, Call) and rows == self._all:
            few = tuple(name for name in self._all if name in self._reach(expression))
            costly = expression.function in (*_ONE_ARGUMENT, "pow")
            if costly and few not in ((), self._all):
                return self._spread(self.value(expression, self._of(few)), few)
        match expression:
            case str():
                if expression in self._latents:
                    return self._latents[expression]
                return self.value(self._links[expression], rows)
            case Call("pow", (base, float() as exponent)):
                return self._emit(_POW, self.value(base, rows), number=exponent)
            case Call(function, (argument,)) if function in _ONE_ARGUMENT:
                return self._emit(_ONE_ARGUMENT[function], self.value(argument, rows))
            case Call(function, arguments):
                alone = tuple(a for a in arguments if self._is_alone(a))
                given = [self.value(a, rows) for a in arguments if not self._is_alone(a)]
                if alone:
                    given.append(self.value(Call(function, alone), rows))
                return reduce(lambda a, b: self._emit(_FOLDS[function], a, b), given)
            case _:
                raise AssertionError(expression)  # a number is alone

    def _of(self, few: Features) -> Features:
        """See to it that there is a table of the combinations of a few features."""
        if few not in self._tables:
            columns = [self._all.index(name) for name in few]
            table, places = np.unique(
                self._tables[self._all][:, columns], axis=0, return_inverse=True
            )
            self._tables[few], self._places[few] = table, self.data(places)
        return few

    def _spread(self, value: _Slot, few: Features) -> _Slot:
        """The value of each instance, by its combination of a few features."""
        if value.size == 1:
            return value
        places = self._places[few]
        target = self._room(places.size)
        self._steps.append(_Step(_SPREAD, target, value, places, 0.0))
        return target

    def _reach(self, expression: Expression) -> frozenset[str]:
        """The features on which an expression depends, directly or through derived nodes."""
        return frozenset[str]().union(
            *(self._reached.get(name, frozenset()) for name in names(expression))
        )

    def _is_alone(self, expression: Expression) -> bool:
        return all(name in self._alone for name in names(expression))


def _pack_prior(prior: Prior) -> tuple[float, ...]:
    """Kind of a prior, four parameters, and the constant of its log density."""
    match prior:
        case Normal(mean, sd):
            return _NORMAL, mean, sd, 0.0, 0.0, -_ROOT
        case HalfNormal(scale):
            return _HALF_NORMAL, scale, 0.0, 0.0, 0.0, -_ROOT
        case ScaledBeta(low, high, alpha, beta):
            whole = math.lgamma(alpha + beta) - math.lgamma(alpha) - math.lgamma(beta)
            return _BETA, low, high, alpha, beta, whole
        case _:
            raise AssertionError(prior)


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _logistic(x: float) -> float:
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    odds = math.exp(x)
    return odds / (1.0 + odds)


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy")
def _node(tape: Floats, at: int, z: float) -> tuple[float, float, float, float]:
    """A latent node at a number in whose density every tail is about that of a normal variable.

    Its prior is at a place of the tape. Normal and half-normal variables are those that have the
    prior where z is standard normal. Of a scaled beta the logit is u = log F(z) / a - log F(-z) / b
    with F the normal distribution, which is so too where a = b = 1: a and b are its parameters, but
    at most 1. So its tails, which are exponential in u, fall off as fast in z. All is exact: what u
    grows by is counted in.

    Returns:
        The value, by what it grows with z, the log density of z, and by what that grows.
    """
    if tape[at] == _NORMAL:
        return tape[at + 1] + tape[at + 2] * z, tape[at + 2], tape[at + 5] - 0.5 * z * z, -z
    below, above = 0.5 * math.erfc(-_HALF * z), 0.5 * math.erfc(_HALF * z)
    dense = math.exp(-0.5 * z * z - _ROOT)
    if tape[at] == _HALF_NORMAL:
        far = -ndtri(0.5 * above)
        slope = 0.5 * tape[at + 1] * dense / math.exp(-0.5 * far * far - _ROOT)
        return tape[at + 1] * far, slope, tape[at + 5] - 0.5 * z * z, -z
    alpha, beta = tape[at + 3], tape[at + 4]
    a, b = min(alpha, 1.0), min(beta, 1.0)
    u = math.log(below) / a - math.log(above) / b
    h, m = dense / below, dense / above
    first, second = h / a + m / b, m * (m - z) / b - h * (h + z) / a
    share, span = _logistic(u), tape[at + 2] - tape[at + 1]
    near = math.log1p(math.exp(-abs(u)))
    log_prior = tape[at + 5] + math.log(first)
    log_prior -= alpha * (near + max(-u, 0.0)) + beta * (near + max(u, 0.0))
    slope = (alpha * (1.0 - share) - beta * share) * first + second / first
    return tape[at + 1] + span * share, span * share * (1.0 - share) * first, log_prior, slope


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy", fastmath=_FREE)
def _give(
    slopes: Floats, a: int, da: int, out: int, size: int, factors: Floats, b: int, db: int
) -> None:
    """Give operands at `a` the slopes of results, each times a factor at `b`."""
    if da == 0:
        total = 0.0
        for j in range(size):
            total += slopes[out + j] * factors[b + j * db]
        slopes[a] += total
    elif db == 0:
        factor = factors[b]
        for j in range(size):
            slopes[a + j] += slopes[out + j] * factor
    else:
        for j in range(size):
            slopes[a + j] += slopes[out + j] * factors[b + j]


@njit(cache=True, no_cfunc_wrapper=True, error_model="numpy", fastmath=_FREE)
def density(
    tape: Floats,
    work: Floats,
    slopes: Floats,
    point: Floats,
    grown: Floats,
    gradient: Floats,
    first: bool,
) -> float:
    """Log density of the posterior at a point, but for what is constant in it.

    Args:
        tape: One of those that `tape` returns.
        work: As many numbers as there are values; the data come first.
        slopes: As many again.
        point: (latents,), numbers of which `_node` makes values.
        grown: (latents,), to work in.
        gradient: (latents,), to which that of the tape's outcomes is added.
        first: Whether this is the first tape; then the prior counts too, and the gradient is set.
    """
    steps, latents, ends, given = int(tape[1]), int(tape[2]), int(tape[3]), int(tape[4])
    priors = _HEADER + steps * _STEP
    outcomes = priors + latents * _LATENT
    data = outcomes + ends * _OUTCOME
    for i in range(given):
        work[i] = tape[data + i]
    for i in range(given, len(slopes)):
        slopes[i] = 0.0
    total = 0.0
    for k in range(latents):
        at = priors + k * _LATENT
        work[int(tape[at + 6])], grown[k], log_prior, slope = _node(tape, at, point[k])
        if first:
            total += log_prior
            gradient[k] = slope

    for s in range(steps):
        at = _HEADER + s * _STEP
        op, out, size = int(tape[at]), int(tape[at + 1]), int(tape[at + 2])
        a, b, db = int(tape[at + 3]), int(tape[at + 4]), int(tape[at + 5])
        if op == _ADD and db == 0:
            number = work[b]
            for j in range(size):
                work[out + j] = work[a + j] + number
        elif op == _ADD:
            for j in range(size):
                work[out + j] = work[a + j] + work[b + j]
        elif op == _MUL and db == 0:
            number = work[b]
            for j in range(size):
                work[out + j] = work[a + j] * number
        elif op == _MUL:
            for j in range(size):
                work[out + j] = work[a + j] * work[b + j]
        elif op == _MIN:
            for j in range(size):
                work[out + j] = min(work[a + j], work[b + j * db])
        elif op == _MAX:
            for j in range(size):
                work[out + j] = max(work[a + j], work[b + j * db])
        elif op == _LOGISTIC:
            for j in range(size):
                work[out + j] = 1.0 / (1.0 + exp(-work[a + j]))
        elif op == _EXP:
            for j in range(size):
                work[out + j] = math.exp(work[a + j])
        elif op == _LOG:
            for j in range(size):
                work[out + j] = math.log(work[a + j])
        elif op == _POW:
            for j in range(size):
                work[out + j] = work[a + j] ** tape[at + 6]
        else:
            for j in range(size):
                work[out + j] = work[a + int(work[b + j])]

    for k in range(ends):
        at = outcomes + k * _OUTCOME
        p, dp, y, w = int(tape[at]), int(tape[at + 1]), int(tape[at + 2]), int(tape[at + 3])
        size = int(tape[at + 4])
        for j in range(size):  # in place of the slopes of what was told, which nobody needs
            chance = work[p + j * dp] if work[y + j] > 0.5 else 1.0 - work[p + j * dp]
            slopes[y + j] = chance if work[w + j] != 0.0 else 1.0
        for j in range(size):
            slopes[w + j] = work[w + j] * log(slopes[y + j])
        for j in range(size):
            total += slopes[w + j]
        for j in range(size):
            slopes[y + j] = (2.0 * work[y + j] - 1.0) * work[w + j] / slopes[y + j]
        _give(slopes, p, dp, y, size, tape, _ONE, 0)

    for s in range(steps - 1, -1, -1):
        at = _HEADER + s * _STEP
        op, out, size = int(tape[at]), int(tape[at + 1]), int(tape[at + 2])
        a, b, db = int(tape[at + 3]), int(tape[at + 4]), int(tape[at + 5])
        if op in (_ADD, _MUL):
            if a >= given:
                if op == _ADD:
                    _give(slopes, a, 1, out, size, tape, _ONE, 0)
                else:
                    _give(slopes, a, 1, out, size, work, b, db)
            if b >= given:
                if op == _ADD:
                    _give(slopes, b, db, out, size, tape, _ONE, 0)
                else:
                    _give(slopes, b, db, out, size, work, a, 1)
        elif op in (_MIN, _MAX):
            for j in range(size):
                at_first = work[out + j] == work[a + j]
                slopes[a + j if at_first else b + j * db] += slopes[out + j]
        elif op == _LOGISTIC:
            for j in range(size):
                slopes[a + j] += slopes[out + j] * work[out + j] * (1.0 - work[out + j])
        elif op == _EXP:
            for j in range(size):
                slopes[a + j] += slopes[out + j] * work[out + j]
        elif op == _LOG:
            for j in range(size):
                slopes[a + j] += slopes[out + j] / work[a + j]
        elif op == _POW:
            for j in range(size):
                slope = tape[at + 6] * work[a + j] ** (tape[at + 6] - 1.0)
                slopes[a + j] += slopes[out + j] * slope
        else:
            for j in range(size):
                slopes[a + int(work[b + j])] += slopes[out + j]

    for k in range(latents):
        gradient[k] += slopes[int(tape[priors + k * _LATENT + 6])] * grown[k]
    return total


_Numbers: Final = types.CPointer(types.double)


@cfunc(
    types.int64(types.uint64, _Numbers, _Numbers, _Numbers, _Numbers),
    cache=True,
    error_model="numpy",
)
def log_density(dim: int, point: Any, gradient: Any, value: Any, data: Any) -> int:
    """`density` as nutpie calls it; not 0 where the density or its gradient is not finite."""
    most, start, more = 0, 0, True
    while more:
        head = carray(data, (start + _HEADER,))[start:]
        most, more = max(most, int(head[4]) + int(head[5])), head[6] != 0.0
        start += int(head[0])
    tapes = carray(data, (start,))
    work, after, grown = np.empty(most), np.empty(most), np.empty(dim)
    slopes = carray(gradient, (dim,))
    total, end = 0.0, start
    start = 0
    while start < end:
        tape = tapes[start : start + int(tapes[start])]
        size = int(tape[4]) + int(tape[5])
        first = start == 0
        total += density(
            tape, work[:size], after[:size], carray(point, (dim,)), grown, slopes, first
        )
        start += len(tape)
    carray(value, (1,))[0] = total
    for k in range(dim):
        if not math.isfinite(slopes[k]):
            return 3
    return 0 if math.isfinite(total) else 4


@cfunc(
    types.int64(types.uint64, types.uint64, _Numbers, _Numbers, _Numbers),
    cache=True,
    error_model="numpy",
)
def expand(dim: int, expanded: int, point: Any, values: Any, data: Any) -> int:
    """The values of the latent nodes at a point, as nutpie asks for them."""
    tape = carray(data, (int(carray(data, (1,))[0]),))
    for k in range(dim):
        at = _HEADER + int(tape[1]) * _STEP + k * _LATENT
        carray(values, (expanded,))[k] = _node(tape, at, carray(point, (dim,))[k])[0]
    return 0
