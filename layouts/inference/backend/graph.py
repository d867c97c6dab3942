"""The PyMC model of a layout: one builder for each kind of prior, function and outcome.

What follows from features alone is computed before sampling and given to the model as data. What
depends on few features is computed once for each combination of their values that occurs. So a
gradient costs no more than the part that depends on the agent.
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

from animalcat.layouts.model.expressions import evaluate
from animalcat.layouts.model.likelihood import LEAST, LEAST_SIZE, log_beyond
from animalcat.layouts.model.priors import HalfNormal, Normal, Prior, ScaledBeta
from animalcat.layouts.model.spec import Bernoulli, Beta, Binomial, Layout, Likelihood
from animalcat.text.formulas import Call, Expression, names, substitute

Floats: TypeAlias = npt.NDArray[np.float64]
Features: TypeAlias = tuple[str, ...]
"""Names of features in the layout's order; there is one row for each combination of their values.
"""

OUTCOMES: Final = "outcomes"
"""Name of the data (instances,): 0 or 1, numbers of successes, or scores. With several outcomes,
each has its own, with its number after an underscore; a missing one has any value and a weight of
0."""
WEIGHTS: Final = "weights"
"""Name of the data (instances,) of a weighted model: how many outcomes each counts as. With several
outcomes, each has its own."""

FOLDS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "min": pm.math.minimum,
    "max": pm.math.maximum,
}
ONE_ARGUMENT: Final[Mapping[str, Callable[[Any], Any]]] = {
    "logistic": pm.math.sigmoid,
    "exp": pm.math.exp,
    "log": pm.math.log,
}


@dataclass(frozen=True, slots=True)
class ModelGraph:
    """The model of a layout, with one row of data as a placeholder for any number of rows.

    Attributes:
        layout: The layout.
        model: The PyMC model; its latent nodes have the layout's names.
        weighted: Whether outcomes have weights.
        probabilities: For each outcome, its symbolic probability of success or mean score: a vector
            over instances, or a number if it depends on no feature.
        densities: For each outcome, its symbolic log density before weighting.
        columns: The data that follow from features alone, by their name in the model: the features
            whose combinations make the rows, and the function that computes them.
        places: Indices of each instance's combination of features, by their name in the model.
    """

    layout: Layout
    model: pm.Model
    weighted: bool
    probabilities: tuple[Any, ...]
    densities: tuple[Any, ...]
    columns: Mapping[str, tuple[Features, Expression]]
    places: Mapping[str, Features]

    def data(
        self, features: Floats, outcomes: Floats, weights: Floats | None = None
    ) -> dict[str, npt.NDArray[Any]]:
        """Compute the model's data.

        Args:
            features: (instances, features), as returned by `Layout.check_features`.
            outcomes: (instances,) or (instances, outcomes), as returned by `Layout.check_outcomes`.
            weights: For a weighted model (instances,), how many outcomes each counts as; None for
                one each.
        """
        tables = {self.layout.feature_names: features}
        data: dict[str, npt.NDArray[Any]] = {}
        for name, few in self.places.items():
            of_few = features[:, [self.layout.feature_names.index(f) for f in few]]
            tables[few], places = np.unique(of_few, axis=0, return_inverse=True)
            data[name] = places.ravel()
        for name, (few, expression) in self.columns.items():
            data[name] = _column(expression, few, tables[few])
        for k, y in enumerate(outcomes.reshape(len(features), -1).T):
            there = ~np.isnan(y)
            kind, neutral = _type_and_neutral(self.layout.outcomes[k].likelihood)
            data[_name(OUTCOMES, self.layout, k)] = np.where(there, y, neutral).astype(kind)
            if self.weighted:
                own = there.astype(np.float64) if weights is None else there * weights
                data[_name(WEIGHTS, self.layout, k)] = own
        return data


def build_model(layout: Layout, *, weighted: bool = False) -> ModelGraph:
    """Build the model of a layout.

    Args:
        layout: The layout.
        weighted: Whether outcomes have weights, powers to which their likelihoods are raised; they
            are the data named `WEIGHTS`. Several outcomes always have them, since any may be
            missing.
    """
    weighted = weighted or len(layout.outcomes) > 1
    probabilities: list[Any] = []
    densities: list[Any] = []
    with pm.Model() as model:
        builder = _GraphBuilder(layout)
        for k in range(len(layout.outcomes)):
            p, density, weights = _add_outcome(builder, layout, k, weighted)
            weighed = density if weights is None else weights * density
            pm.Potential(_name("outcomes_density", layout, k), weighed)
            probabilities.append(p)
            densities.append(density)
    return ModelGraph(
        layout,
        model,
        weighted,
        tuple(probabilities),
        tuple(densities),
        builder.columns,
        builder.places,
    )


def _add_outcome(
    builder: _GraphBuilder, layout: Layout, k: int, weighted: bool
) -> tuple[Any, Any, Any]:
    """Add one outcome to the model; returns its probability, log density and weights (or None)."""
    likelihood = layout.outcomes[k].likelihood
    p = builder.value(likelihood.parents[0])
    kind, neutral = _type_and_neutral(likelihood)
    outcomes = pm.Data(_name(OUTCOMES, layout, k), np.full(1, neutral, dtype=kind))
    weights = pm.Data(_name(WEIGHTS, layout, k), np.ones(1)) if weighted else None
    match likelihood:
        case Bernoulli():
            chance = p
            if (
                weights is not None and len(layout.outcomes) > 1
            ):  # so that a missing outcome has a finite logarithm and slope
                chance = pm.math.switch(weights > 0.0, p, 0.5)
            # pm.Bernoulli takes the logarithms of both p and 1 - p, whatever the outcome.
            density = pm.math.log(pm.math.switch(outcomes, chance, 1.0 - chance))
        case Binomial(_, trials):
            share = pm.math.clip(p, LEAST, 1.0 - LEAST)
            density = pm.logp(pm.Binomial.dist(n=builder.value(trials), p=share), outcomes)
        case Beta(_, sample_size, edge):
            mean = pm.math.clip(p, LEAST, 1.0 - LEAST)
            size = pm.math.maximum(builder.value(sample_size), LEAST_SIZE)
            a, b = mean * size, (1.0 - mean) * size
            if edge == 0.0:
                density = pm.logp(pm.Beta.dist(alpha=a, beta=b), outcomes)
            else:
                density = _log_score(a, b, outcomes, edge)
    return p, density, weights


def _log_score(a: Any, b: Any, scores: Any, edge: float) -> Any:
    """Log density of scores; at an edge, the log probability to be there or beyond.

    The series for the edge is written once, for whichever edge is nearer, since compiling it takes
    long.
    """
    low, high = pm.math.le(scores, edge), pm.math.ge(scores, 1.0 - edge)
    near, far = pm.math.switch(high, b, a), pm.math.switch(high, a, b)
    beyond = log_beyond(near, far, edge, pm.math.log, pt.gammaln, pm.math.maximum)
    scale = pt.gammaln(a + b) - pt.gammaln(a) - pt.gammaln(b)
    within = scale + (a - 1.0) * pm.math.log(scores) + (b - 1.0) * pm.math.log(1.0 - scores)
    return pm.math.switch(low, beyond, pm.math.switch(high, beyond, within))


class _GraphBuilder:
    """Builds symbolic values in the open model; declares the latent nodes there."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._all = layout.feature_names
        self.columns: dict[str, tuple[Features, Expression]] = {}
        self.places: dict[str, Features] = {}
        self._links = {node.name: node.link.expression for node in layout.ordered}
        self._latents: dict[str, Any] = {n.name: _prior(n.name, n.prior) for n in layout.latents}
        self._made: dict[tuple[Expression, Features], Any] = {}
        self._places: dict[Features, Any] = {}
        self._alone: dict[str, Expression] = {name: name for name in self._all}
        self._reached: dict[str, frozenset[str]] = {name: frozenset([name]) for name in self._all}
        for name, link in self._links.items():
            self._reached[name] = self._reach(link)
            if self._is_alone(link):
                self._alone[name] = substitute(link, self._alone)

    def value(self, expression: Expression, rows: Features | None = None) -> Any:
        """The value of an expression: a number, or symbolic.

        Args:
            expression: An expression of features, latent nodes and derived nodes.
            rows: Features whose combinations of values make the rows; by default one row per
                instance.
        """
        rows = self._all if rows is None else rows
        key = expression, rows
        if key not in self._made:
            self._made[key] = self._make(expression, rows)
        return self._made[key]

    def _make(self, expression: Expression, rows: Features) -> Any:
        if self._is_alone(expression):
            direct = substitute(expression, self._alone)
            return self._data(direct, rows) if direct == expression else self.value(direct, rows)
        if self._is_costly(expression) and rows == self._all:
            few = self._few(expression)
            if few not in ((), self._all):
                return self.value(expression, few)[self._place(few)]
        match expression:
            case str():
                if expression in self._latents:
                    return self._latents[expression]
                return self.value(self._links[expression], rows)
            case Call("pow", (base, float() as exponent)):
                return self.value(base, rows) ** exponent
            case Call(function, (argument,)) if function in ONE_ARGUMENT:
                return ONE_ARGUMENT[function](self.value(argument, rows))
            case Call(function, arguments):
                alone = tuple(a for a in arguments if self._is_alone(a))
                given = [self.value(a, rows) for a in arguments if not self._is_alone(a)]
                if alone:
                    given.append(self.value(Call(function, alone), rows))
                return reduce(FOLDS[function], given)
            case _:
                return expression

    def _place(self, few: Features) -> Any:
        """Index of each instance's combination of a few features."""
        if few not in self._places:
            name = f"places_{len(self.places)}"
            self.places[name] = few
            self._places[few] = pm.Data(name, np.zeros(1, dtype=np.int64))
        return self._places[few]

    def _few(self, expression: Expression) -> Features:
        reached = self._reach(expression)
        return tuple(name for name in self._all if name in reached)

    def _reach(self, expression: Expression) -> frozenset[str]:
        """The features on which an expression depends, directly or through derived nodes."""
        return frozenset[str]().union(
            *(self._reached.get(name, frozenset()) for name in names(expression))
        )

    def _is_costly(self, expression: Expression) -> bool:
        return isinstance(expression, Call) and expression.function in (*ONE_ARGUMENT, "pow")

    def _is_alone(self, expression: Expression) -> bool:
        return all(name in self._alone for name in names(expression))

    def _data(self, expression: Expression, rows: Features) -> Any:
        if not names(expression):
            return float(evaluate(expression, {}))
        name = f"instances_{len(self.columns)}"
        self.columns[name] = rows, expression
        # Any row will do; the upper ends give no logarithm of 0.
        highs = {f.name: f.high for f in self._layout.features}
        return pm.Data(name, _column(expression, rows, np.array([[highs[f] for f in rows]])))


def _column(expression: Expression, features: Features, table: Floats) -> Floats:
    values = {name: table[:, i] for i, name in enumerate(features)}
    return np.ascontiguousarray(evaluate(expression, values))


def _type_and_neutral(likelihood: Likelihood) -> tuple[Any, float]:
    """Type of an outcome's data, and a value that is possible for every instance."""
    return (np.float64, 0.5) if isinstance(likelihood, Beta) else (np.int64, 0.0)


def _name(name: str, layout: Layout, outcome: int) -> str:
    """Name in the model of something that belongs to one outcome."""
    return name if len(layout.outcomes) == 1 else f"{name}_{outcome}"


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
