"""The table of a posterior: mean, interval, effective sample size and R-hat of every node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.convergence import ess, rhat
from animalcat.layouts.inference.fit import FitResult
from animalcat.layouts.inference.summary import hdi

Floats: TypeAlias = npt.NDArray[np.float64]

TABLE_SHARE: Final = 0.94
"""Share of the interval "HDI 3% - HDI 97%" of Tesic et al. 2025, Table 2."""


@dataclass(frozen=True, slots=True)
class PosteriorRow:
    """One node of one agent, as a row of Table 2 of Tesic et al. 2025.

    Attributes:
        agent: The agent ("Submission ID").
        node: The node ("Parameter").
        mean: Posterior mean.
        low: Lower end of the highest-density interval ("HDI 3%").
        high: Its upper end ("HDI 97%").
        ess_bulk: Effective sample size in the bulk.
        ess_tail: Effective sample size in the tails.
        rhat: R-hat.
    """

    agent: str
    node: str
    mean: float
    low: float
    high: float
    ess_bulk: float
    ess_tail: float
    rhat: float


def posterior_table(
    fits: Mapping[str, FitResult], share: float = TABLE_SHARE
) -> list[PosteriorRow]:
    """Tabulate every node of every agent.

    Args:
        fits: Fits by agent.
        share: Probability of the intervals.
    """
    rows: list[PosteriorRow] = []
    for agent, fitted in fits.items():
        for i, node in enumerate(fitted.layout.latents):
            draws: Floats = fitted.draws[..., i]
            low, high = hdi(draws.ravel(), np.full(draws.size, 1.0 / draws.size), share)
            rows.append(
                PosteriorRow(
                    agent,
                    node.name,
                    float(draws.mean()),
                    low,
                    high,
                    ess(draws, "bulk"),
                    ess(draws, "tail"),
                    rhat(draws),
                )
            )
    return rows
