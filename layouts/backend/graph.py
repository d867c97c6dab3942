"""The PyMC model of a layout: one builder for each kind of prior, function and outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

import numpy as np
import pymc as pm

from animalcat.layouts.expressions import Call, Expression
from animalcat.layouts.likelihood import LEAST, LEAST_SIZE
from animalcat.layouts.priors import HalfNormal, Normal, Prior, ScaledBeta
from animalcat.layouts.spec import Bernoulli, Beta, Binomial, Layout

FEATURES = "features"
"""Name of the data (instances, features)."""
OUTCOMES = "outcomes"
"""Name of the data (instances,): 0 or 1, successes, or scores."""

_FOLDS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "min": pm.math.minimum,
    "max": pm.math.maximum,
}
_ONE_ARGUMENT: Final[Mapping[str, Callable[[Any], Any]]] = {
    "logistic": pm.math.sigmoid,
    "exp": pm.math.exp,
    "log": pm.math.log,
}


def build_model(layout: Layout) -> pm.Model:
    """The model of a layout, with one row of data that stands for any number of rows."""
    with pm.Model() as model:
        row = np.array([[f.high for f in layout.features]], dtype=np.float64)
        features = pm.Data(FEATURES, row.reshape(1, -1))
        score = 0.5 if isinstance(layout.outcome, Beta) else 0
        outcomes = pm.Data(OUTCOMES, np.full(1, score, dtype=outcome_type(layout)))
        values = node_values(layout, features)
        p = result(layout, features, values)
        match layout.outcome:
            case Bernoulli():
                pm.Bernoulli("outcome", p=p, observed=outcomes)
            case Binomial(_, trials):
                share = pm.math.clip(p, LEAST, 1.0 - LEAST)
                pm.Binomial("outcome", n=values[trials], p=share, observed=outcomes)
            case Beta(_, sample_size):
                mean = pm.math.clip(p, LEAST, 1.0 - LEAST)
                size = pm.math.maximum(values[sample_size], LEAST_SIZE)
                pm.Beta("outcome", mean * size, (1.0 - mean) * size, observed=outcomes)
    return model


def outcome_type(layout: Layout) -> Any:
    """The type of number that outcomes have."""
    return np.float64 if isinstance(layout.outcome, Beta) else np.int64


def probability(layout: Layout, features: Any) -> Any:
    """P(success), or the mean score, of every instance, (instances,).

    Declares the latent nodes in the open model.

    Args:
        layout: The layout.
        features: Symbolic (instances, features).
    """
    return result(layout, features, node_values(layout, features))


def node_values(layout: Layout, features: Any) -> dict[str, Any]:
    """Every node by name; declares the latent nodes in the open model."""
    values: dict[str, Any] = {name: features[:, i] for i, name in enumerate(layout.feature_names)}
    for node in layout.latents:
        values[node.name] = _prior(node.name, node.prior)
    for node in layout.ordered:
        values[node.name] = _value(node.link.expression, values)
    return values


def result(layout: Layout, features: Any, values: Mapping[str, Any]) -> Any:
    """The node that the outcome hangs on; one value an instance even where no feature plays."""
    return values[layout.outcome.parents[0]] + 0.0 * features.sum(axis=1)


def _prior(name: str, prior: Prior) -> Any:
    match prior:
        case Normal(mean, sd):
            return pm.Normal(name, mean, sd)
        case HalfNormal(scale):
            return pm.HalfNormal(name, scale)
        case ScaledBeta(low, high, 1.0, 1.0):
            return pm.Uniform(name, low, high)
        case ScaledBeta(low, high, alpha, beta):
            share = pm.Beta(f"{name}_share", alpha, beta)
            return pm.Deterministic(name, low + (high - low) * share)


def _value(expression: Expression, values: Mapping[str, Any]) -> Any:
    match expression:
        case str():
            return values[expression]
        case Call("pow", (base, float() as exponent)):
            return _value(base, values) ** exponent
        case Call(function, arguments):
            given = [_value(a, values) for a in arguments]
            if function in _FOLDS:
                return reduce(_FOLDS[function], given)
            return _ONE_ARGUMENT[function](given[0])
        case _:
            return float(expression)
