"""Imports Numba's functions of arrays without SciPy's linear algebra, all of which they ask for.

They import it only to see that it is there, as it is; what multiplies matrices asks again.
"""

from __future__ import annotations

import importlib

from numba.np import linalg  # pyright: ignore[reportMissingTypeStubs]

_ask = linalg.ensure_blas
linalg.ensure_blas = lambda: None
try:
    importlib.import_module("numba.np.arraymath")
finally:
    linalg.ensure_blas = _ask
