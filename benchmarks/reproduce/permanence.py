"""The 30 synthetic agents on their battery: Tables 1 and 8 of Burden et al. 2023."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.predict import FittedLayout, Split, split
from animalcat.layouts.checking.scores import brier
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.simulation.synthetic import (
    SyntheticAgent,
    op_battery,
    synthetic_agents,
    with_tasks,
)
from animalcat.processes import process_pool
from benchmarks.reproduce.chance import average_chance, with_chance

Floats: TypeAlias = npt.NDArray[np.float64]

REGENERATIONS: Final = 5
"""How often battery, outcomes and split are drawn anew."""
_PARTICLES: Final = 2000
"""Number of particles of the live posterior. With 500, one fit of `by-task` in a hundred misses the
posterior."""
_ROUNDS: Final = 40
_TRIED: Final = 400
_KEPT: Final = 40
"""Parameters of the search for the best profile: rounds, profiles in each round, and how many are
kept."""
_FAR: Final = 15.0
"""Limit of the search, in prior standard deviations from the prior's middle."""


@dataclass(frozen=True, slots=True)
class AgentScore:
    """Results for one agent in one regeneration.

    Attributes:
        number: The agent's number.
        layout: Brier score of the layout on the held-out instances.
        aggregate: Brier score of the agent's average on the other instances.
        oracle: Brier score of a predictor that knows the agent's rule.
        best: Brier score of the layout with the profile that predicts the agent's rule best.
        errors: By capability, estimate minus truth as a share of the range, where a truth is
            settled.
    """

    number: int
    layout: float
    aggregate: float
    oracle: float
    best: float
    errors: dict[str, float]


def regenerate(
    layout: Layout,
    seed: int,
    regeneration: int,
    *,
    agents: Sequence[SyntheticAgent] | None = None,
    done: Callable[[], object] | None = None,
) -> list[AgentScore]:
    """Draw the battery and the agents' outcomes, fit to 80 % of them, and predict the others.

    Args:
        layout: A layout of object permanence.
        seed: Seed of all randomness.
        regeneration: Number of the regeneration; each has its own draws.
        agents: The agents; all 30 if not given.
        done: Called after each agent.
    """
    own = int(rng(seed, "regeneration", regeneration).integers(1 << 31))
    battery = with_tasks(op_battery(own))
    # The same partition for all agents, as in the paper.
    part = split(len(battery), own)
    scores: list[AgentScore] = []
    for agent in agents or synthetic_agents():
        generator = rng(own, "outcomes", agent.number)
        scores.append(_score(layout, battery, part, agent, generator, own))
        if done is not None:
            done()
    return scores


def regenerations(
    layout: Layout,
    seed: int,
    count: int = REGENERATIONS,
    *,
    numbers: Sequence[int] = range(1, 31),
    processes: int = 1,
    done: Callable[[], object] | None = None,
) -> list[list[AgentScore]]:
    """Run several regenerations, in separate processes.

    Args:
        layout: A layout of object permanence.
        seed: Seed of all randomness; scores do not depend on the number of processes.
        count: Number of regenerations.
        numbers: Numbers of the agents.
        processes: Number of processes.
        done: Called after each agent.
    """
    tasks = [(layout, seed, r, number) for r in range(count) for number in numbers]
    scores: list[AgentScore] = []
    with process_pool(processes) as pool:
        for score in pool.map(_one, tasks):
            scores.append(score)
            if done is not None:
                done()
    return [scores[r * len(numbers) : (r + 1) * len(numbers)] for r in range(count)]


def _one(task: tuple[Layout, int, int, int]) -> AgentScore:
    """Run one agent by its number, since agents hold functions, which cannot be pickled."""
    layout, seed, regeneration, number = task
    (agent,) = [agent for agent in synthetic_agents() if agent.number == number]
    (score,) = regenerate(layout, seed, regeneration, agents=[agent])
    return score


def _score(
    layout: Layout,
    battery: Instances,
    part: Split,
    agent: SyntheticAgent,
    generator: np.random.Generator,
    seed: int,
) -> AgentScore:
    truth = agent.probability(battery)
    outcomes = (generator.random(len(battery)) < truth).astype(np.float64)
    train, test = outcomes[part.train], outcomes[part.test]
    told = with_chance(battery, average_chance(train))
    # The battery is sorted by paradigm; told in that order, particles settle before the controls
    # come, and explanations that these would favour are lost.
    order = rng(seed, "order", agent.number).permutation(len(train))
    posterior = LivePosterior(layout, seed, _PARTICLES)
    posterior.update_all(told.rows(part.train[order]).features(layout), train[order])
    fitted = FittedLayout(layout, posterior.particles, posterior.weights)
    means = {node.name: node.mean for node in posterior.summary()}
    shares = {
        node.name: (means[node.name] - node.prior.low) / (node.prior.high - node.prior.low)
        for node in layout.latents
        if node.name in agent.truth and math.isfinite(node.prior.high - node.prior.low)
    }
    return AgentScore(
        agent.number,
        brier(fitted.predict(told.rows(part.test)), test),
        brier(np.full(len(test), train.mean()), test),
        brier(truth[part.test], test),
        brier(_best(fitted, told.rows(part.test), truth[part.test], generator), test),
        {name: float(share - agent.truth[name]) for name, share in shares.items()},
    )


def _best(
    fitted: FittedLayout, instances: Instances, truth: Floats, generator: np.random.Generator
) -> Floats:
    """Predictions of the profile that is nearest to an agent's rule, (instances,).

    It is found by the cross-entropy method, started at the posterior, in the space where the prior
    is standard normal.
    """
    layout = fitted.layout
    evaluator = Evaluator(layout)
    columns = evaluator.columns(instances.features(layout))
    rows = generator.choice(len(fitted.draws), _TRIED, p=fitted.weights)
    nodes = layout.latents
    z = np.stack([n.prior.to_standard(fitted.draws[rows, i]) for i, n in enumerate(nodes)], axis=1)
    z += generator.standard_normal(z.shape)
    best, least = truth, math.inf
    for _ in range(_ROUNDS):
        z = np.clip(z, -_FAR, _FAR)
        theta = np.stack([n.prior.from_standard(z[:, i]) for i, n in enumerate(nodes)], axis=1)
        p = evaluator.by_instance(theta, columns, np.float64)
        apart = np.mean((p - truth[:, np.newaxis]) ** 2, axis=0)
        order = np.argsort(apart)[:_KEPT]
        if apart[order[0]] < least:
            best, least = p[:, order[0]], float(apart[order[0]])
        kept = z[order]
        z = kept.mean(axis=0) + 1.2 * kept.std(axis=0) * generator.standard_normal(z.shape)
    return best


@dataclass(frozen=True, slots=True)
class TableRow:
    """An agent's Brier scores, as means over the regenerations."""

    number: int
    layout: float
    aggregate: float
    oracle: float
    best: float


def table_8(scores: Iterable[Sequence[AgentScore]]) -> list[TableRow]:
    """Average over regenerations, agent by agent.

    Args:
        scores: What `regenerate` returned, for the same agents in the same order.
    """
    return [
        TableRow(
            rows[0].number,
            *(
                float(np.mean([getattr(row, name) for row in rows]))
                for name in ("layout", "aggregate", "oracle", "best")
            ),
        )
        for rows in zip(*scores, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Skill:
    """(aggregate - layout) / (aggregate - reference), of the means over the agents.

    0 is no better than the average, 1 as good as the reference.

    Attributes:
        oracle: The reference knows the agents' rules, including what the layout cannot express.
        best: The reference is the best profile of the layout, which is what inference could reach.
    """

    oracle: float
    best: float


def mean_skill(rows: Sequence[TableRow]) -> Skill:
    """Skill of the mean scores over some agents."""
    columns = [(r.layout, r.aggregate, r.oracle, r.best) for r in rows]
    layout, aggregate, oracle, best = np.mean(columns, axis=0)
    gained = aggregate - layout
    return Skill(float(gained / (aggregate - oracle)), float(gained / (aggregate - best)))


@dataclass(frozen=True, slots=True)
class CapabilityError:
    """Root mean squared error of a capability, as a share of its range.

    Attributes:
        capability: Its name.
        overall: Over all agents with a settled truth.
        included: Over those whose description uses only what the layout knows.
    """

    capability: str
    overall: float
    included: float


def table_1(
    scores: Iterable[Sequence[AgentScore]], agents: Sequence[SyntheticAgent] | None = None
) -> list[CapabilityError]:
    """Errors of the capabilities over all regenerations.

    Args:
        scores: What `regenerate` returned.
        agents: All agents that may be in the scores.
    """
    known = {agent.number for agent in agents or synthetic_agents() if agent.known}
    rows = [row for regeneration in scores for row in regeneration]
    names = dict.fromkeys(name for row in rows for name in row.errors)

    def root(name: str, among: Sequence[AgentScore]) -> float:
        errors = [row.errors[name] for row in among if name in row.errors]
        return float(np.sqrt(np.mean(np.square(errors)))) if errors else math.nan

    return [
        CapabilityError(name, root(name, rows), root(name, [r for r in rows if r.number in known]))
        for name in names
    ]
