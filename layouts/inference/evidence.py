"""Names the evidence of a posterior by a digest, which is equal wherever the evidence is."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.model.spec import Layout


def evidence_digest(
    features: npt.ArrayLike, outcomes: npt.ArrayLike, weights: npt.ArrayLike | None = None
) -> str:
    """Return a SHA-256 of the outcomes that a posterior knows, whichever way they came to it.

    The order of rows does not matter, nor do the names of agents and instances. Rows that tell
    nothing (weight 0, or no outcome) are left out. Numbers count to twelve digits, so that a value
    that was written in another unit and converted back is the same one.

    Args:
        features: (rows, features), in the order and the units of the layout.
        outcomes: (rows,) or (rows, outcomes), NaN where one is missing.
        weights: (rows,): how many outcomes each counts as; None for one each.
    """
    seen = np.asarray(outcomes, np.float64)
    seen = seen.reshape(len(seen), -1 if seen.size else 1)
    asked = np.asarray(features, np.float64).reshape(len(seen), -1 if seen.size else 1)
    counted = np.ones(len(seen)) if weights is None else np.asarray(weights, np.float64)
    # What is added makes the negative zero, which some ways of writing lose, a zero.
    table = np.column_stack([asked, seen, counted]) + 0.0
    told = table[(counted > 0.0) & ~np.isnan(seen).all(axis=1)]
    rows = sorted(",".join(f"{value:.12g}" for value in row) for row in told.tolist())
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


def evidence_of_agent(layout: Layout, table: OutcomeTable, agent: str) -> str:
    """Return the digest that a fit of a layout to an agent's outcomes has.

    Args:
        layout: The layout.
        table: Outcomes on instances that it describes.
        agent: The agent.

    Raises:
        TableError: There is no such agent, or the layout does not describe an instance.
    """
    instances, outcomes = table.of(agent)
    return evidence_digest(instances.features(layout), outcomes, table.weights_of(agent))
