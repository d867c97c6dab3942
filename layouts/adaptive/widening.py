"""A widened layout, for agents that the layout does not describe in some strata."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.links import Formula
from animalcat.layouts.model.nodes import Derived, Feature, Latent, OutcomeNode
from animalcat.layouts.model.priors import ScaledBeta
from animalcat.layouts.model.spec import Beta, Layout

INSIDE: Final = "inContradictedStratum"
"""The additional feature of a widened layout: 1 in the strata where predictions fail."""


def widened(layout: Layout) -> Layout:
    """Widen a layout: in contradicted strata, a share of the outcomes follows a rate of its own.

    There, every expected outcome is (1 - share) x prediction of the layout + share x rate. With a
    share of 1 such instances tell nothing about the capabilities. Elsewhere nothing changes. If
    there are several outcomes, each has a rate of its own; they have one share, since the episodes
    are the same.

    Args:
        layout: The layout that was contradicted.

    Returns:
        A layout with one more feature, the last one: `INSIDE`.
    """
    unit = ScaledBeta(0.0, 1.0)
    share = "contradictedShare"
    latents = [
        Latent(share, "robustness", "1", unit, about="share of outcomes that have their own rate")
    ]
    derived: list[Derived] = []
    outcomes: list[OutcomeNode] = []
    for k, outcome in enumerate(layout.outcomes):
        number = "" if len(layout.outcomes) == 1 else str(k + 1)
        inner, rate = outcome.parents[0], f"contradictedRate{number}"
        formula = Formula(f"clip({inner} + {INSIDE} * {share} * ({rate} - {inner}), 0, 1)")
        wide = f"widenedPerformance{number}"
        of = f" of {outcome.name}" * bool(number)
        latents.append(Latent(rate, "bias", "1", unit, about=f"rate{of} of those"))
        derived.append(Derived(wide, "1", formula))
        field = "mean" if isinstance(outcome.likelihood, Beta) else "probability"
        outcomes.append(replace(outcome, likelihood=replace(outcome.likelihood, **{field: wide})))
    return replace(
        layout,
        variant=f"{layout.variant}, widened" if layout.variant else "widened",
        features=(
            *layout.features,
            Feature(INSIDE, "1", 0.0, 1.0, about="1 in strata where predictions failed"),
        ),
        latents=(*layout.latents, *latents),
        derived=(*layout.derived, *derived),
        outcomes=tuple(outcomes),
    )


def with_strata(features: npt.ArrayLike, inside: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Add the feature `INSIDE` for a widened layout.

    Args:
        features: (instances, features) of the original layout.
        inside: (instances,): whether the instance is in a contradicted stratum.
    """
    return np.column_stack([np.asarray(features, np.float64), np.asarray(inside, np.float64)])
