"""`python -m benchmarks python`: a session within this process beside one of a private server."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import animalcat
from animalcat import Lab, Observation, Result

EPISODES: Final = 20
REPEATS: Final = 5
QUICK_REPEATS: Final = 2
BATTERY: Final = "navigation"
OPTIONS: Final[dict[str, Any]] = {"layout": "aaio", "certify": False, "progress": False}
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class Spent(NamedTuple):
    """What a session took: seconds on the wall, and of CPU in all processes of this one."""

    wall: float
    cpu: float


class Forward:
    """Goes on, and turns now and then; its decisions cost nothing."""

    def reset(self, info: object) -> None:
        """Begin to count."""
        self.steps = 0

    def act(self, observation: Observation) -> int:
        """Count, and go on."""
        self.steps += 1
        return 5 if self.steps % 7 == 0 else 3


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Measure the same agent again and again, by each door in turn, once both are warm.

    Args:
        quick: Repeat less.
    """
    repeats = QUICK_REPEATS if quick else REPEATS
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "here"
        with animalcat.local(Path(folder) / "served") as lab:
            ways: dict[str, Callable[[int], Result]] = {
                "lab.measure": lambda take: _served(lab, take),
                "animalcat.measure": lambda take: animalcat.measure(
                    Forward(), BATTERY, folder=here, take=take, max_episodes=EPISODES, **OPTIONS
                ),
            }
            found: dict[str, list[Spent]] = {name: [] for name in ways}
            for take in range(1, repeats + 2):  # the first one warms up
                for name, measure in ways.items():
                    spent = _timed(measure, take)
                    if take > 1:
                        found[name].append(spent)
    return [row for name, spent in found.items() for row in _rows(name, spent)]


def _served(lab: Lab, take: int) -> Result:
    return lab.measure(Forward(), BATTERY, take=take, max_episodes=EPISODES, **OPTIONS)


def _timed(measure: Callable[[int], Result], take: int) -> Spent:
    wall, cpu = time.perf_counter(), _cpu()
    measure(take)
    return Spent(time.perf_counter() - wall, _cpu() - cpu)


def _cpu() -> float:
    """CPU seconds of this process and of all below it, with those that have ended."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):  # it ends just now
            after = (entry / "stat").read_text().rpartition(") ")[2].split()
            parents[int(entry.name)] = int(after[1])
            used[int(entry.name)] = sum(map(int, after[11:15])) / _TICKS
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(used[pid] for pid in ours)


def _rows(name: str, spent: list[Spent]) -> list[dict[str, Any]]:
    return [
        {
            "name": f"{name}: {EPISODES} episodes of {BATTERY}, {what}",
            "value": statistics.median(values),
            "low": min(values),
            "high": max(values),
            "unit": "s",
            "note": f"median of {len(values)}, warm, with the last fit",
        }
        for what, values in zip(("wall", "CPU"), zip(*spent, strict=True), strict=True)
    ]
