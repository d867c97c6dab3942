"""Reads what a learner is told of an episode: outcomes that are numbers, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.spec import Bernoulli, Layout
from animalcat.text.counts import count_of

Floats: TypeAlias = npt.NDArray[np.float64]
Given: TypeAlias = float | Sequence[float | None] | Mapping[str, float | None]
"""What is told of an episode: its only outcome; or one for each outcome of the layout, in order,
with NaN where one is missing; or the outcomes that were observed, by name."""

_NUMBERS: Final = "iuf"
"""Kinds of numpy arrays that hold numbers; booleans are a kind of their own."""


def values_of(layout: Layout, given: Given) -> Floats:
    """Read what is told of an episode.

    Args:
        layout: The layout.
        given: What is told.

    Returns:
        (outcomes,), the value of each outcome of the layout; NaN where one is missing.

    Raises:
        ValueError: An outcome is unknown or no number, their count differs, or none is there.
    """
    names = layout.outcome_names
    values_given: list[Any]
    if isinstance(given, Mapping):
        if unknown := sorted(set(map(str, given)) - set(names)):
            raise ValueError(f"outcome {unknown[0]!r} is unknown; there are {', '.join(names)}")
        values_given = [cast("Mapping[str, Any]", given).get(name) for name in names]
    elif isinstance(given, str | bytes) or np.ndim(cast("Any", given)) == 0:
        values_given = [given]
    else:
        values_given = list(cast("Sequence[Any]", given))
    if len(values_given) != len(names):
        raise ValueError(
            f"{count_of(len(values_given), 'outcome')} given; layout {layout.name} has "
            f"{len(names)}: {', '.join(names)}"
        )
    values = np.array([_value(layout, k, value) for k, value in enumerate(values_given)])
    if np.isnan(values).all():
        raise ValueError(
            f"no outcome is given ({given!r}); if the episode showed nothing, call "
            "tell_nothing(instance): it then counts as an episode without evidence"
        )
    return values


def _value(layout: Layout, k: int, value: Any) -> float:
    """One outcome as a number; NaN where it is missing."""
    if value is None:
        return np.nan
    array = np.asarray(value)
    outcome = layout.outcomes[k]
    yes_or_no = array.dtype.kind == "b" and isinstance(outcome.likelihood, Bernoulli)
    if array.ndim or not (array.dtype.kind in _NUMBERS or yes_or_no):
        wanted = outcome.likelihood.__class__.__name__.lower()
        what = {
            "bernoulli": "1 or True for success, 0 or False for failure",
            "binomial": "the number of successful trials",
            "beta": "a score from 0 to 1",
        }[wanted]
        raise ValueError(f"outcome {outcome.name} is told as {value!r}; give {what}")
    return float(array)
