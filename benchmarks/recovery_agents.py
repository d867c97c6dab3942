"""The agents of `benchmarks recovery`: limits of known strength, single weaknesses, impostors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from animalcat.layouts.inference.randomness import rng

Floats: TypeAlias = npt.NDArray[np.float64]

SEED: Final = 20261125
"""Of the agents with a single weakness, which are drawn after everything else is fixed."""
WEAK: Final = 4
"""A single weakness lies within the first so many of a capability's strengths."""


@dataclass(frozen=True)
class Plant:
    """A limit whose strengths are planted, and the node of the layout that should find them.

    Attributes:
        node: The node.
        limit: The limit, with {} for its strength.
        strengths: From the one that limits most to the one that limits least.
        falls: Whether the node falls as the strength grows, as does lapses.
    """

    node: str
    limit: str
    strengths: tuple[float, ...]
    falls: bool = False

    def agent(self, strength: float) -> str:
        """The reference of the agent with a strength."""
        return f"{ABLE}+{self.limit.format(f'{strength:.4g}')}"

    def planted(self, strength: float) -> float:
        """What the node should grow with."""
        return -strength if self.falls else strength


@dataclass(frozen=True)
class Site:
    """A battery, a layout, and what is planted there.

    Attributes:
        battery: Name of the shipped battery.
        layout: Name of the layout.
        variant: Its variant.
        plants: What is planted for each capability.
        impostors: Agents that act by another rule than the layout's.
        episodes: Of a session.
    """

    battery: str
    layout: str
    variant: str
    plants: tuple[Plant, ...]
    impostors: tuple[str, ...]
    episodes: int


ABLE: Final = "builtin:planner"
_SHARES: Final = (0.95, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25, 0.15, 0.05)
# At the worst strength an agent still passes one in six or more of the arenas, by the battery's
# demands. Of one that passes none, nothing can be known but that: capabilities that it could have
# shown only beside the weak one would fall back to the prior.

SITES: Final[Mapping[str, Site]] = {
    "aaio": Site(
        "navigation-2000",
        "aaio",
        "metres-15",
        (
            Plant("navigationAbility", "path={}", (4, 7, 10, 13, 16, 19, 23, 27, 31, 35)),
            Plant(
                "visualAbility",
                "smallest={}+no-search",
                (2.8, 2.4, 2.1, 1.8, 1.55, 1.3, 1.1, 0.95, 0.8, 0.65),
                falls=True,
            ),
        ),
        (
            f"{ABLE}+follows=left",
            f"{ABLE}+follows=right",
            f"{ABLE}+follows=last-place",
            f"{ABLE}+not-with=wall",
            f"{ABLE}+only-with=wall",
        ),
        40,
    ),
    "object-permanence": Site(
        "object-permanence-separable",
        "object-permanence",
        "by-way",
        (
            Plant(
                "memoryAbility",
                "memory={}+no-search",
                (3, 4.7, 6.4, 8.1, 9.8, 11.5, 13.2, 14.9, 16.6, 18.3),
            ),
            Plant("OPAbility", "places={}+no-search", (2, 3, 4, 5, 6, 7, 8, 10, 12, 14)),
            Plant(
                "visualAbility",
                "smallest={}+no-search",
                (3.4, 3.1, 2.8, 2.5, 2.2, 1.9, 1.6, 1.3, 1.0, 0.7),
                falls=True,
            ),
            Plant("flatNavAbility", "path={}", (17, 20, 23, 26, 29, 32, 35, 39, 43, 47)),
            Plant("rampAbility", "ramp-shy={}", _SHARES, falls=True),
            Plant("lavaAbility", "lava-blind={}", _SHARES, falls=True),
            Plant("platformAbility", "platform-shy={}", _SHARES, falls=True),
        ),
        (
            f"{ABLE}+follows=left",
            f"{ABLE}+follows=right",
            f"{ABLE}+follows=last-place",
            f"{ABLE}+not-with=ramp",
            f"{ABLE}+only-with=ramp",
            f"{ABLE}+not-with=lava",
            f"{ABLE}+only-with=lava",
        ),
        60,
    ),
}
"""By the name of the part of the table."""


def able_agents(count: int) -> list[tuple[str, int]]:
    """Agents that can do everything, with 0 to 5 % lapses, and the seeds of their sessions."""
    return [(f"{ABLE}+lapses={0.01 * (k % 6):.2f}", 1 + k) for k in range(count)]


def weak_agents(site: Site, count: int, name: str) -> list[tuple[Plant, str]]:
    """Agents with a single weakness each, drawn from a seed.

    Args:
        site: Where they play.
        count: How many; weaknesses take turns.
        name: Of the site, for the seed.

    Returns:
        What is planted, and the agent.
    """
    draws = rng(SEED, f"weak agents {name}", 0)
    made: list[tuple[Plant, str]] = []
    for k in range(count):
        plant = site.plants[k % len(site.plants)]
        worst, best = plant.strengths[0], plant.strengths[WEAK - 1]
        strength = float(draws.uniform(min(worst, best), max(worst, best)))
        if plant.limit.startswith("places"):
            strength = float(round(strength))
        made.append((plant, plant.agent(strength)))
    return made


def interval_of_share(hits: int, of: int, share: float = 0.9) -> tuple[float, float]:
    """Wilson's interval of a share.

    Args:
        hits: How many.
        of: Of how many.
        share: Probability that the interval holds.
    """
    z = NormalDist().inv_cdf(0.5 + share / 2)
    p = hits / of
    middle, half = p + z * z / (2 * of), z * sqrt(p * (1 - p) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    return (middle - half) / scale, (middle + half) / scale


def interval_of_correlation(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """Spearman's correlation with the 90 % interval of resampled pairs."""
    one, other = np.array([x, y], np.float64)
    rows = rng(SEED, "bootstrap", 0).integers(len(one), size=(2000, len(one)))
    low, high = np.quantile(_rank_correlations(one[rows], other[rows]), [0.05, 0.95])
    return float(_rank_correlations(one[None], other[None])[0]), float(low), float(high)


def _rank_correlations(x: Floats, y: Floats) -> Floats:
    """Spearman's correlation of each pair of rows; 0 where one does not vary."""
    ranks = np.stack([rankdata(values, axis=1) for values in (x, y)])
    a, b = ranks - ranks.mean(axis=2, keepdims=True)
    size = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return np.divide((a * b).sum(axis=1), size, out=np.zeros_like(size), where=size > 0.0)
