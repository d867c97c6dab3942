"""The compiled kernels that run a layout's program: one for every layout, cached on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

_BLOCK = 512
"""Draws taken at a time: more would leave the nearest caches, fewer cost time in calls."""

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_MAGIC = 6755399441055744.0  # 1.5 x 2^52: adding it leaves the rounded integer in the low bits
_REACH = 700.0  # exp stays finite within


@njit(cache=True, fastmath={"contract"}, nogil=True, error_model="numpy")
def _sigmoid(
    source: npt.NDArray[np.float64],
    target: npt.NDArray[np.float64],
    power: npt.NDArray[np.float64],
    mantissa: npt.NDArray[np.float64],
    size: int,
) -> None:
    """1 / (1 + exp(-x)) in loops that vectorise; relative error of exp below 1e-14."""
    for j in range(size):
        x = -source[j]
        x = min(max(x, -_REACH), _REACH)
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
    exponents = power.view(np.int64)
    bits = mantissa.view(np.int64)
    for j in range(size):
        bits[j] += exponents[j] << 52
    for j in range(size):
        target[j] = 1.0 / (1.0 + mantissa[j])


@njit(cache=True, fastmath={"contract"}, nogil=True, error_model="numpy")
def _run(
    code: npt.NDArray[np.int64],
    columns: npt.NDArray[Any],
    vectors: npt.NDArray[Any],
    power: npt.NDArray[np.float64],
    mantissa: npt.NDArray[np.float64],
    size: int,
) -> None:
    """Run the program for one instance over one block of draws, in the precision of the vectors."""
    one = vectors.dtype.type(1.0)
    for i in range(code.shape[0]):
        op = code[i, 0]
        target = vectors[code[i, 1]]
        first = vectors[code[i, 2]]
        if op == 0:
            second = vectors[code[i, 3]]
            for j in range(size):
                target[j] = first[j] * second[j]
        elif op == 1:
            number = columns[code[i, 3]]
            for j in range(size):
                target[j] = first[j] * number
        elif op == 2:
            second = vectors[code[i, 3]]
            for j in range(size):
                target[j] = first[j] + second[j]
        elif op == 3:
            number = columns[code[i, 3]]
            for j in range(size):
                target[j] = first[j] + number
        elif op == 4:
            _sigmoid(first, target, power, mantissa, size)
        elif op == 5:
            second = vectors[code[i, 3]]
            for j in range(size):
                target[j] = min(first[j], second[j])
        elif op == 6:
            number = columns[code[i, 3]]
            for j in range(size):
                target[j] = min(first[j], number)
        elif op == 7:
            second = vectors[code[i, 3]]
            for j in range(size):
                target[j] = max(first[j], second[j])
        elif op == 8:
            number = columns[code[i, 3]]
            for j in range(size):
                target[j] = max(first[j], number)
        elif op == 9:
            number = columns[code[i, 3]]
            for j in range(size):
                target[j] = first[j] ** number
        elif op == 10:
            for j in range(size):
                target[j] = np.exp(first[j])
        elif op == 11:
            for j in range(size):
                target[j] = np.log(first[j])
        elif op == 12:
            number = columns[code[i, 3]]
            for j in range(size):
                target[j] = one / (one + first[j] * number)
        elif op == 13:
            number = columns[code[i, 3]]
            other = columns[code[i, 4]]
            for j in range(size):
                target[j] = first[j] * number + other
        elif op == 14:
            number = columns[code[i, 3]]
            third = vectors[code[i, 4]]
            for j in range(size):
                target[j] = first[j] * number + third[j]
        else:
            second = vectors[code[i, 3]]
            third = vectors[code[i, 4]]
            for j in range(size):
                target[j] = first[j] * second[j] + third[j]


@njit(cache=True, fastmath={"contract"}, nogil=True, error_model="numpy")
def probabilities(
    code: npt.NDArray[np.int64],
    columns: npt.NDArray[Any],
    rows: npt.NDArray[Any],
    scratch: int,
    result: int,
    out: npt.NDArray[Any],
) -> None:
    """P(success) of every instance and draw.

    Args:
        code: As `Program.code`.
        columns: (instances, columns).
        rows: (rows, draws), of the same type: that is the precision of the work.
        scratch: Number of scratch vectors.
        result: Vector that holds the result.
        out: (instances, draws), filled.
    """
    used, draws = rows.shape
    vectors = np.zeros((used + scratch, _BLOCK), rows.dtype)
    power = np.empty(_BLOCK)
    mantissa = np.empty(_BLOCK)
    for start in range(0, draws, _BLOCK):
        size = min(_BLOCK, draws - start)
        vectors[:used, :size] = rows[:, start : start + size]
        for i in range(columns.shape[0]):
            _run(code, columns[i], vectors, power, mantissa, size)
            source = vectors[result]
            target = out[i, start : start + size]
            for j in range(size):
                target[j] = source[j]


@njit(cache=True, fastmath={"contract"}, nogil=True, error_model="numpy")
def log_likelihood(
    code: npt.NDArray[np.int64],
    columns: npt.NDArray[np.float64],
    rows: npt.NDArray[np.float64],
    scratch: int,
    result: int,
    outcomes: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None:
    """Log-likelihood of 0/1 outcomes under every draw, added to `out`.

    Args:
        code: As `Program.code`.
        columns: (instances, columns).
        rows: (rows, draws).
        scratch: Number of scratch vectors.
        result: Vector that holds the result.
        outcomes: (instances,), 0 or 1.
        out: (draws,), added to.
    """
    used, draws = rows.shape
    vectors = np.zeros((used + scratch, _BLOCK))
    power = np.empty(_BLOCK)
    mantissa = np.empty(_BLOCK)
    product = np.ones(_BLOCK)
    for start in range(0, draws, _BLOCK):
        size = min(_BLOCK, draws - start)
        vectors[:used, :size] = rows[:, start : start + size]
        product[:] = 1.0
        for i in range(columns.shape[0]):
            _run(code, columns[i], vectors, power, mantissa, size)
            source = vectors[result]
            sign = 2.0 * outcomes[i] - 1.0
            offset = 1.0 - outcomes[i]
            for j in range(size):
                product[j] *= max(offset + sign * source[j], 1e-15)
            if i % 16 == 15:  # 16 factors of 1e-15 are still a normal number
                for j in range(size):
                    out[start + j] += np.log(product[j])
                    product[j] = 1.0
        for j in range(size):
            out[start + j] += np.log(product[j])


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"}, nogil=True, error_model="numpy")
def weighted_sums(
    values: npt.NDArray[np.float32],
    weights: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None:
    """Sums of every row of values under several weightings, in one thread.

    Not a matrix product of a library, whose threads wait busily for each other, and whose sums
    would hang on their number. Equal rows give equal sums.

    Args:
        values: (instances, draws).
        weights: (weightings, draws).
        out: (instances, weightings), filled.
    """
    for i in range(values.shape[0]):
        row = values[i]
        for k in range(weights.shape[0]):
            weighting = weights[k]
            total = 0.0
            for j in range(row.shape[0]):
                total += row[j] * weighting[j]
            out[i, k] = total
