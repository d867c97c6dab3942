"""Simulated entrants of the Melting Pot contest, to test the layout of Tesic et al. 2025."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from animalcat.layouts.checking.predict import FittedLayout, split
from animalcat.layouts.checking.scores import r2
from animalcat.layouts.checking.screening import LEAST_R2
from animalcat.layouts.inference.fit import FitRequest, FitResult, fit
from animalcat.layouts.inference.randomness import rng
from animalcat.layouts.model.instances import Instances, OutcomeTable
from animalcat.layouts.model.spec import Layout
from animalcat.layouts.reporting.posterior_table import PosteriorRow, posterior_table
from animalcat.layouts.simulation.simulate import LayoutAgent, simulate_outcomes

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

Kind: TypeAlias = Literal["contest", "prior"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""Entrants as in the contest, or from the layout's prior."""

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


def population(
    layout: Layout, kind: Kind, seed: int, entrants: int = ENTRANTS
) -> SimulatedEntrants:
    """Draw scenarios, entrants and scores.

    Args:
        layout: A layout of the Melting Pot contest.
        kind: The kind of entrants.
        seed: Seed of all randomness.
        entrants: Number of entrants; about a third of them played fewer blocks, as in the contest.
    """
    generator = rng(seed, f"cooperation {kind}", 0)
    demands = np.stack(list(demands_of(layout, generator).values()), axis=1)
    instances = Instances(
        layout.feature_names,
        np.repeat(demands, _BLOCKS, axis=0),
        names=tuple(
            f"scenario-{s + 1:02d}-{b + 1:02d}" for s in range(_SCENARIOS) for b in range(_BLOCKS)
        ),
    )
    truth = _entrants(layout, kind, entrants, generator)
    scores = np.stack(
        [simulate_outcomes(LayoutAgent(layout, theta), instances, generator) for theta in truth]
    )
    weaker = round(entrants * _WEAKER / ENTRANTS)
    block = np.tile(np.arange(_BLOCKS), _SCENARIOS)
    scores[entrants - weaker :, block >= _FEW_BLOCKS] = np.nan
    names = tuple(f"entrant-{i + 1:02d}" for i in range(entrants))
    return SimulatedEntrants(OutcomeTable(instances, names, scores), truth)


def _entrants(layout: Layout, kind: Kind, entrants: int, generator: np.random.Generator) -> Floats:
    columns: list[Floats] = []
    for node in layout.latents:
        if kind == "contest":
            columns.append(generator.uniform(*CONTEST.get(node.name, _ABILITY), entrants))
        else:
            columns.append(node.prior.from_standard(generator.standard_normal(entrants)))
    return np.stack(columns, axis=1)


@dataclass(frozen=True, slots=True)
class NodeRecovery:
    """How well a node was recovered, over all entrants.

    Attributes:
        node: Its name.
        rmse: Root mean squared error of the posterior means, in the node's unit.
        spread: Standard deviation of the true values: the error of always guessing their mean.
        correlation: Correlation of posterior means and true values.
        coverage: Share of the 90 % intervals that cover the truth.
        width: Mean width of the 94 % intervals, as in Table 2.
    """

    node: str
    rmse: float
    spread: float
    correlation: float
    coverage: float
    width: float


@dataclass(frozen=True, eq=False)
class Recovery:
    """How well a population was recovered.

    Attributes:
        nodes: Every node.
        table: In the form of Table 2: every node of every entrant.
        converged: Number of fits that passed the convergence gate.
        r2: (entrants,): R2 on the held-out blocks; NaN if those are all equal.
        best_r2: (entrants,): R2 of a predictor that knows the entrant.
    """

    nodes: tuple[NodeRecovery, ...]
    table: tuple[PosteriorRow, ...]
    converged: int
    r2: Floats
    best_r2: Floats

    @property
    def readable(self) -> int:
        """Number of entrants that pass the paper's gate of predictive power."""
        return int(np.sum(self.r2 > LEAST_R2))


def recover(
    layout: Layout,
    people: SimulatedEntrants,
    seed: int,
    *,
    done: Callable[[], object] | None = None,
) -> Recovery:
    """Fit a layout by NUTS to 80 % of each entrant's scores, and compare with the truth.

    Args:
        layout: A layout of the Melting Pot contest.
        people: The entrants.
        seed: Seed of splits and fits.
        done: Called after each entrant.
    """
    fits: dict[str, FitResult] = {}
    r2s: list[tuple[float, float]] = []
    for agent, truth in zip(people.table.agents, people.truth, strict=True):
        instances, scores = people.table.of(agent)
        part = split(len(scores), seed)
        features = instances.rows(part.train).features(layout)
        request = FitRequest(layout, features, scores[part.train], seed, draws=_DRAWS, tune=_DRAWS)
        result = fit(request)
        fits[agent] = result
        rest, held = instances.rows(part.test), scores[part.test]
        draws = result.flat_draws
        fitted = FittedLayout(layout, draws, np.full(len(draws), 1.0 / len(draws)))
        expected = LayoutAgent(layout, truth).probability(rest)
        r2s.append((r2(fitted.predict(rest), held), r2(expected, held)))
        if done is not None:
            done()
    powers = np.array(r2s)
    return Recovery(
        _nodes(layout, list(fits.values()), people.truth),
        tuple(posterior_table(fits)),
        sum(result.converged for result in fits.values()),
        powers[:, 0],
        powers[:, 1],
    )


def _nodes(layout: Layout, fits: Sequence[FitResult], truth: Floats) -> tuple[NodeRecovery, ...]:
    table = posterior_table({str(i): fitted for i, fitted in enumerate(fits)})
    recoveries: list[NodeRecovery] = []
    for i, node in enumerate(layout.latents):
        means = np.array([fitted.nodes[i].mean for fitted in fits])
        ends = np.array([fitted.nodes[i].hdi for fitted in fits])
        true = truth[:, i]
        recoveries.append(
            NodeRecovery(
                node.name,
                float(np.sqrt(np.mean((means - true) ** 2))),
                float(true.std()),
                float(np.corrcoef(means, true)[0, 1]),
                float(np.mean((ends[:, 0] <= true) & (true <= ends[:, 1]))),
                float(np.mean([row.high - row.low for row in table if row.node == node.name])),
            )
        )
    return tuple(recoveries)
