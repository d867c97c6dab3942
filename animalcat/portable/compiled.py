"""The functions of `scalars`, for code that Numba compiles too.

Where they are imported from here, compiled code that calls them compiles them as they are written.
"""

from __future__ import annotations

from numba.extending import register_jitable

from animalcat.portable import (
    scalars,
    sparing,  # noqa: F401  # pyright: ignore[reportUnusedImport]
)
from animalcat.portable.scalars import asin, atan, atan2, cos, sin, tan

__all__ = ["asin", "atan", "atan2", "cos", "sin", "tan"]

for _function in (*scalars.PARTS, asin, atan, atan2, cos, sin, tan):
    register_jitable(_function)
