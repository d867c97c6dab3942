"""What a layout could at best know of an agent after all instances of a battery.

Agents are drawn from the prior, play every covered instance once in the layout's own words, and get
the live posterior of these outcomes. What is left on average is the expected posterior
(preposterior analysis). The inverse of the Fisher information would be quicker, but it looks only
at the truth: with steep slopes it says that nothing is learnt where no instance is near the truth,
although the others do say on which side of them it lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.spec import Latent, Layout
from animalcat.layouts.model.units import plain_unit
from animalcat.service.batteries.battery import Battery
from animalcat.service.measuring.coverage import coverage
from animalcat.service.reporting.demands import Floats
from animalcat.service.reporting.reliability import (
    CHOOSING,
    PARTICLES,
    NodeReliability,
    reliabilities,
    variances_at_random,
    variances_if_chosen,
)

AGENTS: Final = 100
"""Number of agents drawn from the prior."""
TANGLED: Final = 0.7
"""Least absolute posterior correlation of two nodes that a battery cannot tell apart."""
UNKNOWN: Final = 0.9
"""Least share of the prior standard deviation at which a node stays almost unknown."""


@dataclass(frozen=True, slots=True)
class NodePrecision:
    """How precisely one node could be known after the whole battery, for agents of the prior.

    Expected standard deviations are roots of the mean posterior variance over agents.

    Attributes:
        name: The node.
        kind: Capability, bias or robustness.
        unit: Its unit; empty if it has none.
        about: How to read a value.
        prior_sd: Standard deviation of the prior.
        sd: Expected posterior standard deviation.
        share: `sd` as a share of the range.
        kept: `sd` as a share of the prior's: 1 if nothing is learnt.
    """

    name: str
    kind: str
    unit: str
    about: str
    prior_sd: float
    sd: float
    share: float
    kept: float

    @property
    def reads_in(self) -> str:
        """The unit in which deviations are read; for logarithms the share of the range."""
        name = plain_unit(self.unit)[1]
        return "% of its range" if "(" in name else name

    def read(self, sd: float) -> float:
        """A deviation in the unit in which it is read."""
        factor, name = plain_unit(self.unit)
        return 100.0 * sd * self.share / self.sd if "(" in name else factor * sd


class Tangle(NamedTuple):
    """Two nodes and the correlation of their expected posterior."""

    one: str
    other: str
    correlation: float


@dataclass(frozen=True, eq=False)
class Precision:
    """What a layout could at best know after all instances of a battery.

    Attributes:
        layout: The layout.
        bank: The instances that it covers.
        reasons: Why it does not cover the others, with numbers.
        nodes: Every node of the profile, in the layout's order.
        correlations: (nodes, nodes): correlations of the expected posterior.
        reliability: How precisely sessions of some lengths know each capability.
    """

    layout: Layout
    bank: Bank
    reasons: dict[str, int]
    nodes: tuple[NodePrecision, ...]
    correlations: Floats
    reliability: tuple[NodeReliability, ...]

    @property
    def tangles(self) -> list[Tangle]:
        """Pairs of nodes, at least one a capability, that the battery cannot tell apart."""
        tangles = [
            Tangle(node.name, other.name, float(self.correlations[i, j]))
            for i, node in enumerate(self.nodes)
            for j, other in enumerate(self.nodes[:i])
            if "capability" in (node.kind, other.kind) and abs(self.correlations[i, j]) >= TANGLED
        ]
        return sorted(tangles, key=lambda pair: -abs(pair.correlation))


Tick = Callable[[int, int], None]
"""Told how many agents are done, of how many."""


def precision(layout: Layout, battery: Battery, tick: Tick = lambda done, total: None) -> Precision:
    """Compute what a layout could at best know after all instances of a battery that it covers.

    Args:
        layout: The layout.
        battery: The battery.
        tick: Told of progress.

    Raises:
        ServiceError: Units or conditions of the layout do not fit the battery.
    """
    covered = coverage(layout, battery)
    instances = [battery.instances[battery.index[name]] for name in covered.features]
    bank = Bank(
        layout,
        np.array([covered.features[instance.name] for instance in instances], np.float64),
        [instance.paradigm for instance in instances],
        names=[instance.name for instance in instances],
        observes=[
            [o.source in instance.task.observes for o in layout.outcomes] for instance in instances
        ],
    )
    z = rng(0, "agents", 0).standard_normal((AGENTS, len(layout.latents)))
    truths = layout.from_standard(z)
    covariances: list[Floats] = []
    by_length: list[Floats] = []
    steps = count()
    for agent, truth in enumerate(truths):
        tick(next(steps), AGENTS + CHOOSING)
        posterior = LivePosterior(layout, agent, particles=PARTICLES)
        by_length.append(variances_at_random(posterior, bank, truth))
        covariances.append(_covariance(posterior))
    chosen = variances_if_chosen(
        bank, list(truths[:CHOOSING]), lambda: tick(next(steps), AGENTS + CHOOSING)
    )
    expected: Floats = np.mean(covariances, axis=0)
    sd: Floats = np.sqrt(np.maximum(np.diagonal(expected), 1e-300))
    return Precision(
        layout,
        bank,
        covered.counts,
        tuple(_node(layout.latents[k], float(sd[k])) for k in range(len(sd))),
        expected / np.outer(sd, sd),
        reliabilities(bank, np.array(by_length), chosen),
    )


def _covariance(posterior: LivePosterior) -> Floats:
    """Covariance of a posterior, (nodes, nodes)."""
    centred = posterior.particles - posterior.weights @ posterior.particles
    return (centred * posterior.weights[:, np.newaxis]).T @ centred


def _node(node: Latent, sd: float) -> NodePrecision:
    return NodePrecision(
        name=node.name,
        kind=node.kind,
        unit="" if node.unit == "1" else node.unit,
        about=node.about,
        prior_sd=node.prior.sd,
        sd=sd,
        share=sd / node.prior.span,
        kept=sd / node.prior.sd,
    )
