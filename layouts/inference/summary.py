"""Summaries of a posterior's nodes: mean, standard deviation and interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.priors import Prior
from animalcat.layouts.model.spec import Kind, Layout
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Side: TypeAlias = Literal["at least", "at most"]

HDI_SHARE: Final = 0.9
"""Probability that the reported highest-density interval holds."""
FALLS: Final = 0.1
"""Evidence at an end of a range, as a share of what it is in the middle of the posterior, below
which it has clearly fallen off there."""
_BEYOND: Final = 0.025
"""Probability of the posterior beyond which its tails are, for the evidence at the ends."""
_PLACES: Final = np.linspace(0.0, 1.0, 41)
"""Possible starts of a highest-density interval, as shares of the weight outside it."""


def _orthonormal(columns: Floats) -> Floats:
    """Columns that span the same and are orthonormal (Gram and Schmidt, twice)."""
    found = list[Floats]()
    for column in columns.T:
        for other in [*found, *found]:
            column = column - (column * other).sum() * other
        found.append(column / np.sqrt((column * column).sum()))
    return np.stack(found, axis=1)


_BASIS: Final = _orthonormal(np.stack([_PLACES**0, _PLACES, _PLACES**2, _PLACES * _PLACES**2], 1))
_CUBIC: Final = np.einsum("ik,jk->ij", _BASIS, _BASIS)
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
        at_ends: Evidence at the lower and at the upper end of the range, as `evidence_at_ends` has
            it.
    """

    name: str
    kind: Kind
    unit: str
    mean: float
    sd: float
    hdi: tuple[float, float]
    ess: float
    at_ends: tuple[float, float] = (0.0, 0.0)

    @property
    def two_sided(self) -> bool:
        """Whether the evidence falls off on both sides of the estimate."""
        return max(self.at_ends) < FALLS

    @property
    def side(self) -> Side | None:
        """From which side alone there is evidence; None if from both, or from neither.

        Evidence that falls off below the estimate alone says "at least".
        """
        below, above = (share < FALLS for share in self.at_ends)
        if below == above:
            return None
        return "at least" if below else "at most"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NodeSummary:
        """Make a summary from its fields in JSON."""
        pairs = {name: tuple(data[name]) for name in ("hdi", "at_ends") if name in data}
        fields: dict[str, Any] = {**data, **pairs}
        return cls(**fields)


def summarise(layout: Layout, draws: Floats, weights: Floats, ess: Floats) -> list[NodeSummary]:
    """Summarise weighted draws.

    Args:
        layout: The layout.
        draws: (draws, latents).
        weights: (draws,), summing to 1.
        ess: (latents,).
    """
    mean = portable.dot(weights, draws)
    sd = np.sqrt(portable.dot(weights, (draws - mean) ** 2))
    return [
        NodeSummary(
            node.name,
            node.kind,
            node.unit,
            float(mean[i]),
            float(sd[i]),
            hdi(draws[:, i], weights),
            float(ess[i]),
            evidence_at_ends(node.prior, draws[:, i], weights),
        )
        for i, node in enumerate(layout.latents)
    ]


def evidence_at_ends(prior: Prior, values: Floats, weights: Floats) -> tuple[float, float]:
    """The evidence for the lower and for the upper end of a node's range.

    The evidence is the likelihood of a node's value, averaged over all other nodes: the posterior's
    density over the prior's. Where a value is expressed as the share of the prior below it, the
    prior's density is 1, so the posterior's density is the evidence. At an end it is averaged over
    what is beyond 97.5 % of the posterior, and compared with the shortest interval that holds half
    of the posterior. Both are found from quantiles alone, so weighted particles and draws of a fit
    do. Without any data both ends have 1; so has the upper end where everything was passed.

    Args:
        prior: The node's prior.
        values: (draws,), of the posterior.
        weights: (draws,), summing to 1.

    Returns:
        For each end the average evidence there, as a share of that in the middle.
    """
    shares: Floats = portable.ndtr(prior.to_standard(values))
    order = np.argsort(shares, kind="stable")
    places = np.cumsum(weights[order]) - weights[order] / 2.0
    first, last = np.interp([_BEYOND, 1.0 - _BEYOND], places, shares[order])
    low, high = hdi(shares, weights, 0.5)
    middle = 0.5 / max(high - low, 1e-12)
    tails = (_BEYOND / max(tail, 1e-12) for tail in (first, 1.0 - last))
    below, above = (min(float(tail / middle), 1.0) for tail in tails)
    return below, above


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
    best = int(np.argmin(portable.dot(_CUBIC, highs - lows)))
    return float(lows[best]), float(highs[best])


def even_hdi(ordered: Floats, share: float = HDI_SHARE) -> Floats:
    """What `hdi` finds of each of many samples whose draws are equally weighted.

    Args:
        ordered: (samples, draws), each sample in ascending order.
        share: Between 0 and 1.

    Returns:
        (samples, 2), the ends of each interval.
    """
    count = ordered.shape[1]
    weight = np.full(count, 1.0 / count)
    places = np.cumsum(weight) - weight / 2.0
    below = (1.0 - share) * _PLACES
    lows, highs = (_along(ordered, places, at) for at in (below, below + share))
    best = np.argmin(portable.dot(highs - lows, _CUBIC.T), axis=1)[:, np.newaxis]
    return np.concatenate([np.take_along_axis(ends, best, axis=1) for ends in (lows, highs)], 1)


def _along(ordered: Floats, places: Floats, at: Floats) -> Floats:
    """Interpolate each row, whose values are at the same places, as `numpy.interp` does."""
    first = np.clip(np.searchsorted(places, at, side="right") - 1, 0, max(len(places) - 2, 0))
    last = np.minimum(first + 1, len(places) - 1)
    rise = (ordered[:, last] - ordered[:, first]) / np.maximum(places[last] - places[first], 1e-300)
    return rise * (np.clip(at, places[0], places[-1]) - places[first]) + ordered[:, first]
