"""Episodes saved on agents that the layout describes, beside random and the full battery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from animalcat.bench.curves import (
    Ints,
    bootstrap,
    checkpoints,
    crossing,
    row,
    sd_curves,
)
from animalcat.bench.saving import FULL_OP, GRID, RANDOM, errors, square_errors
from animalcat.bench.sessions import Player, Task, Trajectory, World, players
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.adaptive.retest import DeterminismPrior

SMALL: Final = tuple(range(2, 70))
HALVES: Final = DeterminismPrior(0.5, 0.5)
"""What is declared of a population of which half is deterministic."""


def large_tasks(world: World, rounds: int) -> list[list[Task]]:
    """Per agent: the default policy on 30 % of the battery, a random order through all of it."""
    ours = tuple(n for n in GRID if n <= 656)
    return [
        [
            Task("op", player, Policy(), seed, ours, fallback=False),
            Task("op", player, None, seed, (*GRID, FULL_OP)),
        ]
        for seed, player in enumerate(players(world, rounds))
    ]


def large_rows(rounds: Sequence[Sequence[Trajectory]]) -> list[dict[str, Any]]:
    """Target 1."""
    ours, random = (sd_curves([r[k] for r in rounds]).mean(axis=2) for k in (0, 1))
    n, m = checkpoints([r[0] for r in rounds]), checkpoints([r[1] for r in rounds])

    def near_full(rows: Ints) -> float:
        level = 1.1 * float(random[rows, -1].mean())
        return crossing(n, ours[rows].mean(axis=0), level) / FULL_OP

    note = f"{len(rounds)} agents of the prior; mean SD in shares of the ranges"
    made = [
        row(
            "OP: share of the battery to within 10 % of its SD",
            bootstrap(len(rounds), near_full),
            at_most=0.3,
            aim=0.2,
            note=note,
        )
    ]
    for count in RANDOM:

        def saved(rows: Ints, at: int = m.index(count), count: int = count) -> float:
            level = float(random[rows, at].mean())
            return count / crossing(n, ours[rows].mean(axis=0), level)

        estimate = bootstrap(len(rounds), saved)
        name = f"OP: times fewer episodes than {count} random ones, by SD"
        made.append(row(name, estimate, at_least=2.6, aim=4.0, note=note))
    return made


def small_tasks(world: World, rounds: int) -> list[list[Task]]:
    """Per agent: repeats allowed, no repeats, and a random order through the whole battery.

    Then repeats allowed in a population that is known to be half random and half deterministic:
    first as an agent that is random, then as one that is deterministic.
    """

    def task(player: Player, policy: Policy | None, seed: int, **others: Any) -> Task:
        return Task("aaio", player, policy, seed, SMALL, fallback=False, **others)

    often = Policy(exposures=0)
    return [
        [
            task(player, often, seed),
            task(player, Policy(), seed),
            task(player, None, seed),
            task(player, often, seed, determinism=HALVES),
            task(replace(player, fixed=True), often, seed, determinism=HALVES),
        ]
        for seed, player in enumerate(players(world, rounds))
    ]


def small_rows(world: World, rounds: Sequence[Sequence[Trajectory]]) -> list[dict[str, Any]]:
    """Target 2."""
    repeats, once, random, told, fixed = (
        sd_curves([r[k] for r in rounds]).mean(axis=2) for k in range(5)
    )
    squares, _, all_squares = (square_errors(world, [r[k] for r in rounds]) for k in range(3))
    note = f"{len(rounds)} agents of the prior, random on repeats"

    def spent_by_error(rows: Ints) -> float:
        level = float(errors(all_squares[rows])[-1])
        return crossing(SMALL, errors(squares[rows]), level) / SMALL[-1]

    def spent(curves: Any, slack: float, rows: Ints) -> float:
        level = slack * float(random[rows, -1].mean())
        return crossing(SMALL, curves[rows].mean(axis=0), level) / SMALL[-1]

    size = len(rounds)
    return [
        row(
            "AAIO 69, repeats: share of the episodes for the full battery's SD",
            bootstrap(size, lambda rows: spent(repeats, 1.0, rows)),
            at_most=0.3,
            aim=0.25,
            note=note,
        ),
        row(
            "AAIO 69, repeats: the same by root mean square errors",
            bootstrap(size, spent_by_error),
            note=note,
        ),
        row(
            "AAIO 69, no repeats: share of the episodes to within 5 % of its SD",
            bootstrap(size, lambda rows: spent(once, 1.05, rows)),
            at_most=0.7,
            note=note,
        ),
        row(
            "AAIO 69, repeats, half declared deterministic: share of the episodes, random agents",
            bootstrap(size, lambda rows: spent(told, 1.0, rows)),
            at_most=0.5,
            upper=True,
            note=note,
        ),
        row(
            "AAIO 69, repeats, half declared deterministic: the same, both halves",
            bootstrap(size, lambda rows: spent((told + fixed) / 2.0, 1.0, rows)),
            at_most=0.5,
            upper=True,
            note=f"{size} agents of the prior, each once random and once deterministic",
        ),
    ]


def generated_tasks(name: str, world: World, rounds: int) -> list[list[Task]]:
    """Per agent: the default policy that may ask for instances, and the full battery."""
    full = len(world.instances)
    grid = tuple(n for n in (SMALL if full == SMALL[-1] else GRID) if n <= 450)
    return [
        [
            Task(name, player, Policy(generate=True), seed, grid, fallback=False),
            Task(name, player, None, seed, (full,)),
        ]
        for seed, player in enumerate(players(world, rounds))
    ]


def generated_rows(
    title: str, world: World, rounds: Sequence[Sequence[Trajectory]]
) -> list[dict[str, Any]]:
    """Target 3."""
    layout, full = world.layout, len(world.instances)
    ours = sd_curves([r[0] for r in rounds])
    whole = sd_curves([r[1] for r in rounds])[:, -1]
    n = checkpoints([r[0] for r in rounds])

    def spent(k: int, rows: Ints) -> float:
        level = float(whole[rows, k].mean())
        return crossing(n, ours[rows][:, :, k].mean(axis=0), level) / full

    names = [layout.latents[i].name for i in layout.capabilities]
    note = f"{len(rounds)} agents of the prior; share of the full battery's episodes for its SD"
    every = bootstrap(len(rounds), lambda rows: max(spent(k, rows) for k in range(len(names))))
    made = [row(f"{title}, generated: every capability", every, at_most=0.2, aim=0.1, note=note)]
    for k, name in enumerate(names):
        estimate = bootstrap(len(rounds), lambda rows, k=k: spent(k, rows))
        made.append(row(f"{title}, generated: {name}", estimate, note=note))
    return made
