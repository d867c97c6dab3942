"""How well a calibrated layout predicts agents that it was not calibrated by.

Agents are held out by folds. A new agent's first outcomes are told in a random order, and the rest
is predicted: by the calibrated layout, and by the layout as written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from animalcat.layouts.calibrating.calibrate import calibrated_layout
from animalcat.layouts.calibrating.population import (
    CalibrationError,
    Effort,
    Population,
    PopulationModel,
)
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

FOLDS: Final = 3
TOLD: Final = (15, 30, 50)
"""Numbers of a new agent's episodes after which the rest is predicted."""
CALIBRATED: Final = "calibrated"
WRITTEN: Final = "as written"


class AgentScores(NamedTuple):
    """How well one held-out agent was predicted in one split.

    Attributes:
        agent: Its name.
        brier: Brier score by predictor and number of episodes told. A number is absent where the
            agent has no more episodes than that.
    """

    agent: str
    brier: dict[tuple[str, int], float]


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """A paired difference over agents, with its 90 % interval (Student's t).

    Attributes:
        ours: Mean of the calibrated layout.
        theirs: Mean of the other.
        difference: Mean difference, ours less theirs.
        low: Lower end.
        high: Upper end.
    """

    ours: float
    theirs: float
    difference: float
    low: float
    high: float


def parts(agents: int, seed: int, seeds: int, folds: int) -> Iterator[tuple[int, int, list[int]]]:
    """Every fold: number of the split, of the part, and the agents held out."""
    for split in range(seeds):
        order = rng(seed, "agents", split).permutation(agents)
        for fold in range(folds):
            yield split, fold, sorted(order[fold::folds].tolist())


def compare_scores(scored: Sequence[AgentScores], other: str, told: int) -> PairedDifference:
    """Compare the calibrated layout's Brier scores with those of another predictor.

    Args:
        scored: The scores of agents and splits.
        other: The other predictor.
        told: Number of episodes told; only agents with more episodes than that count.

    Raises:
        ValueError: There are fewer than two of them.
    """
    there = [scores for scores in scored if (other, told) in scores.brier]
    return _compare_pairs(there, lambda s: (s.brier[CALIBRATED, told], s.brier[other, told]))


def judge(
    layout: Layout, table: OutcomeTable, seed: int, effort: Effort | None = None
) -> Callable[[PopulationModel], list[tuple[str, float]]]:
    """Make the function by which `calibrate` judges a model: mean Brier scores on held-out agents.

    A part of the agents is left out of the judgement if the others are too few to calibrate by.
    Numbers of episodes that fewer than two agents have are left out as well. The entry `held_out`
    is the number of agents that were predicted.

    Args:
        layout: The layout as written.
        table: The outcomes.
        seed: Seed of the split and the fits.
        effort: How long to sample.
    """

    def judge_model(model: PopulationModel) -> list[tuple[str, float]]:
        folds = min(FOLDS, len(table.agents) // 2)
        if folds < 2:
            return [("held_out", 0.0)]
        scored: list[AgentScores] = []
        for split, fold, test in parts(len(table.agents), seed, 1, folds):
            try:
                population = model.fit(seed + fold, effort, test)
            except CalibrationError:
                continue
            scored.extend(_fold(layout, table, population, test, seed, split, 1000))
        findings = [("held_out", float(len({scores.agent for scores in scored})))]
        for told in TOLD:
            if len({scores.agent for scores in scored if (WRITTEN, told) in scores.brier}) < 2:
                continue
            pair = compare_scores(scored, WRITTEN, told)
            findings += [(f"brier_{told}", pair.ours), (f"brier_{told}_as_written", pair.theirs)]
        return findings

    return judge_model


def _fold(
    layout: Layout,
    table: OutcomeTable,
    population: Population,
    test: Sequence[int],
    seed: int,
    split: int,
    particles: int,
) -> list[AgentScores]:
    ours = calibrated_layout(layout, table, population, CALIBRATED, without=test)
    return [
        _agent(layout, ours, table, i, rng(seed, f"order of {i}", split), particles) for i in test
    ]


def _agent(
    layout: Layout,
    ours: Layout,
    table: OutcomeTable,
    agent: int,
    generator: np.random.Generator,
    particles: int,
) -> AgentScores:
    instances, y = table.of(table.agents[agent])
    order = generator.permutation(len(y))
    calibrated = _Run(ours, instances.features(ours), y, order, particles)
    written = _Run(layout, instances.features(layout), y, order, particles)
    brier: dict[tuple[str, int], float] = {}
    for stop in (told for told in TOLD if told < len(y)):
        rest = order[stop:]
        for name, run in ((CALIBRATED, calibrated), (WRITTEN, written)):
            brier[name, stop] = float(np.mean((run.after(stop)[rest] - y[rest]) ** 2))
    return AgentScores(table.agents[agent], brier)


class _Run:
    """A live posterior that is told an agent's outcomes in an order, up to growing numbers."""

    def __init__(
        self, layout: Layout, features: Floats, y: Floats, order: Ints, particles: int
    ) -> None:
        self._layout, self._y, self._order, self._features = layout, y, order, features
        self._posterior = LivePosterior(layout, 1, particles)
        self._evaluator = Evaluator(layout)
        self._columns = self._evaluator.columns(features)
        self._done = 0

    def after(self, told: int) -> Floats:
        """Mean prediction of every instance after so many outcomes, (instances,)."""
        rows = self._order[self._done : told]
        if len(rows):
            self._posterior.update_all(self._features[rows], self._y[rows], self._done + 1)
            self._done = told
        p = self._evaluator.by_instance(self._posterior.particles, self._columns, np.float64)
        return p @ self._posterior.weights


def _compare_pairs(
    scored: Sequence[AgentScores], pair: Callable[[AgentScores], tuple[float, float]]
) -> PairedDifference:
    """Compare the means over splits of each agent."""
    names = dict.fromkeys(scores.agent for scores in scored)
    if len(names) < 2:
        raise ValueError(
            f"{len(names)} of the agents have so many episodes; a comparison needs two"
        )
    pairs = np.array(
        [
            np.mean([pair(scores) for scores in scored if scores.agent == name], axis=0)
            for name in names
        ]
    )
    apart = pairs[:, 0] - pairs[:, 1]
    error = float(apart.std(ddof=1) / np.sqrt(len(apart)))
    reach = float(stdtrit(len(apart) - 1, 0.95)) * error
    mean = float(apart.mean())
    return PairedDifference(
        float(pairs[:, 0].mean()), float(pairs[:, 1].mean()), mean, mean - reach, mean + reach
    )
