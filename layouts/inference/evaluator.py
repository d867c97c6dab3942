"""Predictions of a layout for (draws x instances), without PyMC.

Outcomes of an instance are independent given the agent. So the likelihood of several outcomes is
the product of the likelihoods of those that are present.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.program import Code, Fill, compile_program, operands
from animalcat.layouts.model.likelihood import draw_outcomes, log_density, trials_of
from animalcat.layouts.model.links import Gate
from animalcat.layouts.model.spec import Bernoulli, Layout
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Real = TypeVar("Real", np.float32, np.float64)

_MODERATE: Final = 1e18
"""Products of two numbers below this and above its inverse are normal numbers in float32."""
_KEPT: Final = 6
"""Arrays of draws of which the rows are kept: a posterior's, and those of abler agents."""
_WEIGHTED: Final = 4096
"""Number of instances processed at a time if some count less than one."""
_ROWS: Final = 256
"""Number of instances processed at a time if outcomes are not 0 or 1, so that arrays stay small."""


class Evaluator:
    """A layout compiled for evaluation; making one takes well under a millisecond.

    Columns of features and of draws are in the order of `layout.features` and `layout.latents`.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._program = compile_program(layout)
        self._kept: deque[tuple[Floats, Floats]] = deque(maxlen=_KEPT)

    def probability(self, theta: npt.ArrayLike, demands: npt.ArrayLike, outcome: int = 0) -> Floats:
        """Probability of success, or mean score.

        Args:
            theta: (draws, latents), in the units of the latents.
            demands: (instances, features), in the units of the features.
            outcome: Index of the outcome in the layout.

        Returns:
            (draws, instances).
        """
        return self.by_instance(theta, self.columns(demands), np.float64, outcome).T

    @property
    def width(self) -> int:
        """Number of columns that `columns` computes."""
        return len(self._program.columns)

    def columns(self, demands: npt.ArrayLike) -> Floats:
        """Compute the values that depend on the instances alone, to be kept and used again.

        Args:
            demands: (instances, features), in the units of the features.

        Returns:
            (instances, columns).

        Raises:
            ValueError: A feature is missing or out of range.
        """
        features = self.layout.check_features(demands)
        return np.ascontiguousarray(_fill(self._program.columns, features.T).T)

    def by_instance(
        self, theta: npt.ArrayLike, columns: Floats, dtype: type[Real], outcome: int = 0
    ) -> npt.NDArray[Real]:
        """Probability of success, or mean score, from prepared columns.

        Args:
            theta: (draws, latents).
            columns: As returned by `columns`.
            dtype: Type of the result, and of the computation if its range allows: float32 takes
                half the time and is accurate to about 1e-6.
            outcome: Index of the outcome in the layout.

        Returns:
            (instances, draws).
        """
        return self._run(theta, columns, self._program.codes[outcome], dtype)

    def sample_sizes(
        self, theta: npt.ArrayLike, columns: Floats, outcome: int = 0
    ) -> Floats | None:
        """Sample size of scores; None for an outcome that is no score.

        Args:
            theta: (draws, latents).
            columns: As returned by `columns`.
            outcome: Index of the outcome in the layout.

        Returns:
            (instances, draws).
        """
        code = self._program.size_codes[outcome]
        return None if code is None else self._run(theta, columns, code, np.float64)

    def log_likelihood(
        self,
        theta: npt.ArrayLike,
        columns: Floats,
        outcomes: Floats,
        weights: Floats | None = None,
    ) -> Floats:
        """Log-likelihood of all outcomes of all instances together.

        Args:
            theta: (draws, latents).
            columns: (instances, columns), as returned by `columns`.
            outcomes: (instances,) or (instances, outcomes), as returned by `Layout.check_outcomes`.
            weights: (instances,), how many outcomes each counts as; None for one each.

        Returns:
            (draws,); 0 where there are no instances.
        """
        if weights is not None and (partly := weights != 1.0).any():
            whole = self.log_likelihood(theta, columns[~partly], outcomes[~partly])
            rows = np.flatnonzero(partly)
            for start in range(0, len(rows), _WEIGHTED):
                part = rows[start : start + _WEIGHTED]
                whole = whole + portable.dot(
                    weights[part], self.pointwise(theta, columns[part], outcomes[part])
                )
            return whole
        from animalcat.layouts.inference.kernels import log_likelihood, schedule  # brings numba

        out = np.zeros(len(np.asarray(theta)))
        for k, rows, y in self._each(outcomes):
            there = columns if rows is None else columns[rows]
            if isinstance(self.layout.outcomes[k].likelihood, Bernoulli):
                if len(y):
                    drawn = self._rows(theta)
                    steps = schedule(self._program.codes[k], there, len(drawn))
                    out += log_likelihood(steps, drawn, y)
                continue
            for start in range(0, len(y), _ROWS):
                part = slice(start, start + _ROWS)
                out += self._density(theta, there[part], y[part], k).sum(axis=0)
        return out

    def pointwise(self, theta: npt.ArrayLike, columns: Floats, outcomes: Floats) -> Floats:
        """Log-likelihood of each instance: of all its outcomes that are present.

        Args:
            theta: (draws, latents).
            columns: (instances, columns), as returned by `columns`.
            outcomes: (instances,) or (instances, outcomes), as returned by `Layout.check_outcomes`.

        Returns:
            (instances, draws).
        """
        if outcomes.ndim == 1:
            return self._density(theta, columns, outcomes, 0)
        out = np.zeros((len(columns), len(np.asarray(theta))))
        for k, rows, y in self._each(outcomes):
            out[rows] += self._density(theta, columns[rows], y, k)
        return out

    def simulate(
        self, theta: npt.ArrayLike, columns: Floats, generator: np.random.Generator
    ) -> Floats:
        """Draw outcomes.

        Args:
            theta: (draws, latents).
            columns: (instances, columns), as returned by `columns`.
            generator: Source of randomness.

        Returns:
            (instances, draws) of a layout with one outcome, else (instances, draws, outcomes).
        """
        drawn = [
            self._draw_outcomes(theta, columns, k, generator)
            for k in range(len(self.layout.outcomes))
        ]
        return drawn[0] if len(drawn) == 1 else np.stack(drawn, axis=-1)

    def demands(self, columns: Floats) -> Floats:
        """The demand of each instance on each capability, in the capability's unit.

        Args:
            columns: As returned by `columns`.

        Returns:
            (instances, capabilities): the largest demand if there are several; NaN if there is
            none, because no margin has the capability, or gates shut all of them out.
        """
        kinds, plays = self._program.demands, self._plays(columns)
        out = np.full((columns.shape[0], len(kinds)), np.nan)
        for k, pairs in enumerate(kinds):
            for index, node in pairs:
                demand = np.where(plays[node], columns[:, index], np.nan)
                out[:, k] = np.fmax(out[:, k], demand)
        return out

    def touched(self, columns: Floats) -> Mask:
        """Which latent nodes affect an outcome of each instance.

        Args:
            columns: As returned by `columns`.

        Returns:
            (instances, latents): False where gates shut the node out.
        """
        plays = self._plays(columns)
        return np.stack([plays[name] for name in self.layout.latent_names], axis=1)

    def _plays(self, columns: Floats) -> dict[str, Mask]:
        """In which instances each node plays a part, (instances,) each."""
        layout, nothing = self.layout, np.zeros(len(columns), np.bool_)
        nodes = (*layout.features, *layout.latents, *layout.derived)
        plays: dict[str, Mask] = {node.name: nothing for node in nodes}
        for outcome in layout.outcomes:
            plays |= dict.fromkeys(outcome.parents, ~nothing)
        for node in reversed(layout.ordered):
            for parent in node.link.parents:
                open_here = plays[node.name]
                if isinstance(node.link, Gate):
                    open_here = open_here & self._opens(node.link, parent, columns)
                plays[parent] = plays[parent] | open_here
        return plays

    def _opens(self, gate: Gate, parent: str, columns: Floats) -> Mask:
        """In which instances a gate lets a parent through, (instances,)."""
        is_on = columns[:, self.layout.feature_names.index(gate.when)] > 0.5
        on = np.ones_like(is_on) if parent == gate.when else np.zeros_like(is_on)
        if parent == gate.input:
            on = on | is_on
        return on | ~is_on if parent == gate.otherwise else on

    def _each(self, outcomes: Floats) -> Iterator[tuple[int, Mask | None, Floats]]:
        """For every outcome: its index, which instances have it (None for all), and its values."""
        if outcomes.ndim == 1:
            yield 0, None, outcomes
            return
        for k in range(outcomes.shape[1]):
            rows = ~np.isnan(outcomes[:, k])
            yield k, rows, outcomes[rows, k]

    def _density(self, theta: npt.ArrayLike, columns: Floats, y: Floats, outcome: int) -> Floats:
        """Log density of one outcome of each instance, (instances, draws)."""
        likelihood = self.layout.outcomes[outcome].likelihood
        p = self.by_instance(theta, columns, np.float64, outcome)
        size = self.sample_sizes(theta, columns, outcome)
        trials = trials_of(self.layout, likelihood, columns)
        return log_density(likelihood, p, size, trials, y[:, np.newaxis])[:, 0]

    def _draw_outcomes(
        self, theta: npt.ArrayLike, columns: Floats, outcome: int, generator: np.random.Generator
    ) -> Floats:
        likelihood = self.layout.outcomes[outcome].likelihood
        p = self.by_instance(theta, columns, np.float64, outcome)
        size = self.sample_sizes(theta, columns, outcome)
        trials = trials_of(self.layout, likelihood, columns)
        return draw_outcomes(likelihood, p, size, trials, generator)

    def _run(
        self, theta: npt.ArrayLike, columns: Floats, code: Code, dtype: type[Real]
    ) -> npt.NDArray[Real]:
        from animalcat.layouts.inference.kernels import probabilities, schedule  # brings numba

        rows = self._rows(theta)
        if not len(columns):
            return np.empty((0, rows.shape[1]), dtype)
        steps = schedule(code, columns, len(rows))
        if dtype is np.float32 and _moderate(rows) and _moderate(columns[:, operands(code)]):
            return probabilities(steps, rows.astype(dtype))
        return probabilities(steps, rows).astype(dtype, copy=False)

    def _rows(self, theta: npt.ArrayLike) -> Floats:
        draws = np.asarray(theta, dtype=np.float64)
        if draws.ndim != 2 or draws.shape[1] != len(self.layout.latents):
            raise ValueError(
                f"draws have shape {draws.shape}; layout {self.layout.name} wants (draws, "
                f"{len(self.layout.latents)}): {', '.join(self.layout.latent_names)}"
            )
        for made_of, rows in self._kept:
            if made_of is draws:
                return rows
        rows = _fill(self._program.rows, draws.T)
        if not draws.flags.writeable:
            # Then an identical array holds identical draws, as from a posterior.
            self._kept.append((draws, rows))
        return rows


def _moderate(values: Floats) -> bool:
    """Whether products of any two values are certain to stay in the range of float32."""
    size = np.abs(values)
    return bool((size < _MODERATE).all() and ((size > 1.0 / _MODERATE) | (size == 0.0)).all())


def _fill(fills: tuple[Fill, ...], given: Floats) -> Floats:
    """Compute rows (or columns) one after the other; the first ones are taken from `given`."""
    rows = list(given)
    for fill in fills[len(given) :]:
        rows.append(fill(rows))
    return np.array(rows)
