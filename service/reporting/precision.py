"""What a layout could at best know of an agent after all instances of a battery.

For agents drawn from the prior, the posterior's covariance is taken as the inverse of the Fisher
information of all instances and of the prior (`layouts.adaptive.bound`). That is a bound: real
posteriors are a little wider, most of all where few instances are informative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from animalcat.layouts.adaptive.bank import Bank
from animalcat.layouts.adaptive.bound import (
    AGENTS,
    drawn_agents,
    in_units,
    information_of_battery,
)
from animalcat.layouts.model.spec import Layout, finite_range
from animalcat.service.batteries.battery import Battery
from animalcat.service.measuring.coverage import coverage
from animalcat.service.reporting.demands import Floats

TANGLED: Final = 0.7
"""Least absolute posterior correlation of two nodes that the battery cannot tell apart."""
UNKNOWN: Final = 0.9
"""Least share of the prior standard deviation that is left of a node that stays all but unknown."""
WIDTH: Final = 3.29
"""Width of a 90 % interval of a normal posterior, in standard deviations."""
_THIRDS: Final = (("low", 0.0, 1 / 3), ("middle", 1 / 3, 2 / 3), ("high", 2 / 3, 1.0))


class PartOfRange(NamedTuple):
    """Agents whose true value lies in one third of the prior.

    Attributes:
        name: low, middle or high.
        sd: Median posterior standard deviation of these agents, in the node's unit.
    """

    name: str
    sd: float


@dataclass(frozen=True, slots=True)
class NodePrecision:
    """How precisely one node could be known after the whole battery, for agents of the prior.

    Attributes:
        name: The node.
        kind: Capability, bias or robustness.
        unit: Its unit.
        about: How to read a value.
        low: Lower end of its range; None if it has none.
        high: Upper end of its range; None if it has none.
        prior_sd: Standard deviation of the prior.
        sd: Median posterior standard deviation.
        best: The standard deviation that one agent in twenty stays below.
        worst: The standard deviation that one agent in twenty exceeds.
        share: `sd` as a share of the range.
        kept: `sd` as a share of the prior's: 1 if nothing is learnt.
        thirds: The same by where the true value lies.
    """

    name: str
    kind: str
    unit: str
    about: str
    low: float | None
    high: float | None
    prior_sd: float
    sd: float
    best: float
    worst: float
    share: float
    kept: float
    thirds: tuple[PartOfRange, ...]

    @property
    def width(self) -> float:
        """Width of the 90 % interval, in the unit."""
        return WIDTH * self.sd


class Tangle(NamedTuple):
    """Two nodes and the correlation of their posterior, the median over agents."""

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
        correlations: (nodes, nodes): median posterior correlations over agents.
        z: (agents, nodes): the agents, in z-space.
        information: (agents, nodes, nodes): of the battery and the prior, in z-space.
    """

    layout: Layout
    bank: Bank
    reasons: dict[str, int]
    nodes: tuple[NodePrecision, ...]
    correlations: Floats
    z: Floats
    information: Floats

    @property
    def agents(self) -> int:
        """Number of agents for which it was computed."""
        return len(self.z)

    @property
    def tangles(self) -> list[Tangle]:
        """Pairs of nodes, at least one a capability, that the battery cannot tell apart."""
        found = [
            Tangle(one.name, other.name, float(self.correlations[i, j]))
            for i, one in enumerate(self.nodes)
            for j, other in enumerate(self.nodes[:i])
            if "capability" in (one.kind, other.kind) and abs(self.correlations[i, j]) >= TANGLED
        ]
        return sorted(found, key=lambda pair: -abs(pair.correlation))


def precision(layout: Layout, battery: Battery) -> Precision:
    """Compute what a layout could at best know after all instances of a battery that it covers.

    Raises:
        ServiceError: Units or conditions of the layout do not fit the battery.
    """
    covered = coverage(layout, battery)
    instances = [battery.instances[battery.index[name]] for name in covered.features]
    bank = Bank(
        layout,
        np.array([covered.features[one.name] for one in instances], np.float64),
        [one.paradigm for one in instances],
        names=[one.name for one in instances],
        observes=[[o.source in one.task.observes for o in layout.outcomes] for one in instances],
    )
    z = drawn_agents(layout)
    information = information_of_battery(bank, z)
    covariance = np.asarray(np.linalg.inv(information), np.float64)
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    correlation = covariance / (sd[:, :, np.newaxis] * sd[:, np.newaxis, :])
    return Precision(
        layout,
        bank,
        covered.counts,
        tuple(_node(layout, k, z[:, k], sd[:, k]) for k in range(len(layout.latents))),
        np.median(correlation, axis=0),
        z,
        information,
    )


def _node(layout: Layout, k: int, z: Floats, sd: Floats) -> NodePrecision:
    node = layout.latents[k]
    left = in_units(node.prior, z, sd)
    low, high = finite_range(node.prior)
    middle = float(np.median(left))
    return NodePrecision(
        name=node.name,
        kind=node.kind,
        unit="" if node.unit == "1" else node.unit,
        about=node.about,
        low=low,
        high=high,
        prior_sd=node.prior.sd,
        sd=middle,
        best=float(np.quantile(left, 0.05)),
        worst=float(np.quantile(left, 0.95)),
        share=middle / node.prior.span,
        kept=middle / node.prior.sd,
        thirds=tuple(_thirds(z, left)),
    )


def _thirds(z: Floats, sd: Floats) -> Sequence[PartOfRange]:
    order = np.argsort(z, kind="stable")
    made: list[PartOfRange] = []
    for name, start, stop in _THIRDS:
        rows = order[math.floor(start * AGENTS) : math.floor(stop * AGENTS)]
        made.append(PartOfRange(name, float(np.median(sd[rows]))))
    return made
