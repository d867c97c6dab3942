"""What priors twice as wide would say, which shows how much of an estimate is the prior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.adaptive.learner import Learner
from animalcat.layouts.explaining.wording import WIDER, scale_of
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.summary import NodeSummary, summarise
from animalcat.layouts.model.codec import SpecificationError
from animalcat.layouts.model.nodes import Latent
from animalcat.layouts.model.priors import HalfNormal, MovedBeta, Normal, Prior, ScaledBeta
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.profile import NodeNote, Profile, WiderPrior, learnt

Floats: TypeAlias = npt.NDArray[np.float64]

_GOOD_K: Final = 0.7
"""Shape of the tail of importance weights up to which they are relied on (Vehtari et al. 2024)."""
_NEAR: Final = 0.02
"""Distance from an end that would move, as a share of the range, at which a draw is near to it."""
_RARE: Final = 0.01
"""Share of draws near such an end up to which the data rule out what is beyond."""
_MOVES: Final = 0.5
"""By how many of its standard deviations a mean must move to be noted."""
_WIDENS: Final = 1.25
"""By what factor a standard deviation must grow to be noted."""


def wider_prior(node: Latent) -> Prior | None:
    """The prior of a capability or of noise, twice as wide.

    A range that starts at 0 ends twice as far; another one grows at both ends. The shape of the
    distribution over its range stays. A share or a chance has no more beyond its ends, so the
    distribution over its range is halfway to the uniform one, by the logarithms of its parameters,
    whether it leans to the middle or to an end. A population of agents scatters twice as far, in
    z-space, about the same centre.

    Returns:
        None for biases, and for shares that are uniform, which no prior could be wider than.
    """
    prior = node.prior
    if node.kind == "bias":
        return None
    if isinstance(prior, Normal):
        return Normal(prior.mean, 2.0 * prior.sd)
    if isinstance(prior, HalfNormal):
        return HalfNormal(2.0 * prior.scale)
    if isinstance(prior, MovedBeta):
        return replace(prior, scale=2.0 * prior.scale)
    if node.is_share:
        flatter = replace(prior, alpha=math.sqrt(prior.alpha), beta=math.sqrt(prior.beta))
        return None if flatter == prior else flatter
    if prior.low == 0.0:
        return replace(prior, high=2.0 * prior.high)
    half = prior.span / 2.0
    return replace(prior, low=prior.low - half, high=prior.high + half)


def with_wider(profile: Profile, learner: Learner, draws: Floats, seed: int) -> Profile:
    """Add to a profile what priors twice as wide would say, and note where that differs.

    Args:
        profile: The profile of a fit.
        learner: The learner that was told the outcomes.
        draws: (draws, latents) of that fit.
        seed: Seed of a second fit, if one is needed.
    """
    priors = [wider_prior(node) for node in learner.layout.latents]
    if not any(priors) or not learner.n:
        return profile
    latents = [
        node if prior is None else replace(node, prior=prior)
        for node, prior in zip(learner.layout.latents, priors, strict=True)
    ]
    try:
        layout = replace(learner.layout, latents=tuple(latents))
    except SpecificationError:  # its formulas do not allow such values
        return profile
    wider = _priors_of(profile.nodes, learner, draws, priors, layout, seed)
    notes = {**profile.notes}
    played = learner.data().features
    known = zip(profile.nodes, learner.layout.latents, priors, strict=True)
    for k, (node, latent, prior) in enumerate(known):
        wide = wider[node.name]
        if prior is None or not _differs(node, wide) or not learnt(node.sd, latent.prior.sd):
            continue
        if notes.get(node.name, NodeNote()).side:  # what it is beyond is not known anyway
            continue
        scale = scale_of(learner.layout, k, played)
        said = f"{WIDER}: {scale.quantity(wide.mean, *wide.hdi)}"
        note = notes.get(node.name, NodeNote())
        notes[node.name] = replace(note, text="; ".join(filter(None, (note.text, said))))
    return replace(profile, wider=wider, notes=notes)


def _differs(node: NodeSummary, wide: WiderPrior) -> bool:
    return abs(wide.mean - node.mean) > _MOVES * node.sd or wide.sd > _WIDENS * node.sd


def _priors_of(
    nodes: Sequence[NodeSummary],
    learner: Learner,
    draws: Floats,
    priors: Sequence[Prior | None],
    wider: Layout,
    seed: int,
) -> dict[str, WiderPrior]:
    layout = learner.layout
    if _rules_out_wider(layout, draws, priors):
        log_weights = _log_weights(layout, draws, priors)
        if not np.ptp(log_weights):
            return {node.name: WiderPrior(node.mean, node.sd, node.hdi, "same") for node in nodes}
        weights = _smooth_weights(log_weights)
        if weights is not None:
            ess = np.full(len(nodes), 1.0 / np.sum(weights**2))
            again = summarise(layout, draws, weights, ess)
            return {
                node.name: WiderPrior(node.mean, node.sd, node.hdi, "reweighted") for node in again
            }
    posterior = LivePosterior(wider, seed)
    data = learner.data()
    posterior.update_all(data.features, data.outcomes)
    posterior.reweigh(data.weights)
    return {
        node.name: WiderPrior(node.mean, node.sd, node.hdi, "refitted")
        for node in posterior.summary()
    }


def _rules_out_wider(layout: Layout, draws: Floats, priors: Sequence[Prior | None]) -> bool:
    """Whether the data rule out the values that wider priors add, at every end that moves.

    Draws cannot be weighed to where none of them is, and weights would not show it. A moved prior
    is stretched as a whole, so nothing is ruled out.
    """
    if any(isinstance(prior, MovedBeta) for prior in priors):
        return False
    for i, (node, prior) in enumerate(zip(layout.latents, priors, strict=True)):
        old = node.prior
        if not isinstance(prior, ScaledBeta) or not isinstance(old, ScaledBeta):
            continue
        near = _NEAR * old.span
        beyond = np.zeros(len(draws), np.bool_)
        if prior.high > old.high:
            beyond |= draws[:, i] >= old.high - near
        if prior.low < old.low:
            beyond |= draws[:, i] <= old.low + near
        if float(beyond.mean()) > _RARE:
            return False
    return True


def _log_weights(layout: Layout, draws: Floats, priors: Sequence[Prior | None]) -> Floats:
    """Logarithms of the ratios of the wider prior's density to the prior's, (draws,)."""
    total = np.zeros(len(draws))
    for i, (node, prior) in enumerate(zip(layout.latents, priors, strict=True)):
        if prior is not None:
            total += _log_density(prior, draws[:, i]) - _log_density(node.prior, draws[:, i])
    return total


def _log_density(prior: Prior, values: Floats) -> Floats:
    """Logarithm of a prior's density, up to a constant."""
    if isinstance(prior, Normal):
        return -0.5 * ((values - prior.mean) / prior.sd) ** 2
    if isinstance(prior, HalfNormal):
        return -0.5 * (values / prior.scale) ** 2
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
