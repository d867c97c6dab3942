"""What outcomes show of each latent node, summed up: whether all were passed, or all failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.layouts.model.spec import Layout
from animalcat.layouts.model.validation import ancestors_of

Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]


class Seen(NamedTuple):
    """What outcomes show in which a latent node plays a part.

    Attributes:
        any: Whether there is one.
        passed: Whether each of them reached its maximum.
        failed: Whether each of them reached nothing.
    """

    any: bool = False
    passed: bool = True
    failed: bool = True


NOTHING_SEEN: Final = Seen()


def parts_of(layout: Layout) -> Mask:
    """Which latent nodes play a part in which outcome, (latents, outcomes)."""
    parents = {node.name: node.link.parents for node in layout.derived}
    parts = [ancestors_of(outcome.parents, parents) for outcome in layout.outcomes]
    return np.array([[latent in part for part in parts] for latent in layout.latent_names])


def sum_up_episodes(layout: Layout, touched: Mask, shares: Floats) -> tuple[Seen, ...]:
    """Sum up some episodes for each latent node, in the layout's order.

    Args:
        layout: The layout.
        touched: (episodes, latents), as `Evaluator.touched` returned it.
        shares: (episodes, outcomes): outcomes as shares of their maximum; NaN where none counts.
    """
    there, parts = np.isfinite(shares), parts_of(layout)
    own = [shares[touched[:, i, np.newaxis] & part & there] for i, part in enumerate(parts)]
    return tuple(Seen(bool(len(y)), bool((y >= 1.0).all()), bool((y <= 0.0).all())) for y in own)


def add_episode(
    seen: Sequence[Seen], parts: Mask, touched: Mask, shares: Floats
) -> tuple[Seen, ...]:
    """Add an episode to what is summed up.

    Args:
        seen: What is summed up of those before.
        parts: As `parts_of` returned it.
        touched: (latents,): which nodes affect an outcome of the episode's instance.
        shares: (outcomes,): its outcomes as shares of their maximum; NaN where none counts.
    """
    there = np.isfinite(shares)
    counts = touched & (parts & there).any(axis=1)
    more = touched & (parts & there & ~(shares >= 1.0)).any(axis=1)
    less = touched & (parts & there & ~(shares <= 0.0)).any(axis=1)
    rows = zip(seen, counts.tolist(), more.tolist(), less.tolist(), strict=True)
    return tuple(
        Seen(one.any or there, one.passed and not short, one.failed and not above)
        for one, there, short, above in rows
    )
