"""`python -m benchmarks adaptive`: what adaptive testing saves, and whether it stays honest."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias

from animalcat.bench.recorded import real_players, real_rows, real_tasks
from animalcat.bench.rounds import Rounds, Rows, keep_rounds, play
from animalcat.bench.sessions import Task, World
from animalcat.cli.shared.output import print_rows
from animalcat.layouts.adaptive.offers import DemandVectorGenerator
from animalcat.layouts.checking.calibration import spread
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.simulation.synthetic import op_battery
from animalcat.service.batteries.naming import paradigm_of
from animalcat.service.measuring.generation import FamilySource
from benchmarks import adaptive_honesty as honesty
from benchmarks import adaptive_precision as precision
from benchmarks.reproduce.entrants import read_entrants
from benchmarks.reproduce.olympics import INSTANCES

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
    rounds = play(name, tasks, worlds, seconds)
    if not rounds:
        return [{"name": f"{name}: no round of sessions was done in {seconds:g} s"}]
    made = rows(rounds)
    if keep is not None:
        keep_rounds(keep, name, rounds, made, time.monotonic() - start)
    return made


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
            agents = real_players(table)
            tasks = real_tasks("aaio", agents, count, len(world.instances))
            return {"aaio": world}, tasks, lambda rounds: real_rows(title, rounds)
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
