"""What each weakness, bias and noise costs: predictions with and without it, draw by draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.nodes import Latent
from animalcat.layouts.model.spec import Layout
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_FAR: Final = 3.0
"""Prior standard deviations at which a capability without an upper end counts as full."""
_ROWS: Final = 2000
"""Episodes that are predicted at a time, so that arrays stay small."""
_PRIOR_DRAWS: Final = 64
EDGE: Final = 1e-4
"""Predictions are kept this far from 0 and 1, so that no single outcome decides."""
HARDEST: Final = 0.2
"""Share of the instances that touch a node, those on which it costs most, by which it is judged."""


def thin_draws(draws: Floats, weights: Floats | None, count: int) -> Floats:
    """Take `count` draws at equal distances of the cumulated weight, so that all weigh the same.

    Args:
        draws: (draws, latents).
        weights: (draws,), or None where all weigh the same.
        count: Most draws that are returned.

    Returns:
        (at most count, latents).
    """
    if weights is None:
        if len(draws) <= count:
            return draws
        rows = np.linspace(0, len(draws) - 1, count).round().astype(np.int64)
        return draws[rows]
    ends = np.cumsum(weights) / np.sum(weights)
    rows = np.searchsorted(ends, (np.arange(count) + 0.5) / count)
    return draws[np.minimum(rows, len(draws) - 1)]


def best_value(node: Latent) -> float:
    """The value of a node at which it costs nothing.

    It is the upper end for a capability, 0 for a bias (or its prior mean, if 0 is not in its
    range), and no noise for a robustness node.
    """
    if node.kind == "capability":
        top = node.prior.high
        return float(top if np.isfinite(top) else node.prior.from_standard(np.array(_FAR)))
    if node.kind == "bias":
        return 0.0 if node.prior.low < 0.0 < node.prior.high else node.prior.mean
    return node.noiseless


@dataclass(frozen=True, eq=False)
class Costs:
    """What the nodes of a posterior cost on some instances.

    Attributes:
        layout: The layout.
        success: (draws, instances): predicted success, or score as a share of its maximum; of
            several outcomes, the first.
        gain: (nodes, draws, instances): by how much success rises if this node alone is at its
            best.
        alone: (nodes, draws): what the node costs an agent whose other capabilities and biases are
            at their best. Of the instances in which the node plays a part, the fifth on which it
            costs most counts, and the mean over these is given.
        before: (nodes, prior draws): `alone` for draws of the prior.
        able: (draws,): mean success if every capability and bias is at its best.
        touched: (instances, nodes): whether the node plays a part in the instance.
    """

    layout: Layout
    success: Floats
    gain: Floats
    alone: Floats
    before: Floats
    able: Floats
    touched: Mask

    def weak_before(self, least: float) -> Floats:
        """Prior probability that each node costs at least so much, (nodes,)."""
        return (self.before >= least).mean(axis=1)


def costs(
    layout: Layout, draws: Floats, features: npt.ArrayLike, evaluator: Evaluator | None = None
) -> Costs:
    """Compute what every node costs, by predictions with the node at its best.

    Args:
        layout: The layout.
        draws: (draws, latents), which weigh the same; a few hundred are enough.
        features: (instances, features), in the layout's order and units.
        evaluator: Evaluator of the layout, if there is one already.
    """
    evaluator = evaluator or Evaluator(layout)
    columns = evaluator.columns(features)
    touched = evaluator.touched(columns)
    best = np.array([best_value(node) for node in layout.latents])
    fixed = [i for i, node in enumerate(layout.latents) if node.kind != "robustness"]

    def success(theta: Floats) -> Floats:
        return expected_outcome(evaluator, theta, columns)

    as_is = success(draws)
    full = draws.copy()
    full[:, fixed] = best[fixed]
    whole = success(full)
    gain = np.zeros((len(layout.latents), *as_is.shape))
    alone = np.zeros((len(layout.latents), len(draws)))
    before = np.zeros((len(layout.latents), _PRIOR_DRAWS))
    z = portable.ndtri((np.arange(_PRIOR_DRAWS) + 0.5) / _PRIOR_DRAWS)
    perfect = np.tile(best, (_PRIOR_DRAWS, 1))
    top = success(perfect[:1])
    for i, node in enumerate(layout.latents):
        better = draws.copy()
        better[:, i] = best[i]
        gain[i] = np.maximum(success(better) - as_is, 0.0)
        at = np.flatnonzero(touched[:, i])
        if i in fixed and len(at):
            worse = full.copy()
            worse[:, i] = draws[:, i]
            alone[i] = _hardest(whole[:, at] - success(worse)[:, at])
            drawn = perfect.copy()
            drawn[:, i] = node.prior.from_standard(z)
            before[i] = _hardest(top[:, at] - success(drawn)[:, at])
    return Costs(layout, as_is, gain, alone, before, whole.mean(axis=1), touched)


def _hardest(lost: Floats) -> Floats:
    """Mean of what is lost on the instances on which that is most, (draws,)."""
    count = max(1, round(HARDEST * lost.shape[1]))
    return np.sort(np.maximum(lost, 0.0), axis=1)[:, -count:].mean(axis=1)


def expected_outcome(
    evaluator: Evaluator, theta: Floats, columns: Floats, outcome: int = 0
) -> Floats:
    """Expected outcome as a share of its maximum, (draws, instances)."""
    return evaluator.by_instance(theta, columns, np.float64, outcome).T


def leave_one_out(
    evaluator: Evaluator,
    draws: Floats,
    columns: Floats,
    y: Floats,
    weights: Floats,
    outcome: int = 0,
) -> Floats:
    """Leave-one-out predictions by importance weights, (episodes,).

    Args:
        evaluator: Evaluator of the layout.
        draws: (draws, latents) of the posterior that knows all episodes; they weigh the same.
        columns: (episodes, columns), as `Evaluator.columns` returned them.
        y: (episodes,), shares in [0, 1].
        weights: (episodes,), how many outcomes each counts as.
        outcome: Index of the outcome in the layout.
    """
    found = np.empty(len(y))
    for start in range(0, len(y), _ROWS):
        part = slice(start, start + _ROWS)
        p = expected_outcome(evaluator, draws, columns[part], outcome)
        found[part] = _leave_one_out(p, y[part], weights[part])
    return found


def _leave_one_out(p: Floats, y: Floats, weights: Floats) -> Floats:
    """The same from p, (draws, episodes)."""
    clipped = np.clip(p, EDGE, 1.0 - EDGE)
    likelihood = y * np.log(clipped) + (1.0 - y) * np.log1p(-clipped)
    ratio = np.exp(-(weights * likelihood) + (weights * likelihood).min(axis=0))
    # Truncated as Ionides (2008) does, so that no single draw carries the prediction.
    ratio = np.minimum(ratio, ratio.mean(axis=0) * np.sqrt(len(p)))
    return (ratio * p).sum(axis=0) / ratio.sum(axis=0)
