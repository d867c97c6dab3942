"""A population of agents: two-parameter logistic item response theory (2PL).

P(success) = logistic(a (theta - b)), with theta ~ N(0, 1) over agents. Items are fitted by marginal
likelihood (Bock and Aitkin 1981) with weak priors, so that an item which all agents pass stays
finite.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp

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
