"""Gives what samplers return as plain arrays, whether as InferenceData, DataTree or Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

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


def from_arrow(
    chains: Sequence[tuple[Any, Any]], names: Sequence[str]
) -> tuple[Floats, dict[str, Floats]]:
    """Posterior draws of scalar variables and every statistic, as `draws` and `statistics`.

    Args:
        chains: For each chain a table of its draws and one of their statistics, as nutpie has them.
        names: The variables, in order.
    """

    def read(tables: tuple[Any, Any], which: int, name: str) -> Floats:
        skipped = np.count_nonzero(tables[1]["tuning"].to_numpy())
        return np.asarray(tables[which][name].to_numpy(), dtype=np.float64)[skipped:]

    drawn = [np.stack([read(tables, 0, name) for name in names], axis=-1) for tables in chains]
    return np.stack(drawn), {
        name: np.stack([read(tables, 1, own) for tables in chains])
        for own, name in _STATISTICS.items()
        if own in chains[0][1].column_names
    }


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
