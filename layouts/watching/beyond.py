"""Agents that are abler than the ranges of a layout reach, and what would be predicted of them.

The range of a capability ends where its author thought that the hardest arenas are. An agent at
that end passes an arena as hard as it half of the time. One that is abler passes it always, and no
profile of the layout says so. That makes its capability no less than the top of its range, so it
is no reason to distrust the profile.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.spec import Layout
from animalcat.portable import arrays as portable

Floats: TypeAlias = npt.NDArray[np.float64]

LIFTS: Final = (0.0, 0.1, 0.2, 0.4, 0.8)
"""How far beyond the top of every range an agent there may be, in shares of the ranges."""
_NEAR: Final = 0.25
"""The uppermost share of a range from which on an agent may be beyond it."""


def lift_capabilities(layout: Layout, theta: Floats, lift: float) -> Floats:
    """Move capabilities near the top of their ranges beyond it.

    A capability at the top is moved by the whole lift, one a quarter of the range below by nothing,
    and one between in proportion. Capabilities without an upper end stay as they are.

    Args:
        layout: The layout.
        theta: (draws, latents), in the units of the latents.
        lift: How far, in shares of each range.

    Returns:
        (draws, latents); the same array where nothing is moved.
    """
    if not lift:
        return theta
    moved = theta.copy()
    for i in layout.capabilities:
        prior = layout.latents[i].prior
        if np.isfinite(prior.high):
            below = (prior.high - theta[:, i]) / prior.span
            moved[:, i] += lift * prior.span * np.clip(1.0 - below / _NEAR, 0.0, 1.0)
    return moved


def abler(layout: Layout, theta: Floats) -> list[Floats]:
    """Move capabilities beyond their ranges, for each of `LIFTS` but the first, which is 0."""
    moved = [lift_capabilities(layout, theta, lift) for lift in LIFTS[1:]]
    for values in moved:
        values.flags.writeable = False
    return moved


def predict_instance(
    theta: Floats,
    weights: Floats,
    evaluator: Evaluator,
    columns: Floats,
    capped: bool = False,
) -> tuple[float, ...]:
    """Predict an instance.

    Args:
        theta: (particles, latents): what is known of the agent, perhaps `lift_capabilities`.
        weights: (particles,), summing to 1.
        evaluator: Evaluator of the same layout.
        columns: (1, columns): the instance, as `evaluator.columns` returned it.
        capped: Whether to cap what is more than one: what is a probability at the top of a range
            may be, beyond it.

    Returns:
        (outcomes,), the expected value of each as a share of its maximum.
    """
    each = range(len(evaluator.layout.outcomes))
    p = [evaluator.by_instance(theta, columns, np.float64, k)[0] for k in each]
    if capped:
        p = [np.clip(probability, 0.0, 1.0) for probability in p]
    return tuple(float(portable.dot(weights, probability)) for probability in p)
