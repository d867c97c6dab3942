"""The PyMC graph of a layout, and NUTS on it. Nothing on the path of an episode imports this."""

import warnings

# Linear algebra is numba's here, so it does not matter that PyTensor's C linker finds no BLAS.
warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")
