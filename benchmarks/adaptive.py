"""`animalcat bench adaptive`: what adaptive testing saves, and whether it stays honest."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from rich.progress import Progress

from animalcat.benchmarks import adaptive_built
from animalcat.benchmarks import adaptive_honesty as honesty
from animalcat.benchmarks import adaptive_precision as precision
from animalcat.benchmarks.adaptive_sessions import Task, Trajectory, World, run_tasks
from animalcat.cli.layout.reproduce import read_entrants
from animalcat.cli.shared.output import print_rows, progress_console
from animalcat.layouts.adaptive.offers import DemandVectorGenerator
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.reproduce.olympics import INSTANCES
from animalcat.layouts.simulation.synthetic import op_battery
from animalcat.service.batteries.naming import paradigm_of
from animalcat.service.measuring.generation import FamilySource

Rows: TypeAlias = list[dict[str, Any]]
Rounds: TypeAlias = list[list[Trajectory]]

RESULTS: Final = Path(__file__).resolve().parent / "results" / "adaptive"
OFFERED: Final = 2000
"""Demand vectors that the source of instances offers."""
WIDER: Final = ("01-[01]*", "01-2[0-35-9]-*", "01-30-*", "07-*")
"""All of categories 1 and 7 with a reward to describe: 01-24 is about keeping away from one."""
SPREAD: Final = (
    ("melting-pot", ""),
    ("one-capability", "success"),
    ("one-capability", "trials"),
    ("one-capability", "score"),
)
"""Layouts and variants without a battery of their own."""
SPREAD_OVER: Final = 200
"""How many instances these get."""
COLUMNS: Final = ("name", "value", "low", "high", "target", "aim", "met", "note")


@dataclass(frozen=True)
class Section:
    """A part of the table.

    Attributes:
        rounds: How many rounds of sessions there are at most.
        seconds: How long sessions may be begun; then the rounds that are whole count.
        quick: The same two when quick; no rounds where one takes longer than that may.
    """

    rounds: int
    seconds: float
    quick: tuple[int, float]


SECTIONS: Final[Mapping[str, Section]] = {
    "precision": Section(80, 280, (2, 10)),
    "small": Section(400, 180, (12, 12)),
    "generated": Section(40, 130, (2, 10)),
    "arenas": Section(200, 60, (6, 10)),
    "real": Section(12, 140, (1, 60)),
    "categories": Section(12, 160, (0, 0)),
    "misfit": Section(10, 360, (0, 0)),
    "alarm": Section(60, 160, (2, 20)),
    "coverage": Section(1000, 700, (40, 25)),
}
BUILT: Final = Section(180, 600, (6, 40))
"""The part on a battery of arenas, which runs where one is given."""
WHOLE: Final = 1740.0
"""Seconds after which no session of any section begins: 29 minutes."""
QUICKLY: Final = 165.0
"""The same when quick."""


def run(quick: bool = False, keep: Path | None = None) -> Rows:
    """All sections.

    Args:
        quick: Few repetitions.
        keep: A folder to write rows and mean curves to.
    """
    end = time.monotonic() + (QUICKLY if quick else WHOLE)
    made: Rows = []
    for name in SECTIONS:
        made += section(name, quick, keep, end - time.monotonic())
    return made


def section(
    name: str, quick: bool = False, keep: Path | None = None, most: float = float("inf")
) -> Rows:
    """One section.

    Args:
        name: One of `SECTIONS`.
        quick: Few repetitions.
        keep: A folder to write rows and mean curves to.
        most: Seconds after which no session begins, if that is sooner than its own limit.
    """
    plan = SECTIONS[name]
    count, limit = plan.quick if quick else (plan.rounds, plan.seconds)
    if not count:
        return [{"name": f"{name}: not with --quick, since a round of its sessions takes longer"}]
    seconds = max(min(limit, most), 0.0)
    op = World(load_layout("object-permanence"), op_battery(0))
    worlds, tasks, rows = _parts(name, op, count)
    if not tasks:
        return []
    start = time.monotonic()
    rounds = _rounds(name, tasks, worlds, seconds)
    if not rounds:
        return [{"name": f"{name}: no round of sessions was done in {seconds:g} s"}]
    made = rows(rounds)
    if keep is not None:
        write(keep, name, rounds, made, time.monotonic() - start)
    return made


def write(folder: Path, name: str, rounds: Rounds, rows: Rows, seconds: float) -> None:
    """Keep a section's rows, seeds and mean curves as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    report = {
        "section": name,
        "rounds": len(rounds),
        "seeds": [one[0].seed for one in rounds],
        "seconds": round(seconds),
        "rows": rows,
        "curves": _curves(rounds),
    }
    (folder / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def of_battery(
    battery: adaptive_built.BuiltBattery, quick: bool = False, keep: Path | None = None
) -> Rows:
    """What is saved on a battery of arenas, and on the demand vectors beside it.

    Args:
        battery: The battery.
        quick: Few repetitions.
        keep: A folder to write rows and mean curves to.
    """
    count, seconds = BUILT.quick if quick else (BUILT.rounds, BUILT.seconds)
    start = time.monotonic()
    tasks = adaptive_built.tasks(battery, count)
    rounds = _rounds(battery.name, tasks, {"built": battery.world}, seconds)
    if not rounds:
        return [{"name": f"{battery.name}: no round of sessions was done in {seconds:g} s"}]
    made = adaptive_built.rows(battery, rounds)
    if keep is not None:
        write(keep, "built", rounds, made, time.monotonic() - start)
    return made + section("precision", quick, keep)


def recorded(table: OutcomeTable, title: str, layout: str, quick: bool = False) -> Rows:
    """The default policy beside random on recorded outcomes, which are replayed.

    Args:
        table: Outcomes 0 and 1; agents that lack some are left out.
        title: What the rows are called.
        layout: Name of the layout.
        quick: One round of splits instead of four.

    Raises:
        ValueError: No agent has an outcome on every instance, a feature is missing, or outcomes
            are not 0 and 1.
    """
    world = World(load_layout(layout), table.instances)
    agents = honesty.real_players(table)
    if not agents:
        raise ValueError("no agent has an outcome on every instance")
    if not np.isin([player.before for player in agents], (0.0, 1.0)).all():
        raise ValueError("outcomes are replayed as success 1 and failure 0; there are others")
    tasks = honesty.real_tasks("recorded", agents, 1 if quick else 4, len(table.instances))
    rounds = _rounds("recorded outcomes", tasks, {"recorded": world}, float("inf"))
    return honesty.real_rows(title, rounds)


_Made: TypeAlias = tuple[dict[str, World], list[list[Task]], Callable[[Rounds], Rows]]


def _parts(name: str, op: World, count: int) -> _Made:
    """Worlds, rounds of tasks, and what makes rows of them."""
    match name:
        case "precision":
            return {"op": op}, precision.large_tasks(op, count), precision.large_rows
        case "generated":
            source = DemandVectorGenerator(op.instances.features(op.layout), OFFERED)
            more = World(op.layout, op.instances, source)
            tasks = precision.generated_tasks("op", more, count)
            return {"op": more}, tasks, lambda rounds: precision.generated_rows("OP", more, rounds)
        case "misfit":
            tasks = honesty.misfit_tasks(op, count)
            return {"op": op}, tasks, lambda rounds: honesty.misfit_rows(op, rounds)
        case "alarm":
            return {"op": op}, honesty.alarm_tasks(op, count), honesty.alarm_rows
        case _:
            return _of_olympics(name, op, count)


def _of_olympics(name: str, op: World, count: int) -> _Made:
    """The same of the sections that need the data of the Olympics; no tasks without it."""
    aaio = olympics(WIDER if name == "categories" else ())
    if aaio is None:
        return {}, [], lambda rounds: []
    world, table = aaio
    match name:
        case "arenas":
            more = World(world.layout, world.instances, FamilySource("navigation"))
            tasks = precision.generated_tasks("aaio", more, count)
            return (
                {"aaio": more},
                tasks,
                lambda rounds: precision.generated_rows("AAIO 69", more, rounds),
            )
        case "small":
            tasks = precision.small_tasks(world, count)
            return {"aaio": world}, tasks, lambda rounds: precision.small_rows(world, rounds)
        case "real" | "categories":
            title = "Olympics" if name == "real" else "Olympics, all of categories 1 and 7"
            agents = honesty.real_players(table)
            tasks = honesty.real_tasks("aaio", agents, count, len(world.instances))
            return {"aaio": world}, tasks, lambda rounds: honesty.real_rows(title, rounds)
        case _:
            others = _spread()
            worlds = {"aaio": world, "op": op, **others}
            tasks = honesty.coverage_tasks(worlds, others, count)
            return worlds, tasks, lambda rounds: honesty.coverage_rows(worlds, rounds)


def _spread() -> dict[str, World]:
    """Layouts without a battery of their own, on instances all over their features."""
    made: dict[str, World] = {}
    for name, variant in SPREAD:
        layout = load_layout(name, variant)
        values = spread(layout, SPREAD_OVER, rng(0, "spread", 0))
        title = f"{name}, {layout.variant}"
        made[title] = World(layout, Instances(layout.feature_names, values))
    return made


def _rounds(
    name: str, tasks: Sequence[Sequence[Task]], worlds: Mapping[str, World], seconds: float
) -> Rounds:
    """Simulate, and keep the rounds that are whole."""
    size = len(tasks[0])
    flat = [task for one in tasks for task in one]
    with Progress(console=progress_console(), transient=True) as progress:
        bar = progress.add_task(name, total=len(flat))
        made = run_tasks(flat, worlds, seconds, lambda: progress.advance(bar))
    return [made[i : i + size] for i in range(0, len(made) - size + 1, size)]


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


def olympics(arenas: tuple[str, ...] = ()) -> tuple[World, OutcomeTable] | None:
    """Instances of the Olympics and the entrants' outcomes on them; None without the data.

    Args:
        arenas: Globs of names, whatever the layout excludes; empty: the 69 of the paper.
    """
    folder = Path(os.environ.get("ANIMALCAT_DATA") or "../shared/data")
    if not (folder / "aaio").is_dir():
        print("warning: no ANIMALCAT_DATA: nothing of the Olympics", file=sys.stderr)
        return None
    layout = load_layout("aaio")
    names = INSTANCES
    if arenas:
        stems = sorted(path.stem for path in (folder / "animal-ai-competition").glob("*.yaml"))
        names = tuple(n for n in stems if any(fnmatchcase(n, glob) for glob in arenas))
        layout = replace(layout, excludes=())
    table = read_entrants(layout, folder, names)
    i = table.instances
    paradigms = tuple(map(paradigm_of, i.names))
    instances = replace(i, paradigms=paradigms)
    return World(layout, instances), OutcomeTable(instances, table.agents, table.outcomes)


def main() -> None:
    """Run the sections that are named, or all, and keep their results."""
    names = [a for a in sys.argv[1:] if a in SECTIONS] or list(SECTIONS)
    for name in names:
        rows = section(name, "--quick" in sys.argv, RESULTS)
        print_rows(rows, COLUMNS, as_json=False, title=name)


if __name__ == "__main__":
    main()
