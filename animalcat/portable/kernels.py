"""Compiled loops over numbers that give the same bits on every x86-64 processor.

No function here has `fastmath`: nothing is reordered and nothing fused. Sums run in lanes of a
fixed number that are written out, so that registers of any width give the same. What is compiled is
kept small, one function for many of the mathematical ones.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # pyright: ignore[reportMissingTypeStubs]
from numba import njit
from numba.extending import intrinsic

from animalcat.portable import sparing  # noqa: F401  # pyright: ignore[reportUnusedImport]

Floats: TypeAlias = npt.NDArray[np.float64]

_LOG2E: Final = 1.4426950408889634
_LN2: Final = 0.6931471805599453
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
_MAGIC: Final = 6755399441055744.0
"""1.5 x 2^52: adding it leaves the rounded integer in the low bits."""
_MAGIC_BITS: Final = 0x4338000000000000
_SMALLEST: Final = 2.2250738585072014e-308
"""The least normal number."""
_HALF_LOG_TAU: Final = 0.9189385332046727
_TAU: Final = 6.283185307179586


@njit(inline="always", error_model="numpy")
def exp(x: float) -> float:
    """The exponential, by Taylor's series to the 13th power; below 1e-307 it is 0."""
    near = min(max(x, -708.0), 710.0)
    shifted = near * _LOG2E + _MAGIC
    k = shifted - _MAGIC
    t = (near - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.6059043836821613e-10
    p = p * t + 2.08767569878681e-09
    p = p * t + 2.505210838544172e-08
    p = p * t + 2.755731922398589e-07
    p = p * t + 2.7557319223985893e-06
    p = p * t + 2.48015873015873e-05
    p = p * t + 1.984126984126984e-04
    p = p * t + 1.3888888888888889e-03
    p = p * t + 8.333333333333333e-03
    p = p * t + 4.1666666666666664e-02
    p = p * t + 1.6666666666666666e-01
    p = p * t + 0.5
    p = t + t * t * p
    bits = np.float64(shifted).view(np.int64) - _MAGIC_BITS + 1022
    half = np.int64(bits << 52).view(np.float64)
    value = 2.0 * (half + half * p)
    value = value if x >= -708.0 else 0.0
    return value if x == x else x


@njit(inline="always", error_model="numpy")
def log(x: float) -> float:
    """The natural logarithm, by the series of atanh."""
    small = x < _SMALLEST
    scaled = x * 18014398509481984.0 if small else x  # 2^54
    bits = np.float64(scaled).view(np.int64)
    # Shifted so that the mantissa is in [sqrt(1/2), sqrt(2)).
    moved = bits - 0x3FE6A09E667F3BCD
    doublings = moved >> 52
    mantissa = np.int64(bits - (doublings << 52)).view(np.float64)
    k = np.float64(doublings) - (54.0 if small else 0.0)
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = 0.08695652173913043
    w = w * z + 0.09523809523809523
    w = w * z + 0.10526315789473684
    w = w * z + 0.11764705882352941
    w = w * z + 0.13333333333333333
    w = w * z + 0.15384615384615385
    w = w * z + 0.18181818181818182
    w = w * z + 0.2222222222222222
    w = w * z + 0.2857142857142857
    w = w * z + 0.4
    w = w * z + 0.6666666666666666
    value = k * _LN2_HIGH + (f - (s * (f - z * w) - k * _LN2_LOW))
    value = value if x < np.inf else x
    return value if x > 0.0 else (-np.inf if x == 0.0 else np.nan)


@njit(inline="always", error_model="numpy")
def log1p(x: float) -> float:
    """log(1 + x), without loss where x is small (Kahan's way)."""
    u = 1.0 + x
    whole = log(u)
    value = whole * (x / (u - 1.0))
    value = x if u == 1.0 else value
    return value if u < np.inf else whole


@njit(inline="always", error_model="numpy")
def _expm1(x: float) -> float:
    u = exp(x)
    less = u - 1.0
    value = less * (x / log(u))
    value = x if u == 1.0 else value
    value = -1.0 if less == -1.0 else value
    return value if u < np.inf else u


@njit(inline="always", error_model="numpy")
def _expit(x: float) -> float:
    e = exp(-abs(x))
    return (1.0 if x >= 0.0 else e) / (1.0 + e)


@njit(inline="always", error_model="numpy")
def power(x: float, exponent: float) -> float:
    """A number of at least 0 to some power."""
    value = exp(exponent * log(x))
    value = x * x if exponent == 2.0 else value
    value = x if exponent == 1.0 else value
    value = np.sqrt(x) if exponent == 0.5 else value
    return 1.0 if exponent == 0.0 else value


@njit(inline="always", error_model="numpy")
def _upper(x: float) -> float:
    """Probability of a standard normal variable above x, x >= 0.

    Chebyshev series in (y - 3.75) / (y + 3.75), y = x / sqrt(2), of (1 + 2 y) exp(y^2) erfc(y), as
    Shepherd and Laframboise (1981) have it; the coefficients were computed to 40 digits.
    """
    y = x * 0.7071067811865476
    t = 2.0 * ((y - 3.75) / (y + 3.75))
    b = 0.0
    c = 5.068148904796111e-17
    b, c = c, t * c - b + 7.418235256624044e-17
    b, c = c, t * c - b - 1.2507950530688648e-15
    b, c = c, t * c - b - 1.864562880419313e-15
    b, c = c, t * c - b + 3.3478119482868056e-14
    b, c = c, t * c - b + 3.25254814814874e-14
    b, c = c, t * c - b - 9.65469674843344e-13
    b, c = c, t * c - b + 1.9455868545777347e-13
    b, c = c, t * c - b + 2.86879501093067e-11
    b, c = c, t * c - b - 6.318088340886684e-11
    b, c = c, t * c - b - 7.754400208831351e-10
    b, c = c, t * c - b + 4.521959811218287e-09
    b, c = c, t * c - b + 1.076499946567091e-08
    b, c = c, t * c - b - 2.1886401049234397e-07
    b, c = c, t * c - b + 7.74038306619849e-07
    b, c = c, t * c - b + 4.13902798607301e-06
    b, c = c, t * c - b - 6.916973302501207e-05
    b, c = c, t * c - b + 0.0004907758365258086
    b, c = c, t * c - b - 0.002413163540417608
    b, c = c, t * c - b + 0.009074997670705265
    b, c = c, t * c - b - 0.026658668435305753
    b, c = c, t * c - b + 0.05920993999819189
    b, c = c, t * c - b - 0.08424913336651792
    b, c = c, t * c - b - 0.004590054580646478
    whole = 0.5 * t * c - b + 1.1775789345674017
    value = 0.5 * exp(-0.5 * x * x) * (whole / (1.0 + 2.0 * y))
    return value if x < 1e150 else (0.0 if x == x else x)


@njit(inline="always", error_model="numpy")
def ndtr(x: float) -> float:
    """Probability of a standard normal variable below x."""
    tail = _upper(abs(x))
    return 1.0 - tail if x > 0.0 else tail


@njit(error_model="numpy")
def ndtri(p: float) -> float:
    """The standard normal variable below which there is probability p.

    Three quotients of polynomials with the coefficients of Wichura (1988, algorithm AS 241), whose
    relative error is about 1e-16.
    """
    if not 0.0 < p < 1.0:
        if p == 0.0:
            return -np.inf
        return np.inf if p == 1.0 else np.nan
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        a = 2509.0809287301227
        a = a * r + 33430.57558358813
        a = a * r + 67265.7709270087
        a = a * r + 45921.95393154987
        a = a * r + 13731.69376550946
        a = a * r + 1971.5909503065513
        a = a * r + 133.14166789178438
        a = a * r + 3.3871328727963665
        b = 5226.495278852854
        b = b * r + 28729.085735721943
        b = b * r + 39307.89580009271
        b = b * r + 21213.794301586597
        b = b * r + 5394.196021424751
        b = b * r + 687.1870074920579
        b = b * r + 42.31333070160091
        b = b * r + 1.0
        return q * a / b
    r = np.sqrt(-log(p if q < 0.0 else 1.0 - p))
    if r <= 5.0:
        r -= 1.6
        a = 0.0007745450142783414
        a = a * r + 0.022723844989269184
        a = a * r + 0.2417807251774506
        a = a * r + 1.2704582524523684
        a = a * r + 3.6478483247632045
        a = a * r + 5.769497221460691
        a = a * r + 4.630337846156546
        a = a * r + 1.4234371107496835
        b = 1.0507500716444169e-09
        b = b * r + 0.0005475938084995345
        b = b * r + 0.015198666563616457
        b = b * r + 0.14810397642748008
        b = b * r + 0.6897673349851
        b = b * r + 1.6763848301838038
        b = b * r + 2.053191626637759
        b = b * r + 1.0
    else:
        r -= 5.0
        a = 2.0103343992922881e-07
        a = a * r + 2.7115555687434876e-05
        a = a * r + 0.0012426609473880784
        a = a * r + 0.026532189526576124
        a = a * r + 0.29656057182850487
        a = a * r + 1.7848265399172913
        a = a * r + 5.463784911164114
        a = a * r + 6.657904643501103
        b = 2.0442631033899397e-15
        b = b * r + 1.421511758316446e-07
        b = b * r + 1.8463183175100548e-05
        b = b * r + 0.0007868691311456133
        b = b * r + 0.014875361290850615
        b = b * r + 0.1369298809227358
        b = b * r + 0.599832206555888
        b = b * r + 1.0
    return -a / b if q < 0.0 else a / b


@njit(error_model="numpy")
def gammaln(x: float) -> float:
    """Logarithm of the gamma function, x > 0: Stirling's series above 12, products below."""
    if not x > 0.0:
        return np.inf if x == 0.0 else np.nan
    below = 1.0
    while x < 12.0:
        below *= x
        x += 1.0
    z = 1.0 / (x * x)
    p = -0.029550653594771242
    p = p * z + 0.00641025641025641
    p = p * z - 0.0019175269175269176
    p = p * z + 0.0008417508417508417
    p = p * z - 0.0005952380952380953
    p = p * z + 0.0007936507936507937
    p = p * z - 0.002777777777777778
    p = p * z + 0.08333333333333333
    whole = (x - 0.5) * log(x) - x + (_HALF_LOG_TAU + p / x)
    return whole - log(below)


@njit(inline="always", error_model="numpy")
def _sine_of_turns(x: float) -> float:
    """Sine of x turns, 0 <= x <= 1.25."""
    k = np.floor(4.0 * x + 0.5)
    t = (x - 0.25 * k) * _TAU
    z = t * t
    s = -7.647163731819816e-13
    s = s * z + 1.6059043836821613e-10
    s = s * z - 2.505210838544172e-08
    s = s * z + 2.7557319223985893e-06
    s = s * z - 0.0001984126984126984
    s = s * z + 0.008333333333333333
    s = s * z - 0.16666666666666666
    s = t + t * z * s
    c = 4.779477332387385e-14
    c = c * z - 1.1470745597729725e-11
    c = c * z + 2.08767569878681e-09
    c = c * z - 2.755731922398589e-07
    c = c * z + 2.48015873015873e-05
    c = c * z - 0.001388888888888889
    c = c * z + 0.041666666666666664
    c = c * z - 0.5
    c = 1.0 + z * c
    value = c if (k == 1.0 or k == 3.0 or k == 5.0) else s
    return -value if (k == 2.0 or k == 3.0) else value


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def apply(function: int, x: Floats, y: Floats, out: Floats) -> None:
    """Fill `out` with a function of each number; `y` is the second argument of those with two."""
    size = len(x)
    if function == 0:
        for i in range(size):
            out[i] = exp(x[i])
    elif function == 1:
        for i in range(size):
            out[i] = log(x[i])
    elif function == 2:
        for i in range(size):
            out[i] = log1p(x[i])
    elif function == 3:
        for i in range(size):
            out[i] = _expm1(x[i])
    elif function == 4:
        for i in range(size):
            out[i] = _expit(x[i])
    elif function == 5:
        for i in range(size):
            out[i] = log(x[i] / (1.0 - x[i]))
    elif function == 6:
        for i in range(size):
            out[i] = min(x[i], 0.0) - log1p(exp(-abs(x[i])))
    elif function == 7:
        for i in range(size):
            a, b = x[i], y[i]
            most = max(a, b)
            out[i] = most + log1p(exp(-abs(a - b))) if a != b else most + _LN2
    elif function == 8:
        for i in range(size):
            out[i] = power(x[i], y[i])
    elif function == 9:
        for i in range(size):
            out[i] = ndtr(x[i])
    elif function == 10:
        for i in range(size):
            out[i] = ndtri(x[i])
    elif function == 11:
        for i in range(size):
            out[i] = gammaln(x[i])
    else:
        for i in range(size):
            out[i] = _sine_of_turns(x[i])


@njit(error_model="numpy")
def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    h = d
    for m in range(1, 2000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 + even * d
        c = 1.0 + even / c
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = c if abs(c) > tiny else tiny
        h *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 + odd * d
        c = 1.0 + odd / c
        d = 1.0 / (d if abs(d) > tiny else tiny)
        c = c if abs(c) > tiny else tiny
        h *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return h


@njit(error_model="numpy")
def _beta(a: float, b: float, x: float, scale: float) -> float:
    """Regularised incomplete beta function; `scale` is the logarithm of 1 / B(a, b)."""
    if not x > 0.0:
        return 0.0 if x == x else x
    if x >= 1.0:
        return 1.0
    front = exp(a * log(x) + b * log1p(-x) + scale)
    if x < (a + 1.0) / (a + b + 2.0):
        return min(front * _fraction(a, b, x) / a, 1.0)
    return max(1.0 - front * _fraction(b, a, 1.0 - x) / b, 0.0)


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def betas(a: Floats, b: Floats, x: Floats, inverse: bool, out: Floats) -> None:
    """The regularised incomplete beta function of each x, or its inverse.

    The inverse halves an interval that holds the answer wherever Newton's step leaves it.
    """
    for i in range(len(x)):
        scale = gammaln(a[i] + b[i]) - gammaln(a[i]) - gammaln(b[i])
        if not inverse:
            out[i] = _beta(a[i], b[i], x[i], scale)
            continue
        low, high, at = 0.0, 1.0, a[i] / (a[i] + b[i])
        if not 0.0 < x[i] < 1.0:
            out[i] = x[i]
            continue
        for _ in range(200):
            off = _beta(a[i], b[i], at, scale) - x[i]
            if off > 0.0:
                high = at
            else:
                low = at
            density = exp((a[i] - 1.0) * log(at) + (b[i] - 1.0) * log1p(-at) + scale)
            step = at - off / density
            if not low < step < high:
                step = 0.5 * (low + high)
            if abs(step - at) <= 4e-16 * at:
                at = step
                break
            at = step
        out[i] = at


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def product(a: npt.NDArray[Any], b: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
    """Add the product of matrices (n, m) and (m, k) to `out`, four rows of `b` at a time."""
    whole = b.shape[0] - b.shape[0] % 4
    for i in range(a.shape[0]):
        row = out[i]
        for j in range(0, whole, 4):
            p, q, r, s = a[i, j], a[i, j + 1], a[i, j + 2], a[i, j + 3]
            for k in range(b.shape[1]):
                row[k] += (p * b[j, k] + q * b[j + 1, k]) + (r * b[j + 2, k] + s * b[j + 3, k])
        for j in range(whole, b.shape[0]):
            p = a[i, j]
            for k in range(b.shape[1]):
                row[k] += p * b[j, k]


@intrinsic
def _sum_of_lanes(typing_context: Any, a: Any, b: Any) -> Any:
    """Sum of products of two vectors, in lanes of 128 bytes that are folded at the end.

    The lanes are written out, so that registers of any width add up the same in the same order;
    what is left of the vectors beyond whole lanes is not taken in.
    """
    kind = a.dtype

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width = 128 * 8 // kind.bitwidth
        vector = ir.VectorType(context.get_value_type(kind), width)
        arrays = [
            context.make_array(type_)(context, builder, value)
            for type_, value in zip(signature.args, arguments, strict=True)
        ]
        size = builder.extract_value(arrays[0].shape, 0)
        nothing, step = ir.Constant(size.type, 0), ir.Constant(size.type, width)
        whole = builder.sub(size, builder.urem(size, step))
        before = builder.block
        loop, after = (builder.append_basic_block(name) for name in ("lanes", "folded"))
        builder.cbranch(builder.icmp_signed(">", whole, nothing), loop, after)

        builder.position_at_end(loop)
        at, total = builder.phi(size.type), builder.phi(vector)
        loaded = [
            builder.load(
                builder.bitcast(builder.gep(array.data, [at]), vector.as_pointer()),
                align=kind.bitwidth // 8,
            )
            for array in arrays
        ]
        grown, further = builder.fadd(total, builder.fmul(*loaded)), builder.add(at, step)
        for block, place, value in (
            (before, nothing, ir.Constant(vector, None)),
            (loop, further, grown),
        ):
            at.add_incoming(place, block)
            total.add_incoming(value, block)
        builder.cbranch(builder.icmp_signed("<", further, whole), loop, after)

        builder.position_at_end(after)
        folded = builder.phi(vector)
        folded.add_incoming(ir.Constant(vector, None), before)
        folded.add_incoming(grown, loop)
        while width > 1:
            width //= 2
            indices = ir.VectorType(ir.IntType(32), width)
            halves = [
                builder.shuffle_vector(
                    folded,
                    ir.Constant(folded.type, ir.Undefined),  # pyright: ignore
                    ir.Constant(indices, list(range(first, first + width))),
                )
                for first in (0, width)
            ]
            folded = builder.fadd(*halves)
        return builder.extract_element(folded, ir.Constant(ir.IntType(32), 0))

    return kind(a, b), build


@njit(inline="always", error_model="numpy")
def sum_of_products(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Any:
    """Sum of the products of two vectors of one type, whose numbers lie one after the other."""
    total = _sum_of_lanes(a, b)  # pyright: ignore[reportCallIssue]
    for j in range(len(a) - len(a) % (128 // a.itemsize), len(a)):
        total += a[j] * b[j]
    return total


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def rows_by_rows(a: npt.NDArray[Any], b: npt.NDArray[Any], out: npt.NDArray[Any]) -> None:
    """Sums of products of every row of `a` (n, m) with every row of `b` (k, m), into (k, n)."""
    for i in range(a.shape[0]):
        for k in range(b.shape[0]):
            out[k, i] = sum_of_products(a[i], b[k])


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def descend(values: Floats, out: Floats) -> None:
    """Fill `out` with the largest of some values, in descending order; `out` is minus infinity."""
    last = len(out) - 1
    for value in values:
        if value > out[last]:
            i = last
            while i > 0 and out[i - 1] < value:
                out[i] = out[i - 1]
                i -= 1
            out[i] = value


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def cholesky(matrices: Floats) -> None:
    """Make symmetric positive matrices (n, k, k) their lower triangular roots, in place."""
    size = matrices.shape[1]
    for n in range(matrices.shape[0]):
        m = matrices[n]
        for j in range(size):
            for i in range(j, size):
                total = m[i, j]
                for k in range(j):
                    total -= m[i, k] * m[j, k]
                m[i, j] = np.sqrt(total) if i == j else total / m[j, j]
            for i in range(j):
                m[i, j] = 0.0


@njit(cache=True, no_cfunc_wrapper=True, nogil=True, error_model="numpy")
def solve(matrices: Floats, sides: Floats) -> None:
    """Make right sides (n, k, m) the solutions by matrices (n, k, k), which are used up.

    Gauss's elimination, each time with the largest pivot.
    """
    size, many = sides.shape[1], sides.shape[2]
    for n in range(matrices.shape[0]):
        a, b = matrices[n], sides[n]
        for j in range(size):
            best = j
            for i in range(j + 1, size):
                if abs(a[i, j]) > abs(a[best, j]):
                    best = i
            if best != j:
                for k in range(size):
                    a[j, k], a[best, k] = a[best, k], a[j, k]
                for k in range(many):
                    b[j, k], b[best, k] = b[best, k], b[j, k]
            for i in range(j + 1, size):
                factor = a[i, j] / a[j, j]
                for k in range(j + 1, size):
                    a[i, k] -= factor * a[j, k]
                for k in range(many):
                    b[i, k] -= factor * b[j, k]
        for i in range(size - 1, -1, -1):
            for j in range(i + 1, size):
                for k in range(many):
                    b[i, k] -= a[i, j] * b[j, k]
            for k in range(many):
                b[i, k] /= a[i, i]
