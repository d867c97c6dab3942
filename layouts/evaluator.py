"""P(success), or the mean score, for (draws x instances) from a layout, without PyMC."""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from animalcat.layouts.kernels import log_likelihood, probabilities, schedule
from animalcat.layouts.likelihood import draw_outcomes, log_density
from animalcat.layouts.program import Code, Fill, compile_program, operands
from animalcat.layouts.spec import Bernoulli, Layout
from animalcat.layouts.validation import open_parents, reached

Floats: TypeAlias = npt.NDArray[np.float64]
Real = TypeVar("Real", np.float32, np.float64)

MODERATE: Final = 1e18
"""Products of two numbers below it, and above its inverse, are normal in float32."""
_ROWS: Final = 256
"""Instances taken at a time where outcomes are not 0 or 1, so that arrays stay small."""


class Evaluator:
    """A layout made ready to evaluate; making one takes well under a millisecond.

    Columns of features and of draws are in the order of `layout.features` and `layout.latents`.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._program = compile_program(layout)
        self._kept: tuple[Floats, Floats] | None = None

    def probability(self, theta: npt.ArrayLike, demands: npt.ArrayLike) -> Floats:
        """Probability of success, or mean score.

        Args:
            theta: (draws, latents), in the units of the latents.
            demands: (instances, features), in the units of the features.

        Returns:
            (draws, instances).
        """
        return self.by_instance(theta, self.columns(demands), np.float64).T

    def columns(self, demands: npt.ArrayLike) -> Floats:
        """What of the program depends on the instances alone, to be kept and used again.

        Args:
            demands: (instances, features), in the units of the features.

        Returns:
            (instances, columns).

        Raises:
            ValueError: A feature is missing or out of its range.
        """
        features = self.layout.check_features(demands)
        return np.ascontiguousarray(_fill(self._program.columns, features.T).T)

    def by_instance(
        self, theta: npt.ArrayLike, columns: Floats, dtype: type[Real]
    ) -> npt.NDArray[Real]:
        """Probability of success, or mean score, from prepared columns.

        Args:
            theta: (draws, latents).
            columns: As `columns` gave them.
            dtype: Of the result, and of the work where its range allows: float32 takes half the
                time and is right to about 1e-6.

        Returns:
            (instances, draws).
        """
        return self._run(theta, columns, self._program.code, dtype)

    def sample_sizes(self, theta: npt.ArrayLike, columns: Floats) -> Floats | None:
        """Sample size of scores; None where outcomes are no scores.

        Args:
            theta: (draws, latents).
            columns: As `columns` gave them.

        Returns:
            (instances, draws).
        """
        code = self._program.size_code
        return None if code is None else self._run(theta, columns, code, np.float64)

    def log_likelihood(
        self,
        theta: npt.ArrayLike,
        columns: Floats,
        outcomes: Floats,
        weights: Floats | None = None,
    ) -> Floats:
        """Log-likelihood of all outcomes together.

        Args:
            theta: (draws, latents).
            columns: (instances, columns), as `columns` gave them.
            outcomes: (instances,), as `Layout.check_outcomes` gave them.
            weights: (instances,), as how many outcomes each counts; None: as one.

        Returns:
            (draws,); 0 where there are no instances.
        """
        if weights is not None and (partly := weights != 1.0).any():
            whole = self.log_likelihood(theta, columns[~partly], outcomes[~partly])
            return whole + weights[partly] @ self.pointwise(
                theta, columns[partly], outcomes[partly]
            )
        if isinstance(self.layout.outcome, Bernoulli):
            rows = self._rows(theta)
            out = np.zeros(rows.shape[1])
            if len(outcomes):
                steps = schedule(self._program.code, columns, len(rows))
                log_likelihood(steps, rows, outcomes, out)
            return out
        out = np.zeros(len(np.asarray(theta)))
        for start in range(0, len(outcomes), _ROWS):
            part = slice(start, start + _ROWS)
            out += self.pointwise(theta, columns[part], outcomes[part]).sum(axis=0)
        return out

    def pointwise(self, theta: npt.ArrayLike, columns: Floats, outcomes: Floats) -> Floats:
        """Log-likelihood of each outcome on its own.

        Args:
            theta: (draws, latents).
            columns: (instances, columns), as `columns` gave them.
            outcomes: (instances,), as `Layout.check_outcomes` gave them.

        Returns:
            (instances, draws).
        """
        p = self.by_instance(theta, columns, np.float64)
        size = self.sample_sizes(theta, columns)
        each = outcomes[:, np.newaxis]
        return log_density(self.layout, p, size, self._features(columns), each)[:, 0]

    def simulate(
        self, theta: npt.ArrayLike, columns: Floats, generator: np.random.Generator
    ) -> Floats:
        """Draw outcomes.

        Args:
            theta: (draws, latents).
            columns: (instances, columns), as `columns` gave them.
            generator: Where randomness comes from.

        Returns:
            (instances, draws).
        """
        p = self.by_instance(theta, columns, np.float64)
        size = self.sample_sizes(theta, columns)
        return draw_outcomes(self.layout, p, size, self._features(columns), generator)

    def demands(self, columns: Floats) -> Floats:
        """The demand that each instance makes on each capability, in the capability's unit.

        Args:
            columns: As `columns` gave them.

        Returns:
            (instances, capabilities): the largest where it makes several, NaN where it makes none,
            because no margin has it or because gates keep all of them out.
        """
        kinds = self._program.demands
        found = {node: self._plays_a_part(columns, node) for pairs in kinds for _, node in pairs}
        out = np.full((columns.shape[0], len(kinds)), np.nan)
        for k, pairs in enumerate(kinds):
            for index, node in pairs:
                demand = np.where(found[node], columns[:, index], np.nan)
                out[:, k] = np.fmax(out[:, k], demand)
        return out

    def touched(self, columns: Floats) -> npt.NDArray[np.bool_]:
        """Which latent nodes play a part in the outcome of each instance.

        Args:
            columns: As `columns` gave them.

        Returns:
            (instances, latents): False where gates keep the node out.
        """
        parts = [self._plays_a_part(columns, name) for name in self.layout.latent_names]
        return np.stack(parts, axis=1)

    def _plays_a_part(self, columns: Floats, node: str) -> npt.NDArray[np.bool_]:
        gates = sorted(self.layout.gates)
        at = [self.layout.feature_names.index(name) for name in gates]
        patterns, which = np.unique(columns[:, at] > 0.5, axis=0, return_inverse=True)
        answers = [
            node
            in reached(
                self.layout.outcome.parents,
                open_parents(self.layout.derived, dict(zip(gates, map(bool, row), strict=True))),
            )
            for row in patterns
        ]
        return np.array(answers, dtype=np.bool_)[np.ravel(which)]

    def _features(self, columns: Floats) -> Floats:
        """The features themselves: they are the first columns."""
        return columns[:, : len(self.layout.features)]

    def _run(
        self, theta: npt.ArrayLike, columns: Floats, code: Code, dtype: type[Real]
    ) -> npt.NDArray[Real]:
        rows = self._rows(theta)
        used = len(rows)
        if dtype is np.float32 and _moderate(rows) and _moderate(columns[:, operands(code)]):
            rows = rows.astype(np.float32)
        out = np.empty((columns.shape[0], rows.shape[1]), rows.dtype)
        if out.size:
            probabilities(schedule(code, columns, used), rows, out)
        return out.astype(dtype, copy=False)

    def _rows(self, theta: npt.ArrayLike) -> Floats:
        draws = np.asarray(theta, dtype=np.float64)
        if draws.ndim != 2 or draws.shape[1] != len(self.layout.latents):
            raise ValueError(
                f"draws have shape {draws.shape}; layout {self.layout.name} wants (draws, "
                f"{len(self.layout.latents)}): {', '.join(self.layout.latent_names)}"
            )
        if self._kept is not None and self._kept[0] is draws:
            return self._kept[1]
        rows = _fill(self._program.rows, draws.T)
        if not draws.flags.writeable:  # then the same array is the same draws, as of a posterior
            self._kept = (draws, rows)
        return rows


def _moderate(values: Floats) -> bool:
    """Whether products of two of them are sure to stay in the range of float32."""
    size = np.abs(values)
    return bool((size < MODERATE).all() and ((size > 1.0 / MODERATE) | (size == 0.0)).all())


def _fill(fills: tuple[Fill, ...], given: Floats) -> Floats:
    """Work out the rows (or columns) one after the other; the first ones pick from `given`."""
    made = list(given)
    for fill in fills[len(given) :]:
        made.append(fill(made))
    return np.array(made)
