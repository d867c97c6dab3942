from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

def dijkstra(
    csgraph: csr_array, *, indices: int, return_predecessors: Literal[False]
) -> npt.NDArray[np.float64]: ...
def connected_components(
    csgraph: csr_array, *, directed: bool, connection: Literal["weak", "strong"]
) -> tuple[int, npt.NDArray[np.int32]]: ...
def breadth_first_order(
    csgraph: csr_array, i_start: int, *, return_predecessors: Literal[False]
) -> npt.NDArray[np.int32]: ...
