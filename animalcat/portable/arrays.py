"""Functions of NumPy's arrays that give the same bits on every x86-64 processor.

They are called as those of NumPy and SciPy that have their names, return float64 and warn of
nothing. Numba is imported by the first call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.portable import scalars

Floats: TypeAlias = npt.NDArray[np.float64]

_SHORT: Final = 64
"""Length of sums up to which products are taken along the longer side."""
_FEW: Final = 8
"""The largest are found by one look at each value, rather than by a sort in part, where the square
of how many is at most so many times the number of values."""


@cache
def _apply() -> Callable[[int, Floats, Floats, Floats], None]:
    from animalcat.portable.kernels import apply  # brings numba

    return apply


def _of_one(function: int, x: npt.ArrayLike) -> Any:
    given = np.asarray(x, np.float64, order="C")
    out = np.empty(given.shape)
    flat = given.reshape(-1)
    _apply()(function, flat, flat, out.reshape(-1))
    return out if given.ndim else out[()]


def _of_two(function: int, x: npt.ArrayLike, y: npt.ArrayLike) -> Any:
    a, b = (np.asarray(one, np.float64, order="C") for one in np.broadcast_arrays(x, y))
    out = np.empty(a.shape)
    _apply()(function, a.reshape(-1), b.reshape(-1), out.reshape(-1))
    return out if a.ndim else out[()]


def exp(x: npt.ArrayLike) -> Any:
    """The exponential; 0 below -708."""
    if isinstance(x, float):
        return scalars.exp(x)
    return _of_one(0, x)


def log(x: npt.ArrayLike) -> Any:
    """The natural logarithm."""
    if isinstance(x, float) and x > 0.0:
        return scalars.log(x)
    return _of_one(1, x)


def log1p(x: npt.ArrayLike) -> Any:
    """The logarithm of 1 + x."""
    return _of_one(2, x)


def expm1(x: npt.ArrayLike) -> Any:
    """The exponential less 1."""
    return _of_one(3, x)


def expit(x: npt.ArrayLike) -> Any:
    """The logistic function."""
    return _of_one(4, x)


def logit(p: npt.ArrayLike) -> Any:
    """The inverse of the logistic function."""
    return _of_one(5, p)


def log_expit(x: npt.ArrayLike) -> Any:
    """The logarithm of the logistic function."""
    return _of_one(6, x)


def logaddexp(x: npt.ArrayLike, y: npt.ArrayLike) -> Any:
    """The logarithm of the sum of two exponentials."""
    return _of_two(7, x, y)


def power(x: npt.ArrayLike, exponent: npt.ArrayLike) -> Any:
    """Numbers of at least 0 to some power."""
    return _of_two(8, x, exponent)


def ndtr(x: npt.ArrayLike) -> Any:
    """Probability of a standard normal variable below x."""
    return _of_one(9, x)


def ndtri(p: npt.ArrayLike) -> Any:
    """The standard normal variable below which there is probability p."""
    return _of_one(10, p)


def gammaln(x: npt.ArrayLike) -> Any:
    """The logarithm of the gamma function of numbers above 0."""
    return _of_one(11, x)


def xlogy(x: npt.ArrayLike, y: npt.ArrayLike) -> Any:
    """The product of x and log(y), which is 0 where x is 0."""
    factor = np.asarray(x, np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(factor == 0.0, 0.0, factor * log(y))[()]


def logsumexp(x: npt.ArrayLike, axis: int | None = None) -> Any:
    """The logarithm of the sum of exponentials."""
    given = np.asarray(x, np.float64)
    most = given.max(axis=axis, keepdims=True)
    kept = np.where(np.isfinite(most), most, 0.0)
    total = np.sum(exp(given - kept), axis=axis, keepdims=True)
    return np.squeeze(log(total) + kept, axis=axis)[()]


def betainc(a: npt.ArrayLike, b: npt.ArrayLike, x: npt.ArrayLike) -> Any:
    """The regularised incomplete beta function."""
    return _beta(a, b, x, inverse=False)


def betaincinv(a: npt.ArrayLike, b: npt.ArrayLike, p: npt.ArrayLike) -> Any:
    """The inverse of the regularised incomplete beta function in its last argument."""
    return _beta(a, b, p, inverse=True)


def _beta(a: npt.ArrayLike, b: npt.ArrayLike, x: npt.ArrayLike, *, inverse: bool) -> Any:
    from animalcat.portable import kernels

    given = [np.ascontiguousarray(one, np.float64) for one in np.broadcast_arrays(a, b, x)]
    out = np.empty_like(given[0])
    first, second, third = (one.reshape(-1) for one in given)
    kernels.betas(first, second, third, inverse, out.reshape(-1))
    return out.reshape(np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(x)))[()]


def dot(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Any:
    """The product of vectors and matrices, as `a @ b`; `b` has at most two axes.

    Its type is float32 where both have it, else float64.
    """
    from animalcat.portable import kernels

    kind = np.float32 if a.dtype == b.dtype == np.float32 else np.float64
    left = a.reshape(math.prod(a.shape[:-1]), a.shape[-1])
    right = b[:, np.newaxis] if b.ndim == 1 else b
    many, size, few = *left.shape, right.shape[1]
    shape = (*a.shape[:-1], *b.shape[1:])
    if many > few and size <= _SHORT:  # long loops over the rows of `a`
        turned = np.zeros((few, many), kind)
        kernels.product(_plain(right.T, kind), _plain(left.T, kind), turned)
        return turned.T.reshape(shape)[()]
    if few == 1 or not right.flags.c_contiguous:
        turned = np.empty((few, many), kind)
        kernels.rows_by_rows(_plain(left, kind), _plain(right.T, kind), turned)
        return turned.T.reshape(shape)[()]
    out = np.zeros((many, few), kind)
    kernels.product(_plain(left, kind), _plain(right, kind), out)
    return out.reshape(shape)[()]


def _plain(matrix: npt.NDArray[Any], kind: Any) -> npt.NDArray[Any]:
    return np.ascontiguousarray(matrix, kind)


def cholesky(matrix: Floats) -> Floats:
    """The lower triangular root of a symmetric positive matrix, (k, k)."""
    from animalcat.portable import kernels

    root = np.array(matrix, np.float64, order="C")[np.newaxis]
    kernels.cholesky(root)
    if not np.isfinite(root).all():
        raise np.linalg.LinAlgError("Matrix is not positive definite")
    return root[0]


def solve(matrices: Floats, sides: Floats) -> Floats:
    """Solutions by matrices (..., k, k) of right sides (..., k, m), or (k,) of one matrix."""
    from animalcat.portable import kernels

    size = matrices.shape[-1]
    used = np.array(matrices, np.float64, order="C").reshape(-1, size, size)
    out = np.array(sides, np.float64, order="C")
    kernels.solve(used, out.reshape(len(used), size, -1))
    return out


def standard_normal(generator: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
    """Standard normal variables, by pairs from two uniform ones (Box and Muller 1958).

    NumPy's own look into the C library at their tails.
    """
    count = int(np.prod(shape))
    uniform = generator.random((2, (count + 1) // 2))
    radius = np.sqrt(-2.0 * log(1.0 - uniform[0]))
    turns = uniform[1]
    pairs = radius * np.stack([_of_one(12, turns), _of_one(12, turns + 0.25)])
    return pairs.reshape(-1)[:count].reshape(shape)


def descending(values: Floats, count: int) -> Floats:
    """So many of the largest values, in descending order; all of them if there are fewer."""
    if count * count > _FEW * len(values):
        return np.sort(np.partition(values, max(len(values) - count, 0))[-count:])[::-1]
    from animalcat.portable.kernels import descend  # brings numba

    out = np.full(min(count, len(values)), -np.inf)
    descend(np.ascontiguousarray(values, np.float64), out)
    return out


def distinct_rank(values: Floats, rank: int) -> float | None:
    """The value of a rank, where equal ones count as one; None if no more are distinct than that.

    Args:
        values: The values.
        rank: 1 for the largest.
    """
    few = 8 * rank
    for some in (descending(values, few), values) if few < len(values) // _FEW else (values,):
        if len(distinct := np.unique(some)) > rank:
            return float(distinct[-rank])
    return None


def largest(values: Floats, count: int) -> npt.NDArray[np.int64]:
    """Indices of so many of the largest values, ascending; of equal ones the first.

    `numpy.argpartition` takes equal ones as the processor's registers have them.
    """
    if count >= len(values):
        return np.arange(len(values))
    least = descending(values, count)[-1]
    above = np.flatnonzero(values > least)
    return np.sort(np.concatenate([above, np.flatnonzero(values == least)[: count - len(above)]]))
