"""How well anyone could predict the synthetic agents who is told some features and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.simulation.synthetic import op_battery, synthetic_agents, with_tasks

Floats: TypeAlias = npt.NDArray[np.float64]

BATTERIES: Final = 60
"""Batteries that instances with equal features are looked for in."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Expected Brier scores, means over the 30 agents.

    Attributes:
        aggregate: Of who knows the agent's success rate.
        oracle: Of who knows the agent's rule.
        told: Of who knows the success rate for every combination of the features' values.
    """

    aggregate: float
    oracle: float
    told: float

    @property
    def skill(self) -> float:
        """(aggregate - told) / (aggregate - oracle): no layout on these features has more."""
        return (self.aggregate - self.told) / (self.aggregate - self.oracle)


def ceiling(features: Sequence[str], seed: int, batteries: int = BATTERIES) -> Ceiling:
    """What the features leave open: how an agent's chances differ where all of them are equal.

    Args:
        features: Columns of the battery; those that it does not have are left out.
        seed: Seed of the batteries.
        batteries: How many are drawn.
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
    """Variance among the members of a group, without bias; single members say nothing."""
    size = np.bincount(group)
    mean = np.bincount(group, p) / size
    squares = np.bincount(group, (p - mean[group]) ** 2)
    several = size > 1
    return float(
        np.sum(squares[several] * size[several] / (size[several] - 1)) / size[several].sum()
    )
