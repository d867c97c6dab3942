"""The part of ArviZ that the project uses."""

from typing import Any

import numpy as np
import numpy.typing as npt

__version__: str

def rhat(data: npt.NDArray[np.float64]) -> Any: ...
def ess(
    data: npt.NDArray[np.float64], *, method: str, prob: tuple[float, float] | None = ...
) -> Any: ...
