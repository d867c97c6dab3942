"""How well the synthetic agents can be predicted at best from some features and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.simulation.synthetic import op_battery, synthetic_agents, with_tasks

Floats: TypeAlias = npt.NDArray[np.float64]

_BATTERIES: Final = 60
"""Number of batteries in which instances with equal features are searched."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Expected Brier scores, as means over the 30 agents.

    Attributes:
        aggregate: Score of a predictor that knows the agent's success rate.
        oracle: Score of a predictor that knows the agent's rule.
        told: Score of a predictor that knows the success rate for every combination of the
            features' values.
    """

    aggregate: float
    oracle: float
    told: float

    @property
    def skill(self) -> float:
        """(aggregate - told) / (aggregate - oracle): no layout on these features has more."""
        return (self.aggregate - self.told) / (self.aggregate - self.oracle)


def ceiling(features: Sequence[str], seed: int, batteries: int = _BATTERIES) -> Ceiling:
    """Compute what the features leave open: how success varies where all features are equal.

    Args:
        features: Columns of the battery; those that it does not have are left out.
        seed: Seed of the batteries.
        batteries: Number of batteries that are drawn.
    """
    drawn = [
        with_tasks(op_battery(int(rng(seed, "ceiling", i).integers(1 << 31))))
        for i in range(batteries)
    ]
    columns = [name for name in features if name in drawn[0]]
    told = np.concatenate([battery.select(columns) for battery in drawn])
    _, group = np.unique(told, axis=0, return_inverse=True)
    scores: list[tuple[float, float, float]] = []
    for agent in synthetic_agents():
        p = np.concatenate([agent.probability(battery) for battery in drawn])
        oracle = float(np.mean(p * (1.0 - p)))
        mean = float(p.mean())
        scores.append((mean * (1.0 - mean), oracle, oracle + _variance_within(group.ravel(), p)))
    return Ceiling(*np.mean(scores, axis=0).tolist())


def _variance_within(group: npt.NDArray[np.int64], p: Floats) -> float:
    """Unbiased variance among the members of a group; groups of one member are ignored."""
    size = np.bincount(group)
    mean = np.bincount(group, p) / size
    squares = np.bincount(group, (p - mean[group]) ** 2)
    several = size > 1
    return float(
        np.sum(squares[several] * size[several] / (size[several] - 1)) / size[several].sum()
    )
