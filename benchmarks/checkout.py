"""Where this checkout is, and how other processes find its benchmarks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent


def environment() -> dict[str, str]:
    """The environment of a process that imports `benchmarks`, wherever it runs."""
    known = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), known)))}
