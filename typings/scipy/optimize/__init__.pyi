from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

class OptimizeResult:
    x: _Floats
    fun: float
    success: bool
    message: str

def minimize(
    fun: Callable[[_Floats], tuple[float, _Floats] | float],
    x0: _Floats,
    *,
    jac: bool = ...,
    method: str = ...,
    options: dict[str, Any] | None = ...,
) -> OptimizeResult: ...
def isotonic_regression(y: npt.ArrayLike) -> OptimizeResult: ...
def brentq(f: Callable[[float], float], a: float, b: float) -> float: ...
