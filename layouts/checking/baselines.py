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

from animalcat.extending.installing import install
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
