from typing import Any

import numpy as np
import numpy.typing as npt

class csr_array:
    def __init__(
        self,
        arg1: tuple[npt.NDArray[np.float64], npt.NDArray[Any], npt.NDArray[Any]],
        *,
        shape: tuple[int, int],
    ) -> None: ...
