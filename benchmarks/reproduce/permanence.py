"""Synthetic agents on their battery: Tables 1 and 8, Figures 13 and 14 of Burden et al. 2023."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.predict import FittedLayout, Split, split
from animalcat.layouts.checking.scores import brier, murphy
from animalcat.layouts.explaining.kinds import AgentKind
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import NodeSummary, summarise
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.nodes import Latent
from animalcat.layouts.model.priors import Normal, ScaledBeta
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.simulation.synthetic import (
    AgentClass,
    SyntheticAgent,
    op_battery,
    synthetic_agents,
    with_tasks,
)
from animalcat.processes import process_pool
from benchmarks.reproduce.chance import average_chance, with_chance
from benchmarks.reproduce.verdicts import drawn_agents

Floats: TypeAlias = npt.NDArray[np.float64]

REGENERATIONS: Final = 5
"""How often battery, outcomes and split are drawn anew."""
_PARTICLES: Final = 2000
"""Number of particles of the live posterior. With 500, one fit of `by-task` in a hundred misses the
posterior."""
_ROUNDS: Final = 25
_TRIED: Final = 200
_KEPT: Final = 25
"""Parameters of the search for the best profile: rounds, profiles in each round, and how many are
kept."""
_FAR: Final = 80.0
"""Limit of the search, in prior standard deviations from the prior's middle: with flatNavAbility
N(0, 1), as printed, the farthest goal is 56 of them away."""
_WIDE: Final = 3.0
"""How far the search starts from the prior's middle; `_FAR` for a capability without ends."""
_STEPS: Final = 300
"""Steps of the search for the best mixture of profiles."""
_CHAINS: Final = 4
_DRAWS: Final = 500
"""Chains of a fit by NUTS, and their draws; as many more are to tune it."""
_APART: Final = 30.0
"""A chain whose mean log density is so much below the best one's is in a mode of no weight."""
RANGES: Final[Mapping[str, float]] = {
    "OPAbility": 48.4,
    "memoryAbility": 4.4,
    "visualAbility": 6.0,
    "rampAbility": 1.0,
    "lavaAbility": 1.0,
    "platformAbility": 1.0,
    "flatNavAbility": 56.0,
}
"""Upper ends of the ranges of Table 5, of which Table 1's errors are shares; all begin at 0."""
_CLASSES: Final[Mapping[AgentKind, AgentClass]] = {
    "able": "reference",
    "unclear": "reference",
    "single weakness": "achilles heel",
    "fraudster": "fraudster",
    "context": "context-specific",
}
"""The paper's class of each kind of agent."""
Group: TypeAlias = Literal["drawn", "printed"]
"""Agents that are drawn anew, on whom nothing was chosen, or the paper's thirty."""
DRAWN: Final = 30
"""Number of agents that are drawn anew."""


@dataclass(frozen=True, slots=True)
class AgentScore:
    """Results for one agent in one regeneration.

    Attributes:
        number: The agent's number.
        success: Share of the battery that it passed.
        layout: Brier score of the layout on the held-out instances.
        aggregate: Brier score of the agent's average on the other instances.
        oracle: Brier score of a predictor that knows the agent's rule.
        best: Brier score of the layout's best: that mixture of profiles which is nearest to the
            agent's rule. A posterior predicts by such a mixture too.
        apart: Mean squared distance of the layout's predictions from the agent's rule.
        best_apart: The same of the layout's best. It is never above `apart`, while `best` may be
            above `layout` by the luck of the outcomes.
        calibration: Of the layout's Brier score, by Murphy's decomposition over ten bins.
        refinement: The rest of the layout's Brier score.
        aggregate_calibration: The same of the aggregate's.
        aggregate_refinement: The same of the aggregate's.
        stuck: Of the four chains of NUTS, those that ended where the posterior has no weight, and
            were left out; 0 for a live posterior.
        mean: Posterior mean by node, in the node's unit.
        sd: Posterior standard deviation by node.
        errors: By capability, estimate minus truth as a share of the paper's range, where a truth
            is settled.
    """

    number: int
    success: float
    layout: float
    aggregate: float
    oracle: float
    best: float
    apart: float
    best_apart: float
    calibration: float
    refinement: float
    aggregate_calibration: float
    aggregate_refinement: float
    stuck: int
    mean: dict[str, float]
    sd: dict[str, float]
    errors: dict[str, float]


def agents_of(group: Group, seed: int) -> list[SyntheticAgent]:
    """The paper's thirty agents, or as many that are drawn anew, by kinds as in `verdicts`.

    Args:
        group: Which agents.
        seed: Seed of the agents that are drawn.
    """
    if group == "printed":
        return synthetic_agents()
    return [
        SyntheticAgent(
            number,
            _CLASSES[agent.kind],
            f"{agent.kind}: {agent.about}",
            agent.rule,
            agent.truth,
            agent.kind in ("able", "single weakness"),
        )
        for number, agent in enumerate(drawn_agents(seed, DRAWN), 1)
    ]


def with_distances(layout: Layout) -> Layout:
    """A layout with flatNavAbility uniform over the distances, [0, 56], as its range is printed.

    Table 5 has N(0, 1) in that row, with which nobody is expected to walk farther than 3 m.
    """
    uniform = ScaledBeta(0.0, RANGES["flatNavAbility"])
    return replace(
        layout,
        variant=f"{layout.variant}, flatNavAbility uniform",
        latents=tuple(
            replace(node, prior=uniform) if node.name == "flatNavAbility" else node
            for node in layout.latents
        ),
    )


def _reaching(layout: Layout) -> Layout:
    """A layout whose prior is near an agent that reaches the farthest goal."""
    far = Normal(RANGES["flatNavAbility"], 1.0)
    latents = [replace(n, prior=far) if n.name == "flatNavAbility" else n for n in layout.latents]
    return replace(layout, latents=tuple(latents))


def needs_nuts(layout: Layout) -> bool:
    """Whether a capability's prior has no ends, so that the posterior may be far from the prior.

    With flatNavAbility N(0, 1), as printed, an able agent is 50 standard deviations away. NUTS gets
    there; the particles of the live posterior do not, and take every success for noise.
    """
    return any(_endless(node) for node in layout.latents)


def _endless(node: Latent) -> bool:
    """Whether it is a capability whose prior has no ends."""
    return node.kind == "capability" and not math.isfinite(node.prior.high - node.prior.low)


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
        agents: The agents; the paper's 30 if not given.
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
    group: Group = "printed",
    numbers: Sequence[int] = range(1, 31),
    processes: int = 1,
    done: Callable[[], object] | None = None,
) -> list[list[AgentScore]]:
    """Run several regenerations, in separate processes.

    Args:
        layout: A layout of object permanence.
        seed: Seed of all randomness; scores do not depend on the number of processes.
        count: Number of regenerations.
        group: Which agents; drawn ones follow from the seed.
        numbers: Numbers of the agents.
        processes: Number of processes.
        done: Called after each agent.
    """
    tasks = [(layout, seed, r, group, number) for r in range(count) for number in numbers]
    scores: list[AgentScore] = []
    with process_pool(processes) as pool:
        for score in pool.map(_one, tasks):
            scores.append(score)
            if done is not None:
                done()
    return [scores[r * len(numbers) : (r + 1) * len(numbers)] for r in range(count)]


def _one(task: tuple[Layout, int, int, Group, int]) -> AgentScore:
    """Run one agent by its number, since agents hold functions, which cannot be pickled."""
    layout, seed, regeneration, group, number = task
    (agent,) = [agent for agent in agents_of(group, seed) if agent.number == number]
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
    rows = told.rows(part.train).features(layout)
    fitted, nodes, stuck = _fitted(layout, rows, train, agent.number, seed)
    predicted, average = fitted.predict(told.rows(part.test)), np.full(len(test), train.mean())
    best = _best(fitted, told.rows(part.test), truth[part.test], generator)
    ours, theirs = murphy(predicted, test), murphy(average, test)
    mean = {node.name: node.mean for node in nodes}
    return AgentScore(
        agent.number,
        float(outcomes.mean()),
        ours.brier,
        theirs.brier,
        brier(truth[part.test], test),
        brier(best, test),
        float(np.mean((predicted - truth[part.test]) ** 2)),
        float(np.mean((best - truth[part.test]) ** 2)),
        ours.calibration,
        ours.refinement,
        theirs.calibration,
        theirs.refinement,
        stuck,
        mean,
        {node.name: node.sd for node in nodes},
        {
            # Who masters more than the paper's range has no limit in it.
            name: float(np.clip(mean[name] / RANGES[name], 0.0, 1.0) - true)
            for name, true in agent.truth.items()
            if name in mean
        },
    )


def _fitted(
    layout: Layout, features: Floats, outcomes: Floats, number: int, seed: int
) -> tuple[FittedLayout, Sequence[NodeSummary], int]:
    """The posterior of one agent, its nodes, and how many chains were left out."""
    if needs_nuts(layout):
        # Imported here: it takes seconds, and live posteriors need none of it.
        from animalcat.layouts.inference.backend.engine import SamplerSettings, default_engine

        # Half of the chains start near the prior, half where the farthest goal is reached: between
        # the modes lie hundreds of units of log density, which no chain crosses.
        half = _CHAINS // 2
        own = int(rng(seed, "nuts", number).integers(1 << 31))
        settings = SamplerSettings(own, half, _DRAWS, _DRAWS, target_accept=0.8, cores=half)
        engine = default_engine()
        traces = [
            engine.sample(layout, features, outcomes, settings, near=near)
            for near in (layout, _reaching(layout))
        ]
        height = np.concatenate([trace.statistics["lp"].mean(axis=1) for trace in traces])
        kept = height > height.max() - _APART
        chains = np.concatenate([trace.draws for trace in traces])
        draws = chains[kept].reshape(-1, len(layout.latents))
        weights = np.full(len(draws), 1.0 / len(draws))
        nodes = summarise(layout, draws, weights, np.full(len(layout.latents), float(len(draws))))
        return FittedLayout(layout, draws, weights), nodes, int(_CHAINS - kept.sum())
    # The battery is sorted by paradigm; told in that order, particles settle before the controls
    # come, and explanations that these would favour are lost.
    order = rng(seed, "order", number).permutation(len(outcomes))
    posterior = LivePosterior(layout, seed, _PARTICLES)
    posterior.update_all(features[order], outcomes[order])
    fitted = FittedLayout(layout, posterior.particles, posterior.weights)
    return fitted, posterior.summary(), 0


def _best(
    fitted: FittedLayout, instances: Instances, truth: Floats, generator: np.random.Generator
) -> Floats:
    """Predictions of the mixture of profiles that is nearest to an agent's rule, (instances,).

    Profiles are found by the cross-entropy method in the space where the prior is standard normal:
    from the posterior, from anywhere, and from able agents, since each may end in another mode. The
    mixture of them, and of the posterior as a whole, is found by the method of Frank and Wolfe. So
    the posterior is never nearer than what is returned.
    """
    layout = fitted.layout
    evaluator = Evaluator(layout)
    columns = evaluator.columns(instances.features(layout))
    nodes = layout.latents
    rows = generator.choice(len(fitted.draws), _TRIED, p=fitted.weights)
    near = np.stack(
        [n.prior.to_standard(fitted.draws[rows, i]) for i, n in enumerate(nodes)], axis=1
    )
    near += generator.standard_normal(near.shape)
    wide = np.array([_FAR if _endless(node) else _WIDE for node in nodes])
    anywhere = generator.uniform(-1.0, 1.0, near.shape) * wide
    capable = np.array([node.kind == "capability" for node in nodes])
    able = np.where(capable, np.abs(anywhere), anywhere)
    pool = [fitted.predict(instances)[:, np.newaxis]]
    for z in (near, anywhere, able):
        for _ in range(_ROUNDS):
            z = np.clip(z, -_FAR, _FAR)
            theta = np.stack([n.prior.from_standard(z[:, i]) for i, n in enumerate(nodes)], axis=1)
            p = evaluator.by_instance(theta, columns, np.float64)
            order = np.argsort(np.mean((p - truth[:, np.newaxis]) ** 2, axis=0))[:_KEPT]
            pool.append(p[:, order])
            kept = z[order]
            z = kept.mean(axis=0) + 1.2 * kept.std(axis=0) * generator.standard_normal(z.shape)
    return nearest_mixture(np.concatenate(pool, axis=1), truth)


def nearest_mixture(profiles: Floats, truth: Floats) -> Floats:
    """The mixture of columns that is nearest to the truth; never farther than the nearest column.

    Args:
        profiles: (instances, profiles), probabilities of success.
        truth: (instances,).
    """
    mixed = profiles[:, np.argmin(np.mean((profiles - truth[:, np.newaxis]) ** 2, axis=0))].copy()
    for _ in range(_STEPS):
        towards = profiles[:, np.argmin((mixed - truth) @ profiles)] - mixed
        length = float(towards @ towards)
        gain = float((truth - mixed) @ towards)
        if gain <= 0.0 or length == 0.0:
            break
        mixed += min(1.0, gain / length) * towards
    return mixed


@dataclass(frozen=True, slots=True)
class TableRow:
    """An agent's row of Table 8, as means over the regenerations; words as in `AgentScore`."""

    number: int
    success: float
    layout: float
    aggregate: float
    oracle: float
    best: float
    apart: float
    best_apart: float
    calibration: float
    refinement: float
    aggregate_calibration: float
    aggregate_refinement: float


def table_8(scores: Iterable[Sequence[AgentScore]]) -> list[TableRow]:
    """Average over regenerations, agent by agent.

    Args:
        scores: What `regenerate` returned, for the same agents in the same order.
    """
    names = [field.name for field in fields(TableRow)][1:]
    return [
        TableRow(
            rows[0].number,
            *(float(np.mean([getattr(row, name) for row in rows])) for name in names),
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
