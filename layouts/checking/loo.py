"""Comparing layouts on the same outcomes by leave-one-out predictive density (PSIS-LOO).

It estimates how well each outcome is predicted from all the others, without refitting (Vehtari,
Gelman and Gabry 2017). A Pareto k above 0.7 says that the estimate is unreliable for an outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.inference.fit import FitResult

Floats: TypeAlias = npt.NDArray[np.float64]

_ROWS: Final = 1000
"""Outcomes that are judged at a time, so that arrays stay small."""
_MAX_K: Final = 0.7
"""Largest Pareto k with which an estimate is trusted (Vehtari et al. 2024)."""


@dataclass(frozen=True, eq=False)
class Loo:
    """How well a layout predicts each outcome from the others.

    Attributes:
        name: Name and variant of the layout.
        elpd: (instances,): log predictive density of each outcome, in nats.
        k: (instances,): Pareto k of each.
        effective: Effective number of parameters.
    """

    name: str
    elpd: Floats
    k: Floats
    effective: float

    @property
    def total(self) -> float:
        """Sum over the outcomes; more is better."""
        return float(self.elpd.sum())

    @property
    def standard_error(self) -> float:
        """Standard error of the total."""
        return _standard_error(self.elpd)

    @property
    def doubtful(self) -> int:
        """Number of outcomes with a Pareto k above 0.7."""
        return int((self.k > _MAX_K).sum())


def loo(fitted: FitResult, features: npt.ArrayLike, outcomes: npt.ArrayLike) -> Loo:
    """Estimate the leave-one-out predictive density of a fit.

    Args:
        fitted: The fit.
        features: (instances, features) that it was fitted to.
        outcomes: (instances,) or (instances, outcomes) that it was fitted to; an instance is left
            out with all its outcomes.

    Raises:
        ValueError: Features or outcomes do not fit the layout, or are not those of the fit; or it
            counted outcomes as less than one, whose posterior without one of them is another.
    """
    layout = fitted.layout
    checked = layout.check_features(features)
    y = layout.check_outcomes(outcomes, checked)
    if not len(y) or fitted.diagnostics["outcomes"] != len(y):
        raise ValueError(f"{len(y)} outcomes; fitted were {fitted.diagnostics['outcomes']}")
    weights = None if fitted.data is None else fitted.data.weights
    if weights is not None and (weights < 1.0).any():
        raise ValueError("a fit in which repeats count as less than one cannot be judged by LOO")
    from animalcat.layouts.inference.backend import compat

    evaluator = Evaluator(layout)
    chains, draws, _ = fitted.draws.shape
    elpd, k, within = (np.empty(len(y)) for _ in range(3))
    for start in range(0, len(y), _ROWS):
        part = slice(start, start + _ROWS)
        columns = evaluator.columns(checked[part])
        pointwise = evaluator.pointwise(fitted.flat_draws, columns, y[part])
        shape = (chains, draws, len(pointwise))
        elpd[part], k[part] = compat.psis_loo(pointwise.T.reshape(shape))
        peak = pointwise.max(axis=1)
        within[part] = np.log(np.mean(np.exp(pointwise - peak[:, np.newaxis]), axis=1)) + peak
    return Loo(f"{layout.name} ({layout.variant})", elpd, k, float(np.sum(within - elpd)))


@dataclass(frozen=True, slots=True)
class LooRow:
    """One layout in comparison with the best.

    Attributes:
        name: Name and variant of the layout.
        elpd: Log predictive density, in nats.
        se: Its standard error.
        behind: How far it is behind the best; 0 for the best.
        behind_se: Standard error of that, from the differences outcome by outcome.
        effective: Effective number of parameters.
        doubtful: Number of outcomes for which the estimate is unreliable.
    """

    name: str
    elpd: float
    se: float
    behind: float
    behind_se: float
    effective: float
    doubtful: int


def compare_layouts(results: Sequence[Loo]) -> list[LooRow]:
    """Compare layouts on the same outcomes, the best first.

    A difference of less than about 4 nats, or less than twice its standard error, says little.

    Raises:
        ValueError: No results are given, or they belong to different outcomes.
    """
    if not results or len({len(result.elpd) for result in results}) != 1:
        raise ValueError("layouts are compared on the same outcomes, one layout at least")
    best = max(results, key=lambda result: result.total)
    rows = [
        LooRow(
            result.name,
            result.total,
            result.standard_error,
            best.total - result.total,
            _standard_error(best.elpd - result.elpd),
            result.effective,
            result.doubtful,
        )
        for result in results
    ]
    return sorted(rows, key=lambda row: row.behind)


def _standard_error(values: Floats) -> float:
    return float(np.sqrt(len(values) * values.var()))
