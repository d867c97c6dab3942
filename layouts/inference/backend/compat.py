"""Hides differences of PyMC 5 and 6 and ArviZ 0 and 1: gives results as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import arviz
import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

_STATISTICS: Final = {
    "diverging": "diverging",
    "energy": "energy",
    "n_steps": "n_steps",
    "step_size": "step_size",
    "lp": "lp",
    "acceptance_rate": "acceptance_rate",
    "tree_depth": "tree_depth",
    # nutpie's own names for the last three
    "logp": "lp",
    "mean_tree_accept": "acceptance_rate",
    "depth": "tree_depth",
}
"""ArviZ's name of each statistic, by the name that PyMC or nutpie gives it."""


def draws(result: Any, names: Sequence[str]) -> Floats:
    """Posterior draws of scalar variables, (chains, draws, names).

    Args:
        result: An InferenceData (PyMC 5) or a DataTree (PyMC 6); both are indexed alike.
        names: The variables, in order.
    """
    return np.stack([np.asarray(result["posterior"][n], np.float64) for n in names], axis=-1)


def statistic(result: Any, name: str) -> Floats:
    """A sampler's statistic (chains, draws), for example "energy"."""
    return np.asarray(result["sample_stats"][name], dtype=np.float64)


def statistics(result: Any) -> dict[str, Floats]:
    """Every sampler's statistic that ArviZ has a name for, (chains, draws) each, by that name."""
    there = result["sample_stats"]
    return {
        name: statistic(result, own)
        for own, name in _STATISTICS.items()
        if own in there and np.ndim(there[own]) == 2
    }


def rhat(values: Floats) -> float:
    """Rank-normalised split R-hat of (chains, draws)."""
    return _number(arviz.rhat(values))


def ess(values: Floats, method: Literal["bulk", "tail"]) -> float:
    """Effective sample size of (chains, draws)."""
    if method == "bulk":
        return _number(arviz.ess(values, method=method))
    # ArviZ 0 has these tails by default, ArviZ 1 has none.
    return _number(arviz.ess(values, method=method, prob=(0.05, 0.95)))


def _number(result: Any) -> float:
    return float(np.asarray(result).reshape(()))
