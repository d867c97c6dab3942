"""What adaptive choice saves beside a random order: on vectors of demands, and on batteries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import numpy as np

from animalcat.arena_configs.batteries.library import RECIPES, load_recipe
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.service.batteries.battery import Battery, build_family
from animalcat.service.batteries.recipes import build_recipe
from animalcat.service.library.batteries import FAMILY_SIZE
from animalcat.service.library.layouts import layout_on
from animalcat.service.measuring.coverage import some_coverage
from benchmarks.curves import (
    Floats,
    Ints,
    bootstrap,
    checkpoints,
    crossing,
    row,
    sd_curves,
)
from benchmarks.papers.olympics import data_folder, read_entrants
from benchmarks.rounds import Rows, keep_rounds, play
from benchmarks.sessions import WORKERS, Task, Trajectory, World, players
from benchmarks.synthetic import op_battery

BATTERIES: Final = (("object-permanence", "object-permanence"), ("navigation", "aaio"))
"""Shipped batteries, and the layout of each."""
GRID: Final = (
    *(10, 20, 30, 40, 50, 65, 80, 100, 125, 150, 175, 200, 250, 300, 350, 400, 450),
    *(500, 550, 600, 656, 800, 1000, 1500),
)
"""Episodes after which posteriors of the large battery are looked at; 656 are 30 % of it."""
FULL_OP: Final = 2188
"""Demand vectors of the large battery."""
RANDOM: Final = (100, 200, 400, 800)
"""Random episodes that fewer of the default policy are worth."""
ROUNDS: Final = (180, 240.0)
"""Rounds of sessions at most, and seconds after which none begins."""
QUICK_ROUNDS: Final = (6, 40.0)
"""The same when quick."""
SLACK: Final = 1.1
"""How near to the whole battery's standard deviation is near enough: within 10 %."""
MOST: Final = 0.2
"""Share of the battery's episodes within which that is wanted, by the upper bound."""
LOOKED_AT: Final = 0.4
"""Share of the battery's episodes that the default policy plays."""


class BuiltBattery(NamedTuple):
    """A battery of arenas, as the benchmark needs it.

    Attributes:
        name: What its rows are called.
        world: Layout and covered instances.
        left_out: Number of instances that the layout does not cover.
    """

    name: str
    world: World
    left_out: int


def build_battery(name: str, battery: Battery, layout: Layout) -> BuiltBattery:
    """Take the instances of a battery that a layout covers.

    Raises:
        ServiceError: It covers none, or units differ.
    """
    covered = some_coverage(layout, battery)
    chosen = [one for one in battery.instances if one.name in covered.features]
    instances = Instances(
        layout.feature_names,
        np.array([covered.features[one.name] for one in chosen], np.float64),
        tuple(one.paradigm for one in chosen),
        tuple(one.name for one in chosen),
    )
    return BuiltBattery(name, World(layout, instances), len(covered.reasons))


def arenas_of(name: str, folder: Path) -> Battery:
    """A battery that is shipped, by the name of its recipe or family, built in a folder."""
    if name in RECIPES:
        return build_recipe(load_recipe(name), folder, processes=WORKERS)
    return build_family(name, FAMILY_SIZE, 0, folder, processes=WORKERS)


def run(quick: bool, keep: Path | None = None) -> Rows:
    """Measure the vectors of demands of Burden et al., and shipped batteries of arenas.

    Args:
        quick: Few sessions, on the vectors alone.
        keep: A folder to write rows and mean curves to.
    """
    vectors = BuiltBattery("OP", World(load_layout("object-permanence"), op_battery(0)), 0)
    made = of_battery(vectors, quick, keep)
    if quick:
        return made
    if (data := data_folder()) is not None:
        layout = load_layout("aaio")
        world = World(layout, read_entrants(layout, data).instances)
        made += of_battery(BuiltBattery("AAIO 69", world, 0), keep=keep)
    for name, layout in BATTERIES:
        with TemporaryDirectory() as folder:
            battery = arenas_of(name, Path(folder))
            made += of_battery(build_battery(name, battery, layout_on(battery, layout)), keep=keep)
    return made


def of_battery(battery: BuiltBattery, quick: bool = False, keep: Path | None = None) -> Rows:
    """Measure what is saved on a battery of arenas.

    Args:
        battery: The battery.
        quick: Few repetitions.
        keep: A folder to write rows and mean curves to.
    """
    count, seconds = QUICK_ROUNDS if quick else ROUNDS
    start = time.monotonic()
    rounds = play(battery.name, tasks(battery, count), {"built": battery.world}, seconds)
    if not rounds:
        return [{"name": f"{battery.name}: no round of sessions was done in {seconds:g} s"}]
    made = rows(battery, rounds)
    if keep is not None:
        keep_rounds(keep, "saving", battery.name, rounds, made, time.monotonic() - start)
    return made


def tasks(battery: BuiltBattery, rounds: int) -> list[list[Task]]:
    """Per agent of the prior: the default policy, and a random order through all of the battery."""
    full = len(battery.world.instances)
    grid = grid_of(full)
    ours = tuple(n for n in grid if n <= LOOKED_AT * full)
    return [
        [
            Task("built", player, Policy(), seed, ours, fallback=False),
            Task("built", player, None, seed, grid, in_blocks=True),
        ]
        for seed, player in enumerate(players(battery.world, rounds))
    ]


def grid_of(full: int) -> tuple[int, ...]:
    """Episodes after which posteriors are looked at: those of the vectors, by shares."""
    return tuple(sorted({max(1, round(n * full / FULL_OP)) for n in (*GRID, FULL_OP)}))


def rows(battery: BuiltBattery, rounds: Sequence[Sequence[Trajectory]]) -> Rows:
    """Share of the battery to within 10 % of its precision, and times fewer than random."""
    full = len(battery.world.instances)
    each, all_random = (sd_curves([r[k] for r in rounds]) for k in (0, 1))
    ours, random = each.mean(axis=2), all_random.mean(axis=2)
    n, m = checkpoints([r[0] for r in rounds]), checkpoints([r[1] for r in rounds])

    def share(rows: Ints) -> float:
        level = SLACK * float(random[rows, -1].mean())
        return crossing(n, ours[rows].mean(axis=0), level) / full

    note = f"{len(rounds)} agents of the prior, {full} instances; mean SD in shares of the ranges"
    if battery.left_out:
        note += f"; the layout leaves out {battery.left_out} more"
    made = [
        row(
            f"{battery.name}: share of the battery to within 10 % of its SD",
            bootstrap(len(rounds), share),
            at_most=MOST,
            upper=True,
            note=note,
        )
    ]
    for vectors in RANDOM:
        count = max(1, round(vectors * full / FULL_OP))

        def share_saved(rows: Ints, at: int = m.index(count), count: int = count) -> float:
            level = float(random[rows, at].mean())
            return count / crossing(n, ours[rows].mean(axis=0), level)

        name = f"{battery.name}: times fewer episodes than {count} random ones, by SD"
        made.append(
            row(name, bootstrap(len(rounds), share_saved), at_least=2.6, aim=4.0, note=note)
        )
    squares, all_squares = (square_errors(battery.world, [r[k] for r in rounds]) for k in (0, 1))
    for vectors in RANDOM:
        count = max(1, round(vectors * full / FULL_OP))

        def nearer(rows: Ints, at: int = m.index(count), count: int = count) -> float:
            level = float(errors(all_squares[rows])[at])
            return count / crossing(n, errors(squares[rows]), level)

        name = f"{battery.name}: times fewer episodes than {count} random ones, by error"
        made.append(row(name, bootstrap(len(rounds), nearer), note=note))
    return made


def square_errors(world: World, trajectories: Sequence[Trajectory]) -> Floats:
    """Of posterior means, in shares of the ranges: (sessions, checkpoints, capabilities).

    Args:
        world: The world of the sessions.
        trajectories: One of each of the first agents of `players(world, ...)`, in their order.
    """
    columns = list(world.layout.capabilities)
    spans = np.array([world.layout.latents[i].prior.span for i in columns])
    agents = players(world, len(trajectories))
    truths = np.array([p.theta[columns] for p in agents if p.theta is not None]) / spans
    means = np.array([[point.mean for point in t.points] for t in trajectories])
    return np.asarray((means - truths[:, np.newaxis]) ** 2, np.float64)


def errors(squares: Floats) -> Floats:
    """Root mean square errors of square ones, as the mean of all capabilities: (checkpoints,)."""
    return np.asarray(np.sqrt(squares.mean(axis=0)).mean(axis=-1), np.float64)
