"""Two entrants that the paper tells apart by their bias, and what their outcomes say of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.model.spec import Layout
from benchmarks.reproduce.chance import average_chance, with_chance
from benchmarks.reproduce.olympics import Floats
from benchmarks.reproduce.printed import burden2023

COMPARED: Final = ("Thursday", "MadStorks")
"""The two of section C.2, which the paper says to differ by their bias."""
BIAS: Final = "rightLeftBias"
_DRAWS: Final = 4000
_SIDES: Final = (-1, 0, 1)
"""XPos to the left, ahead and to the right."""


@dataclass(frozen=True, slots=True)
class Sides:
    """What an entrant does to either side.

    Attributes:
        variant: Variant of the layout that its bias is by.
        entrant: Its name.
        left: Passed, and played, where the reward is to the left.
        ahead: The same where it is ahead.
        right: The same where it is to the right.
        mean: Posterior mean of its bias.
        sd: Posterior standard deviation.
        printed: The mean that Figure 9 prints.
        larger: Probability that its bias is larger than that of the other entrant.
    """

    variant: str
    entrant: str
    left: tuple[int, int]
    ahead: tuple[int, int]
    right: tuple[int, int]
    mean: float
    sd: float
    printed: float
    larger: float


def sides(layout: Layout, table: OutcomeTable, seed: int) -> list[Sides]:
    """Count the outcomes of the two entrants by side, and measure their bias.

    Args:
        layout: A layout of the Olympics with a bias.
        table: Outcomes of the entrants; those who are not in it are left out.
        seed: Seed of the posteriors.
    """
    place = layout.latent_names.index(BIAS)
    present = [name for name in COMPARED if name in table.agents]
    draws: list[Floats] = []
    counts: list[dict[int, tuple[int, int]]] = []
    for name in present:
        instances, outcomes = table.of(name)
        told = with_chance(instances, average_chance(outcomes))
        posterior = LivePosterior(layout, seed)
        posterior.update_all(told.features(layout), outcomes)
        chosen = rng(seed, "bias", len(draws)).choice(
            len(posterior.particles), _DRAWS, p=posterior.weights
        )
        draws.append(posterior.particles[chosen, place])
        side = instances.column("XPos")
        counts.append({x: (int(outcomes[side == x].sum()), int((side == x).sum())) for x in _SIDES})
    return [
        Sides(
            layout.variant,
            name,
            counts[i][-1],
            counts[i][0],
            counts[i][1],
            float(draws[i].mean()),
            float(draws[i].std()),
            burden2023().figure_9[name].mean[BIAS],
            _larger(draws[i], draws[1 - i]) if len(present) == len(COMPARED) else float("nan"),
        )
        for i, name in enumerate(present)
    ]


def _larger(ours: Floats, theirs: Floats) -> float:
    """Probability that a draw of the first is larger than one of the second."""
    below = np.searchsorted(np.sort(theirs), ours)
    return float(below.mean() / len(theirs))
