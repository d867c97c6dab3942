"""The environment variables that change what backends do; a session keeps their values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

_SIM: Final = (
    # How what numba compiles rounds.
    *("NUMBA_DISABLE_JIT", "NUMBA_OPT", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"),
    "NUMBA_ENABLE_AVX",
)
_UNITY: Final = (
    # Which build `unity:auto` means, and how builds are driven.
    *("ANIMALAI_CACHE", "ANIMALCAT_UNITY_HOME", "ANIMALCAT_UNITY_BUILD"),
    *("ANIMALCAT_UNITY_PYTHON", "ANIMALCAT_UNITY_GRAMMAR", "ANIMALCAT_UNITY_TIME_SCALE"),
    *("ANIMALCAT_UNITY_ARGUMENTS", "ANIMALCAT_UNITY_GRAPHICS", "ANIMALCAT_UNITY_BUILDS"),
)


def simulator_environment(
    backend: str, variables: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return those variables that change what a backend does.

    Args:
        backend: "sim", or "unity:" and a build.
        variables: The environment.
    """
    names = _UNITY if backend.startswith("unity:") else _SIM
    return {name: variables[name] for name in names if name in variables}
