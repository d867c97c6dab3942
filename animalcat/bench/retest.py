"""Two sessions of one agent with other seeds: do their intervals and estimates agree?

Both sessions choose from the same arenas by the default policy. So some arenas are played in both,
and of an agent without chance they end the same: its sessions then differ by what is chosen. An
estimate and its standard deviation are right about what they leave open if the squared differences
of two sessions, as multiples of the sum of their variances, are 1 on average or less. They are
less since both start from one prior, and since they share arenas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from rich.progress import Progress

from animalcat.bench.curves import Floats, bootstrap, row
from animalcat.bench.recorded import real_players
from animalcat.bench.rounds import Rows
from animalcat.bench.saving import BuiltBattery
from animalcat.bench.sessions import Player, Task, World, players, run_tasks, world_of
from animalcat.cli.shared.output import progress_console
from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.adaptive.plan import Policy
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.model.spec import Bernoulli, Layout
from animalcat.layouts.simulation.simulate import LayoutAgent

EPISODES: Final = (20, 40)
"""Lengths of the sessions; of a small battery, less than half of it."""
AGENTS: Final = 100
"""Agents of a layout's prior."""
QUICK_AGENTS: Final = 8
"""The same when quick."""
OVERLAP: Final = 0.9
"""Share of capabilities whose two intervals should overlap."""


@dataclass(frozen=True)
class Retest:
    """Two sessions of one agent.

    Attributes:
        agent: Its name.
        episodes: Length of the sessions.
        mean: (sessions, capabilities).
        sd: (sessions, capabilities).
        low: Lower ends of the 90 % intervals, (sessions, capabilities).
        high: Upper ends, the same way.
        shared: Share of the arenas of a session that the other one played as well.
    """

    agent: str
    episodes: int
    mean: Floats
    sd: Floats
    low: Floats
    high: Floats
    shared: float

    @property
    def overlap(self) -> Floats:
        """Whether the intervals overlap, (capabilities,), as 0 and 1."""
        return (self.low.max(axis=0) <= self.high.min(axis=0)).astype(np.float64)

    @property
    def z(self) -> Floats:
        """Differences of the estimates as multiples of their combined standard error."""
        return (self.mean[0] - self.mean[1]) / np.sqrt((self.sd**2).sum(axis=0))


def of_battery(battery: BuiltBattery, quick: bool = False) -> Rows:
    """Let agents of a layout's prior play a battery.

    Args:
        battery: The battery.
        quick: Few agents.
    """
    drawn = players(battery.world, QUICK_AGENTS if quick else AGENTS, seed=17)
    return measured(f"{battery.name}, agents of the prior", battery.world, drawn)


def recorded(title: str, layout: Layout, table: OutcomeTable) -> Rows:
    """Let agents play whose outcomes were recorded.

    Args:
        title: What rows are called.
        layout: The layout.
        table: Outcomes 0 and 1; agents that lack some are left out.

    Raises:
        ValueError: No agent has an outcome on every instance, or outcomes are not 0 and 1.
    """
    agents = real_players(table)
    if not agents:
        raise ValueError("no agent has an outcome on every instance")
    if not np.isin([player.before for player in agents], (0.0, 1.0)).all():
        raise ValueError("outcomes are replayed as success 1 and failure 0; there are others")
    return measured(title, World(layout, table.instances), agents)


def measured(title: str, world: World, agents: Sequence[Player]) -> Rows:
    """Let agents play two sessions of each length.

    Args:
        title: What rows are called.
        world: The layout and the battery.
        agents: The agents.
    """
    lengths = [n for n in EPISODES if n <= len(world.instances) // 2]
    lengths = lengths or [max(2, len(world.instances) // 2)]
    tasks = [
        Task("retest", player, Policy(), number, (n,))
        for n in lengths
        for number, player in enumerate(agents)
    ]
    with Progress(console=progress_console(), transient=True) as progress:
        bar = progress.add_task(title, total=len(tasks))
        worlds: Mapping[str, World] = {"retest": world}
        found = run_tasks(tasks, worlds, float("inf"), lambda: progress.advance(bar), play)
    made: Rows = []
    for n in lengths:
        made += rows_of(
            f"{title}, {n} episodes", world, [one for one in found if one.episodes == n]
        )
    return made


def play(task: Task) -> Retest:
    """Play two sessions of one agent that begin with other seeds."""
    world = world_of(task)
    bank = Bank.of(world.layout, world.instances)
    learners = [Learner(bank, task.policy, seed=2 * task.seed + session) for session in range(2)]
    for learner in learners:
        outcomes = _outcomes(task.player, world, learner.seed)
        while learner.n < task.checkpoints[-1] and (choice := learner.ask()) is not None:
            learner.tell(choice.instance, float(outcomes[choice.index]))
    nodes = [learner.summary() for learner in learners]
    rows = [[one[i] for i in world.layout.capabilities] for one in nodes]
    first, second = (set(learner.played) for learner in learners)
    return Retest(
        task.player.name,
        task.checkpoints[-1],
        np.array([[node.mean for node in each] for each in rows]),
        np.array([[node.sd for node in each] for each in rows]),
        np.array([[node.hdi[0] for node in each] for each in rows]),
        np.array([[node.hdi[1] for node in each] for each in rows]),
        len(first & second) / max(len(first), 1),
    )


def _outcomes(player: Player, world: World, seed: int) -> Floats:
    """What becomes of each arena in a session."""
    generator = rng(seed, "outcome", 0)
    if isinstance(world.layout.outcome, Bernoulli):
        return (generator.random(len(player.before)) < player.before).astype(np.float64)
    assert player.theta is not None  # counts and scores are drawn by the layout
    agent = LayoutAgent(world.layout, player.theta)
    return agent.outcomes(player.before, world.instances, generator)


def rows_of(title: str, world: World, pairs: Sequence[Retest]) -> Rows:
    """Whether the sessions of each agent agree; agents are resampled.

    Args:
        title: What rows are called.
        world: The layout and the battery.
        pairs: Two sessions of each agent.
    """
    overlap = np.array([pair.overlap for pair in pairs])
    squares = np.array([pair.z**2 for pair in pairs])
    means = np.array([pair.mean for pair in pairs])
    names = [world.layout.latents[i].name for i in world.layout.capabilities]
    n = len(pairs)
    shared = float(np.mean([pair.shared for pair in pairs]))
    note = f"{n} agents, {len(names)} capabilities; {shared:.0%} of the arenas are in both sessions"
    each = squares.mean(axis=0).tolist()
    by_name = [f"{name} {square:.2f}" for name, square in zip(names, each, strict=True)]
    made = [
        row(
            f"{title}: 90 % intervals that overlap",
            bootstrap(n, lambda rows: float(overlap[rows].mean())),
            at_least=OVERLAP,
            note=note,
        ),
        row(
            f"{title}: mean square of difference / combined standard error",
            bootstrap(n, lambda rows: float(squares[rows].mean())),
            at_most=1.0,
            note=", ".join(by_name),
        ),
    ]
    if n < 3:  # two agents always correlate
        return made
    for k, name in enumerate(names):
        made.append(
            row(
                f"{title}: correlation of the two estimates of {name}",
                bootstrap(n, lambda rows, k=k: _correlation(means[rows, :, k])),
            )
        )
    return made


def _correlation(pairs: Floats) -> float:
    """Correlation of first and second sessions over agents; 0 where either has one value."""
    first, second = pairs.T
    if not (first.std() and second.std()):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])
