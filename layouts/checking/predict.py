"""Predictions of a posterior for instances, and of any assessor for held-out instances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.scores import INTERVAL_SHARE
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import Instances
from animalcat.layouts.model.spec import Binomial, Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.int64]

_BLOCK: Final = 1000
"""Number of instances predicted at once: 32 MB for 4,000 draws."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a posterior predicts for instances.

    Attributes:
        mean: (instances,): probability of success, or expected score.
        low: (instances,): lower end of the 90 % equal-tailed interval of that probability. The
            interval says how well the agent is known, not how an episode may end.
        high: (instances,): upper end of that interval.
    """

    mean: Floats
    low: Floats
    high: Floats


def predict(
    layout: Layout,
    draws: npt.ArrayLike,
    features: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    outcome: int = 0,
) -> Prediction:
    """Predict instances from a posterior.

    Args:
        layout: The layout.
        draws: (draws, latents): `FitResult.flat_draws`, or `LivePosterior.particles`.
        features: (instances, features), in the layout's order and units.
        weights: (draws,), as `LivePosterior.weights`; equal if not given.
        outcome: Index of the outcome in the layout.

    Raises:
        ValueError: A feature is missing or out of range.
    """
    theta = np.asarray(draws, dtype=np.float64)
    share = np.full(len(theta), 1.0) if weights is None else np.asarray(weights, dtype=np.float64)
    share = share / share.sum()
    evaluator = Evaluator(layout)
    columns = evaluator.columns(features)
    out = np.empty((3, len(columns)))
    for start in range(0, len(columns), _BLOCK):
        block = slice(start, start + _BLOCK)
        p = evaluator.by_instance(theta, columns[block], np.float64, outcome)
        out[:, block] = (p @ share, *_quantiles(p, share))
    return Prediction(*out)


def as_shares(layout: Layout, outcomes: npt.ArrayLike, features: npt.ArrayLike) -> Floats:
    """Convert outcomes to the scale of predictions, (instances,): successes as a share of trials.

    Args:
        layout: The layout.
        outcomes: (instances,), of the layout's kind.
        features: (instances, features).

    Raises:
        ValueError: An outcome does not fit, a row has no trials, or the layout has several
            outcomes.
    """
    insist_on_one_outcome(layout)
    checked = layout.check_features(features)
    y = layout.check_outcomes(outcomes, checked)
    if not isinstance(layout.outcome, Binomial):
        return y
    trials = checked[:, layout.feature_names.index(layout.outcome.trials)]
    if not trials.all():
        raise ValueError(f"row {np.argmin(trials)} has no trials, so there is nothing to score")
    return y / trials


def insist_on_one_outcome(layout: Layout) -> None:
    """Refuse a layout with several outcomes, where only one can be compared or scored.

    Raises:
        ValueError: The layout has several outcomes.
    """
    if len(layout.outcomes) > 1:
        raise ValueError(
            f"layout {layout.name} has {len(layout.outcomes)} outcomes "
            f"({', '.join(layout.outcome_names)}); this takes layouts with one"
        )


class FittedAssessor(Protocol):
    """An assessor that has learnt about one agent."""

    def predict(self, instances: Instances) -> Floats:
        """Probability of success, or expected score, (instances,)."""
        ...


class Assessor(Protocol):
    """Learns about one agent from its outcomes: a layout, or a baseline to compare it with."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        ...

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAssessor:
        """Learn from outcomes.

        Args:
            instances: The instances that were played.
            outcomes: (instances,): 1 for success, 0 for failure, or a score in [0, 1].
        """
        ...


@dataclass(frozen=True, eq=False)
class LayoutAssessor:
    """A measurement layout as an assessor.

    Attributes:
        layout: The layout.
        seed: Seed of its fits.
        by: "nuts", or "live" for the live posterior, which is faster and takes outcomes in order.
        particles: Number of particles of the live posterior.
    """

    layout: Layout
    seed: int
    by: Literal["nuts", "live"] = "nuts"
    particles: int = 2000

    @property
    def name(self) -> str:
        """Name and variant of the layout."""
        return f"{self.layout.name} ({self.layout.variant})"

    def fit(self, instances: Instances, outcomes: Floats) -> FittedLayout:
        """Fit the layout to the outcomes.

        Raises:
            ValueError: The layout has several outcomes, or they do not fit it.
        """
        insist_on_one_outcome(self.layout)
        features = instances.features(self.layout)
        if self.by == "nuts":
            draws = fit(FitRequest(self.layout, features, outcomes, self.seed)).flat_draws
            return FittedLayout(self.layout, draws, np.full(len(draws), 1.0 / len(draws)))
        posterior = LivePosterior(self.layout, self.seed, self.particles)
        posterior.update_all(features, outcomes)
        return FittedLayout(self.layout, posterior.particles, posterior.weights)


@dataclass(frozen=True, eq=False)
class FittedLayout:
    """Draws of a posterior, used to predict instances."""

    layout: Layout
    draws: Floats
    weights: Floats

    def predict(self, instances: Instances) -> Floats:
        """Mean prediction, (instances,)."""
        features = instances.features(self.layout)
        return predict(self.layout, self.draws, features, self.weights).mean


@dataclass(frozen=True, eq=False)
class Split:
    """Indices of the instances to learn from, and of those to predict."""

    train: Rows
    test: Rows


def split(instances: int, seed: int, share: float = 0.2, repeat: int = 0) -> Split:
    """Hold out a share of the instances at random.

    Burden et al. hold out 20 %, the same instances for all 30 synthetic agents; so the split may
    not depend on the agent.

    Args:
        instances: Number of instances.
        seed: Seed; the same seed gives the same split.
        share: Share that is held out, rounded; at least one instance on each side.
        repeat: Which of several splits with one seed.

    Raises:
        ValueError: There is nothing to split.
    """
    if instances < 2 or not 0.0 < share < 1.0:
        raise ValueError(f"{instances} instances cannot be split with a share of {share:g}")
    order = rng(seed, "split", repeat).permutation(instances)
    held = min(max(round(share * instances), 1), instances - 1)
    return Split(np.sort(order[held:]), np.sort(order[:held]))


def splits(instances: int, seed: int, repeats: int) -> Iterator[Split]:
    """Make several splits, the first equal to `split`; Burden et al. use 15 for the entrants."""
    for repeat in range(repeats):
        yield split(instances, seed, repeat=repeat)


@dataclass(frozen=True, eq=False)
class HeldOutPredictions:
    """Predictions and outcomes of held-out instances, all splits one after another.

    Attributes:
        rows: Index of the instance.
        predicted: Its prediction.
        outcomes: Its outcome.
        repeat: Number of the split.
    """

    rows: Rows
    predicted: Floats
    outcomes: Floats
    repeat: Rows


def predict_held_out(
    assessor: Assessor, instances: Instances, outcomes: npt.ArrayLike, by: Iterable[Split]
) -> HeldOutPredictions:
    """Fit an assessor to the learning part of each split, and predict the rest.

    Args:
        assessor: A layout or a baseline.
        instances: The instances that were played.
        outcomes: (instances,).
        by: The splits, as returned by `splits`.
    """
    y = np.asarray(outcomes, dtype=np.float64)
    rows: list[Rows] = []
    predicted: list[Floats] = []
    for part in by:
        fitted = assessor.fit(instances.rows(part.train), y[part.train])
        rows.append(part.test)
        predicted.append(fitted.predict(instances.rows(part.test)))
    if not rows:
        raise ValueError("no split was given")
    repeat = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    together = np.concatenate(rows)
    return HeldOutPredictions(together, np.concatenate(predicted), y[together], repeat)


def _quantiles(p: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Ends of the equal-tailed interval of each row, for weighted draws."""
    tail = (1.0 - INTERVAL_SHARE) / 2.0
    order = np.argsort(p, axis=1)
    total = np.cumsum(weights[order], axis=1)
    ordered = np.take_along_axis(p, order, axis=1)
    ends = [
        np.take_along_axis(ordered, np.argmax(total >= at - 1e-12, axis=1)[:, np.newaxis], axis=1)
        for at in (tail, 1.0 - tail)
    ]
    return ends[0][:, 0], ends[1][:, 0]
