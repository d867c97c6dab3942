"""What lists cost without a server: their CPU time beside that of the imports which they need."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any, Final

REPEATS: Final = 5
"""Runs of which the median is taken."""
TARGET: Final = 1.3
"""Most that a list may cost, in CPU time of its imports."""

LISTS: Final[Mapping[str, str]] = {
    "session list": "session.commands",
    "campaign list": "campaign",
    "episode list": "episode.commands",
    "battery list": "battery",
    "layout list": "layout.show",
}
"""Command -> its module in `animalcat.cli`."""
NEEDED: Final = (
    "import animalcat.cli.main, animalcat.service.host.private, animalcat.cli.{}",
    "import animalcat.cli.serve",
)
"""What is imported by the processes of a command: its own, and its private server."""


def run(quick: bool) -> list[dict[str, Any]]:
    """Measure; a command and its imports take turns, so that both meet the same noise."""
    rows: list[dict[str, Any]] = []
    for name, module in LISTS.items():
        spent: list[float] = []
        needed: list[float] = []
        with tempfile.TemporaryDirectory() as home:
            command = ["-m", "animalcat", *name.split(), "--json", "--data", home]
            _cpu_seconds(command)  # makes the directory ready
            for _ in range(min(2, REPEATS) if quick else REPEATS):
                spent.append(_cpu_seconds(command))
                needed.append(sum(_cpu_seconds(["-c", one.format(module)]) for one in NEEDED))
        ratio = statistics.median(spent) / statistics.median(needed)
        rows.append(
            {
                "name": name,
                "median": statistics.median(spent),
                "unit": "s of CPU",
                "baseline": statistics.median(needed),
                "ratio": ratio,
                "target": f"at most {TARGET:g}",
                "met": ratio <= TARGET,
            }
        )
    return rows


def _cpu_seconds(arguments: list[str]) -> float:
    """CPU time of a Python process, with that of the processes which it waited for."""
    before = _children()
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
