"""Rounds of simulated sessions: played on several cores, and kept as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from rich.progress import Progress

from animalcat.cli.shared.output import progress_console
from benchmarks.birth import keep
from benchmarks.sessions import Task, Trajectory, World, run_tasks

Rows: TypeAlias = list[dict[str, Any]]
Rounds: TypeAlias = list[list[Trajectory]]


def play(
    name: str, tasks: Sequence[Sequence[Task]], worlds: Mapping[str, World], seconds: float
) -> Rounds:
    """Simulate sessions, and show how far that is.

    Args:
        name: What they are called while they are simulated.
        tasks: The sessions of each round.
        worlds: Layouts with their batteries, by the names that tasks give them.
        seconds: How long sessions may be begun.

    Returns:
        The rounds that are whole.
    """
    size = len(tasks[0])
    flat = [task for one in tasks for task in one]
    with Progress(console=progress_console(), transient=True) as progress:
        bar = progress.add_task(name, total=len(flat))
        made = run_tasks(flat, worlds, seconds, lambda: progress.advance(bar))
    return [made[i : i + size] for i in range(0, len(made) - size + 1, size)]


def keep_rounds(
    folder: Path, part: str, name: str, rounds: Rounds, rows: Rows, seconds: float
) -> None:
    """Keep a section's rows, seeds and mean curves as JSON, with their birth."""
    report = {
        "section": name,
        "rounds": len(rounds),
        "seeds": [one[0].seed for one in rounds],
        "seconds": round(seconds),
        "rows": rows,
        "curves": _curves(rounds),
    }
    keep(folder / part / f"{name}.json", part, report)


def _curves(rounds: Rounds) -> list[dict[str, Any]]:
    """Mean curves of sessions with the same policy, checkpoints and number of capabilities."""
    groups: dict[tuple[str, tuple[int, ...], int], list[Trajectory]] = {}
    for t in (t for one in rounds for t in one if t.points):
        episodes = tuple(p.episodes for p in t.points)
        groups.setdefault((t.policy, episodes, len(t.points[0].sd)), []).append(t)
    made: list[dict[str, Any]] = []
    for (policy, episodes, _), found in groups.items():
        points = [t.points for t in found]
        made.append(
            {
                "policy": policy,
                "episodes": list(episodes),
                "sessions": len(found),
                "sd": _mean([[p.sd for p in each] for each in points]),
                "brier": _mean([[p.brier for p in each] for each in points]),
            }
        )
    return made


def _mean(values: Any) -> Any:
    mean = np.mean(np.array(values), axis=0)
    return None if np.isnan(mean).any() else mean.round(5).tolist()
