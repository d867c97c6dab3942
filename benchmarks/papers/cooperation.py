"""Simulated entrants of the Melting Pot contest, to test the layout of Tesic et al. 2025."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from animalcat.cli.shared.progress import Tell
from animalcat.layouts.inference.fit import FitRequest, FitResult, fit
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import hdi
from animalcat.layouts.library import load_layout
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout
from benchmarks.agents import LayoutAgent
from benchmarks.papers.printed import printed_figures

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = list[dict[str, Any]]

_SCENARIOS: Final = 51
"""Number of held-out scenarios of the contest."""
_BLOCKS: Final = 16
_FEW_BLOCKS: Final = 4
"""Scores of each scenario: 80 episodes, or 20 for the weaker entrants, in blocks of five."""
ENTRANTS: Final = 23
_WEAKER: Final = 8
"""Number of entrants, and how many of them played fewer blocks."""
_DEMANDED: Final = {
    "prosocial_newcomers": 2,
    "visitor": 14,
    "time_pressure": 3,
    "convention_following": 15,
    "teaching": 2,
    "forgiveness": 2,
    "reciprocity": 15,
}
"""In how many scenarios each demand is present. The paper has it in a picture only; with these the
intervals are about as wide as those of its Table 2."""
_DRAWS: Final = 500
"""Draws of each chain: these posteriors are smooth, so half of the usual number passes the gate."""
CONTEST: Final = {"base_chance": (0.76, 0.86), "sampleSize": (10.0, 16.5)}
"""Ranges of the other nodes there."""
_ABILITY: Final = (0.3, 1.0)
"""Range of the means in Table 2 and Figure 3."""


@dataclass(frozen=True, eq=False)
class SimulatedEntrants:
    """Simulated entrants and their scores.

    Attributes:
        table: Scores of every block of every scenario; NaN where it was not played.
        truth: (entrants, latents), in the layout's order.
    """

    table: OutcomeTable
    truth: Floats


def demands_of(layout: Layout, generator: np.random.Generator) -> dict[str, Floats]:
    """Draw which scenarios have which demand: (scenarios,) for each, 1 where it is present."""
    present = {name: np.zeros(_SCENARIOS) for name in layout.feature_names}
    for name, column in present.items():
        column[generator.choice(_SCENARIOS, _DEMANDED[name], replace=False)] = 1.0
    return present


def population(layout: Layout, seed: int, entrants: int = ENTRANTS) -> SimulatedEntrants:
    """Draw scenarios, entrants as in the contest, and scores.

    Args:
        layout: A layout of the Melting Pot contest.
        seed: Seed of all randomness.
        entrants: Number of entrants; about a third of them played fewer blocks, as in the contest.
    """
    generator = rng(seed, "cooperation contest", 0)
    demands = np.stack(list(demands_of(layout, generator).values()), axis=1)
    instances = Instances(
        layout.feature_names,
        np.repeat(demands, _BLOCKS, axis=0),
        names=tuple(
            f"scenario-{s + 1:02d}-{b + 1:02d}" for s in range(_SCENARIOS) for b in range(_BLOCKS)
        ),
    )
    ranges = [CONTEST.get(node.name, _ABILITY) for node in layout.latents]
    truth = np.stack([generator.uniform(*one, entrants) for one in ranges], axis=1)
    scores = np.stack(
        [LayoutAgent(layout, theta).outcomes(instances, generator) for theta in truth]
    )
    weaker = round(entrants * _WEAKER / ENTRANTS)
    block = np.tile(np.arange(_BLOCKS), _SCENARIOS)
    scores[entrants - weaker :, block >= _FEW_BLOCKS] = np.nan
    names = tuple(f"entrant-{i + 1:02d}" for i in range(entrants))
    return SimulatedEntrants(OutcomeTable(instances, names, scores), truth)


def rows(quick: bool, tell: Tell) -> Rows:
    """Fit the layout by NUTS to each entrant's scores, and compare with the truth, node by node.

    Widths are those of 94 % intervals, beside what Table 2 prints.
    """
    layout = load_layout("melting-pot")
    people = population(layout, 0, 3 if quick else ENTRANTS)
    fits: list[FitResult] = []
    for agent in people.table.agents:
        tell("Tesic et al. 2025", len(fits), len(people.table.agents))
        instances, scores = people.table.of(agent)
        features = instances.features(layout)
        fits.append(fit(FitRequest(layout, features, scores, 0, draws=_DRAWS, tune=_DRAWS)))
    return recovery_rows(layout, fits, people.truth)


def recovery_rows(layout: Layout, fits: Sequence[FitResult], truth: Floats) -> Rows:
    """Errors, coverage and widths of intervals, by node."""
    submissions = printed_figures("tesic2025")["table_2"]["submissions"].values()
    made: Rows = []
    for i, node in enumerate(layout.latents):
        means = np.array([fitted.nodes[i].mean for fitted in fits])
        low, high = np.array([fitted.nodes[i].hdi for fitted in fits]).T
        held = int(np.sum((low <= truth[:, i]) & (truth[:, i] <= high)))
        error = float(np.sqrt(np.mean((means - truth[:, i]) ** 2)))
        made.append(
            {
                "name": f"Tesic et al. 2025, {node.name}: error",
                "value": error,
                "baseline": float(truth[:, i].std()),
                "note": f"baseline: of their mean; 90 % intervals hold {held} of {len(fits)}",
            }
        )
        theirs = [row[node.name] for row in submissions if node.name in row]
        drawn = [fitted.flat_draws[:, i] for fitted in fits]
        ends = [hdi(draws, np.full(len(draws), 1 / len(draws)), 0.94) for draws in drawn]
        width = float(np.mean(np.diff(ends)))
        wide = float(np.mean([high - low for _, low, high in theirs]))
        title = f"Tesic et al. 2025, {node.name}: width"
        made.append({"name": title, "value": width, "baseline": wide, "ratio": width / wide})
    return made
