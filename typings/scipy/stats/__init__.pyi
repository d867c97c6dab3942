import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

def rankdata(a: npt.ArrayLike, method: str = ...) -> _Floats: ...
