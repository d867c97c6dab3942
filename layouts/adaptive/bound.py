"""What a whole battery can tell at most: said before anything is played."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import zeta

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.likelihood import LEAST_SIZE, trials_of
from animalcat.layouts.model.priors import Prior
from animalcat.layouts.model.spec import Beta, Layout

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
LEAST_SHARE: Final = 1e-9
"""Nearest that what is expected comes to 0 and 1, where information has no end."""
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
    """
    layout = bank.layout
    z = rng(0, "bound", 0).standard_normal((AGENTS, len(layout.latents)))
    own = bank.place[~bank.offered]
    counts = np.bincount(own, minlength=len(bank.distinct)).astype(np.float64) * plays
    information = np.tile(np.eye(z.shape[1]), (AGENTS, 1, 1))
    for outcome, start in product(range(len(layout.outcomes)), range(0, len(counts), _ROWS)):
        rows = slice(start, start + _ROWS)
        columns, given = bank.distinct[rows], counts[rows] * bank.gives[rows, outcome]
        expected = _expected(bank.evaluator, columns, z, outcome)
        metric = information_of(layout, columns, expected, outcome)
        slopes = np.stack(
            [_slope(bank.evaluator, columns, z, k, outcome) for k in range(z.shape[1])]
        )
        information += np.einsum(
            "kuia,lvia,uvia,i->akl", slopes, slopes, metric, given, optimize=True
        )
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


def information_of(layout: Layout, columns: Floats, expected: Floats, outcome: int = 0) -> Floats:
    """Fisher information of an outcome about what it is expected to be.

    Of scores it is that of the Beta distribution itself: outcomes at the layout's edge tell a
    little less, and a bound stays a bound.

    Args:
        layout: The layout.
        columns: Of the instances.
        expected: (1 or 2, instances, agents), as `_expected` gave it.
        outcome: Which of the layout's outcomes.

    Returns:
        (1 or 2, 1 or 2, instances, agents).
    """
    p = np.clip(expected[0], LEAST_SHARE, 1.0 - LEAST_SHARE)
    likelihood = layout.outcomes[outcome].likelihood
    if isinstance(likelihood, Beta):
        size = np.maximum(expected[1], LEAST_SIZE)
        of_a, of_b, of_sum = _trigamma(p * size), _trigamma((1.0 - p) * size), _trigamma(size)
        both = size * (p * of_a - (1.0 - p) * of_b)
        of_size = p**2 * of_a + (1.0 - p) ** 2 * of_b - of_sum
        return np.array([[size**2 * (of_a + of_b), both], [both, of_size]])
    attempts = trials_of(layout, likelihood, columns)
    return (attempts[:, np.newaxis] / (p * (1.0 - p)))[np.newaxis, np.newaxis]


def _slope(evaluator: Evaluator, columns: Floats, z: Floats, latent: int, outcome: int) -> Floats:
    """Change of what is expected with one latent node, (1 or 2, instances, agents)."""
    step = np.zeros(z.shape[1])
    step[latent] = STEP
    high, low = (_expected(evaluator, columns, z + s * step, outcome) for s in (1.0, -1.0))
    return (high - low) / (2.0 * STEP)


def _expected(evaluator: Evaluator, columns: Floats, z: Floats, outcome: int) -> Floats:
    """P(success) or mean score, and the sample size of scores: (1 or 2, instances, agents)."""
    latents = evaluator.layout.latents
    theta = np.stack([n.prior.from_standard(z[:, i]) for i, n in enumerate(latents)], axis=1)
    p = evaluator.by_instance(theta, columns, np.float64, outcome)
    size = evaluator.sample_sizes(theta, columns, outcome)
    return np.stack([p] if size is None else [p, size])


def _trigamma(x: Floats) -> Floats:
    return zeta(2.0, x)  # DLMF 25.11.12
