"""What animalcat uses of scipy.spatial."""

import numpy as np
import numpy.typing as npt

class KDTree:
    def __init__(self, data: npt.ArrayLike) -> None: ...
    def query(self, x: npt.ArrayLike) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]: ...
