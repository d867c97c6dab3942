import numpy as np
import numpy.typing as npt

def label(
    input: npt.NDArray[np.bool_], structure: npt.NDArray[np.int_] | None = None
) -> tuple[npt.NDArray[np.int32], int]: ...
def distance_transform_edt(input: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]: ...
def binary_dilation(
    input: npt.ArrayLike, structure: npt.ArrayLike | None = None
) -> npt.NDArray[np.bool_]: ...
