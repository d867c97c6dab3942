"""More impostors and able agents than `python -m benchmarks recovery` has time for."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks import recovery
from benchmarks.recovery import LONG, Rows, Size

WHOLE: Final = Size(1.0, 0, 0, 1.0, 0, 6, 30, LONG, 3000.0)
QUICK: Final = Size(0.25, 0, 0, 0.5, 0, 1, 2, 40, 150.0)


def run(quick: bool = False, keep: Path | None = None) -> Rows:
    """How often an alarm stands for agents of another rule, and for able ones, at all sites.

    Args:
        quick: Play less.
        keep: A folder to write rows and sessions to.
    """
    return recovery.run(keep=keep, size=QUICK if quick else WHOLE)
