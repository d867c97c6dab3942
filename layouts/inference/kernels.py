"""Compiled kernels that run the program of any layout; compiled once and cached on disk.

Instances have much in common: a gate has two states, and rewards have few sizes. So the program is
first scheduled for the given instances (`schedule`): an instruction is executed once for each
distinct set of operands. Only an instruction with too many distinct sets is executed for every
instance.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Steps: TypeAlias = tuple[Ints, Floats, Ints, int]
"""What `schedule` returns."""

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


@njit(cache=True, nogil=True, error_model="numpy")
def _sort_factors(code: Ints, used: int, i: int, uses: Ints, states: Ints) -> None:
    """Move factors with few states to the front of the product that instruction i begins."""
    end = i
    while (
        end + 1 < len(code)
        and code[end, 0] == 0
        and code[end + 1, 0] in (0, 15)
        and code[end + 1, 1] == used + end
        and uses[end] == 1
    ):
        end += 1
    factors = np.empty(end - i + 2, np.int64)
    of = np.ones(len(factors), np.int64)
    for k in range(len(factors)):
        factor = code[i, 1] if k == 0 else code[i + k - 1, 2]
        factors[k] = factor
        if factor >= used:
            of[k] = states[factor - used]
    order = np.argsort(of, kind="mergesort")
    code[i, 1] = factors[order[0]]
    for k in range(1, len(factors)):
        code[i + k - 1, 2] = factors[order[k]]


@njit(cache=True, nogil=True, error_model="numpy")
def schedule(code: Ints, columns: Floats, used: int) -> Steps:
    """Schedule a program for some instances.

    Args:
        code: As in `Program.codes`.
        columns: (instances, columns).
        used: Number of vectors that the program starts with: its rows.

    Returns:
        (steps, 5): op, vectors of its operands (-1 if absent), vector of the result. Shared steps
        come first; then those of each instance, equally many for each.
        (steps, 2): numbers that are operands.
        (instances,): the vector that finally holds the result of each instance.
        The number of shared steps.
    """
    n, length = columns.shape[0], code.shape[0]
    most = min(_MOST, n // 2)
    code = code.copy()
    uses = np.bincount((code[:, 1:4] - used + 1).clip(0).ravel(), minlength=length + 1)[1:]
    bits = columns.view(np.int64)
    places = np.zeros((length, n), np.int64)  # where each instance finds each result
    samples = np.empty((length, _MOST), np.int64)  # an instance that has the set of operands
    states = np.zeros(length, np.int64)  # how many sets there are, n + 1 where not shared
    slots = np.empty(_TABLE, np.int64)
    mixed = np.empty(3, np.int64)
    top = used
    for i in range(length):
        if code[i, 0] == 0:
            _sort_factors(code, used, i, uses, states)
        operands = 0
        alone = False
        for k in range(1, 4):
            if code[i, k] >= used:
                mixed[operands] = code[i, k] - used
                operands += 1
                alone = alone or states[code[i, k] - used] > n
        count = 0
        slots[:] = -1
        for r in range(n):
            if alone:
                break
            key = np.uint64(0)
            for k in range(operands):
                key = (key ^ np.uint64(places[mixed[k], r])) * np.uint64(0x9E3779B97F4A7C15)
            for k in range(4, 6):
                if code[i, k] >= 0:
                    key = key ^ (key >> np.uint64(29)) ^ np.uint64(bits[r, code[i, k]])
                    key = key * np.uint64(0x9E3779B97F4A7C15)
            slot = np.int64(key >> np.uint64(40)) & (_TABLE - 1)
            while slots[slot] >= 0:
                other = samples[i, slots[slot]]
                same = True
                for k in range(operands):
                    same = same and places[mixed[k], r] == places[mixed[k], other]
                for k in range(4, 6):
                    if code[i, k] >= 0:
                        same = same and bits[r, code[i, k]] == bits[other, code[i, k]]
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
            places[i] = top
        states[i] = n + 1 if alone else count
        top += 1 if alone else count

    shared = states <= n
    first = states[shared].sum()
    own = length - shared.sum()
    steps = np.empty((first + n * own, 5), np.int64)
    numbers = np.zeros((len(steps), 2))
    at = 0
    for phase in range(n + 1):
        for i in range(length):
            if shared[i] != (phase == 0):
                continue
            for s in range(states[i] if phase == 0 else 1):
                r = samples[i, s] if phase == 0 else phase - 1
                steps[at, 0] = code[i, 0]
                for k in range(1, 4):
                    operand = code[i, k]
                    steps[at, k] = places[operand - used, r] if operand >= used else operand
                steps[at, 4] = places[i, r]
                for k in range(2):
                    if code[i, 4 + k] >= 0:
                        numbers[at, k] = columns[r, code[i, 4 + k]]
                at += 1
    return steps, numbers, places[length - 1], first


@njit(cache=True, fastmath={"contract"}, nogil=True, error_model="numpy")
def _carry_out(
    step: Ints, numbers: Floats, vectors: Any, target: Any, spare: Floats, size: int
) -> None:
    """Execute one step on one block of draws; the result never overlaps an operand."""
    one = vectors.dtype.type(1.0)
    number = vectors.dtype.type(numbers[0])
    op = step[0]
    first = vectors[step[1]]
    second = vectors[max(step[2], 0)]
    if op == 0:
        for j in range(size):
            target[j] = first[j] * second[j]
    elif op == 1:
        for j in range(size):
            target[j] = first[j] * number
    elif op == 2:
        for j in range(size):
            target[j] = first[j] + second[j]
    elif op == 3:
        for j in range(size):
            target[j] = first[j] + number
    elif op == 4:  # exp(-x) in loops that vectorise; relative error below 1e-14
        reach = _REACH if vectors.itemsize == 8 else _REACH_SINGLE
        mantissa, power = spare[0], spare[1]
        bits, exponents = mantissa.view(np.int64), power.view(np.int64)
        for j in range(size):
            x = -np.float64(first[j])
            x = min(max(x, -reach), reach)
            shifted = x * _LOG2E + _MAGIC
            k = shifted - _MAGIC
            r = (x - k * _LN2_HIGH) - k * _LN2_LOW
            p = 2.505210838544172e-08  # 1 / 11!, Taylor series of exp on |r| <= ln(2) / 2
            p = p * r + 2.755731922398589e-07
            p = p * r + 2.7557319223985893e-06
            p = p * r + 2.48015873015873e-05
            p = p * r + 1.984126984126984e-04
            p = p * r + 1.3888888888888889e-03
            p = p * r + 8.333333333333333e-03
            p = p * r + 4.1666666666666664e-02
            p = p * r + 1.6666666666666666e-01
            p = p * r + 0.5
            p = p * r + 1.0
            mantissa[j] = p * r + 1.0
            power[j] = shifted
        for j in range(size):
            bits[j] += exponents[j] << 52
        for j in range(size):
            target[j] = mantissa[j]
    elif op == 5:
        for j in range(size):
            target[j] = min(first[j], second[j])
    elif op == 6:
        for j in range(size):
            target[j] = min(first[j], number)
    elif op == 7:
        for j in range(size):
            target[j] = max(first[j], second[j])
    elif op == 8:
        for j in range(size):
            target[j] = max(first[j], number)
    elif op == 9:
        for j in range(size):
            target[j] = first[j] ** number
    elif op == 10:
        for j in range(size):
            target[j] = np.exp(first[j])
    elif op == 11:
        for j in range(size):
            target[j] = np.log(first[j])
    elif op == 12:
        for j in range(size):
            target[j] = one / (one + first[j] * number)
    elif op == 13:
        other = vectors.dtype.type(numbers[1])
        for j in range(size):
            target[j] = first[j] * number + other
    elif op == 14:
        for j in range(size):
            target[j] = first[j] * number + second[j]
    else:
        third = vectors[step[3]]
        for j in range(size):
            target[j] = first[j] * second[j] + third[j]


@njit(cache=True, nogil=True, error_model="numpy")
def probabilities(steps: Steps, rows: Any, out: Any) -> None:
    """P(success) of every instance and draw.

    Args:
        steps: The program, laid out for the instances.
        rows: (rows, draws); their type is the precision of the work.
        out: (instances, draws), of the same type, filled.
    """
    codes, numbers, results, first = steps
    used, draws = rows.shape
    own = (len(codes) - first) // max(len(results), 1)
    block = _BLOCK // rows.itemsize
    vectors = np.zeros((max(used, codes[:, 4].max() + 1), block), rows.dtype)
    spare = np.empty((2, block))
    for start in range(0, draws, block):
        size = min(block, draws - start)
        vectors[:used, :size] = rows[:, start : start + size]
        for s in range(len(codes)):
            target = vectors[codes[s, 4]]
            if s >= first and (s - first) % own == own - 1:  # the last step of an instance
                target = out[(s - first) // own, start : start + size]
            _carry_out(codes[s], numbers[s], vectors, target, spare, size)
        if own == 0:
            for r in range(len(results)):
                out[r, start : start + size] = vectors[results[r], :size]


@njit(cache=True, fastmath={"contract"}, nogil=True, error_model="numpy")
def log_likelihood(steps: Steps, rows: Floats, outcomes: Floats, out: Floats) -> None:
    """Log-likelihood of 0/1 outcomes under every draw, added to `out`.

    Args:
        steps: The program, laid out for the instances.
        rows: (rows, draws).
        outcomes: (instances,), 0 or 1.
        out: (draws,), added to.
    """
    codes, numbers, results, first = steps
    used, draws = rows.shape
    own = (len(codes) - first) // max(len(results), 1)
    block = _BLOCK // rows.itemsize
    vectors = np.zeros((max(used, codes[:, 4].max() + 1), block))
    spare = np.empty((2, block))
    product = np.empty(block)
    bits = product.view(np.int64)
    exponent = np.empty(block, np.int64)
    for start in range(0, draws, block):
        size = min(block, draws - start)
        vectors[:used, :size] = rows[:, start : start + size]
        product[:] = 1.0
        exponent[:] = 0
        end = first
        s = 0
        for r in range(len(results)):
            end += own
            while s < end:
                _carry_out(codes[s], numbers[s], vectors, vectors[codes[s, 4]], spare, size)
                s += 1
            source = vectors[results[r]]
            sign = 2.0 * outcomes[r] - 1.0
            offset = 1.0 - outcomes[r]
            for j in range(size):
                product[j] *= max(offset + sign * source[j], 1e-15)
            if r % 16 == 15:  # 16 factors of 1e-15 are still a normal number
                for j in range(size):
                    exponent[j] += (bits[j] >> 52) - 1023
                    bits[j] = (bits[j] & _MANTISSA) | _ONE
        for j in range(size):
            out[start + j] += np.log(product[j]) + exponent[j] * _LN2


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"}, nogil=True, error_model="numpy")
def weighted_sums(
    values: npt.NDArray[np.float32], weights: npt.NDArray[np.float32], out: Floats
) -> None:
    """Sums of every row of values under several weightings, in one thread; accurate to about 1e-6.

    This is not a library's matrix product, whose threads wait busily for each other and whose sums
    would depend on their number. Equal rows give equal sums.

    Args:
        values: (instances, draws).
        weights: (weightings, draws).
        out: (weightings, instances), filled.
    """
    for i in range(values.shape[0]):
        row = values[i]
        for k in range(weights.shape[0]):
            weighting = weights[k]
            total = np.float32(0.0)
            for j in range(row.shape[0]):
                total += row[j] * weighting[j]
            out[k, i] = total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})
def sums_of_wins(
    chances: Floats, odds: Floats, weights: Floats, tilts: Floats, inverse: bool, out: Floats
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
        out: (bets,), filled.
    """
    for k in range(tilts.shape[0]):
        total = 0.0
        for i in range(chances.shape[0]):
            tilt = tilts[k] * odds[i]
            b = 1.0 - tilt
            product = chances[i] * tilt
            # Of two forms of the root, the one in which nothing cancels.
            far = np.sqrt(b * b + 4.0 * product) + abs(b)
            above, below = (2.0 * product, far) if b < 0.0 else (far, 2.0)
            total += weights[i] * (below / above if inverse else above / below)
        out[k] = total
