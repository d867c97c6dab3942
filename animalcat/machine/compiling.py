"""Tells whether code that is compiled on first use has been compiled on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import animalcat

LAYOUTS: Final = "layouts/inference/kernels.py"
"""Source of the code that every session uses."""
SIMULATOR: Final = "envs/sim/rays.py"
"""Source of the code that every play in the simulator uses."""
ONCE: Final = "compiling, once: this may take a minute"
"""What is said of a wait for the compiler."""


def while_compiling(words: str, *sources: str) -> str:
    """The words for a wait, with what makes it long where something is compiled in it.

    Args:
        words: What is being done.
        sources: Sources of compiled code that it uses.
    """
    return words if all(map(is_compiled, sources)) else f"{words} ({ONCE})"


def is_compiled(source: str) -> bool:
    """Whether numba keeps code that it has compiled of a source as it is now.

    Args:
        source: Path of the source within the package.
    """
    path = Path(animalcat.__file__).parent.joinpath(source).resolve()
    pattern = f"{path.stem}.*.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    written = path.stat().st_mtime
    kept = (one for folder in folders(path) for one in folder.rglob(pattern))
    return any(one.stat().st_mtime >= written for one in kept)


def folders(source: Path) -> list[Path]:
    """Where numba looks for what it keeps, as its caching module has it."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen)]
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return [source.parent / "__pycache__", Path(home) / "numba"]
