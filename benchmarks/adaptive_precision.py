"""Episodes saved on agents that the layout describes, beside random and the full battery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from animalcat.benchmarks.adaptive_curves import (
    Ints,
    bootstrap,
    checkpoints,
    crossing,
    row,
    sd_curves,
)
from animalcat.benchmarks.adaptive_sessions import Player, Task, Trajectory, World
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.instances import Instances
from animalcat.layouts.randomness import rng
from animalcat.layouts.simulate import prior_agents
from animalcat.layouts.spec import Layout

GRID: Final = (
    *(10, 20, 30, 40, 50, 65, 80, 100, 125, 150, 175, 200, 250, 300, 350, 400, 450),
    *(500, 550, 600, 656, 800, 1000, 1500),
)
"""Episodes after which posteriors of the large battery are looked at; 656 are 30 % of it."""
SMALL: Final = tuple(range(2, 70))
FULL_OP: Final = 2188
RANDOM: Final = (100, 200, 400, 800)


def players(world: World, count: int, seed: int = 0) -> list[Player]:
    """Agents drawn from the layout's prior."""
    agents = prior_agents(world.layout, count, rng(seed, "agents", 0))
    return [
        Player(f"prior {i}", agent.probability(world.instances), theta=agent.theta)
        for i, agent in enumerate(agents)
    ]


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
    """Per agent: repeats allowed, no repeats, and a random order through the whole battery."""
    return [
        [
            Task("aaio", player, Policy(exposures=0), seed, SMALL, fallback=False),
            Task("aaio", player, Policy(), seed, SMALL, fallback=False),
            Task("aaio", player, None, seed, SMALL),
        ]
        for seed, player in enumerate(players(world, rounds))
    ]


def small_rows(rounds: Sequence[Sequence[Trajectory]]) -> list[dict[str, Any]]:
    """Target 2."""
    repeats, once, random = (sd_curves([r[k] for r in rounds]).mean(axis=2) for k in range(3))
    note = f"{len(rounds)} agents of the prior, random on repeats"

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
            "AAIO 69, no repeats: share of the episodes to within 5 % of its SD",
            bootstrap(size, lambda rows: spent(once, 1.05, rows)),
            at_most=0.7,
            note=note,
        ),
    ]


def generated(layout: Layout, battery: Instances, count: int, seed: int = 0) -> World:
    """A battery, and demand vectors that a source of instances can make.

    Presence features are 0 or 1, the others lie anywhere in their range, counts at whole numbers.
    Vectors have the paradigms of the battery in turn, so that balance does not hold them back.

    Args:
        layout: Which features.
        battery: What there is.
        count: How many vectors the source offers.
        seed: Seed of the vectors.
    """
    generator = rng(seed, "generated", 0)
    columns = [_values(layout, battery, name, count, generator) for name in layout.feature_names]
    values = np.vstack([battery.features(layout), np.column_stack(columns)])
    names = sorted(set(battery.paradigms))
    more = tuple(names[i % len(names)] for i in range(count))
    return World(layout, Instances(layout.feature_names, values, (*battery.paradigms, *more)))


def generated_tasks(battery: World, more: World, rounds: int) -> list[list[Task]]:
    """Per agent: the default policy that may ask for instances, and the full battery."""
    grid = tuple(n for n in GRID if n <= 450)
    agents = zip(players(more, rounds), players(battery, rounds), strict=True)
    return [
        [
            Task("generated", asking, Policy(), seed, grid, fallback=False),
            Task("op", plain, None, seed, (FULL_OP,)),
        ]
        for seed, (asking, plain) in enumerate(agents)
    ]


def generated_rows(layout: Layout, rounds: Sequence[Sequence[Trajectory]]) -> list[dict[str, Any]]:
    """Target 3."""
    ours = sd_curves([r[0] for r in rounds])
    whole = sd_curves([r[1] for r in rounds])[:, -1]
    n = checkpoints([r[0] for r in rounds])

    def spent(k: int, rows: Ints) -> float:
        level = float(whole[rows, k].mean())
        return crossing(n, ours[rows][:, :, k].mean(axis=0), level) / FULL_OP

    names = [layout.latents[i].name for i in layout.capabilities]
    note = f"{len(rounds)} agents of the prior; share of the full battery's episodes for its SD"
    every = bootstrap(len(rounds), lambda rows: max(spent(k, rows) for k in range(len(names))))
    made = [row("OP, generated: every capability", every, at_most=0.2, aim=0.1, note=note)]
    for k, name in enumerate(names):
        estimate = bootstrap(len(rounds), lambda rows, k=k: spent(k, rows))
        made.append(row(f"OP, generated: {name}", estimate, note=note))
    return made


def _values(
    layout: Layout, battery: Instances, name: str, count: int, generator: np.random.Generator
) -> np.ndarray[Any, np.dtype[np.float64]]:
    feature = next(f for f in layout.features if f.name == name)
    known = battery.column(name)
    if set(np.unique(known)) <= {0.0, 1.0}:
        return generator.integers(2, size=count).astype(np.float64)
    if np.array_equal(known, known.round()):
        return generator.integers(int(feature.low), int(feature.high) + 1, count).astype(float)
    return generator.uniform(feature.low, feature.high, count)
