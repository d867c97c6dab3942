"""How well a calibrated layout predicts agents that it was not calibrated by.

Agents are held out by folds. A new agent's first outcomes are told in a random order, and the rest
is predicted: by the calibrated layout, and by the layout as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.calibrating.calibrate import calibrated_layout
from animalcat.layouts.calibrating.population import CalibrationError, PopulationModel
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Brier: TypeAlias = dict[tuple[str, int], float]
"""An agent's Brier score by predictor and number of episodes told; a number is absent where the
agent has no more episodes than that."""

FOLDS: Final = 3
TOLD: Final = (15, 30, 50)
"""Numbers of a new agent's episodes after which the rest is predicted."""
CALIBRATED: Final = "calibrated"
WRITTEN: Final = "as written"
_PARTICLES: Final = 1000


def judge(
    layout: Layout, table: OutcomeTable, seed: int
) -> Callable[[PopulationModel], list[tuple[str, float]]]:
    """Make the function by which `calibrate` judges a model: mean Brier scores on held-out agents.

    A part of the agents is left out of the judgement if the others are too few to calibrate by.
    Numbers of episodes that fewer than two agents have are left out as well. The entry `held_out`
    is the number of agents that were predicted.

    Args:
        layout: The layout as written.
        table: The outcomes.
        seed: Seed of the split and the fits.
    """

    def judge_model(model: PopulationModel) -> list[tuple[str, float]]:
        folds = min(FOLDS, len(table.agents) // 2)
        if folds < 2:
            return [("held_out", 0.0)]
        order = rng(seed, "agents", 0).permutation(len(table.agents))
        scored: list[Brier] = []
        for fold in range(folds):
            test = sorted(order[fold::folds].tolist())
            try:
                population = model.fit(seed + fold, test)
            except CalibrationError:
                continue
            ours = calibrated_layout(layout, table, population, CALIBRATED, without=test)
            for agent in test:
                generator = rng(seed, f"order of {agent}", 0)
                scored.append(_predict_agent(layout, ours, table, agent, generator))
        return [("held_out", float(len(scored))), *mean_scores(scored)]

    return judge_model


def mean_scores(scored: list[Brier]) -> list[tuple[str, float]]:
    """Mean Brier scores of both predictors, for numbers of episodes that two agents have."""
    findings: list[tuple[str, float]] = []
    for told in TOLD:
        there = [brier for brier in scored if (WRITTEN, told) in brier]
        if len(there) > 1:
            for name, by in ((f"brier_{told}", CALIBRATED), (f"brier_{told}_as_written", WRITTEN)):
                findings.append((name, float(np.mean([brier[by, told] for brier in there]))))
    return findings


def _predict_agent(
    layout: Layout, ours: Layout, table: OutcomeTable, agent: int, generator: np.random.Generator
) -> Brier:
    instances, y = table.of(table.agents[agent])
    order = generator.permutation(len(y))
    calibrated = Run(ours, instances.features(ours), y, order)
    written = Run(layout, instances.features(layout), y, order)
    brier: Brier = {}
    for stop in (told for told in TOLD if told < len(y)):
        rest = order[stop:]
        for name, run in ((CALIBRATED, calibrated), (WRITTEN, written)):
            brier[name, stop] = float(np.mean((run.after(stop)[rest] - y[rest]) ** 2))
    return brier


class Run:
    """A live posterior that is told an agent's outcomes in an order, up to growing numbers."""

    def __init__(self, layout: Layout, features: Floats, y: Floats, order: Ints) -> None:
        self._layout, self._y, self._order, self._features = layout, y, order, features
        self.posterior = LivePosterior(layout, 1, _PARTICLES)
        self._evaluator = Evaluator(layout)
        self._columns = self._evaluator.columns(features)
        self._done = 0

    def after(self, told: int) -> Floats:
        """Mean prediction of every instance after so many outcomes, (instances,)."""
        rows = self._order[self._done : told]
        if len(rows):
            self.posterior.update_all(self._features[rows], self._y[rows], self._done + 1)
            self._done = told
        p = self._evaluator.by_instance(self.posterior.particles, self._columns, np.float64)
        return p @ self.posterior.weights
