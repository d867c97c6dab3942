"""The PyMC model of a layout: one builder for each kind of prior, function and outcome.

What follows from features alone is worked out before sampling, once an instance, and given to the
model as data; so a gradient costs no more than what hangs on the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pymc as pm
import pytensor.tensor as pt

from animalcat.layouts.expressions import Call, Expression, evaluate, names, substitute
from animalcat.layouts.likelihood import LEAST, LEAST_SIZE, log_beyond
from animalcat.layouts.priors import HalfNormal, Normal, Prior, ScaledBeta
from animalcat.layouts.spec import Bernoulli, Beta, Binomial, Layout

Floats: TypeAlias = npt.NDArray[np.float64]

OUTCOMES: Final = "outcomes"
"""Name of the data (instances,): 0 or 1, successes, or scores."""
WEIGHTS: Final = "weights"
"""Name of the data (instances,) of a weighted model: as how many outcomes each counts."""

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


@dataclass(frozen=True, slots=True)
class Graph:
    """The model of a layout, with one row of data that stands for any number of rows.

    Attributes:
        layout: The layout.
        model: The PyMC model; its latent nodes have the layout's names.
        probability: Symbolic probability of success, or mean score: a vector over instances, or a
            number where it hangs on no feature.
        columns: The data that follow from features alone, by the name that the model knows.
    """

    layout: Layout
    model: pm.Model
    probability: Any
    columns: Mapping[str, Expression]

    def data(self, features: Floats, outcomes: Floats) -> dict[str, npt.NDArray[Any]]:
        """The model's data.

        Args:
            features: (instances, features), as `Layout.check_features` gave them.
            outcomes: (instances,), as `Layout.check_outcomes` gave them.
        """
        made = _columns(self.layout, self.columns, features)
        return {**made, OUTCOMES: outcomes.astype(_outcome_type(self.layout))}


def build(layout: Layout, *, weighted: bool = False) -> Graph:
    """Build the model of a layout.

    Args:
        layout: The layout.
        weighted: Whether outcomes have weights, powers that their likelihoods are raised to: data
            of the name `WEIGHTS`.
    """
    with pm.Model() as model:
        builder = _Builder(layout)
        p = builder.value(layout.outcome.parents[0])
        score = 0.5 if isinstance(layout.outcome, Beta) else 0
        outcomes = pm.Data(OUTCOMES, np.full(1, score, dtype=_outcome_type(layout)))
        weights = pm.Data(WEIGHTS, np.ones(1)) if weighted else None
        match layout.outcome:
            case Bernoulli():
                _observe(pm.Bernoulli, outcomes, weights, p=p)
            case Binomial(_, trials):
                share = pm.math.clip(p, LEAST, 1.0 - LEAST)
                _observe(pm.Binomial, outcomes, weights, n=builder.value(trials), p=share)
            case Beta(_, sample_size, edge):
                mean = pm.math.clip(p, LEAST, 1.0 - LEAST)
                size = pm.math.maximum(builder.value(sample_size), LEAST_SIZE)
                a, b = mean * size, (1.0 - mean) * size
                if edge == 0.0:
                    _observe(pm.Beta, outcomes, weights, alpha=a, beta=b)
                else:
                    density = _log_score(a, b, outcomes, edge)
                    pm.Potential("outcome", density if weights is None else weights * density)
    return Graph(layout, model, p, builder.columns)


def _observe(distribution: Any, outcomes: Any, weights: Any, **parameters: Any) -> None:
    if weights is None:
        distribution("outcome", **parameters, observed=outcomes)
    else:
        density = pm.logp(distribution.dist(**parameters), outcomes)
        pm.Potential("outcome", weights * density)


def _log_score(a: Any, b: Any, scores: Any, edge: float) -> Any:
    """Log density of scores; of those at an edge the log probability to be there or beyond."""
    low = log_beyond(a, b, edge, pm.math.log, pt.gammaln, pm.math.maximum)
    high = log_beyond(b, a, edge, pm.math.log, pt.gammaln, pm.math.maximum)
    scale = pt.gammaln(a + b) - pt.gammaln(a) - pt.gammaln(b)
    within = scale + (a - 1.0) * pm.math.log(scores) + (b - 1.0) * pm.math.log(1.0 - scores)
    upper = pm.math.switch(pm.math.ge(scores, 1.0 - edge), high, within)
    return pm.math.switch(pm.math.le(scores, edge), low, upper)


class _Builder:
    """Builds symbolic values in the open model; declares the latent nodes there."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.columns: dict[str, Expression] = {}
        self._data: dict[Expression, Any] = {}
        self._alone: dict[str, Expression] = {name: name for name in layout.feature_names}
        self._values: dict[str, Any] = {n.name: _prior(n.name, n.prior) for n in layout.latents}
        for node in layout.ordered:
            if self._is_alone(node.link.expression):
                self._alone[node.name] = substitute(node.link.expression, self._alone)
            else:
                self._values[node.name] = self.value(node.link.expression)

    def value(self, expression: Expression) -> Any:
        """The value of an expression: a number, or symbolic."""
        if self._is_alone(expression):
            return self._column(substitute(expression, self._alone))
        match expression:
            case str():
                return self._values[expression]
            case Call("pow", (base, float() as exponent)):
                return self.value(base) ** exponent
            case Call(function, arguments):
                if function not in _FOLDS:
                    return _ONE_ARGUMENT[function](self.value(arguments[0]))
                alone = tuple(a for a in arguments if self._is_alone(a))
                given = [self.value(a) for a in arguments if not self._is_alone(a)]
                if alone:
                    given.append(self.value(Call(function, alone)))
                return reduce(_FOLDS[function], given)
            case _:
                return expression

    def _is_alone(self, expression: Expression) -> bool:
        return all(name in self._alone for name in names(expression))

    def _column(self, expression: Expression) -> Any:
        if not names(expression):
            return float(evaluate(expression, {}))
        if expression not in self._data:
            name = f"instances_{len(self.columns)}"
            self.columns[name] = expression
            # Any row will do; the upper ends give no logarithm of 0.
            row = np.array([[f.high for f in self._layout.features]])
            example = _columns(self._layout, {name: expression}, row)[name]
            self._data[expression] = pm.Data(name, example)
        return self._data[expression]


def _columns(
    layout: Layout, columns: Mapping[str, Expression], features: Floats
) -> dict[str, Floats]:
    values = {name: features[:, i] for i, name in enumerate(layout.feature_names)}
    return {n: np.ascontiguousarray(evaluate(e, values)) for n, e in columns.items()}


def _outcome_type(layout: Layout) -> Any:
    return np.float64 if isinstance(layout.outcome, Beta) else np.int64


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
