"""Where the layout is wrong, and whether intervals hold the truth."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np
from scipy.stats import binomtest

from animalcat.bench.curves import (
    MARGIN,
    Estimate,
    Ints,
    apart,
    bootstrap,
    bootstrap_mean,
    groups,
    row,
    share,
)
from animalcat.bench.sessions import Player, Task, Trajectory, World, players
from animalcat.layouts.adaptive.plan import PRESETS, Policy
from animalcat.layouts.adaptive.stopping import StoppingRule
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.simulation.simulate import (
    FeatureRange,
    ImpairedAgent,
    LapsingAgent,
    LayoutAgent,
)
from animalcat.layouts.simulation.synthetic import synthetic_agents

AT: Final = (50, 100, 200, 400)
BY: Final = 200
"""Episodes by which misfit should be detected."""
RULE: Final = StoppingRule(max_episodes=60, target_sd=0.1, futility=0.01)
"""The stopping rule that intervals are checked at, where a layout has a battery of its own."""
QUICK: Final = PRESETS["quick"]
"""The same where it has none: half the episodes, since scores take long to fit."""


def synthetic_players(world: World) -> dict[str, list[Player]]:
    """The 30 agents by class."""
    made: dict[str, list[Player]] = {}
    for agent in synthetic_agents():
        player = Player(agent.name, agent.probability(world.instances))
        made.setdefault(agent.group, []).append(player)
    return made


def misfit_tasks(world: World, rounds: int) -> list[list[Task]]:
    """Per round: each of the 30 agents under the default policy and in a random order."""
    agents = [p for group in synthetic_players(world).values() for p in group]
    return [
        [
            Task("op", player, policy, seed, AT, held_out=True)
            for player in agents
            for policy in (Policy(), None)
        ]
        for seed in range(rounds)
    ]


def misfit_rows(world: World, rounds: Sequence[Sequence[Trajectory]]) -> list[dict[str, Any]]:
    """Target 5, Brier scores and detection; agents are resampled, with all their repetitions."""
    differences = np.array([[apart(*pair) for pair in groups(r, 2)] for r in rounds])
    by_agent = differences.mean(axis=0)
    note = f"30 agents x {len(rounds)}; the interval is over agents"
    made: list[dict[str, Any]] = []
    for k, n in enumerate(AT):
        within = _over_repetitions(differences[:, :, k])
        made.append(
            row(
                f"30 agents: Brier less random's at {n}",
                within,
                at_most=MARGIN,
                upper=True,
                note=f"30 agents x {len(rounds)}; the interval is over repetitions",
            )
        )
        made.append(
            row(
                f"the same, agents resampled, at {n}",
                bootstrap_mean(by_agent[:, k].tolist()),
                note=note,
            )
        )
    ours = [t for r in rounds for t in r[::2]]
    classes = {name: {p.name for p in group} for name, group in synthetic_players(world).items()}
    context, hidden = classes["context-specific"], {"Agent 7", "Agent 8"}
    known = {agent.name for agent in synthetic_agents() if agent.known}
    for title, names, target in (
        ("context-specific agents", context, 0.95),
        ("fraudsters", classes["fraudster"], None),
        ("hidden colour (agents 7, 8)", hidden, 0.8),
    ):
        hits = [_by(t) for t in ours if t.player in names]
        made.append(row(f"alarm raised by {BY}: {title}", share(hits), at_least=target))
    for title, names, least, most in (
        ("context-specific agents", context, 0.95, None),
        ("hidden colour (agents 7, 8)", hidden, 0.8, None),
        ("agents that the paper calls included", known, None, 0.05),
    ):
        for n in (BY, AT[-1]):
            hits = {
                name: [_stands(t, n) for t in ours if t.player == name] for name in sorted(names)
            }
            each = ", ".join(f"{name.split()[1]} {sum(found)}" for name, found in hits.items())
            share_of = share([hit for found in hits.values() for hit in found])
            note = f"by agent, of {len(rounds)}: {each}"
            name = f"alarm stands at {n}, {title}"
            made.append(row(name, share_of, at_least=least, at_most=most, note=note))
    worst = np.argsort(-by_agent[:, 1])[:5]
    names = [t.player for t in rounds[0][::2]]
    made += [
        row(
            f"lost most to random at 100: {names[i]}", bootstrap_mean(differences[:, i, 1].tolist())
        )
        for i in worst
    ]
    return made


def alarm_tasks(world: World, rounds: int) -> list[list[Task]]:
    """Per round: agents that the layout describes, one drawn and one able; others it does not."""
    drawn = players(world, 2 * rounds, seed=1)
    wrong = [able(world), *unseen(world)]
    return [
        [
            Task("op", player, Policy(), 1000 + seed, (BY,))
            for player in (*drawn[2 * seed : 2 * seed + 2], *wrong)
        ]
        for seed in range(rounds)
    ]


def alarm_rows(rounds: Sequence[Sequence[Trajectory]]) -> list[dict[str, Any]]:
    """Target 5, false alarms and kinds of misfit that nothing was tuned with."""
    by_name: dict[str, list[Trajectory]] = {}
    for r in rounds:
        for t in r:
            by_name.setdefault(t.player.split()[0], []).append(t)
    made: list[dict[str, Any]] = []
    for name, sessions in by_name.items():
        raised = share([_by(t) for t in sessions])
        stands = share([_stands(t, BY) for t in sessions])
        if name in ("prior", "able"):
            who = "agents of the prior" if name == "prior" else "able agents"
            target = 0.05 if name == "prior" else None
            made.append(row(f"alarm raised within {BY}: {who}", raised, at_most=target))
            made.append(row(f"alarm stands at {BY}, {who}", stands, at_most=0.05))
        else:
            note = "not used while tuning"
            made.append(row(f"alarm raised by {BY}: {name}", raised, at_least=0.8, note=note))
            made.append(row(f"alarm stands at {BY}, {name}", stands, at_least=0.8))
    return made


def able(world: World, level: float = 0.9, noise: float = 0.05) -> Player:
    """An agent that the layout describes, at some share of every range."""
    agent = _at(world.layout, level, noise)
    return Player("able", agent.probability(world.instances), theta=agent.theta)


def unseen(world: World) -> list[Player]:
    """Kinds of misfit that the alarm was not tuned with: change, and lapses by what is unknown."""
    good, poor = (_at(world.layout, level, 0.05) for level in (0.9, 0.3))
    high, low = (agent.probability(world.instances) for agent in (good, poor))
    blue = FeatureRange("occluderBlueness", 100.0)
    lapses = LapsingAgent(good, 0.8, 0.1, blue).probability(world.instances)
    colour = ImpairedAgent(good, FeatureRange("occluderGreenness", 150.0), 0.1).probability(
        world.instances
    )
    return [
        Player("tires", high, low, start=50, episodes=50),
        Player("learns", low, high, start=50, episodes=50),
        Player("lapses", lapses),
        Player("green", colour),
    ]


def coverage_tasks(
    worlds: Mapping[str, World], quick: Collection[str], rounds: int
) -> list[list[Task]]:
    """Per round an agent of the prior of each layout, stopped by the rule, some by a quick one."""
    drawn = {name: players(world, rounds, seed=2) for name, world in worlds.items()}
    policies = {name: Policy(exposures=0 if name == "aaio" else 1) for name in worlds}
    rules = {name: QUICK if name in quick else RULE for name in worlds}

    def session(name: str, i: int) -> Task:
        last = (rules[name].max_episodes,)
        player, policy = drawn[name][i], policies[name]
        return Task(name, player, policy, 5000 + i, last, rule=rules[name], fallback=False)

    return [[session(name, i) for name in worlds] for i in range(rounds)]


def coverage_rows(
    worlds: Mapping[str, World], rounds: Sequence[Sequence[Trajectory]]
) -> list[dict[str, Any]]:
    """Target 6."""
    made: list[dict[str, Any]] = []
    for k, (name, world) in enumerate(worlds.items()):
        inside = np.array([r[k].inside for r in rounds])
        spent = float(np.mean([r[k].episodes for r in rounds]))
        note = f"{len(rounds)} agents of the prior, stopped after {spent:.0f} episodes on average"
        pooled = bootstrap(len(inside), lambda rows, inside=inside: float(inside[rows].mean()))
        made.append({**row(f"{name}: coverage of 90 % intervals, pooled", pooled, note=note)})
        made[-1] |= {"target": "0.88 to 0.92", "met": _yes(0.88 <= pooled.value <= 0.92)}
        for i, node in enumerate(world.layout.latents):
            hits = int(inside[:, i].sum())
            low, high = _exact(hits, len(inside))
            cell = row(f"{name}: coverage, {node.name}", Estimate(hits / len(inside), low, high))
            made.append({**cell, "target": "holds 0.90", "met": _yes(low <= 0.9 <= high)})
    return made


def _exact(hits: int, size: int) -> tuple[float, float]:
    found = binomtest(hits, size).proportion_ci(0.99, method="exact")
    return float(found.low), float(found.high)


def _yes(met: bool) -> str:
    return "yes" if met else "no"


def _by(trajectory: Trajectory, episodes: int = BY) -> bool:
    return trajectory.raised_at is not None and trajectory.raised_at <= episodes


def _stands(trajectory: Trajectory, episodes: int) -> bool:
    return any(point.stands for point in trajectory.points if point.episodes == episodes)


def _over_repetitions(apart: Any) -> Estimate:
    """Mean over agents and repetitions; repetitions of each agent are resampled."""
    rounds, agents = apart.shape
    generator = np.random.default_rng(0)

    def mean(_: Ints) -> float:
        picked = generator.integers(rounds, size=(rounds, agents))
        return float(np.take_along_axis(apart, picked, axis=0).mean())

    drawn = bootstrap(rounds, mean)
    return Estimate(float(apart.mean()), drawn.low, drawn.high)


def _at(layout: Layout, level: float, noise: float) -> LayoutAgent:
    values = {"capability": level, "robustness": noise, "bias": 0.0}
    spans = [node.prior.span if node.kind == "capability" else 1.0 for node in layout.latents]
    kinds = [values[node.kind] for node in layout.latents]
    return LayoutAgent(layout, np.array(kinds) * np.array(spans))
