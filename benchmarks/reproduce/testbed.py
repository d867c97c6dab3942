"""The entrants of the Animal-AI Olympics on the whole testbed: a layout beside its baselines.

Each entrant is predicted on arenas that its fit has not seen. Once a fifth of the tasks is held
out, with all variations of a task on one side. Once a whole category is held out, so that the
predictions rest on what the layout says about demands that were not yet met together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from animalcat.layouts.checking.baselines import Aggregate, GradientBoosting, Logistic
from animalcat.layouts.checking.predict import (
    Assessor,
    FittedAssessor,
    LayoutAssessor,
    Split,
    held_out,
    splits,
)
from animalcat.layouts.checking.scores import INTERVAL_SHARE, brier
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout
from animalcat.processes import process_pool

Floats: TypeAlias = npt.NDArray[np.float64]

SPLITS: Final = 15
"""Number of times that a fifth of the tasks is held out, as in Figure 6a of Burden et al. 2023."""
MIDDLE: Final = (0.2, 0.7)
"""Success rates of the entrants that are also compared by themselves."""
CHOSEN_ON: Final = frozenset(
    {
        *("AirbrainNM", "ARF-RL", "BLAI", "CHROMA", "DeepFox", "dhr", "hhq126152", "ice-play"),
        *("INAOE1", "MadStorks", "Tetravoxel", "TheAnimalsEscapedFromPenn", "Thursday", "y.yang"),
    }
)
"""Entrants on half of whose tasks the forms and priors of the layout were chosen."""
PARTICLES: Final = 400
"""Number of particles of a fit: fewer than in a session, since there are 26 fits an entrant."""
_TAIL: Final = 1.6449
"""Standard normal value with 5 % above it."""
_MATTERS: Final = 0.02
"""Difference in the probability of success from which on a node is said to matter."""


def task_of(name: str) -> str:
    """The task that an arena of the testbed is a variation of: "03-12" of "03-12-01"."""
    return name.rpartition("-")[0] or name


def category_of(name: str) -> str:
    """The category that an arena of the testbed belongs to: "03" of "03-12-01"."""
    return name.partition("-")[0]


@dataclass(frozen=True, slots=True)
class CategoryRate:
    """The mean of the outcomes in the same category, which is the instance's paradigm.

    In a category without outcomes it is the mean of all.
    """

    name: str = "rate by category"

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAssessor:
        """Compute the means."""
        of = np.array(instances.paradigms)
        rates = {
            str(category): float(outcomes[of == category].mean()) for category in np.unique(of)
        }
        return _Rates(rates, float(outcomes.mean()))


@dataclass(frozen=True, eq=False)
class _Rates:
    rates: Mapping[str, float]
    overall: float

    def predict(self, instances: Instances) -> Floats:
        return np.array(
            [self.rates.get(category, self.overall) for category in instances.paradigms]
        )


def assessors(layout: Layout, seed: int, *, particles: int = PARTICLES) -> list[Assessor]:
    """The layout, first, and what it is compared with, on the same features."""
    columns = layout.feature_names
    return [
        LayoutAssessor(layout, seed, "live", particles),
        Aggregate("aggregate rate"),
        CategoryRate(),
        Logistic(columns),
        GradientBoosting(columns, seed=seed),
    ]


def by_task(names: Sequence[str], seed: int, repeats: int = SPLITS) -> list[Split]:
    """Hold out a fifth of the tasks, several times, with all their variations.

    The share is kept within every category as nearly as possible.
    """
    tasks = sorted({task_of(name) for name in names})
    place = {task: i for i, task in enumerate(tasks)}
    of = np.array([place[task_of(name)] for name in names])
    parts = splits(len(tasks), seed, repeats, strata=[category_of(task) for task in tasks])
    held = [np.isin(of, part.test) for part in parts]
    return [Split(np.flatnonzero(~out), np.flatnonzero(out)) for out in held]


def by_category(names: Sequence[str]) -> list[Split]:
    """Hold out each category in turn."""
    of = np.array([category_of(name) for name in names])
    return [
        Split(np.flatnonzero(of != category), np.flatnonzero(of == category))
        for category in np.unique(of)
    ]


@dataclass(frozen=True, slots=True)
class EntrantScores:
    """Brier scores of one entrant on held-out arenas, over all splits.

    Attributes:
        name: The entrant.
        success: Its success rate.
        by_task: Score of each assessor with tasks held out.
        by_category: Score of each assessor with categories held out.
        each_category: The same, for each category by its name.
    """

    name: str
    success: float
    by_task: Mapping[str, float]
    by_category: Mapping[str, float]
    each_category: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class NodeInformation:
    """How much the outcomes on all arenas tell about a node, over the entrants.

    Attributes:
        node: Its name.
        unit: Its unit.
        arenas: Number of arenas on which the node matters: success is likelier by 0.02 or more at
            one end of the prior's central 90 % than at the other, all other nodes at their means.
        contraction: Mean share of the prior's variance that is gone.
        spread: Standard deviation of the posterior means over the entrants, as a share of the
            node's range.
        sd: Mean posterior standard deviation, as a share of the range.
    """

    node: str
    unit: str
    arenas: int
    contraction: float
    spread: float
    sd: float


@dataclass(frozen=True, slots=True)
class NodePair:
    """Two nodes, and the mean correlation of their posteriors over the entrants."""

    first: str
    second: str
    correlation: float


@dataclass(frozen=True, slots=True)
class AssessorDifference:
    """The layout beside another assessor, over entrants.

    Attributes:
        name: The other assessor.
        score: Its mean Brier score.
        difference: Mean of the layout's score less its score; below 0 if the layout is better.
        low: Lower end of the 90 % interval of that mean (Student's t over entrants).
        high: Upper end of that interval.
        better: Number of entrants for whom the layout is better.
    """

    name: str
    score: float
    difference: float
    low: float
    high: float
    better: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Mean Brier scores of some entrants.

    Attributes:
        entrants: Number of entrants.
        layout: Mean score of the layout.
        others: The layout beside each of the others.
    """

    entrants: int
    layout: float
    others: tuple[AssessorDifference, ...]


@dataclass(frozen=True, eq=False)
class EntrantTask:
    """What to compute for one entrant; it can be sent to another process.

    Attributes:
        layout: The layout.
        instances: The arenas, with their category as paradigm.
        entrant: The entrant's name.
        outcomes: (arenas,): success 1, failure 0.
        seed: Seed of splits and fits.
        repeats: Number of splits by task.
        particles: Number of particles of each fit.
    """

    layout: Layout
    instances: Instances
    entrant: str
    outcomes: Floats
    seed: int
    repeats: int
    particles: int


@dataclass(frozen=True, eq=False)
class EntrantResult:
    """Scores of one entrant, and its posterior given all its outcomes.

    Attributes:
        scores: The scores.
        mean: (nodes,) posterior means.
        covariance: (nodes, nodes) posterior covariance.
    """

    scores: EntrantScores
    mean: Floats
    covariance: Floats


def with_categories(instances: Instances, layout: Layout) -> Instances:
    """The layout's features alone, missing values filled in by its rules, and the categories.

    So every assessor is told the same, and none meets a missing value.

    Raises:
        ValueError: The arenas have no names, or the layout does not cover one of them.
    """
    if not instances.names:
        raise ValueError("arenas need names, which say their tasks and categories")
    paradigms = tuple(category_of(name) for name in instances.names)
    values = instances.features(layout)
    return Instances(layout.feature_names, values, paradigms, instances.names)


def work_on(layout: Layout, table: OutcomeTable, seed: int, **given: int) -> list[EntrantTask]:
    """What there is to do for every entrant of a table.

    Args:
        layout: The layout.
        table: Outcomes on arenas of the testbed, by their names.
        seed: Seed of splits and fits.
        given: `repeats` (splits by task) and `particles`, if they are not the usual ones.

    Raises:
        ValueError: As for `with_categories`, or there are fewer than two categories.
    """
    repeats, particles = given.get("repeats", SPLITS), given.get("particles", PARTICLES)
    tasks: list[EntrantTask] = []
    for agent in table.agents:
        instances, outcomes = table.of(agent)
        known = with_categories(instances, layout)
        if len(set(known.paradigms)) < 2:
            raise ValueError(f"{agent}: arenas of one category only; at least two are needed")
        tasks.append(EntrantTask(layout, known, agent, outcomes, seed, repeats, particles))
    return tasks


def work_out(
    tasks: Sequence[EntrantTask], *, processes: int = 1, done: Callable[[], object] | None = None
) -> list[EntrantResult]:
    """Predict what was held out of every entrant; results do not depend on the processes.

    Args:
        tasks: What to do, as from `work_on`.
        processes: Number of processes.
        done: Called after each entrant.
    """
    results: list[EntrantResult] = []
    if processes <= 1:
        for task in tasks:
            results.append(score_entrant(task))
            if done is not None:
                done()
        return results
    with process_pool(processes) as pool:
        for result in pool.map(score_entrant, tasks):
            results.append(result)
            if done is not None:
                done()
    return results


def score_entrant(work: EntrantTask) -> EntrantResult:
    """Hold tasks and categories out for one entrant, with every assessor, and fit the layout."""
    names = work.instances.names
    # The same splits for all entrants, so that differences between entrants are the entrants'.
    tasks, categories = by_task(names, work.seed, work.repeats), by_category(names)
    own = int(rng(work.seed, f"testbed {work.entrant}", 0).integers(1 << 31))
    every = assessors(work.layout, own, particles=work.particles)
    scores: dict[str, dict[str, float]] = {"task": {}, "category": {}}
    each: dict[str, dict[str, float]] = {}
    for assessor in every:
        held = held_out(assessor, work.instances, work.outcomes, tasks)
        scores["task"][assessor.name] = brier(held.predicted, held.outcomes)
        held = held_out(assessor, work.instances, work.outcomes, categories)
        scores["category"][assessor.name] = brier(held.predicted, held.outcomes)
        for number, part in enumerate(categories):
            rows = held.repeat == number
            category = work.instances.paradigms[int(part.test[0])]
            score = brier(held.predicted[rows], held.outcomes[rows])
            each.setdefault(category, {})[assessor.name] = score
    posterior = LivePosterior(work.layout, own, work.particles)
    posterior.update_all(work.instances.features(work.layout), work.outcomes)
    mean = posterior.weights @ posterior.particles
    centred = posterior.particles - mean
    covariance = (centred * posterior.weights[:, np.newaxis]).T @ centred
    rate = float(work.outcomes.mean())
    entrant_scores = EntrantScores(work.entrant, rate, scores["task"], scores["category"], each)
    return EntrantResult(entrant_scores, mean, covariance)


def compare(scores: Sequence[Mapping[str, float]]) -> Comparison:
    """Compare the first assessor with each of the others, paired over entrants.

    Args:
        scores: Brier scores of every entrant by assessor, all with the same assessors.

    Raises:
        ValueError: There are fewer than two entrants.
    """
    if len(scores) < 2:
        raise ValueError(f"{len(scores)} entrants; two at least are wanted")
    ours, *others = scores[0]
    layout = np.array([score[ours] for score in scores])
    entrants = len(scores)
    wide = float(stdtrit(entrants - 1, 0.5 + INTERVAL_SHARE / 2.0)) / math.sqrt(entrants)
    rows: list[AssessorDifference] = []
    for name in others:
        theirs = np.array([score[name] for score in scores])
        apart = layout - theirs
        mean, half = float(apart.mean()), wide * float(apart.std(ddof=1))
        rows.append(
            AssessorDifference(
                name, float(theirs.mean()), mean, mean - half, mean + half, int((apart < 0).sum())
            )
        )
    return Comparison(entrants, float(layout.mean()), tuple(rows))


def in_the_middle(worked: Sequence[EntrantResult]) -> list[EntrantResult]:
    """The entrants whose success rate is neither low nor high."""
    low, high = MIDDLE
    return [result for result in worked if low <= result.scores.success <= high]


def not_chosen_on(worked: Sequence[EntrantResult]) -> list[EntrantResult]:
    """The entrants that played no part when the layout's forms and priors were chosen."""
    return [result for result in worked if result.scores.name not in CHOSEN_ON]


def told_apart(
    layout: Layout, instances: Instances, worked: Sequence[EntrantResult]
) -> tuple[list[NodeInformation], list[NodePair]]:
    """Which nodes the outcomes tell of, and which they cannot tell apart.

    Args:
        layout: The layout.
        instances: The arenas, with all features of the layout.
        worked: Results of the entrants.

    Returns:
        Every node in the layout's order, and all pairs, the most correlated first.
    """
    matters = _matters(layout, instances)
    sds = np.array([np.sqrt(np.diag(result.covariance)) for result in worked])
    means = np.array([result.mean for result in worked])
    nodes = [
        NodeInformation(
            node.name,
            node.unit,
            int(matters[:, i].sum()),
            float(np.mean(1.0 - (sds[:, i] / node.prior.sd) ** 2)),
            float(means[:, i].std()) / node.prior.span,
            float(sds[:, i].mean()) / node.prior.span,
        )
        for i, node in enumerate(layout.latents)
    ]
    correlations = np.mean(
        [result.covariance / np.outer(sd, sd) for result, sd in zip(worked, sds, strict=True)],
        axis=0,
    )
    pairs = [
        NodePair(layout.latent_names[i], layout.latent_names[j], float(correlations[i, j]))
        for i, j in combinations(range(len(layout.latents)), 2)
    ]
    return nodes, sorted(pairs, key=lambda pair: -abs(pair.correlation))


def _matters(layout: Layout, instances: Instances) -> npt.NDArray[np.bool_]:
    """Where each node matters, (instances, nodes); see `NodeInformation.arenas`."""
    evaluator = Evaluator(layout)
    means = np.array([node.prior.mean for node in layout.latents])
    ends = np.array([-_TAIL, _TAIL])
    theta = np.repeat(means[np.newaxis], 2 * len(means), axis=0)
    for i, node in enumerate(layout.latents):
        theta[2 * i : 2 * i + 2, i] = node.prior.from_standard(ends)
    p = evaluator.probability(theta, instances.features(layout))
    return (np.abs(p[1::2] - p[::2]) >= _MATTERS).T
