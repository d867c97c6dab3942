"""What starting costs: the CPU time of each part, cold and warm, in processes of their own.

Cold is with nothing that numba has compiled, warm is the same once more. A part of which both are
alike imports, and compiles nothing that is kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, Final

from animalcat.service.host.warming import parts

_PART: Final = "from animalcat.service.host.warming import use; use({!r})"
_FIT: Final = """
import numpy as np
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.library import load_layout
layout = load_layout("aaio")
features = np.array([[f.low, f.high] for f in layout.features]).T.repeat(10, axis=0)
fit(FitRequest(layout, features, np.arange(20) % 2.0, seed=0))
"""
WORKS: Final[Mapping[str, list[str]]] = {
    **{part.name: ["-c", _PART.format(part.name)] for part in parts()},
    "a fit of 20 outcomes": ["-c", _FIT],
    "animalcat --help": ["-m", "animalcat", "--help"],
    "animalcat layout list": ["-m", "animalcat", "layout", "list"],
}
"""What is measured, in this order: arguments of Python."""


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure; what compiles does so one after the other, with one cache, as in one installation.

    Args:
        quick: Whether to leave out the demo, which takes two minutes.
    """
    rows = _measured(WORKS)
    whole = {key: sum(row[key] for row in rows) for key in ("cold", "warm")}
    rows.append({"name": "all of these", **whole, "unit": "s of CPU"})
    return rows if quick else [*rows, *_measured({"animalcat demo": ["-m", "animalcat", "demo"]})]


def _measured(works: Mapping[str, list[str]]) -> list[dict[str, Any]]:
    """A row for each work: its CPU and wall-clock time in two runs, the first without a cache."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        kept = {"NUMBA_CACHE_DIR": f"{folder}/numba", "XDG_CACHE_HOME": f"{folder}/cache"}
        environment = {**os.environ, **kept, "ANIMALCAT_HOME": f"{folder}/home"}
        for name, arguments in works.items():
            cold, long = _measure_time(arguments, environment, Path(folder))
            warm, short = _measure_time(arguments, environment, Path(folder))
            note = f"{long:.1f} s and {short:.1f} s of the clock"
            rows.append(
                {"name": name, "cold": cold, "warm": warm, "unit": "s of CPU", "note": note}
            )
    return rows


def _measure_time(
    arguments: list[str], environment: dict[str, str], folder: Path
) -> tuple[float, float]:
    """CPU and wall-clock time of a Python process and of those that it starts."""
    before, start = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, check=True
    )
    after = getrusage(RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, time.perf_counter() - start
