"""A population over agents and the easiness of instances: an explanatory item response model.

Each agent's latent nodes are drawn from the layout's priors as they are written. What demands leave
unexplained of an instance is its easiness in logits, drawn around 0 (De Boeck and Wilson 2004,
Explanatory item response models; residuals of items as in Janssen, Schepers and Peres 2004). That
agents are less able than the priors expect is the same as that all instances are harder, so
easiness says that too.

Easiness and its spread are those of the greatest posterior density, with agents integrated out by
stochastic approximation of EM (Delyon, Lavielle and Moulines 1999). The agents are drawn by
differential evolution, with as many chains for each as keep its directions apart (ter Braak 2006).
Without any agent the layout is as it was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit, logit

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.calibration import STRANGENESS, TAUGHT
from animalcat.layouts.model.links import SURE
from animalcat.layouts.model.spec import Bernoulli, Layout
from animalcat.text.counts import count_of

Floats: TypeAlias = npt.NDArray[np.float64]

LEAST_AGENTS: Final = 2
"""Fewest agents of a population; from one alone, agents cannot be told from instances."""
_SPREAD: Final = 1.0
"""Standard deviation of easiness in logits that is known before, as if of one instance."""
_CHAINS: Final = 16
"""Chains of each agent."""
_ROUNDS: Final = 80
"""Rounds of drawing and raising. After half of them steps become smaller."""
_SWEEPS: Final = 4
"""Moves of every chain in a round."""


class CalibrationError(ValueError):
    """A layout cannot be calibrated by these outcomes; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Population:
    """What a table of outcomes says of instances.

    Attributes:
        easiness: (instances,), in logits.
        doubt: (instances,), standard deviation of what is known of each easiness.
        spread: Standard deviation of easiness over instances.
    """

    easiness: Floats
    doubt: Floats
    spread: float


class PopulationModel:
    """The hierarchical model of a layout for some instances and agents."""

    def __init__(self, layout: Layout, features: npt.ArrayLike, outcomes: npt.ArrayLike) -> None:
        """Check the data.

        Args:
            layout: The layout as written, as `check_layout` lets it pass.
            features: (instances, features).
            outcomes: (agents, instances), 0 or 1, NaN where not played.

        Raises:
            CalibrationError: There are too few agents, or nothing tells them apart.
            ValueError: Features or outcomes do not fit the layout.
        """
        self.layout = layout
        self.outcomes = np.asarray(outcomes, np.float64)
        checked = layout.check_features(features)
        if self.outcomes.shape[1] != len(checked):
            raise ValueError(
                f"{self.outcomes.shape[1]} columns of outcomes for {len(checked)} instances"
            )
        if not np.isin(self.outcomes[np.isfinite(self.outcomes)], (0.0, 1.0)).all():
            raise CalibrationError("outcomes must be 0 and 1: calibration is by success")
        check_agents(self.outcomes)
        self._evaluator = Evaluator(layout)
        self._columns = self._evaluator.columns(checked)

    def logits(self, z: Floats) -> Floats:
        """Logits of success without easiness, (instances, agents), of agents in z-space."""
        nodes = enumerate(self.layout.latents)
        theta = np.column_stack([node.prior.from_standard(z[:, i]) for i, node in nodes])
        p = self._evaluator.by_instance(theta, self._columns, np.float64)
        return np.asarray(logit(np.clip(p, SURE, 1.0 - SURE)), np.float64)

    def fit(self, seed: int, without: Sequence[int] = ()) -> Population:
        """Fit the population.

        Args:
            seed: Seed of the fit.
            without: Indices of agents whose outcomes are left out.

        Raises:
            CalibrationError: The agents that remain are too few, or nothing tells them apart.
        """
        outcomes = np.delete(self.outcomes, list(without), axis=0)
        check_agents(outcomes)
        outcomes = outcomes[np.isfinite(outcomes).any(axis=1)]
        generator = rng(seed, "population", 0)
        agents, nodes = len(outcomes), len(self.layout.latents)
        played = np.repeat(np.isfinite(outcomes), _CHAINS, axis=0).T
        y = np.repeat(np.nan_to_num(outcomes), _CHAINS, axis=0).T
        signs = played * (2.0 * y - 1.0)  # 0 where not played: a constant
        there = np.isfinite(outcomes).any(axis=0)
        easiness, spread = np.zeros(len(y)), _SPREAD
        doubt = np.full(len(y), _SPREAD)
        z = generator.standard_normal((agents * _CHAINS, nodes))
        logits = self.logits(z)
        for turn in range(_ROUNDS):
            for _ in range(_SWEEPS):
                moved = _propose(generator, z.reshape(agents, _CHAINS, nodes))
                at = self.logits(moved)
                shift = easiness[:, np.newaxis]
                gain = log_expit(signs * (at + shift)).sum(0)
                gain -= log_expit(signs * (logits + shift)).sum(0)
                gain -= 0.5 * (moved**2 - z**2).sum(1)
                taken = np.log(generator.random(len(gain))) < gain
                z[taken], logits[:, taken] = moved[taken], at[:, taken]
            share = max(1, turn + 1 - _ROUNDS // 2) ** -0.7
            found, doubt = _raise_easiness(signs, logits, easiness, spread)
            easiness += share * (found - easiness)
            square = (easiness**2 + doubt**2)[there].sum() + _SPREAD**2
            spread += share * (float(np.sqrt(square / (there.sum() + 1))) - spread)
        return Population(easiness, doubt, spread)


def _propose(generator: np.random.Generator, z: Floats) -> Floats:
    """Moves by differences of two other chains of the same agent, (agents x chains, nodes)."""
    agents, chains, nodes = z.shape
    some = generator.random(z.shape) < generator.choice([0.3, 0.6, 1.0])
    rows = np.arange(agents, dtype=np.int64)[:, np.newaxis]
    columns = np.arange(chains, dtype=np.int64)
    first, second = (
        z[rows, (columns + generator.integers(1, chains, (agents, chains))) % chains]
        for _ in range(2)
    )
    step = 1.19 * np.sqrt(2.0) / np.sqrt(np.maximum(1, some.sum(axis=2, keepdims=True)))
    noise = 0.05 * generator.standard_normal(z.shape)
    return (z + some * (step * (first - second) + noise)).reshape(-1, nodes)


def _raise_easiness(
    signs: Floats, logits: Floats, easiness: Floats, spread: float
) -> tuple[Floats, Floats]:
    """The likeliest easiness of each instance given agents, and the doubt that is left.

    Where nobody or everybody passed, the spread alone keeps it finite.

    Args:
        signs: (instances, chains): 1 for success, -1 for failure, 0 where not played.
        logits: (instances, chains), without easiness.
        easiness: Where to begin, (instances,).
        spread: Standard deviation of easiness.
    """
    at, doubt = easiness, easiness
    for _ in range(4):
        wrong = np.abs(signs) * expit(-signs * (logits + at[:, np.newaxis]))
        slope = (signs * wrong).sum(axis=1) / _CHAINS - at / spread**2
        known = (wrong * (1.0 - wrong)).sum(axis=1) / _CHAINS + spread**-2
        at, doubt = at + np.clip(slope / known, -1.0, 1.0), known**-0.5
    return at, doubt


def check_layout(layout: Layout) -> None:
    """Refuse a layout that cannot be calibrated.

    Raises:
        CalibrationError: It has another outcome than success, was calibrated before, or has a
            feature or node with a name that calibration needs.
    """
    if len(layout.outcomes) != 1 or not isinstance(layout.outcome, Bernoulli):
        raise CalibrationError(
            f"layout {layout.name} has other outcomes than success "
            f"({', '.join(layout.outcome_names)}); calibration is by success alone"
        )
    if layout.calibration is not None:
        raise CalibrationError(
            f"layout {layout.name} is calibrated already; calibrate {layout.calibration.base[0]} "
            f"({layout.calibration.base[1]}), by all outcomes together"
        )
    taken = {*layout.feature_names, *layout.latent_names, *(n.name for n in layout.derived)}
    for name in (*TAUGHT, STRANGENESS):
        if name in taken:
            raise CalibrationError(f"layout {layout.name} has a node {name!r}; rename it")


def check_agents(outcomes: Floats) -> None:
    """Refuse outcomes (agents, instances) from which no population follows.

    Raises:
        CalibrationError: There are fewer than two agents with outcomes, or all outcomes are alike.
    """
    some = int(np.isfinite(outcomes).any(axis=1).sum())
    if some < LEAST_AGENTS:
        raise CalibrationError(
            f"{count_of(some, 'agent')} with outcomes: a population needs {LEAST_AGENTS} at least; "
            "measure with the layout as it is until there are more"
        )
    y = outcomes[np.isfinite(outcomes)]
    if (y == y[0]).all():
        kind = "successes" if y[0] else "failures"
        raise CalibrationError(
            f"all {len(y)} outcomes are {kind}: nothing tells agents or instances apart; add "
            "outcomes of other agents, or other instances"
        )
