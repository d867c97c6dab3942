"""How often a battery and a session ask for the capabilities that a layout is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from animalcat.layouts.explaining.limits import Mask, best_value, expected_outcome
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


def asking_instances(
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
    success = expected_outcome(evaluator, agents, columns)
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
        A sentence of what arenas hardly ask for, and one of what episodes hardly asked for.
    """
    rare = {name: count for name, count in arenas.items() if count <= SELDOM * total}
    if rare:
        yield (
            f"{_name_of(layout, rare)} hardly asked for: {_times(rare)} of the {total} arenas. A "
            f"session can say little about {'it' if len(rare) == 1 else 'them'} here."
        )
    if played < ENOUGH:
        return
    seldom = {n: k for n, k in episodes.items() if n not in rare and k <= SELDOM * played}
    if seldom:
        yield (
            f"{_name_of(layout, seldom)} hardly asked for so far: {_times(seldom)} of {played} "
            f"episodes, though {_times({name: arenas[name] for name in seldom})} of the {total} "
            "arenas."
        )


def _times(counts: Mapping[str, int]) -> str:
    """How often each is asked for, in words: one number where it is the same for all."""
    told = [str(count or "none") for count in counts.values()]
    return f"by {told[0]}" if len(set(told)) == 1 else f"by {all_of(told)}"


def _name_of(layout: Layout, names: Mapping[str, int]) -> str:
    whose = f", which the layout {layout.name} is about," if layout.measures else ""
    return f"{all_of([*names])}{whose} {'is' if len(names) == 1 else 'are'}"
