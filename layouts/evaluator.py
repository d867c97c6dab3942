"""P(success) for (draws x instances) from a layout, without PyMC."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from animalcat.layouts.kernels import log_likelihood, probabilities
from animalcat.layouts.program import Fill, compile_program
from animalcat.layouts.spec import Layout

Floats: TypeAlias = npt.NDArray[np.float64]
Real = TypeVar("Real", np.float32, np.float64)


class Evaluator:
    """A layout made ready to evaluate; making one takes well under a millisecond.

    Columns of features and of draws are in the order of `layout.features` and `layout.latents`.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._program = compile_program(layout)

    def probability(self, theta: npt.ArrayLike, demands: npt.ArrayLike) -> Floats:
        """Probability of success.

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
        """Probability of success from prepared columns.

        Args:
            theta: (draws, latents).
            columns: As `columns` gave them.
            dtype: Of the result; it is worked out in float64 anyway.

        Returns:
            (instances, draws).
        """
        rows = self._rows(theta)
        out = np.empty((columns.shape[0], rows.shape[1]), dtype)
        p = self._program
        probabilities(p.code, columns, rows, p.scratch, p.result, out)
        return out

    def log_likelihood(self, theta: npt.ArrayLike, columns: Floats, outcomes: Floats) -> Floats:
        """Log-likelihood of 0/1 outcomes.

        Args:
            theta: (draws, latents).
            columns: (instances, columns), as `columns` gave them.
            outcomes: (instances,), 0 or 1.

        Returns:
            (draws,); 0 where there are no instances.
        """
        rows = self._rows(theta)
        out = np.zeros(rows.shape[1])
        p = self._program
        log_likelihood(p.code, columns, rows, p.scratch, p.result, outcomes, out)
        return out

    def demands(self, columns: Floats) -> Floats:
        """The demand that each instance makes on each capability, in the capability's unit.

        Args:
            columns: As `columns` gave them.

        Returns:
            (instances, capabilities): the largest where it makes several, NaN where it makes none.
        """
        kinds = self._program.demands
        out = np.full((columns.shape[0], len(kinds)), np.nan)
        for k, indices in enumerate(kinds):
            if indices:
                out[:, k] = columns[:, list(indices)].max(axis=1)
        return out

    def _rows(self, theta: npt.ArrayLike) -> Floats:
        draws = np.asarray(theta, dtype=np.float64)
        if draws.ndim != 2 or draws.shape[1] != len(self.layout.latents):
            raise ValueError(
                f"draws have shape {draws.shape}; layout {self.layout.name} wants (draws, "
                f"{len(self.layout.latents)}): {', '.join(self.layout.latent_names)}"
            )
        return _fill(self._program.rows, draws.T)


def _fill(fills: tuple[Fill, ...], given: Floats) -> Floats:
    """Work out the rows (or columns) one after the other; the first ones pick from `given`."""
    made: list[Floats] = []
    for i, fill in enumerate(fills):
        made.append(fill(list(given)) if i < given.shape[0] else fill(made))
    return np.array(made)
