"""What is said about each node of a posterior: mean, standard deviation, interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.spec import Kind, Layout

Floats: TypeAlias = npt.NDArray[np.float64]

HDI_SHARE: Final = 0.9
"""Probability that the reported highest-density interval holds."""


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """One node of a posterior, in the node's unit.

    Attributes:
        name: As in the layout.
        kind: Capability, bias or robustness.
        unit: Its unit.
        mean: Posterior mean.
        sd: Posterior standard deviation.
        hdi: Ends of the 90 % highest-density interval.
        ess: Effective number of draws behind it.
    """

    name: str
    kind: Kind
    unit: str
    mean: float
    sd: float
    hdi: tuple[float, float]
    ess: float

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NodeSummary:
        """From its fields as JSON has them."""
        low, high = data["hdi"]
        fields: dict[str, Any] = {**data, "hdi": (low, high)}
        return cls(**fields)


def summarise(layout: Layout, draws: Floats, weights: Floats, ess: Floats) -> list[NodeSummary]:
    """Summarise weighted draws.

    Args:
        layout: The layout.
        draws: (draws, latents).
        weights: (draws,), summing to 1.
        ess: (latents,).
    """
    mean = weights @ draws
    sd = np.sqrt(weights @ (draws - mean) ** 2)
    return [
        NodeSummary(
            node.name,
            node.kind,
            node.unit,
            float(mean[i]),
            float(sd[i]),
            hdi(draws[:, i], weights),
            float(ess[i]),
        )
        for i, node in enumerate(layout.latents)
    ]


def hdi(values: Floats, weights: Floats, share: float = HDI_SHARE) -> tuple[float, float]:
    """The shortest interval that holds a share of the weight.

    Args:
        values: (draws,), one at least.
        weights: (draws,), summing to 1.
        share: Between 0 and 1.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    total = np.concatenate([[0.0], np.cumsum(weights[order])])
    # From each draw to the first one at which `share` is reached.
    points: Floats = total[:-1] + share * total[-1] - 1e-12
    stops = np.digitize(points, total, right=True)
    starts = np.flatnonzero(stops <= len(ordered))
    widths = ordered[stops[starts] - 1] - ordered[starts]
    best = int(np.argmin(widths))
    return float(ordered[starts[best]]), float(ordered[stops[starts[best]] - 1])
