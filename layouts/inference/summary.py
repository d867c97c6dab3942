"""Summaries of a posterior's nodes: mean, standard deviation and interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.spec import Kind, Layout

Floats: TypeAlias = npt.NDArray[np.float64]

HDI_SHARE: Final = 0.9
"""Probability that the reported highest-density interval holds."""
_PLACES: Final = np.linspace(0.0, 1.0, 41)
"""Possible starts of a highest-density interval, as shares of the weight outside it."""
_POWERS: Final = np.vander(_PLACES, 4)
_CUBIC: Final = _POWERS @ np.linalg.pinv(_POWERS)
"""(41, 41): the least-squares cubic through 41 values, at the same places."""


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """One node of a posterior, in the node's unit.

    Attributes:
        name: Its name, as in the layout.
        kind: Capability, bias or robustness.
        unit: Its unit.
        mean: Posterior mean.
        sd: Posterior standard deviation.
        hdi: Ends of the 90 % highest-density interval.
        ess: Effective number of draws.
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
        """Make a summary from its fields in JSON."""
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

    The shortest of many noisy intervals is too short: for 300 normal draws, the plain 90 % interval
    holds 88.4 %. So the position of the minimum is taken from a cubic fitted to the widths, as a
    function of the share of weight below the interval; that interval holds 89.5 %.

    Args:
        values: (draws,), at least one.
        weights: (draws,), summing to 1.
        share: Between 0 and 1.
    """
    order = np.argsort(values, kind="stable")
    ordered, weight = values[order], weights[order]
    places = np.cumsum(weight) - weight / 2.0
    below = (1.0 - share) * _PLACES
    lows = np.interp(below, places, ordered)
    highs = np.interp(below + share, places, ordered)
    best = int(np.argmin(_CUBIC @ (highs - lows)))
    return float(lows[best]), float(highs[best])
