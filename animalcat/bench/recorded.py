"""The default policy beside random choice on recorded outcomes, which are replayed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from animalcat.bench.curves import MARGIN, apart, bootstrap_mean, groups, row
from animalcat.bench.rounds import Rows, play
from animalcat.bench.sessions import Player, Task, Trajectory, World
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.library import LayoutSource, load_layout
from animalcat.layouts.model.instances import OutcomeTable

REAL_AT: Final = (20, 30, 40)
SPLITS: Final = 4
"""Splits of the instances per agent and round; with a dozen in all, luck would decide."""
NEAR: Final = 0.25
"""In full-data standard deviations: how near a mean must be to that of the full data."""


def recorded(table: OutcomeTable, title: str, layout: LayoutSource, quick: bool = False) -> Rows:
    """The default policy beside random on recorded outcomes, which are replayed.

    Args:
        table: Outcomes 0 and 1; agents that lack some are left out.
        title: What the rows are called.
        layout: The layout, or its name.
        quick: One round of splits instead of four.

    Raises:
        ValueError: No agent has an outcome on every instance, a feature is missing, or outcomes
            are not 0 and 1.
    """
    world = World(load_layout(layout), table.instances)
    agents = real_players(table)
    if not agents:
        raise ValueError("no agent has an outcome on every instance")
    if not np.isin([player.before for player in agents], (0.0, 1.0)).all():
        raise ValueError("outcomes are replayed as success 1 and failure 0; there are others")
    tasks = real_tasks("recorded", agents, 1 if quick else 4, len(table.instances))
    rounds = play("recorded outcomes", tasks, {"recorded": world}, float("inf"))
    return real_rows(title, rounds)


def real_players(table: OutcomeTable) -> list[Player]:
    """Agents with recorded outcomes; those that lack some are left out."""
    return [
        Player(name, outcomes)
        for name, outcomes in zip(table.agents, table.outcomes, strict=True)
        if np.isfinite(outcomes).all()
    ]


def real_tasks(name: str, agents: Sequence[Player], rounds: int, size: int) -> list[list[Task]]:
    """Per round: each agent, held out and in full, under the default policy and at random.

    Each has splits and random orders of its own: shared, one lucky order would be everybody's.
    """
    at = tuple(n for n in REAL_AT if n <= 0.8 * size) or (max(1, size // 2),)
    whole = tuple(range(1, size + 1))

    def sessions(i: int, player: Player, number: int) -> list[Task]:
        held_out = [(at, SPLITS * number + k, True) for k in range(SPLITS)]
        return [
            Task(name, player, policy, 1000 * seed + i, points, held_out=held)
            for points, seed, held in (*held_out, (whole, number, False))
            for policy in (Policy(), None)
        ]

    return [
        [task for i, player in enumerate(agents) for task in sessions(i, player, number)]
        for number in range(rounds)
    ]


def real_rows(title: str, rounds: Sequence[Sequence[Trajectory]]) -> list[dict[str, Any]]:
    """Target 4: a pair of trajectories for each split of an agent and round, and one in full."""
    size = 2 * (SPLITS + 1)
    note = f"{len(rounds[0]) // size} agents x {SPLITS * len(rounds)} splits; agents are resampled"
    by_agent = [[groups(own, 2) for own in groups(r, size)] for r in rounds]
    splits = [[[apart(*pair) for pair in own[:-1]] for own in r] for r in by_agent]
    differences = np.array(splits).mean(axis=(0, 2))
    made = [
        row(
            f"{title}: held-out Brier less random's at {point.episodes}",
            bootstrap_mean(differences[:, k].tolist()),
            at_most=MARGIN,
            upper=True,
            note=note,
        )
        for k, point in enumerate(rounds[0][0].points)
    ]
    spent = np.array([[[_arrived(t) for t in own[-1]] for own in r] for r in by_agent])
    for k, name in enumerate(("default", "random")):
        estimate = bootstrap_mean(spent[:, :, k].mean(axis=0).tolist())
        made.append(row(f"{title}: episodes to the full-data profile, {name}", estimate))
    fewer = bootstrap_mean((spent[:, :, 0] - spent[:, :, 1]).mean(axis=0).tolist())
    made.append(row(f"{title}: the same, default less random", fewer, at_most=0.0))
    return made


def _arrived(trajectory: Trajectory) -> int:
    """From when on every mean stays within a quarter of the last standard deviation."""
    last = trajectory.points[-1]
    sd = np.maximum(np.array(last.sd), 1e-9)
    away = np.array(
        [np.max(np.abs(np.array(p.mean) - last.mean) / sd) > NEAR for p in trajectory.points]
    )
    late = np.flatnonzero(away)
    return trajectory.points[int(late[-1]) + 1].episodes if late.size else 1
