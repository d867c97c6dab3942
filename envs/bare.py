"""The environment variables that processes which play arenas get: only those that they need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final

_PASSED: Final = (
    # Where programs, the user's settings and caches, and temporary files are: compiled code lies in
    # caches, and a Unity build keeps its preferences in the home.
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_*"),
    # How text and times are written.
    *("LANG", "LANGUAGE", "LC_*", "TZ"),
    # What finds this very code and its libraries again, in this interpreter or another.
    *("PYTHON*", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
    # How many threads numerical libraries start, and where numba keeps what it compiles.
    *("OMP_*", "OPENBLAS_*", "MKL_*", "VECLIB_*", "NUMBA_*"),
    # Where and how a build draws.
    *("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "CUDA_*", "NVIDIA_*", "VK_*", "MESA_*"),
    *("LIBGL_*", "GALLIUM_*", "__GLX_*", "__EGL_*", "__NV_*", "__VK_*"),
    # Which interpreter and build `unity:auto` means, and how they are driven.
    *("ANIMALCAT_UNITY_*", "ANIMALAI_CACHE"),
)
"""Patterns of the names of variables that are passed on.

Any other variable may be a secret: a build is a program from anywhere, and whoever runs a server
has tokens of clouds, registries and databases in its environment. ANIMALCAT_SERVER and
ANIMALCAT_SESSION are left out for another reason: with them, the stand-in would take its arenas
from a service instead of from its client."""


def bare_environment(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Select the variables for a worker, for the player of a Unity build, and for the build."""
    return {
        name: value
        for name, value in variables.items()
        if any(fnmatchcase(name, pattern) for pattern in _PASSED)
    }
