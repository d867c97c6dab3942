"""Products of small matrices that give the same bits on every processor, by NumPy alone.

`a @ b` goes to a library whose kernels differ by processor; `einsum`, not optimised, multiplies and
adds in one order.
"""

from __future__ import annotations

import math
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

_AXES: Final = {(1, 1): "i,i->", (2, 1): "ij,j->i", (1, 2): "i,ij->j", (2, 2): "ij,jk->ik"}


def product(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> Any:
    """The product of two vectors or matrices, as `a @ b`."""
    return np.einsum(_AXES[a.ndim, b.ndim], a, b)


def length(vector: Floats) -> float:
    """The Euclidean length of a vector."""
    return math.sqrt(float(np.einsum("i,i->", vector, vector)))
