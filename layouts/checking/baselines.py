"""Baselines to compare layouts with: the papers' assessors, which predict without explaining.

Each uses the named meta-features, or all if none are named, and predicts the probability of success
or the expected score. The population model also needs other agents' outcomes.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from animalcat.installing import install
from animalcat.layouts.checking.predict import Assessor, FittedAssessor
from animalcat.layouts.model.instances import Instances

Floats: TypeAlias = npt.NDArray[np.float64]


class MissingPackageError(RuntimeError):
    """A baseline needs a package that is not installed; the message says how to install it."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The mean of the outcomes, whatever the instance."""

    name: str = "aggregate"

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAssessor:
        """Compute the mean."""
        return _ConstantFit(float(np.mean(outcomes)))


@dataclass(frozen=True, slots=True)
class Logistic:
    """Logistic regression on standardised meta-features; scores count as shares of successes.

    Attributes:
        columns: The meta-features; all if empty.
        penalty: Weight of half the sum of squared coefficients without the intercept. It makes the
            fit finite even if a meta-feature separates successes from failures. 1 is scikit-learn's
            default.
        name: Its name in tables.
    """

    columns: tuple[str, ...] = ()
    penalty: float = 1.0
    name: str = "logistic regression"

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAssessor:
        """Maximise the penalised likelihood."""
        design = _Design.of(instances, self.columns)
        x = design.apply(instances)

        def loss(beta: Floats) -> tuple[float, Floats]:
            eta = x @ beta[1:] + beta[0]
            value = -float(np.sum(outcomes * log_expit(eta) + (1.0 - outcomes) * log_expit(-eta)))
            off = expit(eta) - outcomes
            gradient = np.concatenate([[off.sum()], x.T @ off + self.penalty * beta[1:]])
            return value + 0.5 * self.penalty * float(beta[1:] @ beta[1:]), gradient

        optimum = minimize(loss, np.zeros(1 + len(design.columns)), jac=True, method="L-BFGS-B")
        return _LinearFit(design, optimum.x, logistic=True)


@dataclass(frozen=True, slots=True)
class ChosenLogistic:
    """Logistic regression whose penalty is chosen within the outcomes that it is told.

    The penalty taken is the one that has predicted parts best which were left out in turn, by the
    logarithm of the probability of what came. Parts are dealt out, failures before successes, so
    each has its share of both.

    Attributes:
        columns: The meta-features; all if empty.
        penalties: What there is to choose from; of equals the largest is taken.
        parts: In how many parts the outcomes are divided.
        name: Its name in tables.
    """

    columns: tuple[str, ...] = ()
    penalties: tuple[float, ...] = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
    parts: int = 5
    name: str = "ridge regression, its strength chosen"

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAssessor:
        """Choose the penalty, and fit with it all that was told.

        Where all outcomes are equal, nothing can be chosen; then every instance is predicted by
        their mean, with half a success and half a failure more.
        """
        if np.ptp(outcomes) == 0.0:
            return _ConstantFit((float(outcomes.sum()) + 0.5) / (len(outcomes) + 1.0))
        part = np.empty(len(outcomes), dtype=np.int64)
        part[np.argsort(outcomes, kind="stable")] = np.arange(len(outcomes)) % self.parts
        design = _Design.of(instances, self.columns)
        x = np.column_stack([np.ones(len(outcomes)), design.apply(instances)])
        losses = np.zeros(len(self.penalties))
        for number in np.unique(part):
            out = part == number
            path = self._path(x[~out], outcomes[~out])
            losses -= np.array([_log_likelihood(x[out], outcomes[out], beta) for beta in path])
        best = int(np.argmin(losses))
        return _LinearFit(design, self._path(x, outcomes)[best], logistic=True)

    def _path(self, x: Floats, y: Floats) -> list[Floats]:
        """The coefficients at every penalty, each found from those at the one before."""
        path: list[Floats] = []
        beta = np.zeros(x.shape[1])
        for penalty in self.penalties:
            beta = _ridge(x, y, penalty, beta)
            path.append(beta)
        return path


def _log_likelihood(x: Floats, y: Floats, beta: Floats) -> float:
    eta = x @ beta
    return float(np.sum(y * log_expit(eta) + (1.0 - y) * log_expit(-eta)))


def _ridge(x: Floats, y: Floats, penalty: float, start: Floats) -> Floats:
    """Maximise a penalised likelihood by Newton's method with steps that are halved if need be.

    The first column of `x` is the intercept, which is nearly free: without any penalty it would be
    infinite where a part has but successes.
    """
    weights = np.full(x.shape[1], penalty)
    weights[0] = min(penalty, _NEARLY_FREE)

    def value(beta: Floats) -> float:
        return _log_likelihood(x, y, beta) - 0.5 * float(weights @ beta**2)

    beta, best = start, value(start)
    for _ in range(_STEPS):
        p = expit(x @ beta)
        gradient = x.T @ (y - p) - weights * beta
        step = np.linalg.solve((x.T * (p * (1.0 - p))) @ x + np.diag(weights), gradient)
        while (found := value(beta + step)) < best and np.abs(step).max() > _SPARE:
            step = 0.5 * step
        beta, best = beta + step, max(found, best)
        if np.abs(step).max() <= _CLOSE:
            break
    return beta


@dataclass(frozen=True, slots=True)
class Linear:
    """Linear regression on meta-features by least squares; predictions are cut to [0, 1]."""

    columns: tuple[str, ...] = ()
    name: str = "linear regression"

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAssessor:
        """Solve the least squares problem; the minimum-norm solution if there are several."""
        design = _Design.of(instances, self.columns)
        x = design.apply(instances)
        beta = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), outcomes)[0]
        return _LinearFit(design, np.asarray(beta, dtype=np.float64), logistic=False)


@dataclass(frozen=True, slots=True)
class GradientBoosting:
    """Boosted trees by xgboost, an optional package, of the extra `assessors`.

    Attributes:
        columns: The meta-features; all if empty.
        trees: Number of trees.
        depth: Greatest depth of a tree.
        rate: Learning rate.
        seed: Seed of xgboost.
        name: Its name in tables.
    """

    columns: tuple[str, ...] = ()
    trees: int = 100
    depth: int = 3
    rate: float = 0.1
    seed: int = 0
    name: str = "gradient boosting"

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAssessor:
        """Fit the trees.

        Raises:
            MissingPackageError: xgboost is not installed.
        """
        xgboost = _package("xgboost", install("assessors"))
        columns = self.columns or instances.columns
        data = xgboost.DMatrix(instances.select(columns), label=outcomes)
        settings = {
            "objective": "binary:logistic",
            "max_depth": self.depth,
            "eta": self.rate,
            "seed": self.seed,
            "nthread": 1,
        }
        model = xgboost.train(settings, data, num_boost_round=self.trees)
        return _BoostedFit(columns, xgboost, model)


@dataclass(frozen=True, slots=True)
class TabPFN:
    """TabPFN, if the user has installed it (under its own licence, with its own weights)."""

    columns: tuple[str, ...] = ()
    seed: int = 0
    name: str = "TabPFN"

    def fit(self, instances: Instances, outcomes: Floats) -> FittedAssessor:
        """Fit TabPFN's classifier, or its regressor if outcomes are scores.

        Raises:
            MissingPackageError: tabpfn is not installed.
        """
        tabpfn = _package("tabpfn", "pip install tabpfn, and see its licence")
        columns = self.columns or instances.columns
        if np.ptp(outcomes) == 0:
            return _ConstantFit(float(outcomes[0]))
        binary = bool(np.isin(outcomes, (0.0, 1.0)).all())
        kind = tabpfn.TabPFNClassifier if binary else tabpfn.TabPFNRegressor
        model = kind(random_state=self.seed)
        model.fit(instances.select(columns), outcomes.astype(int) if binary else outcomes)
        return _TabularFit(columns, model, binary)


def baselines(scores: bool = False) -> list[Assessor]:
    """The baselines that need no further package.

    Args:
        scores: Whether outcomes are scores rather than successes.
    """
    return [Aggregate(), Linear() if scores else Logistic()]


_NEARLY_FREE: Final = 0.01
"""Greatest penalty of an intercept."""
_STEPS: Final = 50
"""Most steps of Newton's method."""
_CLOSE: Final = 1e-6
"""Length of a step after which it has converged."""
_SPARE: Final = 1e-9
"""A meta-feature with a smaller standard deviation counts as constant."""


@dataclass(frozen=True, eq=False)
class _Design:
    """Meta-features, standardised by the mean and deviation of the data that were fitted."""

    columns: Sequence[str]
    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, instances: Instances, columns: Sequence[str]) -> _Design:
        names = tuple(columns) or instances.columns
        values = instances.select(names)
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise ValueError(f"meta-feature {names[column]} of row {row} is missing")
        spread = values.std(axis=0)
        return cls(names, values.mean(axis=0), np.where(spread > _SPARE, spread, 1.0))

    def apply(self, instances: Instances) -> Floats:
        return (instances.select(self.columns) - self.mean) / self.scale


@dataclass(frozen=True, slots=True)
class _ConstantFit:
    value: float

    def predict(self, instances: Instances) -> Floats:
        return np.full(len(instances), self.value)


@dataclass(frozen=True, eq=False)
class _LinearFit:
    design: _Design
    beta: Floats
    logistic: bool

    def predict(self, instances: Instances) -> Floats:
        eta = self.design.apply(instances) @ self.beta[1:] + self.beta[0]
        return np.asarray(expit(eta)) if self.logistic else np.clip(eta, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class _BoostedFit:
    columns: Sequence[str]
    xgboost: Any = field(repr=False)
    model: Any = field(repr=False)

    def predict(self, instances: Instances) -> Floats:
        data = self.xgboost.DMatrix(instances.select(self.columns))
        return np.asarray(self.model.predict(data), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _TabularFit:
    columns: Sequence[str]
    model: Any = field(repr=False)
    binary: bool

    def predict(self, instances: Instances) -> Floats:
        x = instances.select(self.columns)
        predicted = self.model.predict_proba(x)[:, 1] if self.binary else self.model.predict(x)
        return np.clip(np.asarray(predicted, dtype=np.float64), 0.0, 1.0)


def _package(name: str, remedy: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingPackageError(f"{name} is not installed: {remedy}") from None
