"""A population model as a baseline: two-parameter logistic item response theory (2PL).

Unlike a layout, it needs many agents on the same instances and knows nothing of their demands.
P(success) = logistic(a (theta - b)), with theta ~ N(0, 1) over agents. Items are fitted by marginal
likelihood (Bock and Aitkin 1981) with weak priors, so that an item which all agents pass stays
finite. An agent's ability is its posterior on the same grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

from animalcat.layouts.model.instances import Instances, OutcomeTable

Floats: TypeAlias = npt.NDArray[np.float64]

NODES: Final = np.linspace(-4.0, 4.0, 41)
"""Abilities at which likelihoods are computed."""
LOG_PRIOR: Final[Floats] = -0.5 * NODES**2 - logsumexp(-0.5 * NODES**2)
"""Standard normal ability on a grid; errors of the grid are far below those of any data."""
_SLOPE_SD: Final = 0.5
"""Prior of ln a: N(0, 0.5), so that most slopes are between 0.4 and 2.7."""
_EASE_SD: Final = 2.0
"""Prior of the intercept -a b: N(0, 2)."""


@dataclass(frozen=True, eq=False)
class ItemModel:
    """Items fitted to a population.

    Attributes:
        items: Names of the instances.
        slope: (items,), a.
        ease: (items,), the intercept -a b.
    """

    items: tuple[str, ...]
    slope: Floats
    ease: Floats

    @property
    def difficulty(self) -> Floats:
        """The ability at which success and failure are equally likely, (items,)."""
        return -self.ease / self.slope


def fit_items(names: tuple[str, ...], outcomes: Floats) -> ItemModel:
    """Fit items to the outcomes of many agents.

    Args:
        names: Names of the items.
        outcomes: (agents, items): 0 or 1, NaN where not played. A share between them counts as so
            much of a success and of a failure.
    """
    y, count = outcomes, len(names)
    played = np.isfinite(y)
    ones, zeros = np.where(played, y, 0.0), np.where(played, 1.0 - y, 0.0)
    rate = (ones.sum(axis=0) + 1.0) / (ones.sum(axis=0) + zeros.sum(axis=0) + 2.0)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        log_slope, ease = parameters[:count], parameters[count:]
        slope = np.exp(log_slope)
        eta = NODES[:, np.newaxis] * slope + ease  # (nodes, items)
        joint = ones @ log_expit(eta).T + zeros @ log_expit(-eta).T + LOG_PRIOR
        total = logsumexp(joint, axis=1)
        share = np.exp(joint - total[:, np.newaxis])  # (agents, nodes)
        p = np.asarray(expit(eta))
        off = share.T @ ones * (1.0 - p) - share.T @ zeros * p  # (nodes, items)
        by_slope = (off * NODES[:, np.newaxis]).sum(axis=0) * slope
        prior = np.sum((log_slope / _SLOPE_SD) ** 2) + np.sum((ease / _EASE_SD) ** 2)
        gradient = np.concatenate(
            [log_slope / _SLOPE_SD**2 - by_slope, ease / _EASE_SD**2 - off.sum(axis=0)]
        )
        return 0.5 * float(prior) - float(total.sum()), gradient

    start = np.concatenate([np.zeros(count), np.log(rate / (1.0 - rate))])
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000})
    return ItemModel(names, np.exp(optimum.x[:count]), optimum.x[count:])


@dataclass(frozen=True, eq=False)
class PopulationIRT:
    """The 2PL model of a population, as an assessor of an agent on the same instances.

    Attributes:
        population: Outcomes of other agents, 0 or 1, with instances identified by name.
        name: Its name in tables.
    """

    population: OutcomeTable
    name: str = "population IRT (2PL)"

    @cached_property
    def items(self) -> ItemModel:
        """The items, fitted on first use.

        Raises:
            ValueError: Outcomes are not successes and failures, instances have no names, or there
                are fewer than two agents.
        """
        names = self.population.instances.names
        if not names:
            raise ValueError("population IRT tells instances apart by their names; give them some")
        if len(self.population.agents) < 2:
            raise ValueError("population IRT needs two agents at least; a layout needs one")
        y = self.population.outcomes
        _insist_binary(y[np.isfinite(y)])
        return fit_items(names, y)

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAbility:
        """Estimate an agent's ability relative to the population.

        Raises:
            ValueError: An instance is not among the population's.
        """
        _insist_binary(outcomes)
        model = self.items
        eta = _logits(model, instances)
        joint = LOG_PRIOR + log_expit(eta) @ outcomes + log_expit(-eta) @ (1.0 - outcomes)
        return FittedAbility(model, np.exp(joint - logsumexp(joint)))


@dataclass(frozen=True, eq=False)
class FittedAbility:
    """An agent's ability relative to a population.

    Attributes:
        model: The items.
        share: (nodes,): posterior on the grid.
    """

    model: ItemModel
    share: Floats

    @property
    def ability(self) -> tuple[float, float]:
        """Posterior mean and standard deviation; the population has mean 0 and SD 1."""
        mean = float(self.share @ NODES)
        return mean, float(np.sqrt(self.share @ (NODES - mean) ** 2))

    def predict(self, instances: Instances) -> Floats:
        """Probability of success, (instances,)."""
        return self.share @ np.asarray(expit(_logits(self.model, instances)))


def _logits(model: ItemModel, instances: Instances) -> Floats:
    """(nodes, instances)."""
    place = {name: i for i, name in enumerate(model.items)}
    lost = [name for name in instances.names if name not in place]
    if lost or not instances.names:
        which = lost[0] if lost else "an instance without a name"
        raise ValueError(f"population IRT: {which} is not among the population's instances")
    rows = [place[name] for name in instances.names]
    return NODES[:, np.newaxis] * model.slope[rows] + model.ease[rows]


def _insist_binary(outcomes: Floats) -> None:
    if not np.isin(outcomes, (0.0, 1.0)).all():
        raise ValueError("population IRT takes outcomes 0 and 1, not scores")
