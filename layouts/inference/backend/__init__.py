"""The PyMC graph of a layout, and NUTS on it. Nothing on the path of an episode imports this.

`graph` builds the model, `density` is its log density where that can be had quicker, `engine`
samples from it, by `nuts` where `density` serves, and `compat` gives what comes out as arrays.
"""

import atexit
import gc
import os
import warnings

# All that is slow runs in numba here. PyTensor must not try its C compiler: where there is one but
# no Python headers, as on many machines, importing PyMC would fail.
_flags = os.environ.get("PYTENSOR_FLAGS", "")
if "cxx=" not in _flags:
    os.environ["PYTENSOR_FLAGS"] = f"{_flags},cxx=".lstrip(",")
warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")
warnings.filterwarnings("ignore", message="Loop fusion failed")  # it compiles without

# At the end of a process, Python looks for garbage among all that PyMC and numba made, which takes
# seconds. The machine takes the memory back anyway.
atexit.register(gc.freeze)
