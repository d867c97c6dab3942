"""The PyMC model of a layout: one builder for each kind of prior and link, as the specification."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pymc as pm

from animalcat.layouts.links import (
    Link,
    LogisticMargin,
    LogScaled,
    NoiseMixture,
    Product,
    Scaled,
    WeightedSum,
)
from animalcat.layouts.priors import Normal, Prior, ScaledBeta
from animalcat.layouts.spec import Layout

FEATURES = "features"
"""Name of the data (instances, features)."""
OUTCOMES = "outcomes"
"""Name of the data (instances,), 0 or 1."""


def build_model(layout: Layout) -> pm.Model:
    """The model of a layout, with one row of data that stands for any number of rows."""
    with pm.Model() as model:
        row = np.array([[f.low for f in layout.features]], dtype=np.float64)
        features = pm.Data(FEATURES, row.reshape(1, -1))
        outcomes = pm.Data(OUTCOMES, np.zeros(1, dtype=np.int64))
        p = probability(layout, features)
        pm.Bernoulli("outcome", p=p, observed=outcomes)
    return model


def probability(layout: Layout, features: Any) -> Any:
    """P(success) of every instance, (instances,); declares the latent nodes in the open model.

    Args:
        layout: The layout.
        features: Symbolic (instances, features).
    """
    values: dict[str, Any] = {name: features[:, i] for i, name in enumerate(layout.feature_names)}
    for node in layout.latents:
        values[node.name] = _prior(node.name, node.prior)
    for node in layout.ordered:
        values[node.name] = _link(node.link, values)
    # The zeros give one value an instance even where no feature plays a part.
    return values[layout.outcome.probability] + 0.0 * features.sum(axis=1)


def _prior(name: str, prior: Prior) -> Any:
    match prior:
        case Normal(mean, sd):
            return pm.Normal(name, mean, sd)
        case ScaledBeta(low, high, 1.0, 1.0):
            return pm.Uniform(name, low, high)
        case ScaledBeta(low, high, alpha, beta):
            share = pm.Beta(f"{name}_share", alpha, beta)
            return pm.Deterministic(name, low + (high - low) * share)


def _link(link: Link, values: dict[str, Any]) -> Any:
    match link:
        case Scaled(source, factor):
            return factor * values[source]
        case LogScaled(source, easiest, hardest, top):
            return top * pm.math.log(easiest / values[source]) / math.log(easiest / hardest)
        case WeightedSum(inputs, weights, constant):
            terms = [w * values[n] for n, w in zip(inputs, weights, strict=True)]
            return constant + sum(terms)
        case Product(inputs):
            return math.prod(values[n] for n in inputs)
        case LogisticMargin(ability, demand, slope, shift):
            margin = values[ability] - values[demand] + (values[shift] if shift else 0.0)
            return pm.math.sigmoid(slope * margin)
        case NoiseMixture(performance, noise, nu):
            return (1.0 - values[noise]) * values[performance] + values[noise] * nu
