"""How close the simulator is to what the real build recorded: one table.

- Outcomes: 1,000 episodes of a camera agent, with the physics step at which each ended.
- Rewards: the Braitenberg agent of the package `animalai` in 346 competition arenas (build 3.1.3).
- Logs: one row for every physics step.

Each row says what is left, and why where that is known (`OPEN`). Traces and frames are compared by
tests of the simulator alone (`tests/envs`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.progress import Progress

from animalcat.cli.shared.output import progress_console
from animalcat.machine.processes import process_pool
from benchmarks import outcomes
from benchmarks.outcomes import Episode, Pair

EXACT: Final = 2e-5
CLOSE: Final = 1e-3
"""Differences of rewards within which an arena agrees."""
PROCESSES: Final = 2

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
_LEANING: Final = (
    "stands on walls on walls, which lean by a hair; the last digits decide whether its rays end "
    "in them, so it is held up nearly as long as the real agent, not exactly"
)
_RAILS: Final = (
    "rails of 10,000 kg fall on posts, and how they hit decides the ball's way: PhysX 5 does not "
    "do as Unity's PhysX 4.1"
)
OPEN: Final[Mapping[str, str]] = {
    "01-22": "forty balls fall on each other; not explained",
    "02-29": _RAILS,
    "04-29": "the only arena that draws the turns of DeathZones; not explained",
    "04-30": "a bouncing goal crosses two DeathZones; the real agent sees it, ours does not",
    "06-14": _LEANING,
    "06-15": _LEANING,
    "07-19": _RAILS,
    "07-20": _RAILS,
    "07-21": _RAILS,
    "07-22": _RAILS,
    "07-23": _RAILS,
    "08-13": "a bouncing goal between walls; one step",
    **{f"08-{task}": _LEANING for task in range(19, 27)},
}
"""What is known of competition arenas whose reward does not agree, by task."""


def run(quick: bool = False) -> list[Mapping[str, Any]]:
    """Compare with everything recorded; rows whose data or agent is absent say so.

    Args:
        quick: A sample: every fiftieth episode and every twentieth arena.
    """
    data_dir = Path(os.environ.get("ANIMALCAT_DATA") or "../shared/data")
    if not (data_dir / outcomes.FOLDER).is_dir():
        return [{"name": "the real build's data", "note": "no data: set ANIMALCAT_DATA"}]
    return [
        *_outcomes(data_dir, 50 if quick else 1),
        *_rewards(data_dir, 20 if quick else 1),
        *_logs(data_dir),
    ]


def _row(name: str, value: float, unit: str, target: str = "", note: str = "") -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "target": target, "note": note}


def _outcomes(data_dir: Path, every: int) -> Iterator[dict[str, Any]]:
    episodes = outcomes.camera_episodes(data_dir)[::every]
    played = _spread("camera agent", outcomes.play_camera_episode, episodes)
    yield from outcome_rows(episodes, played)


def outcome_rows(
    episodes: Sequence[Episode], played: Sequence[tuple[bool, int]]
) -> Iterator[dict[str, Any]]:
    """Rows of the camera agent's episodes.

    Args:
        episodes: As they were recorded.
        played: Whether the goal was reached here, and the ticks.
    """
    both = list(zip(episodes, played, strict=True))
    other = [f"{e.x:g}, {e.z:g}, {e.size:g} m" for e, (done, _) in both if done != e.reached]
    alike = len(both) - len(other)
    note = f"otherwise: goals at {'; '.join(other)}" if other else ""
    yield _row("camera agent: outcomes alike", alike, f"of {len(both)}", "99.9 %", note)
    reached = [(e.ticks, ticks) for e, (done, ticks) in both if done and e.reached]
    off = [ours - real for real, ours in reached if ours != real]
    note = ""
    if off:
        counts = [f"{off.count(late):d} x {late:+d}" for late in sorted(set(off), key=abs)]
        note = f"steps off: {', '.join(counts)}; a pixel seen a decision sooner or later"
    exact = len(reached) - len(off)
    yield _row("- goals reached on the very tick", exact, f"of {len(reached)}", "99 %", note)


def _rewards(data_dir: Path, every: int) -> Iterator[dict[str, Any]]:
    try:
        outcomes.braitenberg()
    except ImportError:
        yield {"name": "rewards of the ray agent", "note": "no agent: pip install animalai"}
        return
    arenas = list(outcomes.ray_arenas(data_dir).items())[::every]
    tasks = [(name, arena, real) for name, (arena, real, _) in arenas]
    pairs = _spread("ray agent", _compare, tasks)
    chance = [pair for pair, (_, (*_, drawn)) in zip(pairs, arenas, strict=True) if drawn]
    yield from reward_rows(pairs, chance)


def _compare(task: tuple[str, Any, float]) -> Pair:
    return outcomes.compare(*task)


def reward_rows(pairs: Sequence[Pair], chance: Sequence[Pair]) -> Iterator[dict[str, Any]]:
    """Rows of the ray agent's rewards.

    Args:
        pairs: Of all arenas.
        chance: Of those that leave more than colours to chance.
    """
    of = f"of {len(pairs)}"
    other = ", ".join(f"{p.instance} {p.real:.3g}, ours {p.ours:.3g}" for p in pairs if not p.alike)
    alike = sum(pair.alike for pair in pairs)
    yield _row("ray agent: passed and failed alike", alike, of, "99.5 %", other)
    close = sum(pair.agrees(CLOSE) for pair in pairs)
    yield _row(f"- rewards within {CLOSE:g}", close, of, "97 %", "what is left: below")
    yield _row(f"- rewards within {EXACT:g}", sum(p.agrees(EXACT) for p in pairs), of)
    for words, some in (
        ("- left to chance", chance),
        ("- left to chance, no plain time-out", [pair for pair in chance if pair.telling]),
    ):
        agree = sum(pair.agrees(CLOSE) for pair in some)
        yield _row(f"{words}: within {CLOSE:g}", agree, f"of {len(some)}")
    for pair in pairs:
        if not pair.agrees(CLOSE):
            why = OPEN.get(pair.instance[:5], "not known")
            note = f"real {pair.real:.4f}, ours {pair.ours:.4f}: {why}"
            yield _row(f"- {pair.instance}", round(pair.ours - pair.real, 5), "reward", "", note)


def _logs(data_dir: Path) -> Iterator[dict[str, Any]]:
    for log in outcomes.log_errors(data_dir):
        note = f"{log.rows} steps; health {log.health:.1e} of 100, reward {log.reward:.1e}"
        yield _row(f"log {log.name}", log.place, "m", "<= 0.001", note)


def _spread(words: str, task: Callable[[_Task], _Result], tasks: Iterable[_Task]) -> list[_Result]:
    """Do tasks in a few processes, with progress; results in the order of the tasks."""
    given = list(tasks)
    workers = min(PROCESSES, os.cpu_count() or 1)
    results: list[_Result] = []
    with (
        Progress(console=progress_console(), transient=True) as progress,
        process_pool(workers) as pool,
    ):
        bar = progress.add_task(words, total=len(given))
        for result in pool.map(task, given, chunksize=4):
            results.append(result)
            progress.advance(bar)
    return results
