"""How often a battery and a session ask for the capabilities that a layout is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.limits import Mask, best_value, expected
from animalcat.layouts.explaining.wording import all_of
from animalcat.layouts.inference.evaluator import Evaluator
from animalcat.layouts.model.spec import Layout

ASKS: Final = 0.1
"""Success that an instance costs who has nothing of a capability, if it asks for it."""
SELDOM: Final = 0.125
"""Share of arenas or of episodes up to which a capability is hardly asked for."""
ENOUGH: Final = 20
"""Number of episodes from which on their share is looked at."""
_FAR: Final = -3.0
"""Prior standard deviations at which a capability without a lower end counts as nothing."""


def about(layout: Layout) -> list[int]:
    """Columns of the capabilities that a layout is about: those that it says, else all."""
    names = layout.measures or layout.latent_names
    return [k for k in layout.capabilities if layout.latents[k].name in names]


def asked_of(
    layout: Layout, features: npt.ArrayLike, evaluator: Evaluator | None = None
) -> dict[str, Mask]:
    """Tell which instances ask for each capability that a layout is about.

    An instance asks for a capability where who has nothing of it, and the best of all else, loses
    at least `ASKS` of success.

    Args:
        layout: The layout.
        features: (instances, features), in the layout's order and units.
        evaluator: Evaluator of the layout, if there is one already.

    Returns:
        By capability, (instances,).
    """
    evaluator = evaluator or Evaluator(layout)
    columns = evaluator.columns(features)
    chosen = about(layout)
    agents = np.tile([best_value(node) for node in layout.latents], (1 + len(chosen), 1))
    for row, k in enumerate(chosen, 1):
        prior = layout.latents[k].prior
        none = prior.low if np.isfinite(prior.low) else prior.from_standard(np.array(_FAR))
        agents[row, k] = float(none)
    success = expected(evaluator, agents, columns)
    touched = evaluator.touched(columns)
    return {
        layout.latents[k].name: touched[:, k] & (success[0] - success[row] >= ASKS)
        for row, k in enumerate(chosen, 1)
    }


def hardly_asked(
    layout: Layout,
    arenas: Mapping[str, int],
    total: int,
    episodes: Mapping[str, int],
    played: int,
) -> Iterator[str]:
    """Say which of the capabilities that a layout is about are hardly asked for.

    Args:
        layout: The layout.
        arenas: Number of arenas that ask for each of them.
        total: Number of arenas that the layout covers.
        episodes: Number of episodes that asked for each of them.
        played: Number of episodes.

    Yields:
        Sentences, each about those of which as much is asked.
    """
    rare = {name: count for name, count in arenas.items() if count <= SELDOM * total}
    for names, count in _alike(rare):
        yield (
            f"{_named(layout, names)} hardly asked for: {count or 'none'} of the {total} arenas "
            f"{'asks' if count == 1 else 'ask'} for {_it(names)}. A session can tell little about "
            f"{_it(names)} here."
        )
    if played < ENOUGH:
        return
    seldom = {n: k for n, k in episodes.items() if n not in rare and k <= SELDOM * played}
    for names, count in _alike(seldom):
        yield (
            f"{_named(layout, names)} hardly asked for so far: {count or 'none'} of {played} "
            f"episodes asked for {_it(names)}, though {arenas[names[0]]} of the {total} arenas do."
        )


def _alike(counts: Mapping[str, int]) -> list[tuple[list[str], int]]:
    """The names that have each count, the smallest first."""
    return [
        ([name for name, own in counts.items() if own == count], count)
        for count in sorted(set(counts.values()))
    ]


def _named(layout: Layout, names: list[str]) -> str:
    whose = f", which the layout {layout.name} is about," if layout.measures else ""
    return f"{all_of(names)}{whose} {'is' if len(names) == 1 else 'are'}"


def _it(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"
