"""What flat priors say of limits, which shows what rests on the layout's priors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.wording import Scale
from animalcat.layouts.inference.fit import FitData
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.summary import hdi
from animalcat.layouts.model.priors import Prior, ScaledBeta
from animalcat.layouts.model.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]

_GOOD_K: Final = 0.7
"""Shape of the tail of importance weights up to which they are relied on (Vehtari et al. 2024)."""


class FlatPosterior(NamedTuple):
    """What is known of a capability under a flat prior over its range.

    Attributes:
        values: (draws,), in the node's unit.
        weights: (draws,), summing to 1.
    """

    values: Floats
    weights: Floats

    @property
    def hdi(self) -> tuple[float, float]:
        """The 90 % interval of highest density."""
        return hdi(self.values, self.weights)

    def sd(self, read: Floats) -> float:
        """The standard deviation of the values as they are read, (draws,)."""
        return math.sqrt(float(self.weights @ (read - self.weights @ read) ** 2))

    def quantile(self, share: float) -> float:
        """The value below which this share of the probability is."""
        order = np.argsort(self.values, kind="stable")
        at = np.searchsorted(np.cumsum(self.weights[order]), share)
        return float(self.values[order[min(int(at), len(order) - 1)]])


def flat_posteriors(
    layout: Layout, draws: Floats, scales: Sequence[Scale], data: FitData
) -> dict[str, FlatPosterior]:
    """Find what is known of each capability if its own prior were flat, and the others as they are.

    Flat is over the scale in which the capability is read, such as metres, from one end of its
    range to the other. Draws are weighed anew; where weights cannot be relied on, there is a second
    posterior.

    Args:
        layout: The layout.
        draws: (draws, latents) of the posterior; they weigh the same.
        scales: How the values of the nodes are read, in the layout's order.
        data: What the posterior was fitted to.

    Returns:
        By name; without capabilities whose prior is flat, or whose range has no end.
    """
    found: dict[str, FlatPosterior] = {}
    for k in layout.capabilities:
        node, scale, values = layout.latents[k], scales[k], draws[:, k]
        if not np.isfinite(node.prior.span) or not np.isfinite(node.prior.high):
            continue
        log_weights = np.log(scale.stretch(values)) - _log_density(node.prior, values)
        if not np.ptp(log_weights):
            continue
        weights = _smooth_weights(log_weights)
        if weights is None:
            flat = replace(node, prior=ScaledBeta(node.prior.low, node.prior.high))
            latents = tuple(flat if one is node else one for one in layout.latents)
            posterior = LivePosterior(replace(layout, latents=latents), seed=0)
            posterior.update_all(data.features, data.outcomes)
            if data.weights is not None:
                posterior.reweigh(data.weights)
            values = posterior.particles[:, k]
            weights = posterior.weights * scale.stretch(values)
            weights /= weights.sum()
        found[node.name] = FlatPosterior(values, weights)
    return found


def _log_density(prior: Prior, values: Floats) -> Floats:
    """Logarithm of the density of a prior with ends, up to a constant."""
    assert isinstance(prior, ScaledBeta)  # the others have an end that is infinite
    share = np.clip((values - prior.low) / prior.span, 1e-12, 1.0 - 1e-12)
    return (prior.alpha - 1.0) * np.log(share) + (prior.beta - 1.0) * np.log1p(-share)


def _smooth_weights(log_weights: Floats) -> Floats | None:
    """Pareto-smoothed weights, summing to 1; None if their tail is too heavy to rely on.

    The largest weights are replaced by quantiles of the generalised Pareto distribution that fits
    them (Vehtari, Simpson, Gelman, Yao and Gabry 2024, Pareto smoothed importance sampling).
    """
    size = len(log_weights)
    weights = np.exp(log_weights - log_weights.max())
    count = int(min(size / 5.0, 3.0 * np.sqrt(size)))
    order = np.argsort(weights)
    tail, cut = order[-count:], weights[order[-count - 1]]
    above = weights[tail] - cut
    if above[0] <= 0.0:  # many equal weights: there is no tail
        return weights / weights.sum()
    k, scale = _pareto(above)
    if k > _GOOD_K:
        return None
    places = (np.arange(count) + 0.5) / count
    excess = -np.log1p(-places) if abs(k) < 1e-9 else np.expm1(-k * np.log1p(-places)) / k
    weights[tail] = np.minimum(cut + scale * excess, 1.0)
    return weights / weights.sum()


def _pareto(values: Floats) -> tuple[float, float]:
    """Shape and scale of the generalised Pareto distribution of some sorted values above 0.

    It is the estimate of Zhang and Stephens (2009): the posterior mean of b = -k / scale over a
    grid, under a weak prior that the data set.
    """
    n = len(values)
    grid = 30 + int(np.sqrt(n))
    quarter = values[max(0, int(n / 4.0 + 0.5) - 1)]
    b: Floats = 1.0 / values[-1] + (1.0 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (
        3.0 * quarter
    )
    shapes = np.log1p(-b[:, np.newaxis] * values).mean(axis=1)
    profile = n * (np.log(-b / shapes) - shapes - 1.0)
    weight = np.exp(profile - profile.max())
    mean = float(b @ weight / weight.sum())
    k = float(np.mean(np.log1p(-mean * values)))
    return k, -k / mean
