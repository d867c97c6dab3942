"""What a whole battery can tell at most: said before anything is played."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.evaluator import Evaluator
from animalcat.layouts.priors import Prior
from animalcat.layouts.randomness import rng
from animalcat.layouts.spec import Bernoulli

Floats: TypeAlias = npt.NDArray[np.float64]

AGENTS: Final = 64
"""Agents drawn from the prior that the bound is worked out for."""
NODES: Final = 31
"""Of the Gauss-Hermite quadrature."""
BEST: Final = 0.05
"""Share of agents for whom the bound is lower than what is said to be the best."""
WIDTH: Final = 3.29
"""Width of a 90 % interval in standard deviations, as a normal posterior has it."""
_ROWS: Final = 1024
"""Instances taken at a time, so that arrays stay small."""
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
        best: The least that it leaves all but one of twenty agents, in the unit.
        target: What is wanted, in the unit; 0: nothing.
        agents: Share of agents for whom the target can be reached.
    """

    name: str
    unit: str
    sd: float
    share: float
    best: float
    target: float
    agents: float

    @property
    def limit(self) -> str:
        """In words, that the target cannot be reached; empty where it can, or there is none.

        It can be where the bound allows it for more than one of twenty agents.
        """
        if not self.target or self.best <= self.target:
            return ""
        unit = "" if self.unit == "1" else f" (unit: {self.unit})"
        return f"cannot be reached with this battery: at best SD {self.best:.2g}{unit}"


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
    own = bank.place[~bank.offered]
    counts = np.bincount(own, minlength=len(bank.distinct)).astype(np.float64) * plays
    information = np.tile(np.eye(z.shape[1]), (AGENTS, 1, 1))
    for start in range(0, len(counts), _ROWS):
        rows = slice(start, start + _ROWS)
        columns = bank.distinct[rows]
        p = _probability(bank.evaluator, columns, z)
        weight = counts[rows, np.newaxis] / np.maximum(p * (1.0 - p), 1e-9)
        slopes = np.stack([_slope(bank.evaluator, columns, z, k) for k in range(z.shape[1])])
        information += np.einsum("kia,lia,ia->akl", slopes, slopes, weight)
    covariance = np.asarray(np.linalg.inv(information), np.float64)
    made: list[Reach] = []
    for k in layout.capabilities:
        node = layout.latents[k]
        sd = _in_units(node.prior, z[:, k], np.sqrt(covariance[:, k, k]))
        target = _target(rule, node.name) * node.prior.span
        made.append(
            Reach(
                name=node.name,
                unit=node.unit,
                sd=float(np.median(sd)),
                share=float(np.median(sd)) / node.prior.span,
                best=float(np.quantile(sd, BEST)),
                target=target,
                agents=float(np.mean(sd <= target)),
            )
        )
    return made


def _in_units(prior: Prior, z: Floats, sd: Floats) -> Floats:
    """Posterior standard deviation in a node's unit.

    In z-space the posterior is about normal; its mean lies between the prior's, which is 0, and the
    truth, the nearer to the truth the more is known. Without any outcome it is the prior.

    Args:
        prior: Of the node.
        z: (agents,): the truth.
        sd: (agents,): posterior standard deviation in z-space.
    """
    at, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    mean = z * (1.0 - sd**2)
    values = prior.from_standard((mean[:, np.newaxis] + sd[:, np.newaxis] * at).ravel())
    values = values.reshape(len(z), NODES)
    return np.sqrt((values - (values @ weights)[:, np.newaxis]) ** 2 @ weights)


def _target(rule: StoppingRule, name: str) -> float:
    """Standard deviation that is wanted, in shares of the range; a width asks for one too."""
    wanted = [rule.target(name), rule.target_width / WIDTH]
    return min((share for share in wanted if share > 0.0), default=0.0)


def _slope(evaluator: Evaluator, columns: Floats, z: Floats, latent: int) -> Floats:
    """Change of P(success) with one latent node, (instances, agents)."""
    step = np.zeros(z.shape[1])
    step[latent] = STEP
    high, low = (_probability(evaluator, columns, z + s * step) for s in (1.0, -1.0))
    return (high - low) / (2.0 * STEP)


def _probability(evaluator: Evaluator, columns: Floats, z: Floats) -> Floats:
    latents = evaluator.layout.latents
    theta = np.stack([n.prior.from_standard(z[:, i]) for i, n in enumerate(latents)], axis=1)
    return evaluator.by_instance(theta, columns, np.float64)
