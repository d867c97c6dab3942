"""The entrants of the Animal-AI Olympics: Figures 6a and 9 of Burden et al. 2023."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr

from animalcat.layouts.checking.baselines import Aggregate
from animalcat.layouts.checking.predict import LayoutAssessor, held_out, splits
from animalcat.layouts.checking.scores import brier
from animalcat.layouts.inference.fit import FitRequest, fit
from animalcat.layouts.inference.live import LivePosterior
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.inference.summary import NodeSummary
from animalcat.layouts.model.instances import OutcomeTable
from animalcat.layouts.model.spec import Layout
from benchmarks.reproduce.chance import AverageChance, average_chance, with_chance
from benchmarks.reproduce.printed import PrintedProfile, burden2023

Floats: TypeAlias = npt.NDArray[np.float64]

INSTANCES: Final = tuple(
    f"{category}-{task:02}-{variation:02}"
    for category, tasks in (("01", 17), ("07", 6))
    for task in range(1, tasks + 1)
    for variation in (1, 2, 3)
)
"""Names of the 69 instances of the paper."""
REPEATS: Final = 15
"""Number of splits in Figure 6a."""
_MIDDLE: Final = (0.2, 0.7)
"""Success rates between which the paper's layout beats the aggregate."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """An entrant's profile.

    Attributes:
        name: Its name in the table of outcomes.
        success: Success rate.
        nodes: The posterior, in the layout's order.
        converged: Whether the fit passed the convergence gate.
        printed: Its row of Figure 9; None if it has none.
    """

    name: str
    success: float
    nodes: tuple[NodeSummary, ...]
    converged: bool
    printed: PrintedProfile | None


@dataclass(frozen=True, slots=True)
class EntrantScore:
    """Brier scores of an entrant, as means over the splits."""

    name: str
    success: float
    layout: float
    aggregate: float


def figure_9(
    layout: Layout,
    table: OutcomeTable,
    seed: int,
    *,
    nuts: bool = True,
    done: Callable[[], object] | None = None,
) -> list[Entrant]:
    """Compute profiles of the entrants.

    Args:
        layout: A layout of the Olympics.
        table: Outcomes of the entrants on the 69 instances.
        seed: Seed of the fits.
        nuts: Whether to fit by NUTS; otherwise by the live posterior, which is faster.
        done: Called after each entrant.
    """
    printed = burden2023().figure_9
    entrants: list[Entrant] = []
    for agent in table.agents:
        instances, outcomes = table.of(agent)
        features = with_chance(instances, average_chance(outcomes)).features(layout)
        if nuts:
            result = fit(FitRequest(layout, features, outcomes, seed))
            nodes, converged = result.nodes, result.converged
        else:
            posterior = LivePosterior(layout, seed)
            for episode, (row, y) in enumerate(zip(features, outcomes, strict=True), 1):
                posterior.update(row, y, episode)
            nodes, converged = posterior.summary(), True
        success = float(outcomes.mean())
        entrants.append(Entrant(agent, success, tuple(nodes), converged, printed.get(agent)))
        if done is not None:
            done()
    return entrants


@dataclass(frozen=True, slots=True)
class Agreement:
    """How closely a node's numbers agree with those of Figure 9, over the entrants.

    Attributes:
        node: Its name.
        rank: Rank correlation of the means (Spearman).
        mean: Root mean squared difference of the means, in the node's unit.
        sd: Root mean squared difference of the standard deviations, in the node's unit.
    """

    node: str
    rank: float
    mean: float
    sd: float


def agreement(entrants: Sequence[Entrant]) -> list[Agreement]:
    """Compare profiles with Figure 9, node by node; entrants without a row are left out.

    Raises:
        ValueError: Fewer than two entrants have a row.
    """
    rows = [(entrant, entrant.printed) for entrant in entrants if entrant.printed is not None]
    if len(rows) < 2:
        raise ValueError(f"{len(rows)} entrants are in Figure 9; two at least are wanted")
    agreements: list[Agreement] = []
    for i, node in enumerate(rows[0][0].nodes):
        ours = np.array([[e.nodes[i].mean, e.nodes[i].sd] for e, _ in rows])
        theirs = np.array([[p.mean[node.name], p.sd[node.name]] for _, p in rows])
        apart = np.sqrt(np.mean((ours - theirs) ** 2, axis=0))
        rank = spearmanr(ours[:, 0], theirs[:, 0]).statistic
        agreements.append(Agreement(node.name, rank, float(apart[0]), float(apart[1])))
    return agreements


def figure_6a(
    layout: Layout,
    table: OutcomeTable,
    seed: int,
    *,
    repeats: int = REPEATS,
    nuts: bool = False,
    done: Callable[[], object] | None = None,
) -> list[EntrantScore]:
    """Brier scores on held-out instances, 20 % of them, beside those of the aggregate.

    Every entrant has its own splits, the same for both predictions.

    Args:
        layout: A layout of the Olympics.
        table: Outcomes of the entrants on the 69 instances.
        seed: Seed of splits and fits.
        repeats: Number of splits.
        nuts: Whether to fit by NUTS; otherwise by the live posterior.
        done: Called after each entrant.
    """
    ours = AverageChance(LayoutAssessor(layout, seed, "nuts" if nuts else "live"))
    scores: list[EntrantScore] = []
    for number, agent in enumerate(table.agents):
        instances, outcomes = table.of(agent)
        own = int(rng(seed, "entrant", number).integers(1 << 31))
        parts = list(splits(len(instances), own, repeats))
        by_layout = held_out(ours, instances, outcomes, parts)
        by_average = held_out(Aggregate(), instances, outcomes, parts)
        scores.append(
            EntrantScore(
                agent,
                float(outcomes.mean()),
                brier(by_layout.predicted, by_layout.outcomes),
                brier(by_average.predicted, by_average.outcomes),
            )
        )
        if done is not None:
            done()
    return scores


def in_the_middle(scores: Sequence[EntrantScore]) -> list[EntrantScore]:
    """The entrants with a success rate between 0.2 and 0.7."""
    low, high = _MIDDLE
    return [score for score in scores if low <= score.success <= high]
