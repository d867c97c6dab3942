"""An upper bound on what a whole battery can tell, computed before anything is played."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.plan import StoppingRule
from animalcat.layouts.adaptive.statuses import target_sd
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.likelihood import LEAST_SIZE, trials_of
from animalcat.layouts.model.nodes import Latent
from animalcat.layouts.model.priors import Prior
from animalcat.layouts.model.spec import Beta, Layout
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]

AGENTS: Final = 64
"""Number of agents drawn from the prior for which the bound is computed."""
NODES: Final = 31
"""Number of nodes of the Gauss-Hermite quadrature."""
_BEST: Final = 0.05
"""Share of agents whose bound is below the one that is reported as the best."""
_WIDTH: Final = 3.29
"""Width of a 90 % interval of a normal posterior, in standard deviations."""
_ROWS: Final = 1024
"""Number of instances processed at a time, so that arrays stay small."""
_LEAST_SHARE: Final = 1e-9
"""Least distance of an expected outcome from 0 and 1, where the information would be infinite."""
STEP: Final = 1e-3
"""Step of the finite differences for derivatives, in prior standard deviations."""


@dataclass(frozen=True, slots=True)
class InformationBound:
    """How precisely a battery can measure one capability at best.

    Attributes:
        name: The capability.
        unit: Its unit.
        sd: Posterior standard deviation after the whole battery, in the unit: the median over
            agents drawn from the prior.
        share: `sd` as a share of the capability's range.
        best: The 5 % quantile of that standard deviation over agents, in the unit.
        target: The standard deviation that is wanted, in the unit; 0 if there is no target.
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
        """For whom the target is out of reach, as a sentence; empty if it is not or there is none.

        The target counts as reachable if the bound allows it for more than one agent in twenty. So
        a rare agent may reach it all the same.
        """
        if not self.target or self.best <= self.target:
            return ""
        span = self.sd / self.share
        least, wanted = (f"{100 * sd / span:.0f} %" for sd in (self.best, self.target))
        return (
            "cannot be reached with this battery for 19 of 20 agents drawn from the layout's "
            f"priors: after all of its arenas the SD is still at least {least} of the range, and "
            f"the target is {wanted}"
        )


def information_bounds(bank: Bank, rule: StoppingRule, plays: int = 1) -> list[InformationBound]:
    """Compute the information bound of a battery for every capability.

    For each of some agents drawn from the prior, it is the inverse of the Fisher information of all
    instances plus that of the prior. In z-space, where priors are standard normal, the prior's
    information is the unit matrix.

    Args:
        bank: The battery.
        rule: The stopping rule with its targets.
        plays: How often each instance may be played.
    """
    layout = bank.layout
    z = portable.standard_normal(rng(0, "bound", 0), (AGENTS, len(layout.latents)))
    own = bank.place[~bank.offered]
    counts = np.bincount(own, minlength=len(bank.distinct)).astype(np.float64) * plays
    information = np.tile(np.eye(z.shape[1]), (AGENTS, 1, 1))
    for outcome, start in product(range(len(layout.outcomes)), range(0, len(counts), _ROWS)):
        rows = slice(start, start + _ROWS)
        columns, given = bank.distinct[rows], counts[rows] * bank.gives[rows, outcome]
        expected = _expectations(bank.evaluator, columns, z, outcome)
        metric = information_of(layout, columns, expected, outcome)
        slopes = np.stack(
            [_slope(bank.evaluator, columns, z, k, outcome) for k in range(z.shape[1])]
        )
        for u, v in product(range(metric.shape[0]), repeat=2):
            scaled = slopes[:, u] * (metric[u, v] * given[:, np.newaxis])
            information += np.einsum("kia,lia->akl", scaled, slopes[:, v])
    units = np.broadcast_to(np.eye(z.shape[1]), information.shape)
    covariance = portable.solve(information, units)
    bounds: list[InformationBound] = []
    for k in layout.capabilities:
        node = layout.latents[k]
        sd = _in_units(node.prior, z[:, k], np.sqrt(covariance[:, k, k]))
        target = _target(rule, node)
        bounds.append(
            InformationBound(
                name=node.name,
                unit=node.unit,
                sd=float(np.median(sd)),
                share=float(np.median(sd)) / node.prior.span,
                best=float(np.quantile(sd, _BEST)),
                target=target,
                agents=float(np.mean(sd <= target)),
            )
        )
    return bounds


def _in_units(prior: Prior, z: Floats, sd: Floats) -> Floats:
    """Convert posterior standard deviations from z-space to a node's unit, (agents,).

    In z-space the posterior is approximately normal. Its mean lies between the prior's mean, 0, and
    the truth; the more is known, the nearer it is to the truth. Without any outcome it is the
    prior.

    Args:
        prior: Prior of the node.
        z: (agents,): the true values in z-space.
        sd: (agents,): posterior standard deviations in z-space.
    """
    at, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    mean = z * (1.0 - sd**2)
    values = prior.from_standard((mean[:, np.newaxis] + sd[:, np.newaxis] * at).ravel())
    values = values.reshape(len(z), NODES)
    return np.sqrt(
        portable.dot((values - portable.dot(values, weights)[:, np.newaxis]) ** 2, weights)
    )


def _target(rule: StoppingRule, node: Latent) -> float:
    """The wanted standard deviation in a node's unit; a target width implies one too."""
    wanted = [target_sd(rule, node), rule.target_width / _WIDTH * node.prior.span]
    return min((sd for sd in wanted if sd > 0.0), default=0.0)


def information_of(layout: Layout, columns: Floats, expected: Floats, outcome: int = 0) -> Floats:
    """Fisher information of an outcome about its expected value.

    For scores it is that of the Beta distribution itself. Outcomes at the layout's edge tell
    slightly less, so the bound remains a bound.

    Args:
        layout: The layout.
        columns: Columns of the instances.
        expected: (1 or 2, instances, agents), as `_expectations` returned it.
        outcome: Index of the outcome in the layout.

    Returns:
        (1 or 2, 1 or 2, instances, agents).
    """
    p = np.clip(expected[0], _LEAST_SHARE, 1.0 - _LEAST_SHARE)
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
    """Derivative of the expected outcome by one latent, (1 or 2, instances, agents)."""
    step = np.zeros(z.shape[1])
    step[latent] = STEP
    high, low = (_expectations(evaluator, columns, z + s * step, outcome) for s in (1.0, -1.0))
    return (high - low) / (2.0 * STEP)


def _expectations(evaluator: Evaluator, columns: Floats, z: Floats, outcome: int) -> Floats:
    """P(success) or mean score, and the sample size of scores: (1 or 2, instances, agents)."""
    theta = evaluator.layout.from_standard(z)
    p = evaluator.by_instance(theta, columns, np.float64, outcome)
    size = evaluator.sample_sizes(theta, columns, outcome)
    return np.stack([p] if size is None else [p, size])


def _trigamma(x: Floats) -> Floats:
    """The second derivative of log gamma, by DLMF 5.15.5 and 5.15.8."""
    below = np.zeros_like(x)
    for k in range(12):
        below = below + 1.0 / ((x + k) * (x + k))
    far = 1.0 / (x + 12.0)
    square = far * far
    series = square * (1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0)))
    return below + far * (1.0 + 0.5 * far + series)
