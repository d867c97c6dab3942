"""Products of small matrices that give the same bits on every processor, by NumPy alone.

`a @ b` goes to a library whose kernels differ by processor; `einsum`, not optimised, multiplies and
adds in one order.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


def product(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Any:
    """The product of vectors and matrices, as `a @ b`; `b` has one axis or two."""
    return np.einsum("...i,i->..." if b.ndim == 1 else "...i,ij->...j", a, b)


def length(vector: Floats) -> float:
    """The Euclidean length of a vector."""
    return math.sqrt(float(np.einsum("i,i->", vector, vector)))
