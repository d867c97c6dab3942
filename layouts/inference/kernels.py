"""Compiled kernels that run the program of any layout; compiled once and cached on disk.

Instances have much in common: a gate has two states, and rewards have few sizes. So the program is
first scheduled for the given instances (`schedule`): an instruction is executed once for each
distinct set of operands. Only an instruction with too many distinct sets is executed for every
instance.

What is compiled is kept small: kernels are loops over numbers, and the arrays that they work in are
made by NumPy, since each function of NumPy that a kernel calls is compiled too.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

from animalcat.portable.kernels import log, power, product, sum_of_products

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Real = TypeVar("Real", np.float32, np.float64)

_BLOCK: Final = 4096
"""Bytes of draws processed at a time: more would not fit the nearest caches, fewer would cost time
in calls."""
_MOST: Final = 128
"""Greatest number of operand sets for which an instruction is shared; their results stay in the
second-level cache."""
_TABLE: Final = 1024
"""Size of the hash table of operand sets, a power of two."""

_LOG2E: Final = 1.4426950408889634
_LN2: Final = 0.6931471805599453
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
_MAGIC: Final = 6755399441055744.0
"""1.5 x 2^52: adding it leaves the rounded integer in the low bits."""
_REACH: Final = 700.0
_REACH_SINGLE: Final = 87.0
"""exp of any number nearer to 0 than this is finite and normal: in float64, and in float32."""
_MANTISSA: Final = (1 << 52) - 1
_ONE: Final = 1023 << 52


class Steps(NamedTuple):
    """A program that is scheduled for some instances.

    Attributes:
        codes: (steps, 5): op, vectors of its operands (-1 if absent), vector of the result. Shared
            steps come first; then those of each instance, equally many for each.
        numbers: (steps, 2): numbers that are operands.
        results: (instances,): the vector that finally holds the result of each instance.
        shared: The number of shared steps.
        vectors: The number of vectors.
    """

    codes: Ints
    numbers: Floats
    results: Ints
    shared: int
    vectors: int


def schedule(code: Ints, columns: Floats, used: int) -> Steps:
    """Schedule a program for some instances.

    Args:
        code: As in `Program.codes`.
        columns: (instances, columns).
        used: Number of vectors that the program starts with: its rows.
    """
    n, length = len(columns), len(code)
    places = np.zeros((length, n), np.int64)
    steps, numbers = np.empty((n * length, 5), np.int64), np.zeros((n * length, 2))
    counts = np.empty(3, np.int64)
    _lay_out(
        code.copy(), columns, columns.view(np.int64), used, places,
        np.empty((length, _MOST), np.int64), np.zeros(length, np.int64), np.zeros(length, np.int64),
        np.empty(_TABLE, np.int64), np.empty((2, length + 1), np.int64), np.empty((2, 3), np.int64),
        steps, numbers, counts,
    )  # fmt: skip
    shared, made, vectors = counts.tolist()
    return Steps(steps[:made], numbers[:made], places[length - 1], shared, vectors)


def probabilities(steps: Steps, rows: npt.NDArray[Real]) -> npt.NDArray[Real]:
    """P(success) of every instance and draw, (instances, draws).

    Args:
        steps: The program, laid out for the instances.
        rows: (rows, draws); their type is the precision of the work.
    """
    out = np.empty((len(steps.results), rows.shape[1]), rows.dtype)
    _run(steps, rows, _NONE, out)
    return out


def log_likelihood(steps: Steps, rows: Floats, outcomes: Floats) -> Floats:
    """Log-likelihood of 0/1 outcomes under every draw, (draws,).

    Args:
        steps: The program, laid out for the instances.
        rows: (rows, draws).
        outcomes: (instances,), 0 or 1.
    """
    out = np.empty((1, rows.shape[1]))
    _run(steps, rows, outcomes, out)
    return out[0]


_NONE: Final[Floats] = np.empty(0)


def _run(steps: Steps, rows: npt.NDArray[Any], outcomes: Floats, out: npt.NDArray[Any]) -> None:
    block = _BLOCK // rows.itemsize
    vectors, spare = np.empty((steps.vectors, block), rows.dtype), np.empty((4, block))
    _carry_out(
        vectors, spare, spare.view(np.int64), steps.codes, steps.numbers.astype(rows.dtype),
        steps.results, steps.shared, rows, outcomes, out,
    )  # fmt: skip


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def _sort_factors(code: Ints, used: int, i: int, uses: Ints, states: Ints, order: Ints) -> None:
    """Move factors with few states to the front of the product that instruction i begins."""
    end = i
    while (
        end + 1 < len(code)
        and code[end, 0] == 0
        and (code[end + 1, 0] == 0 or code[end + 1, 0] == 15)
        and code[end + 1, 1] == used + end
        and uses[end] == 1
    ):
        end += 1
    for k in range(end - i + 2):
        factor = code[i, 1] if k == 0 else code[i + k - 1, 2]
        of = states[factor - used] if factor >= used else 1
        at = k
        while at > 0 and order[1, at - 1] > of:
            order[0, at], order[1, at] = order[0, at - 1], order[1, at - 1]
            at -= 1
        order[0, at], order[1, at] = factor, of
    code[i, 1] = order[0, 0]
    for k in range(1, end - i + 2):
        code[i + k - 1, 2] = order[0, k]


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def _lay_out(
    code: Ints,
    columns: Floats,
    bits: Ints,
    used: int,
    places: Ints,
    samples: Ints,
    states: Ints,
    uses: Ints,
    slots: Ints,
    order: Ints,
    operands: Ints,
    steps: Ints,
    numbers: Floats,
    counts: Ints,
) -> None:
    """`schedule` in arrays that are given.

    `bits` are those of `columns`; `places` (length, n), where each instance finds each result;
    `samples` (length, most), an instance that has the set of operands; `states` (length,), how many
    sets there are, n + 1 where not shared; `uses` (length,), how often a result is an operand. The
    latter two are zeros. `slots`, `order` and `operands` are to work in. `steps` and `numbers` are
    filled. `counts` becomes the number of shared steps, of steps and of vectors.
    """
    n, length = columns.shape[0], code.shape[0]
    most = n // 2 if n // 2 < _MOST else _MOST
    for i in range(length):
        for k in range(1, 4):
            if code[i, k] >= used:
                uses[code[i, k] - used] += 1
    top = used
    for i in range(length):
        if code[i, 0] == 0:
            _sort_factors(code, used, i, uses, states, order)
        alone = False
        mixed, given = 0, 0
        for k in range(1, 4):
            if code[i, k] >= used:
                operands[0, mixed] = code[i, k] - used
                alone = alone or states[code[i, k] - used] > n
                mixed += 1
        for k in range(4, 6):
            if code[i, k] >= 0:
                operands[1, given] = code[i, k]
                given += 1
        count = 0
        for slot in range(_TABLE):
            slots[slot] = -1
        for r in range(n):
            if alone:
                break
            key = np.uint64(0)
            for k in range(mixed):
                key = (key ^ np.uint64(places[operands[0, k], r])) * np.uint64(0x9E3779B97F4A7C15)
            for k in range(given):
                key = key ^ (key >> np.uint64(29)) ^ np.uint64(bits[r, operands[1, k]])
                key = key * np.uint64(0x9E3779B97F4A7C15)
            slot = np.int64(key >> np.uint64(40)) & (_TABLE - 1)
            while slots[slot] >= 0:
                other = samples[i, slots[slot]]
                same = True
                for k in range(mixed):
                    place = operands[0, k]
                    same = same and places[place, r] == places[place, other]
                for k in range(given):
                    number = operands[1, k]
                    same = same and bits[r, number] == bits[other, number]
                if same:
                    break
                slot = (slot + 1) & (_TABLE - 1)
            if slots[slot] < 0:
                alone = count == most
                if not alone:
                    slots[slot] = count
                    samples[i, count] = r
                    count += 1
            places[i, r] = top + slots[slot]
        if alone:
            for r in range(n):
                places[i, r] = top
        states[i] = n + 1 if alone else count
        top += 1 if alone else count

    at = 0
    counts[0] = 0
    for phase in range(n + 1):
        for i in range(length):
            shared = states[i] <= n
            if shared != (phase == 0):
                continue
            for s in range(states[i] if shared else 1):
                r = samples[i, s] if shared else phase - 1
                steps[at, 0] = code[i, 0]
                for k in range(1, 4):
                    operand = code[i, k]
                    steps[at, k] = places[operand - used, r] if operand >= used else operand
                steps[at, 4] = places[i, r]
                for k in range(2):
                    if code[i, 4 + k] >= 0:
                        numbers[at, k] = columns[r, code[i, 4 + k]]
                at += 1
        if phase == 0:
            counts[0] = at
    counts[1], counts[2] = at, top


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def _carry_out(
    vectors: npt.NDArray[Any],
    spare: Floats,
    bits: Ints,
    codes: Ints,
    numbers: npt.NDArray[Any],
    results: Ints,
    shared: int,
    rows: npt.NDArray[Any],
    outcomes: Floats,
    out: npt.NDArray[Any],
) -> None:
    """Execute the steps, block by block of draws; the result of a step overlaps no operand.

    `vectors` and `spare` are to work in, and `bits` are those of `spare`. Where there are outcomes
    (instances,), `out` is (1, draws) and becomes their log-likelihood. Else it is (instances,
    draws) and becomes the probabilities.
    """
    kind = vectors.dtype.type
    used, draws = rows.shape
    own = (len(codes) - shared) // len(results)
    block, one, unbound = vectors.shape[1], kind(1.0), kind(np.inf)
    reach = _REACH if vectors.itemsize == 8 else _REACH_SINGLE
    told = len(outcomes) > 0
    likely, exponents = spare[2], bits[3]
    for start in range(0, draws, block):
        size = draws - start if draws - start < block else block
        for k in range(used):
            for j in range(size):
                vectors[k, j] = rows[k, start + j]
        for j in range(size):
            likely[j] = 1.0
            exponents[j] = 0
        s, end = 0, shared
        for r in range(len(results)):
            end += own
            while s < end:
                op, number, other = codes[s, 0], numbers[s, 0], numbers[s, 1]
                first = vectors[codes[s, 1]]
                second = vectors[codes[s, 2] if codes[s, 2] > 0 else 0]
                target = vectors[codes[s, 4]]
                if not told and own > 0 and s == end - 1:
                    target = out[r, start : start + size]
                s += 1
                if op == 0:
                    for j in range(size):
                        target[j] = first[j] * second[j]
                elif op == 1 or op == 3 or op == 13:
                    factor = one if op == 3 else number
                    term = number if op == 3 else other
                    for j in range(size):
                        target[j] = first[j] * factor + term
                elif op == 2 or op == 14:
                    factor = one if op == 2 else number
                    for j in range(size):
                        target[j] = first[j] * factor + second[j]
                elif op == 4 or op == 10:  # in loops that vectorise; relative error below 1e-14
                    sign = -1.0 if op == 4 else 1.0
                    for j in range(size):
                        x = min(max(sign * np.float64(first[j]), -reach), reach)
                        shifted = x * _LOG2E + _MAGIC
                        k = shifted - _MAGIC
                        t = (x - k * _LN2_HIGH) - k * _LN2_LOW
                        p = 2.505210838544172e-08  # 1 / 11!, Taylor series, |t| <= ln(2) / 2
                        p = p * t + 2.755731922398589e-07
                        p = p * t + 2.7557319223985893e-06
                        p = p * t + 2.48015873015873e-05
                        p = p * t + 1.984126984126984e-04
                        p = p * t + 1.3888888888888889e-03
                        p = p * t + 8.333333333333333e-03
                        p = p * t + 4.1666666666666664e-02
                        p = p * t + 1.6666666666666666e-01
                        p = p * t + 0.5
                        p = p * t + 1.0
                        spare[0, j] = p * t + 1.0
                        spare[1, j] = shifted
                    for j in range(size):
                        bits[0, j] += bits[1, j] << 52
                    for j in range(size):
                        target[j] = spare[0, j]
                elif op == 5:
                    for j in range(size):
                        target[j] = min(first[j], second[j])
                elif op == 7:
                    for j in range(size):
                        target[j] = max(first[j], second[j])
                elif op == 6 or op == 8:
                    low = number if op == 8 else -unbound
                    high = number if op == 6 else unbound
                    for j in range(size):
                        target[j] = min(max(first[j], low), high)
                elif op == 9:
                    for j in range(size):
                        target[j] = power(np.float64(first[j]), np.float64(number))
                elif op == 11:
                    for j in range(size):
                        target[j] = log(np.float64(first[j]))
                elif op == 12:
                    for j in range(size):
                        target[j] = one / (one + first[j] * number)
                else:
                    third = vectors[codes[s - 1, 3]]
                    for j in range(size):
                        target[j] = first[j] * second[j] + third[j]
            source = vectors[results[r]]
            if told:
                sign, offset = 2.0 * outcomes[r] - 1.0, 1.0 - outcomes[r]
                for j in range(size):
                    likely[j] *= max(offset + sign * source[j], 1e-15)
                if r % 16 == 15:  # 16 factors of 1e-15 are still a normal number
                    for j in range(size):
                        exponents[j] += (bits[2, j] >> 52) - 1023
                        bits[2, j] = (bits[2, j] & _MANTISSA) | _ONE
            elif own == 0:
                for j in range(size):
                    out[r, start + j] = source[j]
        if told:
            for j in range(size):
                out[0, start + j] = log(likely[j]) + exponents[j] * _LN2


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def sums_of_wins(
    chances: Floats,
    odds: Floats,
    weights: Floats,
    tilts: Floats,
    inverse: bool,
    wins: Floats,
    out: Floats,
) -> None:
    """Weighted sums over instances of what bets of some sizes win, or of its inverse.

    A win w is the positive root of w^2 + (t - 1) w = chance t, where t is the size of the bet times
    the odds.

    Args:
        chances: (instances,), above 0.
        odds: (instances,).
        weights: (instances,).
        tilts: (bets,): their sizes.
        inverse: Whether 1 / w is summed, and not w.
        wins: (instances,), to work in.
        out: (bets,), filled.
    """
    for k in range(tilts.shape[0]):
        for i in range(chances.shape[0]):
            tilt = tilts[k] * odds[i]
            b = 1.0 - tilt
            product = chances[i] * tilt
            # Of two forms of the root, the one in which nothing cancels.
            far = np.sqrt(b * b + 4.0 * product) + abs(b)
            above = 2.0 * product if b < 0.0 else far
            below = far if b < 0.0 else 2.0
            wins[i] = below / above if inverse else above / below
        out[k] = sum_of_products(wins, weights)


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def _at(x: float, places: Floats, values: Floats) -> float:
    """The value at a place, interpolated as `numpy.interp` does."""
    last = len(places) - 1
    if not x < places[last]:
        return values[last]
    if x < places[0]:
        return values[0]
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if places[middle] <= x:
            low = middle
        else:
            high = middle
    if places[low] == x:
        return values[low]
    slope = (values[high] - values[low]) / (places[high] - places[low])
    return slope * (x - places[low]) + values[low]


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def intervals(
    ordered: Floats,
    orders: Ints,
    weights: Floats,
    shares: Floats,
    starts: Floats,
    smooth: Floats,
    beyond: float,
    places: Floats,
    widths: Floats,
    out: Floats,
) -> None:
    """The shortest interval, and the tails, of each of several weighted samples.

    Args:
        ordered: (samples, draws), each in ascending order.
        orders: (samples, draws): which draw each value is of.
        weights: (draws,), summing to 1.
        shares: (samples,): how much of the weight each interval holds.
        starts: (starts,), ascending: possible starts, as shares of the weight outside it.
        smooth: (starts, starts), by which widths are multiplied before the least is taken.
        beyond: Weight beyond which either tail is.
        places: (draws,), to work in.
        widths: (2, starts), to work in.
        out: (samples, 4), filled: the ends of the interval, and where the tails begin.
    """
    for k in range(ordered.shape[0]):
        values, rest, total = ordered[k], 1.0 - shares[k], 0.0
        for j in range(len(weights)):
            weight = weights[orders[k, j]]
            total += weight
            places[j] = total - weight / 2.0
        for i in range(len(starts)):
            below = rest * starts[i]
            widths[0, i] = _at(below + shares[k], places, values) - _at(below, places, values)
            widths[1, i] = 0.0
        product(widths[:1], smooth, widths[1:])
        best = 0
        for i in range(len(starts)):
            if widths[1, i] < widths[1, best]:
                best = i
        below = rest * starts[best]
        out[k, 0] = _at(below, places, values)
        out[k, 1] = _at(below + shares[k], places, values)
        out[k, 2] = _at(beyond, places, values)
        out[k, 3] = _at(1.0 - beyond, places, values)
