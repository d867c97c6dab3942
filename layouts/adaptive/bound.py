"""What a whole battery can tell at most: said before anything is played."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.evaluator import Evaluator
from animalcat.layouts.randomness import rng
from animalcat.layouts.spec import Bernoulli

Floats: TypeAlias = npt.NDArray[np.float64]

AGENTS: Final = 64
"""Agents drawn from the prior that the bound is averaged over."""
STEP: Final = 1e-3
"""Step of the differences that derivatives are taken by, in prior standard deviations."""


@dataclass(frozen=True, slots=True)
class Reach:
    """How well a battery can tell a capability.

    Attributes:
        name: The capability.
        unit: Its unit.
        sd: Standard deviation that the whole battery leaves an agent of the prior, the median of
            agents, in the unit.
        share: The same in shares of the range.
        agents: Share of agents for whom the target can be reached.
    """

    name: str
    unit: str
    sd: float
    share: float
    agents: float


def reach(bank: Bank, rule: StoppingRule, plays: int = 1) -> list[Reach]:
    """The information bound of a battery, per capability.

    For each of some agents of the prior: the inverse of the Fisher information of all instances
    plus the prior's own (in z-space, where priors are standard normal, that is the unit matrix).

    Args:
        bank: The battery.
        rule: Its targets.
        plays: How often each instance may be played.

    Raises:
        ValueError: Outcomes are not success and failure.
    """
    layout = bank.layout
    if not isinstance(layout.outcome, Bernoulli):
        raise ValueError(
            f"the bound is known for outcomes of success and failure; those of layout "
            f"{layout.name} are {type(layout.outcome).__name__}"
        )
    z = rng(0, "bound", 0).standard_normal((AGENTS, len(layout.latents)))
    counts = np.bincount(bank.place, minlength=len(bank.distinct)).astype(np.float64) * plays
    p = _probability(bank.evaluator, bank.distinct, z)
    weight = counts[:, np.newaxis] / np.maximum(p * (1.0 - p), 1e-9)
    slopes = np.stack([_slope(bank, z, k) for k in range(z.shape[1])])
    information: Floats = np.einsum("kia,lia,ia->akl", slopes, slopes, weight)
    covariance = np.asarray(np.linalg.inv(information + np.eye(z.shape[1])), np.float64)
    made: list[Reach] = []
    for k in layout.capabilities:
        node = layout.latents[k]
        ends = [node.prior.from_standard(z[:, k] + side * STEP) for side in (-1.0, 1.0)]
        sd = np.sqrt(covariance[:, k, k]) * (ends[1] - ends[0]) / (2.0 * STEP)
        share = sd / node.prior.span
        able = float(np.mean(share <= rule.target(node.name)))
        made.append(
            Reach(node.name, node.unit, float(np.median(sd)), float(np.median(share)), able)
        )
    return made


def _slope(bank: Bank, z: Floats, latent: int) -> Floats:
    """Change of P(success) with one latent node, (instances, agents)."""
    step = np.zeros(z.shape[1])
    step[latent] = STEP
    high, low = (_probability(bank.evaluator, bank.distinct, z + s * step) for s in (1.0, -1.0))
    return (high - low) / (2.0 * STEP)


def _probability(evaluator: Evaluator, columns: Floats, z: Floats) -> Floats:
    latents = evaluator.layout.latents
    theta = np.stack([n.prior.from_standard(z[:, i]) for i, n in enumerate(latents)], axis=1)
    return evaluator.by_instance(theta, columns, np.float64)
