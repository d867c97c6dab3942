"""How well a calibrated layout predicts agents that it was not calibrated by.

Agents are held out by folds. A new agent's first outcomes are told in a random order, and the rest
is predicted: by the calibrated layout, by the layout as written, by the two-parameter logistic
model of the same population, and by gradient boosting on the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from animalcat.extending.installing import install
from animalcat.layouts.calibrating.calibrate import (
    calibrated_layout,
    population_model,
)
from animalcat.layouts.calibrating.population import (
    CalibrationError,
    Effort,
    Population,
    PopulationModel,
)
from animalcat.layouts.checking.baselines import MissingPackageError
from animalcat.layouts.checking.population import PopulationIRT
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
EARLY: Final = 25
"""Episodes told before the number of successes on the rest is predicted."""
CALIBRATED: Final = "calibrated"
WRITTEN: Final = "as written"
POPULATION: Final = "2PL"
BOOSTING: Final = "gradient boosting"
MARGIN: Final = 0.005
"""Largest acceptable upper bound of a difference of Brier scores."""
_TREES: Final = {"max_depth": 3, "eta": 0.1, "objective": "binary:logistic", "nthread": 1}
_ROUNDS: Final = 100
_KNOWN: Final = 5
"""How many sets of told episodes are drawn for each agent that boosting learns from."""


@dataclass(frozen=True, slots=True)
class AgentScores:
    """How well one held-out agent was predicted in one split.

    Attributes:
        agent: Its name.
        brier: Brier score by predictor and number of episodes told. A number is absent where the
            agent has no more episodes than that.
        place: Where the number of successes on the instances that were not told by `EARLY` episodes
            lies in its predictive distribution: the probability of fewer, and of at most as many;
            NaN where the agent has not so many.
    """

    agent: str
    brier: dict[tuple[str, int], float]
    place: tuple[float, float]


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


def assess(
    layout: Layout,
    table: OutcomeTable,
    seed: int,
    *,
    seeds: int,
    folds: int = FOLDS,
    effort: Effort | None = None,
    particles: int = 2000,
    done: Callable[[str], object] = lambda _: None,
) -> tuple[list[AgentScores], list[dict[str, Any]], Population]:
    """Hold out every agent once in each split, and predict it.

    Args:
        layout: The layout as written.
        table: Outcomes of all agents; all instances have names.
        seed: Seed of splits, fits and orders.
        seeds: Number of splits of the agents.
        folds: Number of parts of each split.
        effort: How long to sample.
        particles: Particles of live posteriors.
        done: Called with a few words after each fold.

    Returns:
        One entry for each agent and split; the diagnostics of every fit; the last population.
    """
    model = population_model(layout, table)
    scored: list[AgentScores] = []
    diagnostics: list[dict[str, Any]] = []
    population = None
    for split, fold, test in parts(len(table.agents), seed, seeds, folds):
        population = model.fit(1000 * seed + 100 * split + fold, effort, test)
        diagnostics.append(dict(population.diagnostics))
        scored.extend(_fold(layout, table, model, population, test, seed, split, particles))
        done(f"split {split + 1}, part {fold + 1}")
    assert population is not None
    return scored, diagnostics, population


def parts(agents: int, seed: int, seeds: int, folds: int) -> Iterator[tuple[int, int, list[int]]]:
    """Every fold: number of the split, of the part, and the agents held out."""
    for split in range(seeds):
        order = rng(seed, "agents", split).permutation(agents)
        for fold in range(folds):
            yield split, fold, sorted(order[fold::folds].tolist())


def compared(scored: Sequence[AgentScores], other: str, told: int) -> PairedDifference:
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


def coverage(scored: Sequence[AgentScores], share: float = 0.9) -> float:
    """Share of predictive intervals that hold the number of successes on the rest.

    A number has a probability of its own, and an interval ends within some number. It then holds
    that number by the share of its probability that is inside. It is NaN if no agent has more than
    `EARLY` episodes.
    """
    places = np.array([scores.place for scores in scored if np.isfinite(scores.place[0])])
    if not places.size:
        return float("nan")
    tail = (1.0 - share) / 2.0
    below, upto = places[:, 0], places[:, 1]
    inside = np.minimum(upto, 1.0 - tail) - np.maximum(below, tail)
    return float(np.mean(np.clip(inside, 0.0, None) / np.maximum(upto - below, 1e-12)))


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

    def judged(model: PopulationModel) -> list[tuple[str, float]]:
        folds = min(FOLDS, len(table.agents) // 2)
        if folds < 2:
            return [("held_out", 0.0)]
        scored: list[AgentScores] = []
        for split, fold, test in parts(len(table.agents), seed, 1, folds):
            try:
                population = model.fit(seed + fold, effort, test)
            except CalibrationError:
                continue
            scored.extend(
                _fold(layout, table, model, population, test, seed, split, 1000, baselines=False)
            )
        findings = [("held_out", float(len({scores.agent for scores in scored})))]
        for told in TOLD:
            if len({scores.agent for scores in scored if (WRITTEN, told) in scores.brier}) < 2:
                continue
            pair = compared(scored, WRITTEN, told)
            findings += [(f"brier_{told}", pair.ours), (f"brier_{told}_as_written", pair.theirs)]
        return findings

    return judged


def _fold(
    layout: Layout,
    table: OutcomeTable,
    model: PopulationModel,
    population: Population,
    test: Sequence[int],
    seed: int,
    split: int,
    particles: int,
    *,
    baselines: bool = True,
) -> list[AgentScores]:
    ours = calibrated_layout(layout, table, population, CALIBRATED, without=test)
    train = [i for i in range(len(table.agents)) if i not in set(test)]
    items, trees = None, None
    if baselines:
        others = OutcomeTable(
            table.instances, tuple(table.agents[i] for i in train), table.outcomes[train]
        )
        items = PopulationIRT(others)
        trees = _BoostingFit(model.features, table.outcomes[train], seed + split)
    return [
        _agent(layout, ours, table, i, rng(seed, f"order of {i}", split), particles, items, trees)
        for i in test
    ]


def _agent(
    layout: Layout,
    ours: Layout,
    table: OutcomeTable,
    agent: int,
    generator: np.random.Generator,
    particles: int,
    items: PopulationIRT | None,
    trees: _BoostingFit | None,
) -> AgentScores:
    instances, y = table.of(table.agents[agent])
    columns = np.flatnonzero(np.isfinite(table.outcomes[agent]))
    order = generator.permutation(len(y))
    stops = [n for n in TOLD if n < len(y)]
    calibrated = _Run(ours, instances.features(ours), y, order, particles)
    written = _Run(layout, instances.features(layout), y, order, particles)
    brier: dict[tuple[str, int], float] = {}
    place = (float("nan"), float("nan"))
    for stop in sorted({*stops, EARLY}):
        if stop >= len(y):
            continue
        rest = order[stop:]
        p, q = calibrated.after(stop), written.after(stop)
        if stop == EARLY:
            place = calibrated.place(rest, y[rest], generator)
        if stop in stops:
            brier[CALIBRATED, stop] = float(np.mean((p[rest] - y[rest]) ** 2))
            brier[WRITTEN, stop] = float(np.mean((q[rest] - y[rest]) ** 2))
            told = order[:stop]
            if items is not None:
                ability = items.fit(instances.rows(told), y[told])
                r = ability.predict(instances.rows(rest))
                brier[POPULATION, stop] = float(np.mean((r - y[rest]) ** 2))
            if trees is not None:
                r = trees.predict(columns[told], y[told], columns[rest], stop)
                brier[BOOSTING, stop] = float(np.mean((r - y[rest]) ** 2))
    return AgentScores(table.agents[agent], brier, place)


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
        return self._p() @ self._posterior.weights

    def place(self, rest: Ints, y: Floats, generator: np.random.Generator) -> tuple[float, float]:
        """Predicted probability of fewer successes on the rest, and of at most as many."""
        rows = generator.choice(len(self._posterior.weights), 2000, p=self._posterior.weights)
        p = self._p()[rest][:, rows]
        drawn: Ints = np.count_nonzero(generator.random(p.shape) < p, axis=0).astype(np.int64)
        passed = int(y.sum())
        # One more of each counts the agent itself, so that no number has the probability 0.
        below, upto = np.count_nonzero(drawn < passed), np.count_nonzero(drawn <= passed) + 1
        return below / (len(drawn) + 1), upto / (len(drawn) + 1)

    def _p(self) -> Floats:
        return self._evaluator.by_instance(self._posterior.particles, self._columns, np.float64)


class _BoostingFit:
    """Gradient boosting on demands, the instance's rate and the agent's rate, over a population."""

    def __init__(self, features: Floats, outcomes: Floats, seed: int) -> None:
        try:
            import xgboost
        except ModuleNotFoundError as error:
            raise MissingPackageError(
                f"xgboost is not installed: {install('assessors')}"
            ) from error
        self._xgboost: Any = xgboost
        self._features, self._outcomes, self._seed = features, outcomes, seed
        self._models: dict[int, Any] = {}

    def predict(self, told: Ints, y: Floats, rest: Ints, n: int) -> Floats:
        """Predict instances of a new agent from those told, by their columns."""
        if n not in self._models:
            self._models[n] = self._train(n)
        x = self._rows(told, y, rest, self._rates(None))
        return np.asarray(self._models[n].predict(self._xgboost.DMatrix(x)), dtype=np.float64)

    def _train(self, n: int) -> Any:
        rows: list[Floats] = []
        labels: list[Floats] = []
        for agent, outcomes in enumerate(self._outcomes):
            played = np.flatnonzero(np.isfinite(outcomes))
            rates = self._rates(agent)
            for repeat in range(_KNOWN):
                order = rng(self._seed, f"known {agent} {n}", repeat).permutation(played)
                told, rest = order[:n], order[n:]
                rows.append(self._rows(told, outcomes[told], rest, rates))
                labels.append(outcomes[rest])
        data = self._xgboost.DMatrix(np.concatenate(rows), label=np.concatenate(labels))
        return self._xgboost.train({**_TREES, "seed": self._seed}, data, num_boost_round=_ROUNDS)

    def _rates(self, without: int | None) -> Floats:
        """Success rate of every instance over the population, but for one agent."""
        kept = [i for i in range(len(self._outcomes)) if i != without]
        y = self._outcomes[kept]
        return (np.nansum(y, axis=0) + 0.5) / (np.isfinite(y).sum(axis=0) + 1.0)

    def _rows(self, told: Ints, y: Floats, rest: Ints, rates: Floats) -> Floats:
        own = float(y.mean())
        beyond = float((y - rates[told]).mean())
        known = np.tile([own, beyond], (len(rest), 1))
        return np.column_stack([self._features[rest], rates[rest], known])


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
