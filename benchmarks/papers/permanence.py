"""The thirty synthetic agents on their battery: Tables 1 and 8 of Burden et al. 2023."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np

from animalcat.cli.shared.progress import Tell
from animalcat.layouts.checking.predict import FittedLayout, split
from animalcat.layouts.checking.scores import Murphy, brier, murphy
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.priors import ScaledBeta
from animalcat.layouts.model.spec import Layout
from animalcat.machine.processes import process_pool
from benchmarks.papers.olympics import with_chance
from benchmarks.papers.printed import printed_figures
from benchmarks.synthetic import op_battery, synthetic_agents, with_tasks

Rows: TypeAlias = list[dict[str, Any]]

REGENERATIONS: Final = 5
"""How often battery, outcomes and split are drawn anew."""
QUICK_AGENTS: Final = (1, 6, 12, 21)
PROCESSES: Final = 2
PARTICLES: Final = 2000
"""With 500, one fit of `by-task` in a hundred misses the posterior."""
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


@dataclass(frozen=True, slots=True)
class AgentScore:
    """Results for one agent in one regeneration, on the held-out instances.

    Attributes:
        number: The agent's number.
        layout: Brier score of the layout, and its parts.
        aggregate: The same of the agent's average on the other instances.
        oracle: Brier score of a predictor that knows the agent's rule.
        mean: Posterior mean by node, in the node's unit.
        errors: By capability, estimate minus truth as a share of the paper's range, where a truth
            is settled.
    """

    number: int
    layout: Murphy
    aggregate: Murphy
    oracle: float
    mean: dict[str, float]
    errors: dict[str, float]


def with_distances(layout: Layout) -> Layout:
    """A layout with flatNavAbility uniform over the distances, [0, 56], as its range is printed.

    Table 5 has N(0, 1) in that row, with which nobody is expected to walk farther than 3 m.
    """
    uniform = ScaledBeta(0.0, RANGES["flatNavAbility"])
    latents = [
        replace(node, prior=uniform) if node.name == "flatNavAbility" else node
        for node in layout.latents
    ]
    return replace(layout, variant=f"{layout.variant}, mended", latents=tuple(latents))


def score(task: tuple[Layout, int, int, int]) -> AgentScore:
    """Draw a battery and an agent's outcomes, fit to 80 % of them, and predict the others.

    Args:
        task: The layout, the seed, and the numbers of the regeneration and of the agent. An agent
            is named by its number, since it holds functions, which no process can be sent.
    """
    layout, seed, regeneration, number = task
    own = int(rng(seed, "regeneration", regeneration).integers(1 << 31))
    battery = with_tasks(op_battery(own))
    part = split(len(battery), own)  # the same for all agents, as in the paper
    agent = synthetic_agents()[number - 1]
    truth = agent.probability(battery)
    outcomes = (rng(own, "outcomes", number).random(len(battery)) < truth).astype(np.float64)
    train, test = outcomes[part.train], outcomes[part.test]
    battery = with_chance(battery, train)
    # The battery is sorted by paradigm; told in that order, particles settle before the controls
    # come, and explanations that these would favour are lost.
    order = rng(own, "order", number).permutation(len(train))
    posterior = LivePosterior(layout, own, PARTICLES)
    features = battery.rows(part.train).features(layout)
    posterior.update_all(features[order], train[order])
    fitted = FittedLayout(layout, posterior.particles, posterior.weights)
    mean = {node.name: node.mean for node in posterior.summary()}
    return AgentScore(
        number,
        murphy(fitted.predict(battery.rows(part.test)), test),
        murphy(np.full(len(test), train.mean()), test),
        brier(truth[part.test], test),
        mean,
        {
            # Who masters more than the paper's range has no limit in it.
            name: float(np.clip(mean[name] / RANGES[name], 0.0, 1.0) - true)
            for name, true in agent.truth.items()
            if name in mean
        },
    )


def table_8(layout: Layout, scores: Sequence[AgentScore]) -> Rows:
    """Brier scores and their parts, as means over agents and regenerations, beside the printed."""
    table = printed_figures("burden2023")["table_8"]
    columns: dict[str, list[float]] = {
        "ml_brier": [one.layout.brier for one in scores],
        "ml_calibration": [one.layout.calibration for one in scores],
        "ml_refinement": [one.layout.refinement for one in scores],
        "aggregate_brier": [one.aggregate.brier for one in scores],
    }
    made: Rows = []
    for column, values in columns.items():
        theirs = [table["agents"][one.number][table["columns"].index(column)] for one in scores]
        apart = float(np.sqrt(np.mean(np.square(np.subtract(values, theirs)))))
        ours, mean = float(np.mean(values)), float(np.mean(theirs))
        made.append(
            {
                "name": f"Table 8, {layout.variant}: {column.replace('_', ' ')}",
                "value": ours,
                "baseline": mean,
                "ratio": ours / mean,
                "note": f"agent by agent they differ by rms {apart:.3f}",
            }
        )
    oracle = float(np.mean([one.oracle for one in scores]))
    return [*made, {"name": f"Table 8, {layout.variant}: knows the rules", "value": oracle}]


def table_1(layout: Layout, scores: Sequence[AgentScore]) -> Rows:
    """Root mean square errors of capabilities over the agents that the layout can describe."""
    known = {agent.number for agent in synthetic_agents() if agent.known}
    table = printed_figures("burden2023")["table_1"]
    made: Rows = []
    for name, row in table.items():
        errors = [one.errors[name] for one in scores if name in one.errors and one.number in known]
        if errors:
            ours = float(np.sqrt(np.mean(np.square(errors))))
            title = f"Table 1, {layout.variant}: error of {name}, in shares of its range"
            made.append({"name": title, "value": ours, "baseline": row["included"]})
    return made


def rows(quick: bool, tell: Tell) -> Rows:
    """Both tables, by the form of sessions and by the printed form with one prior mended."""
    numbers = QUICK_AGENTS if quick else tuple(range(1, 31))
    made: Rows = []
    usual, as_printed = (load_layout("object-permanence", v) for v in ("refined", "as-printed"))
    for layout in (usual, with_distances(as_printed)):
        tasks = [
            (layout, 0, regeneration, number)
            for regeneration in range(1 if quick else REGENERATIONS)
            for number in numbers
        ]
        scores: list[AgentScore] = []
        with process_pool(PROCESSES) as pool:
            for found in pool.map(score, tasks):
                scores.append(found)
                tell(f"Table 8, {layout.variant}", len(scores), len(tasks))
        made += [*table_8(layout, scores), *table_1(layout, scores)]
    return made
